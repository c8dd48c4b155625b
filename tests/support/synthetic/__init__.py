"""A synthetic fleet: drawn from a seed (`draw.py`), lived night by night (`nights.py`), written (`generate.py`).

Everything random comes from the seed, the cluster and the night; no clock, no hidden state.
"""
