"""A live group recorded: changes between looks, bounds of gaps, and the comparison with what was predicted."""
