"""`rmqlb record`."""
