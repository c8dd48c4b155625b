"""`rmqlb size-group`."""
