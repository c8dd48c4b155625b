"""The size of a group: how many consumers it should have."""
