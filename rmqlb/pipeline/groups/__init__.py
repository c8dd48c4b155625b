"""Stages 2 to 4: who owns which queue of which group, what that is worth, and what would be."""
