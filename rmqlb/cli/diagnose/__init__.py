"""`rmqlb diagnose`."""
