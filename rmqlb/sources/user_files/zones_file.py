"""Zones from a YAML or JSON file: zone to a pattern or a list of them (raises UsageError with file, line and key)."""

from __future__ import annotations

from rmqlb.errors import UsageError
from rmqlb.sources.user_files.strict_yaml import StrictReader
from rmqlb.sources.user_files.text_file import read_text

_MAX_BYTES = 1 << 20
_EXAMPLE = "write az1: [10.1.0.0/16, 'broker-a*']"


def read_zones(path: str) -> tuple[tuple[str, str], ...]:
    """Zones with their patterns, in the file's order."""
    text = read_text(path, "--zones", _MAX_BYTES, "a file of zones has at most 1 MB")
    reader = StrictReader(text, path, _invalid, _EXAMPLE)
    document = reader.document()
    if not isinstance(document, dict) or not document:
        reader.refuse((), "it names no zone", _EXAMPLE)
    found = []
    for zone, patterns in document.items():
        name = reader.name(zone, (str(zone),))
        found += [(name, pattern) for pattern in reader.texts(patterns, (name,))]
    return tuple(found)


def _invalid(problem: str, hint: str | None) -> UsageError:
    return UsageError(problem, hint=hint, code="zones-invalid")
