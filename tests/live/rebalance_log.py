"""Groups of real consumers that live through events, each member in a JVM of its own, and the log of what they did.

RocketMQ's own timers are at work here, so a group is left alone for longer than a member's 20 s between two rebalances.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from threading import Barrier, BoundedSemaphore
from typing import Final

import msgspec
from msgspec.structs import replace

from rmqlb.model.group_scenario import EventKind
from tests.support.recorded_groups import Line, Lived, Recording

from .cluster import RocketMQCluster, TopicOnBroker
from .jvm import START_DEADLINE, Java, JavaProcess, started, wait_until

QUIET: Final = 26.0
"""Seconds after which each member has rebalanced once more since an event."""
_BETWEEN_STARTS: Final = 4.0
# A program's first requests take it some tenths of a second of two cores.
_BETWEEN_GROUPS: Final = 3.0
_ASKED: Final = 20
_two_at_a_time: Final = BoundedSemaphore(2)
HEARTBEAT: Final = 34
"""Request code of a heartbeat; the other requests of the log decide what a member does next, so it waits for them."""


@dataclass(frozen=True)
class Act:
    kind: EventKind
    name: str  # of the consumer; with broker-up, of a broker of the cluster that gets the topic now
    quiet: float = QUIET  # for how many seconds the group is left alone afterwards


START: Final = (Act("join", "c1", _BETWEEN_STARTS), Act("join", "c2", _BETWEEN_STARTS), Act("join", "c4"))
"""Three members, sorted as clients sort them; c3 is to come between them."""


@dataclass(frozen=True)
class Group:
    cluster: RocketMQCluster
    name: str
    topic: str  # on each of the cluster's brokers, unless a broker is to come up with it
    queues_each: int
    orderly: bool = False  # the listener is a MessageListenerOrderly
    guests: Java | None = None  # starts clients of another version than the cluster's
    lite_pull: bool = False  # the consumers are DefaultLitePullConsumer and poll all the time
    go: Path | None = None  # the program of Go's client that runs them instead of Java's

    @property
    def java(self) -> Java:
        return self.guests or self.cluster.java

    def live_through(self, acts: Sequence[Act], ready: Barrier) -> Recording:
        """`ready` is passed once all programs of this group and of those beside it have loaded their classes."""
        with ExitStack() as alive:
            names = dict.fromkeys(act.name for act in acts if act.kind != "broker-up")
            new_brokers = tuple(act.name for act in acts if act.kind == "broker-up")
            try:
                if self.go:  # its retry topic is there, which takes brokers long to create at a first heartbeat
                    known = [name for name in self.cluster.broker_addresses if name not in new_brokers]
                    self.cluster.create_topics([TopicOnBroker(f"%RETRY%{self.name}", name, 1, 1) for name in known])
                jvms = {name: self._jvm(name, alive) for name in names}
            except BaseException:
                ready.abort()
                raise
            time.sleep(_BETWEEN_GROUPS * ready.wait())
            done = [line for act in acts for line in self._do(act, jvms)]
            end_us = _now_us()
            lines = [*done, *(line for jvm in jvms.values() for line in _lines(jvm))]
        return self._recording(sorted(lines, key=lambda line: line.at_us), end_us, new_brokers)

    def _jvm(self, name: str, alive: ExitStack) -> JavaProcess:
        """One that is ready: many that load their classes at a time wait for each other until requests time out."""
        java = self.java
        listener = "lite-pull" if self.lite_pull else "orderly" if self.orderly else "concurrent"
        told = self.cluster.name_server, self.name, listener, self.topic
        command = [str(self.go), *told] if self.go else java.command("RebalanceLog", *told)
        with _two_at_a_time:
            jvm = alive.enter_context(started(f"{self.name} {name}", command, java.home / f"{self.name}-{name}.log"))
            jvm.wait_for_text('{"ready":true}')
        return jvm

    def _do(self, act: Act, jvms: Mapping[str, JavaProcess]) -> Iterator[Line]:
        """What the JVMs themselves cannot tell of: their violent end, and what becomes of a broker."""
        if act.kind == "broker-up":
            yield Line(self._bring_up(act.name), "", "up", broker_name=act.name)
        elif act.kind == "crash":
            yield Line(_now_us(), self._client_id(act.name), "killed")
            jvms[act.name].kill()
        elif act.kind == "freeze":
            jvms[act.name].freeze()
            yield Line(_now_us(), self._client_id(act.name), "frozen")
        elif act.kind == "unfreeze":
            yield Line(_now_us(), self._client_id(act.name), "unfrozen")
            jvms[act.name].unfreeze()
        else:
            jvm = jvms[act.name]
            jvm.send(f"{act.kind} {act.name}")
            done = "started" if act.kind == "join" else "stopped"
            wait_until(
                lambda: any(line.what == done for line in _lines(jvm)), START_DEADLINE, lambda: f"{act}: {jvm.output()}"
            )
        time.sleep(act.quiet)

    def _client_id(self, name: str) -> str:
        """Lite pull consumers say that they use the requests of streams (`ClientConfig.buildMQClientId`)."""
        return f"127.0.0.1@{name}" + ("@STREAM" if self.lite_pull and self.java.version >= "5" else "")

    def _bring_up(self, broker_name: str) -> int:
        """The broker runs already: it is new to a group none of whose topics it had, and that it has never heard."""
        known = [name for name in self.cluster.broker_addresses if self.cluster.knows_members(name, self.name)]
        if known != [name for name in self.cluster.broker_addresses if name != broker_name]:
            raise RuntimeError(f"all but {broker_name} must know members of {self.name}: {known} do")
        return self.cluster.create_topics([TopicOnBroker(self.topic, broker_name, self.queues_each, self.queues_each)])

    def _recording(self, lines: Sequence[Line], end_us: int, new_brokers: tuple[str, ...]) -> Recording:
        names = {address: name for name, address in self.cluster.broker_addresses.items()}
        request_us, connect_us, starts_us = self._of_go(lines) if self.go else _measured(lines, names, new_brokers)
        lived = Lived(
            version=self.java.version, group=self.name, orderly=self.orderly, topic=self.topic,
            brokers=dict.fromkeys(names.values(), self.queues_each), end_us=end_us - lines[0].at_us,
            request_us=request_us, connect_us=connect_us, starts_us=starts_us, new_brokers=new_brokers,
            lite_pull=self.lite_pull, began_us=lines[0].at_us, sdk="go" if self.go else "java",
        )  # fmt: skip
        kept = [line for line in lines if line.at_us < end_us and line.topic in (self.topic, None)]
        seen = ((line, line.broker_name or names.get(line.address or "")) for line in kept)
        logged = (
            replace(line, at_us=line.at_us - lines[0].at_us, broker_name=name, address=None)
            for line, name in seen
            if line.what not in ("request", "answer")
        )
        return Recording(lived, tuple(logged))

    def _of_go(self, lines: Sequence[Line]) -> tuple[int, int, tuple[int, ...]]:
        """Go's client lets nobody see its requests: one of ours takes as long, and Start ends behind the heartbeats."""
        began = time.perf_counter()
        for _ in range(_ASKED):
            self.cluster.knows_members(next(iter(self.cluster.broker_addresses)), self.name)
        both_us = round((time.perf_counter() - began) / _ASKED * 1e6)
        starting = {line.client_id: line.at_us for line in lines if line.what == "starting"}
        starts = sorted(line.at_us - starting[line.client_id] for line in lines if line.what == "started")
        return both_us // 2, both_us // 2, tuple(starts)


