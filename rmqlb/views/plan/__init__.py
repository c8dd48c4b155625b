"""A plan, and what it says about time."""
