"""Parts of chains that are done on a device: which part, how it gets there and back, what it comes to."""
