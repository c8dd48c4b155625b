"""Asks RocketMQ's own producer classes, version by version, and writes their answers down as vectors."""
