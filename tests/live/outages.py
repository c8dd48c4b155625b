"""Groups that stop for a while under load and catch up again, with a log of each message and snapshots on the way."""

import gzip
import json
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Final

from rmqlb import MessageQueue
from tests.cli.run import command, environment

from .cluster import RocketMQCluster, TopicOnBroker
from .members import Program

BROKERS: Final = ("broker-a", "broker-b")
SAMPLE_S: Final = 10
# A group that is not drained by then has missed any prediction.
LONGEST_S: Final = 600.0
# A drained group runs on for some samples, so that its lag is seen to stay small.
AFTERWARDS_S: Final = 12.0
# A lag of less than that is small, and consumers have started by then.
LITTLE_S: Final = 2.0
LEAST_S: Final = 30.0
# The first messages are consumed by then, so brokers know the groups, and the JVMs keep up with the rates.
FIRST_S: Final = 40.0


@dataclass(frozen=True)
class Outage:
    """A group of `consumers`, each with `threads` consume threads, that stops for `outage_s` and starts again.

    Attributes:
        rates: messages per second of each queue, as clients sort queues, by topic. Half of a topic's queues are on each
            broker.
        sleep_ms: time of a call of the listener, which consumes `batch` messages.
        stops_s: time of the stop, after the beginning of the run.
    """

    group: str
    rates: Mapping[str, Sequence[float]]
    consumers: int
    threads: int
    sleep_ms: int
    outage_s: float
    stops_s: float = 95
    batch: int = 1
    orderly: bool = False

    @property
    def options(self) -> str:
        given = {"topics": ",".join(self.rates), "threads": self.threads, "sleepMs": self.sleep_ms, "batch": self.batch}
        return " ".join(
            f"{key}={value}" for key, value in (given | ({"orderly": True} if self.orderly else {})).items()
        )

    @property
    def starts_s(self) -> float:
        return self.stops_s + self.outage_s


class Backlogs(Program):
    def produce(self, topic: str, rates: Sequence[float]) -> None:
        self.ask(f"produce {topic} {','.join(map(str, rates))}")

    def quiet(self, topic: str) -> None:
        self.ask(f"quiet {topic}")

    def begin(self, outage: Outage) -> None:
        self.ask(f"start {outage.group} {outage.consumers} {outage.options}")

    def end(self, outage: Outage) -> None:
        self.ask(f"stop {outage.group}")


@dataclass
class Backlog:
    """The log of a group: each message's time of storing, and of its first call."""

    path: Path

    @cached_property
    def told(self) -> Mapping[str, Sequence[int]]:
        """When the consumers were starting, started, stopping and stopped, each twice, in epoch milliseconds."""
        found = defaultdict(list)
        for line in self._lines:
            if line.startswith("# "):
                _, word, at = line.split()
                found[word].append(int(at))
        return found

    @cached_property
    def _lines(self) -> Sequence[str]:
        return self.path.read_text(encoding="utf-8").splitlines()

    @cached_property
    def messages(self) -> Mapping[MessageQueue, Sequence[tuple[int, int]]]:
        """When each message of a queue was stored, and first reached a listener, in order of offsets."""
        first: dict[MessageQueue, dict[int, tuple[int, int]]] = defaultdict(dict)
        for line in self._lines:
            if not line.startswith("#"):
                topic, broker, queue, *rest = line.split()
                offset, stored, began, *_ = map(int, rest)
                first[MessageQueue(topic, broker, int(queue))].setdefault(offset, (stored, began))
        return {queue: [each for _, each in sorted(offsets.items())] for queue, offsets in sorted(first.items())}

    @property
    def restarted(self) -> int:
        return self.told["starting"][1]

    def drained(self) -> int:
        """When no message waited for the first time after the second start."""
        changes: dict[int, int] = defaultdict(int)
        for each in self.messages.values():
            for stored, began in each:
                changes[stored] += 1
                changes[began] -= 1
        lag = 0
        for at, change in sorted(changes.items()):
            lag += change
            if at > self.restarted and not lag:
                return at
        raise RuntimeError(f"{self.path.stem} was never drained: {lag} messages wait")


@dataclass(frozen=True)
class Run:
    outages: Mapping[str, Outage]  # by group
    folder: Path

    @cached_property
    def backlogs(self) -> Mapping[str, Backlog]:
        return {group: Backlog(self.folder / f"{group}.log") for group in self.outages}

    @cached_property
    def snapshots(self) -> Mapping[Path, int]:
        """When each was taken, in epoch milliseconds."""
        return {path: _taken_at(path) for path in _snapshots(self.folder)}

    def since(self, at: float) -> list[Path]:
        return [path for path, taken_at in self.snapshots.items() if taken_at >= at]

    def until(self, at: float) -> list[Path]:
        return [path for path, taken_at in self.snapshots.items() if taken_at < at]


