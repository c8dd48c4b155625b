"""Two snapshots compared: what changed, and which change gave each queue its new owner."""
