"""Whether what is written is in colour."""

from __future__ import annotations

import os
import sys


def has_colour(choice: str) -> bool:
    """What `--color` means for stdout: auto is as NO_COLOR and FORCE_COLOR say, otherwise on a terminal."""
    forced = os.environ.get("FORCE_COLOR", "")
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or forced == "0":
        return False
    return bool(forced) or (sys.stdout.isatty() and os.environ.get("TERM") != "dumb")
