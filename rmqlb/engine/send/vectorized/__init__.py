"""SYNC sends of many trials at once: numpy in, numpy out; each trial as `rmqlb.engine.send` simulates it, bit for bit.

A caller says what is to be computed in plain numbers (`scenario.py`), which `engine/send/encode_scenario.py` makes.
Arrays that are handed over have shape (n,), an entry for each attempt that is acted on: `lanes` and `places` say whose
it is (None: of all), times are ticks.
"""
