"""Which keys are sent, as typed."""

from __future__ import annotations

from rmqlb.errors import DataError, UsageError


def file_of_keys(path: str, source: str | None, max_size: str) -> list[str]:
    """The keys of `--keys-file`, one per line (raises UsageError, DataError)."""
    from rmqlb.sources.user_files.text_file import read_text
    from rmqlb.verbs.amounts import byte_count
    from rmqlb.verbs.parse import lines_of

    if source == "-" and path == "-":
        raise UsageError("-s - and --keys-file - both read stdin")
    lines = lines_of(read_text(path, "--keys-file", byte_count(max_size, "--max-size")))
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            raise DataError(f"--keys-file {path}: line {number} is blank", hint="one key per line")
    return lines
