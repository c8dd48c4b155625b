"""`rmqlb sweep-failures`."""
