"""Small inputs of a send simulation: measured latencies, message keys, names of response codes."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator

from rmqlb.errors import DataError, UsageError
from rmqlb.model.send_scenario import STATUSES
from rmqlb.model.snapshot import close_names
from rmqlb.remoting.codes import ResponseCode

_BROKER_COLUMNS = ("brokername", "broker")
_LATENCY_COLUMNS = ("latencyms", "latency", "ms", "tookms", "took")
_LONGEST_MS = 24 * 3600 * 1000
_SHOWN = 5


def response_code(text: str, option: str) -> tuple[str, int] | None:
    """A broker's response code by RocketMQ's name or by number: its name and number, or None (raises UsageError)."""
    name = text.upper()
    if text.isdecimal() and len(text) < 9:
        known = {code.value: code.name for code in ResponseCode}
        name = known.get(int(text), text)
        number = int(text)
    elif name in ResponseCode.__members__:
        number = ResponseCode[name].value
    else:
        return None
    if number == ResponseCode.SUCCESS:
        raise UsageError(f"{option}: SUCCESS is no failure")
    return name, number


def code_names() -> list[str]:
    """The names of all response codes."""
    return [code.name for code in ResponseCode if code is not ResponseCode.SUCCESS]


def read_text(path: str, option: str, max_bytes: int, too_large_hint: str = "--max-size raises the limit") -> str:
    """A text file, or stdin for `-`; UsageError when it cannot be read, is too large, or is not UTF-8."""
    prefix = option if option.endswith("=") else f"{option} "
    try:
        if path == "-":
            data = sys.stdin.buffer.read(max_bytes + 1) if sys.stdin is not None else b""
        else:
            with open(path, "rb") as file:
                data = file.read(max_bytes + 1)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", prefix=prefix) from None
    if len(data) > max_bytes:
        raise UsageError(f"{path}: larger than {max_bytes} bytes", prefix=prefix, hint=too_large_hint)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}: line {line} is not UTF-8 text", prefix=prefix) from None


def read_latencies(path: str, option: str, max_bytes: int) -> dict[str | None, list[int]]:
    """Broker name (None without such a column) → microseconds, from a CSV of milliseconds (raises DataError).

    A first row without numbers names the columns (`brokerName`, `latencyMs`). Empty lines count for nothing.
    """
    where = f"{option} {path}"
    samples: dict[str | None, list[int]] = {}
    bad: list[str] = []
    columns: tuple[int | None, int] | None = None
    for number, row in _rows(read_text(path, option, max_bytes), where):
        if columns is None:
            columns, is_heading = _columns(row, where)
            if is_heading:
                continue
        broker, latency = columns
        value = _latency_us(row[latency]) if len(row) > max(latency, broker or 0) else None
        if value is None or (broker is not None and not row[broker].strip()):
            bad.append(f"{number} ({','.join(row)[:40]})")
            continue
        samples.setdefault(None if broker is None else row[broker].strip(), []).append(value)
    if bad:
        more = f" and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
        raise DataError(
            f"{where}: no latency in row {', '.join(bad[:_SHOWN])}{more}",
            hint="each row is a number of milliseconds above 0, or a broker's name and that number",
        )
    if not samples:
        raise DataError(f"{where}: there is no latency in it")
    return samples


def _rows(text: str, where: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, row
    except csv.Error as error:
        raise DataError(f"{where}: row {reader.line_num}: {error}") from None


def _columns(row: list[str], where: str) -> tuple[tuple[int | None, int], bool]:
    names = [cell.strip().lower() for cell in row]
    if _latency_us(row[-1]) is not None:
        return (0 if len(row) > 1 else None, len(row) - 1), False
    latency = next((i for i, name in enumerate(names) if name in _LATENCY_COLUMNS), None)
    if latency is None:
        if len(row) > 2:
            raise DataError(f"{where}: no column is called latencyMs", hint="its columns are " + ", ".join(names[:8]))
        latency = len(row) - 1
    broker = next((i for i, name in enumerate(names) if name in _BROKER_COLUMNS), None)
    is_heading = names[latency] in _LATENCY_COLUMNS
    if broker is None and len(row) == 2 and not is_heading:
        broker = 0
    return (broker, latency), is_heading


def _latency_us(text: str) -> int | None:
    try:
        value = float(text.strip().lower().removesuffix("ms"))
    except ValueError:
        return None
    return max(round(value * 1000), 1) if 0 < value <= _LONGEST_MS else None


def unknown_kind(text: str, option: str) -> UsageError:
    """The error for a kind of failure that there is not."""
    kinds = ["refused", "timeout", "slow=TIME", "read-only", *STATUSES]
    others = f"kinds are {', '.join(kinds)}, or a response code such as SYSTEM_ERROR or 14"
    hint = close_names(text, [*kinds, *code_names()]) or others
    return UsageError(f"{option}: there is no failure {text}", hint=hint)
