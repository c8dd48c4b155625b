"""Frozen values that travel between sources, engine and views. Imports nothing of rmqlb but its errors."""
