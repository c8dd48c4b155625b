"""Simulated receives."""
