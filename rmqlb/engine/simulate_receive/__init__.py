"""Consumers that receive instead of owning queues: gRPC clients through a Proxy, and POP clients."""
