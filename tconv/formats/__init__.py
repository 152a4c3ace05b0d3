"""One module a format, reader and writer together; formats never import steps."""
