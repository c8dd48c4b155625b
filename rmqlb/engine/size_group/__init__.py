"""How many consumers a group should have."""
