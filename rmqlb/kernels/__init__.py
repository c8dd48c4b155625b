"""The engine's rules over many trials, or many groups on many topics, at once: numpy in, numpy out.

Rules of this folder:
- It imports numpy and the standard library, nothing else; callers say what is to be computed in
  plain numbers (`send_plan`, `pairs`).
- Whatever is computed here equals, bit for bit, what the engine computes for each trial or group by itself.
"""
