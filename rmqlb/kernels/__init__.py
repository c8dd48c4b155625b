"""The engine's rules over many trials at once: numpy in, numpy out.

Rules of this folder:
- It imports numpy, the standard library and `rmqlb.errors`, nothing else; the engine says what is to be computed in
  plain numbers (`send_plan`).
- Whatever is computed here equals, bit for bit, what the engine computes for each trial by itself.
"""
