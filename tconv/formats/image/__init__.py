"""Images: ``reader.py`` opens any of them, one module a family says what is in it, the rest is shared by them."""
