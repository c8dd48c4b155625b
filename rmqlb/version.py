"""The version as a constant: reading it from the installed metadata costs 18 ms at every start."""

__version__ = "0.1.0"
VERSION_DATE = "2026-11-21"  # the day of the version, which every page of the manual bears
