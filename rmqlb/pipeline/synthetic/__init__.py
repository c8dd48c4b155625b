"""A synthetic fleet: drawn from a seed, then lived through night by night.

`shape.py` says what is asked for, `draw.py` makes a cluster of it with the names of `names.py`; `members.py`,
`routes.py` and `offsets.py` are what changes from night to night, `faults.py` what goes wrong; `nights.py` puts one
night's snapshot together; `generate.py` writes them, as `files.py` lays them out, with damaged ones among them.
Everything random comes from the seed, the cluster and the night; no clock, no hidden state.
"""
