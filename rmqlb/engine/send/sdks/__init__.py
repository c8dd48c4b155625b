"""Producers of other languages and of gRPC: which queue they pick, SDK by SDK.

`profile.py` is the table of SDKs, `hashes.py` what they make of a key, `publish_list.py` the queues that each picks
from, `balancers.py` how they go round them.
"""
