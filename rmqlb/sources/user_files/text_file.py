"""Text files that users name."""

import sys

from rmqlb.errors import DataError, UsageError, typed


def read_text(path: str, option: str, max_bytes: int, too_large_hint: str = "--max-size raises the limit") -> str:
    """The text of a file, or of stdin for `-` (raises DataError, UsageError)."""
    prefix = typed(option, "")
    try:
        if path == "-":
            data = sys.stdin.buffer.read(max_bytes + 1) if sys.stdin is not None else b""
        else:
            with open(path, "rb") as file:
                data = file.read(max_bytes + 1)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}", prefix=prefix, code="cannot-read") from None
    if len(data) > max_bytes:
        raise UsageError(f"{path}: larger than {max_bytes} bytes", prefix=prefix, hint=too_large_hint)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}: line {line} is not UTF-8 text", prefix=prefix) from None
