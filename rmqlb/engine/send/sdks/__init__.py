"""Producers of other languages and of gRPC."""
