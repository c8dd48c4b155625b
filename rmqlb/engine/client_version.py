"""Versions of the client library as users, members and profiles write them."""

from __future__ import annotations

import re

from rmqlb.errors import UsageError

Version = tuple[int, int, int]
OLDEST: Version = (4, 0, 0)
_VERSION = re.compile(r"[vV]?(\d{1,3})[._](\d{1,3})(?:[._](\d{1,3}))?")


def parse_version(text: str) -> Version:
    """A client version as typed: `5.3.2`, `4.9`, `V5_1_4`; UsageError when it is none, or older than 4.0.0."""
    match = _VERSION.fullmatch(text[:40].strip().removesuffix("_SNAPSHOT").removesuffix("-SNAPSHOT"))
    if match is None:
        from rmqlb.model.send_scenario import NEWEST

        raise UsageError(f"{text[:40]}: not a client version", hint=f"write it as {NEWEST} or 4.9.7")
    version = int(match[1]), int(match[2]), int(match[3] or 0)
    if version < OLDEST:
        raise UsageError(f"{text}: clients older than 4.0.0 are not known", hint="the oldest rules are those of 4.7.1")
    return version
