"""Tests against a real RocketMQ on loopback. They run only when asked for: ``pytest -m live``."""
