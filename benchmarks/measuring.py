"""Time and peak memory of child processes, and the ratios between them.

Rule of this file: nothing is compared with a number from another run. Machines are shared and differ, so a time means
something only beside a peer's, taken in turns with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

MEGABYTE = 1_000_000
# Linux counts in KiB, macOS in bytes (getrusage(2) of each).
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024
_NOT_INHERITED = ("PYTHON", "RMQLB_")


@dataclass(frozen=True)
class Usage:
    """What one finished process took, by the operating system's accounts."""

    seconds: float
    peak_bytes: int
    cpu_seconds: float = 0.0


@dataclass(frozen=True)
class Spread:
    """Several measurements of one thing."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """The spread of at least one value."""
        ordered = sorted(values)
        return cls(median(ordered), ordered[0], ordered[-1])

    def __str__(self) -> str:
        return f"{self.median:.3g} ({self.least:.3g}..{self.most:.3g})"


def ratio(ours: Sequence[float], peers: Sequence[float]) -> Spread:
    """Ours in units of the peer's, turn by turn, so that a slow minute of the machine slows both sides of a quotient.

    >>> str(ratio([3.0, 8.0, 4.0], [2.0, 4.0, 4.0]))
    '1.5 (1..2)'
    """
    return Spread.of(our / peer for our, peer in zip(ours, peers, strict=True))


def in_turns(commands: Mapping[str, Sequence[str]], rounds: int) -> dict[str, list[Usage]]:
    """Each command once a round, in the same order, after one round that does not count."""
    environment = clean_environment()
    measured: dict[str, list[Usage]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            usage = run(command, environment)
            if number:
                measured[name].append(usage)
    return measured


def clean_environment() -> dict[str, str]:
    """This process's environment, without the settings of Python and of rmqlb that a user may have."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
    return {**environment, "XDG_CONFIG_HOME": "/nonexistent"}


def run(command: Sequence[str], environment: Mapping[str, str]) -> Usage:
    """Start a process, let it end, and read its accounts.

    A process starts with the peak of the one that started it (`exec` keeps the larger of both), so this program stays
    small: it imports no more than the standard library and leaves large work to children.

    Raises:
        RuntimeError: the process failed.
    """
    with tempfile.TemporaryFile() as complaints:
        start = perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=complaints, env=environment)  # noqa: S603
        _, status, accounts = os.wait4(child.pid, 0)
        seconds = perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            complaints.seek(0)
            text = complaints.read().decode(errors="replace")
            raise RuntimeError(f"{' '.join(command)} ended with {child.returncode}:\n{text}")
    return Usage(seconds, accounts.ru_maxrss * _MAXRSS_UNIT, accounts.ru_utime + accounts.ru_stime)


def seconds(usages: Iterable[Usage]) -> list[float]:
    """The times alone."""
    return [usage.seconds for usage in usages]


def peak_megabytes(usages: Iterable[Usage]) -> Spread:
    """The peaks alone, in 10^6 bytes."""
    return Spread.of(usage.peak_bytes / MEGABYTE for usage in usages)


def markdown(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as it stands in a page, numbers to the right."""
    from rmqlb.views.formats.people import drawn_table

    texts = [[str(cell) for cell in row] for row in rows]
    lines = drawn_table(headers, texts, [at > 0 for at in range(len(headers))], "github").splitlines()
    first, *others = lines[1].strip("|").split("|")
    lines[1] = "|".join(("", f":{first[1:]}", *(f"{dashes[1:]}:" for dashes in others), ""))
    return "\n".join(lines)


def machine() -> str:
    """What the figures were taken on."""
    version = ".".join(map(str, sys.version_info[:3]))
    return f"Python {version}, {os.cpu_count()} cores, load before the run {os.getloadavg()[0]:.2f}"
