"""A live group recorded: the picture, the changes, and what was predicted."""
