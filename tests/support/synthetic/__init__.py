"""A synthetic fleet (`fleet.py`), and more faults to put into its snapshots (`faults.py`)."""
