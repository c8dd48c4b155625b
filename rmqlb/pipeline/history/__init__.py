"""Stage 6: what many snapshots tell together, as windows over what was seen; `history.py` puts the steps together."""
