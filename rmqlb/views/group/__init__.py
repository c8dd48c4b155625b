"""A simulated group: figures, timelines, pictures."""
