"""Simulated sends."""
