"""Two snapshots compared, for people and machines."""
