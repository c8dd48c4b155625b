"""SYNC sends of many trials at once: numpy in, numpy out; each trial as `rmqlb.engine.send` simulates it, bit for bit.

A caller says what is to be computed in plain numbers (`scenario.py`), which `engine/send/encode_scenario.py` makes.
"""
