"""`rmqlb plan-topic`."""
