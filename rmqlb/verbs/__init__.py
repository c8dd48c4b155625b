"""The functions of `rmqlb`, one per verb: each takes a source or a snapshot, and returns what `-o json` prints."""
