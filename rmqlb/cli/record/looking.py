"""Looking again and again: the clock, and the waits between looks."""

from __future__ import annotations

import time

from msgspec import Struct

from rmqlb.cli.common.options import SourceOptions
from rmqlb.cli.common.watch import LEAST_S
from rmqlb.cli.record.options import WatchedOptions
from rmqlb.errors import UsageError
from rmqlb.sources.source_text import is_live
from rmqlb.verbs import amounts

CONVERGED = "converged"


class Schedule(Struct, frozen=True):
    """When looks are taken.

    Attributes:
        every_s: from the begin of a look to that of the next one, in seconds; at least one from its end.
        until_converged: a group that has changed and is converged ends it.
        for_s: ends it after so many seconds.
        at_ms: ends it at this moment, in milliseconds since 1970; None is none.
    """

    every_s: float
    until_converged: bool
    for_s: float
    at_ms: int | None

    def left_s(self, began: float) -> float:
        """Seconds until it ends, of one that began then by the monotonic clock."""
        left = began + self.for_s - time.monotonic()
        return left if self.at_ms is None else min(left, (self.at_ms - time.time() * 1000) / 1000)

    def wait_s(self, look_began: float) -> float:
        """Seconds until the next look, after one that began then."""
        return max(look_began + self.every_s - time.monotonic(), LEAST_S)


def schedule(options: WatchedOptions) -> Schedule:
    """The schedule that the options ask for (raises UsageError)."""
    text = options.every or "1s"
    every_s = amounts.duration_us(text, "--every") / 1e6
    if every_s < LEAST_S:
        hint = "a consumer answers on the threads that its brokers need, and is asked once per second at most"
        raise UsageError(f"--every {text}: shorter than 1s", hint=hint)
    for_s = amounts.duration_us(options.for_ or "10m", "--for") / 1e6
    until, at_ms = options.until, None
    if until is not None and until != CONVERGED:
        if "T" in until:
            at_ms = amounts.moment_ms(until, "--until")
        else:
            for_s = min(_duration(until), for_s) if options.for_ else _duration(until)
    return Schedule(every_s, until == CONVERGED, for_s, at_ms)


def _duration(text: str) -> float:
    try:
        return amounts.duration_us(text, "--until") / 1e6
    except UsageError as error:
        error.hint = "write converged, a time as 90s, or a moment as 2026-11-22T16:00:00Z"
        raise


def must_be_live(source: SourceOptions) -> None:
    """Refuse what cannot change."""
    if source.source is not None and not is_live(source.source):
        raise UsageError(
            f"{source.source} is not a running cluster: nothing changes there",
            hint="name NameServers or a Dashboard with -s; --replay FILE shows a recording again",
        )


def now_ms(*, up: bool = False) -> int:
    """Milliseconds since 1970, rounded down, or up."""
    ns = time.time_ns()
    return -(-ns // 1_000_000) if up else ns // 1_000_000