def _taken_at(path: Path) -> int:
    at = json.loads(gzip.decompress(path.read_bytes()))["source"]["takenAt"]
    return round(datetime.fromisoformat(at).timestamp() * 1000)


def _snapshots(folder: Path) -> list[Path]:
    return sorted((folder / "snapshots").rglob("*.json.gz"))


@dataclass
class _Life:
    """A group on its way through its outage."""

    outage: Outage
    state: str = "before"
    over_s: float = 0


def live_through(cluster: RocketMQCluster, outages: Sequence[Outage], folder: Path) -> Run:
    """Let all groups live through their outages at the same time; several groups may share topics."""
    topics = {topic: rates for outage in outages for topic, rates in outage.rates.items()}
    cluster.create_topics(
        [TopicOnBroker(topic, b, len(rates) // 2, len(rates) // 2) for topic, rates in topics.items() for b in BROKERS]
    )
    lives = {outage.group: _Life(outage) for outage in outages}
    with _backlogs(cluster, folder) as backlogs:
        begun = time.monotonic()
        for topic, rates in topics.items():
            backlogs.produce(topic, rates)
        for outage in outages:
            backlogs.begin(outage)
            time.sleep(2)  # the first calls of all at once would keep others waiting for seconds
        time.sleep(FIRST_S)
        with _sampling(cluster, [*lives], folder):
            while any(life.state != "over" for life in lives.values()):
                time.sleep(0.2)
                _go_on(lives, time.monotonic() - begun, backlogs, folder)
    return Run({outage.group: outage for outage in outages}, folder)


def _go_on(lives: Mapping[str, _Life], now_s: float, backlogs: Backlogs, folder: Path) -> None:
    lags = _last_lags(folder)
    for group, life in lives.items():
        if life.state == "before" and now_s >= life.outage.stops_s:
            life.state = "stopped"
            backlogs.end(life.outage)
        elif life.state == "stopped" and now_s >= life.outage.starts_s:
            life.state = "started"
            backlogs.begin(life.outage)
        elif life.state == "started":
            small = LITTLE_S * sum(map(sum, life.outage.rates.values()))
            waits = now_s < life.outage.starts_s + LEAST_S or lags.get(group, small) >= small
            if not waits or now_s > LONGEST_S:
                life.state, life.over_s = "drained", now_s + AFTERWARDS_S
        elif life.state == "drained" and now_s >= life.over_s:
            life.state = "over"
            backlogs.end(life.outage)
            busy = {topic for other in lives.values() if other.state != "over" for topic in other.outage.rates}
            for topic in life.outage.rates.keys() - busy:
                backlogs.quiet(topic)


def _last_lags(folder: Path) -> Mapping[str, int]:
    """Each group's lag by the last snapshot."""
    found = _snapshots(folder)
    if not found:
        return {}
    groups = json.loads(gzip.decompress(found[-1].read_bytes()))["data"]["groups"]
    return {
        group["group"]: sum((queue["brokerOffset"] or 0) - (queue["consumerOffset"] or 0) for queue in group["queues"])
        for group in groups
    }


@contextmanager
def _backlogs(cluster: RocketMQCluster, folder: Path) -> Iterator[Backlogs]:
    line = cluster.java.command("Backlogs", cluster.name_server, str(folder))
    with Backlogs.start("backlogs", line, folder / "backlogs.out") as program:
        yield program
        time.sleep(2)


@contextmanager
def _sampling(cluster: RocketMQCluster, groups: Sequence[str], folder: Path) -> Iterator[None]:
    chosen = [word for group in groups for word in ("-g", group)]
    source = ("-s", f"rocketmq://{cluster.name_server}", "--source-timeout", "10s")
    line = command(
        "fetch-routes", *source, *chosen, "--evidence", "--every", f"{SAMPLE_S}s", "--to", str(folder / "snapshots")
    )
    with (folder / "sampling.out").open("wb") as output:
        sampling = subprocess.Popen(line, stdout=output, stderr=output, env=environment())
        try:
            yield
            assert sampling.poll() is None, (folder / "sampling.out").read_text(encoding="utf-8")
        finally:
            sampling.terminate()
            sampling.wait(60)
