"""How late a read ends when the server never lets it end: `python -m benchmarks.deadlines`.

Each misbehaving server of the tests is asked with a deadline of 0.3 s and no retries. Tests never look at a clock; this
does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from time import monotonic

from benchmarks.measuring import machine, markdown
from rmqlb.errors import EndpointError
from rmqlb.sources.source import Access
from tests.sources import test_dashboard, test_wire
from tests.support import replay_dashboard as http
from tests.support import replay_remoting as native

TIMEOUT = 0.3
HOLD = 0.5
"""Seconds that no read may take beyond its deadline."""


def of_a_dashboard(fault: http.Fault) -> float:
    """Seconds of a read over HTTP."""
    with http.dashboard(http.Replay(faults={"*": fault})) as replay:
        source = test_dashboard.source(replay.url, timeout=TIMEOUT, retries=0, max_bytes=1 << 40)
        return taken(lambda: source.fetch(test_dashboard.SKEWED))


def of_a_nameserver(fault: native.Fault) -> float:
    """Seconds of a read in RocketMQ's own protocol."""
    replay = native.Replay(faults={"*": fault})
    with test_wire.talking(replay, Access(timeout=TIMEOUT, retries=0)) as opened:
        return taken(lambda: opened.call(replay.address, test_wire.ROUTE))


def taken(read: Callable[[], object]) -> float:
    """Seconds until a read has failed.

    Raises:
        RuntimeError: it did not fail.
    """
    start = monotonic()
    try:
        read()
    except EndpointError:
        return monotonic() - start
    raise RuntimeError("a server that misbehaves was read")


def main() -> None:
    """The table of both protocols; with `--check`, exit code 1 when a read ends too late."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often each server is asked")
    parser.add_argument("--check", action="store_true", help="fail when a read ends too late")
    options = parser.parse_args()
    tables = (test_dashboard.PASSING, test_dashboard.SLOW, test_dashboard.LASTING)
    over_http = [fault for table in tables for fault, _, _ in table]
    natively = [*test_wire.ENDLESS, *(fault for fault, _ in test_wire.PASSING)]
    late = {
        "HTTP": [of_a_dashboard(fault) - TIMEOUT for _ in range(options.rounds) for fault in over_http],
        "RocketMQ's protocol": [of_a_nameserver(fault) - TIMEOUT for _ in range(options.rounds) for fault in natively],
    }
    rows = [
        (name, len(times) // options.rounds, len(times), f"{max(0.0, *times) * 1000:.0f}", f"{HOLD * 1000:.0f}")
        for name, times in late.items()
    ]
    print(machine())  # noqa: T201 - a program's output
    print(markdown(("protocol", "servers", "reads", "most ms after the deadline", "limit"), rows))  # noqa: T201
    if options.check and max(map(max, late.values())) > HOLD:
        sys.exit("a read ended too late")


if __name__ == "__main__":
    main()
