"""Documents that cannot be read, made from ones that can."""

from __future__ import annotations

import gzip
from enum import StrEnum

from rmqlb.model.format_version import FORMAT_VERSION


class Damage(StrEnum):
    """What is wrong with a document."""

    TRUNCATED_GZIP = "truncated-gzip"
    BROKEN_JSON = "broken-json"
    FUTURE_FORMAT = "future-format"
    MISSING_FIELD = "missing-field"
    EMPTY = "empty"


def damage_of(number: int) -> Damage:
    """The kind of the so many-th damaged document: they go round."""
    return list(Damage)[number % len(Damage)]


def damaged(body: bytes, damage: Damage) -> tuple[bytes, str]:
    """A snapshot's JSON without what makes it readable, and the ending of a file that holds it."""
    if damage is Damage.EMPTY:
        return b"", "json"
    if damage is Damage.TRUNCATED_GZIP:
        packed = gzip.compress(body, mtime=0)
        return packed[: len(packed) // 2], "json.gz"
    if damage is Damage.BROKEN_JSON:
        return body[: len(body) * 2 // 3], "json"
    if damage is Damage.FUTURE_FORMAT:
        return body.replace(f'"formatVersion":"{FORMAT_VERSION}"'.encode(), b'"formatVersion":"99.0"', 1), "json"
    return body.replace(b'"brokerName":', b'"broker":', 1), "json"
