"""What brokers and consumers are asked by `rmqlb record` and `rmqlb diagnose`: `python -m benchmarks.load`.

Two scripted brokers on loopback answer for a group, each request after 20 ms, and count: requests, how many are under
way at once, and how far apart two requests for a consumer's running information are. With `--check`, exit code 1 when
more are under way at once than promised, or a consumer is asked more often than once per second.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from benchmarks.measuring import machine, markdown
from rmqlb.remoting.codes import RequestCode
from rmqlb.sources.live import AT_ONCE
from rmqlb.sources.pace import GAP_S
from tests.cli.run import command, environment
from tests.support.moving_group import GROUP, Moment, moving
from tests.support.replay_remoting import Turn

ANSWER_S = 0.02
FOR_S = 10
CONSUMERS = (3, 16)


@dataclass
class Load:
    """What both brokers and the NameServer were asked.

    Attributes:
        times: when each request came, by the monotonic clock.
        most: under way at once.
        asked: client ID → when its running information was asked for.
    """

    times: list[float] = field(default_factory=list)
    most: int = 0
    asked: dict[str, list[float]] = field(default_factory=dict)
    _under_way: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def serve(self, turn: Turn) -> None:
        """Answer after a while, and count."""
        now = time.monotonic()
        with self._lock:
            self.times.append(now)
            self._under_way += 1
            self.most = max(self.most, self._under_way)
            if turn.request.code == RequestCode.GET_CONSUMER_RUNNING_INFO:
                self.asked.setdefault(turn.request.ext_fields["clientId"], []).append(now)
        time.sleep(ANSWER_S)
        with self._lock:
            self._under_way -= 1
        turn.write(turn.frame)

    @property
    def closest_s(self) -> float | None:
        """The shortest time between two requests to one consumer, in seconds; None when each was asked once."""
        gaps = [after - before for times in self.asked.values() for before, after in pairwise(times)]
        return min(gaps, default=None)

    def in_any_second(self) -> int:
        """The most requests that came within one second."""
        return max(sum(start <= time_ < start + 1 for time_ in self.times) for start in self.times)


def measured(line: Sequence[str], consumers: int) -> tuple[Load, float]:
    """What the command asks for a group of so many consumers, and how long it takes in seconds."""
    ids = [f"10.0.0.{number}@app" for number in range(1, consumers + 1)]
    queues = [f"{broker}{number}" for broker in "ab" for number in range(8)]
    owners = {client_id: " ".join(queues[place::consumers]) for place, client_id in enumerate(ids)}
    load = Load()
    with moving(Moment(owners)) as group:
        for server in group.servers:
            server.faults["*"] = load.serve
        began = time.monotonic()
        done = subprocess.run(  # noqa: S603 - our own program
            command(line[0], *group.source, "-g", GROUP, *line[1:]), capture_output=True, env=environment(), check=False
        )
        took = time.monotonic() - began
    if done.returncode:
        raise RuntimeError(done.stderr.decode())
    return load, took


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when more is asked than promised")
    check = parser.parse_args().check
    commands = {
        f"record --for {FOR_S}s": ("record", "--for", f"{FOR_S}s", "-o", "json"),
        "diagnose": ("diagnose", "-o", "json"),
        "show-owners": ("show-owners", "-o", "json"),
    }
    rows, failed = [], []
    for name, line in commands.items():
        for consumers in CONSUMERS:
            load, took = measured(line, consumers)
            closest = load.closest_s
            per_consumer = max((len(times) for times in load.asked.values()), default=0)
            rows.append(
                (
                    *(f"`{name}`", consumers, len(load.times), f"{took:.1f}", f"{len(load.times) / took:.1f}"),
                    *(load.in_any_second(), load.most, per_consumer, "" if closest is None else f"{closest:.2f}"),
                )
            )
            if load.most > AT_ONCE or (closest is not None and closest < GAP_S):
                failed.append(f"{name}, {consumers} consumers")
    heads = ("command", "consumers", "requests", "seconds", "per second", "most in a second", "most at once")
    print(machine())  # noqa: T201 - a program's output
    print(markdown((*heads, "most to one consumer", "least seconds between two of them"), rows))  # noqa: T201
    if check and failed:
        sys.exit(f"more was asked than promised: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
