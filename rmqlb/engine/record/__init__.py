"""A live group recorded: changes between samples, bounds of gaps, and the comparison with what was predicted."""
