"""Changing a topic's queues in steps that lose no message and keep the order of keys."""
