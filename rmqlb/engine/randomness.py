"""Random numbers by address are part of the kernel; this goes when nobody imports them from here."""

from rmqlb.engine.kernel import BITS, GAMMA, Draws, draw, mix, stream_key

__all__ = ["BITS", "GAMMA", "Draws", "draw", "mix", "stream_key"]