def _measured(
    lines: Sequence[Line], names: Mapping[str, str], new_brokers: tuple[str, ...]
) -> tuple[int, int, tuple[int, ...]]:
    request_us = _request_us(lines)
    first = _first_heartbeats(line for line in lines if names.get(line.address or "") not in new_brokers)
    # The hook is asked once the connection is there; a member's second connection is the first that can be told.
    connect_us = round(max(median(each[-1] - each[0] for each in first) - request_us, 0))
    return request_us, connect_us, tuple(sorted(max(each[0] - connect_us, 0) for each in first))


def _request_us(lines: Sequence[Line]) -> int:
    took: list[int] = []
    asked: dict[tuple[str, str | None, int | None], int] = {}
    for line in lines:
        key = line.client_id, line.address, line.code
        if line.what == "request" and line.code != HEARTBEAT:
            asked[key] = line.at_us
        elif line.what == "answer" and key in asked:
            took.append(line.at_us - asked.pop(key))
    return round(mean(took))


def _first_heartbeats(asked: Iterable[Line]) -> list[tuple[int, ...]]:
    """Of each member, how long after its start its first heartbeat went to each broker, in the order of time."""
    lines = list(asked)
    starts = {line.client_id: line.at_us for line in lines if line.what == "starting"}
    first: dict[str, dict[str | None, int]] = {client_id: {} for client_id in starts}
    for line in lines:
        if line.what == "request" and line.code == HEARTBEAT:
            first[line.client_id].setdefault(line.address, line.at_us - starts[line.client_id])
    return [tuple(after.values()) for after in first.values()]


def _now_us() -> int:
    return time.time_ns() // 1000


def _lines(jvm: JavaProcess) -> list[Line]:
    return [msgspec.json.decode(row, type=Line) for row in jvm.lines('{"atUs"')]
