"""A file or a stream as a source: what it is, its content tells."""
