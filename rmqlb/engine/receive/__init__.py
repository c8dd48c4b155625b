"""Consumers that receive instead of owning queues: gRPC through a Proxy, and POP."""
