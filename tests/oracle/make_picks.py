"""Makes `strategy.jsonl.gz` and `producer-defaults.json` in `tests/data/vectors`: `python -m tests.oracle.make_picks`.

Needs Java 17 or newer and Maven, and takes a few minutes. The questions follow from the answers, step by step; every
finished sequence is then asked again from its start, and all answers have to be the same.

The clock of the producer classes is replaced at run time: the fault classes are copied from the jar with their reference to
``java/lang/System`` renamed to our ``VirtualClock``, and the copies stand first on the class path.
"""

import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct, field, to_builtins

from tests.live.jars import compiled, jars, tool

PROGRAMS = Path(__file__).parent
PATCHED = "org/apache/rocketmq/client/latency/LatencyFaultToleranceImpl"
FOLDER = Path(__file__).parent.parent / "data" / "vectors"
VERSIONS = (
    "4.7.1", "4.8.0", "4.9.0", "4.9.3", "4.9.4", "4.9.7", "4.9.8",
    "5.0.0", "5.1.0", "5.1.1", "5.1.3", "5.1.4", "5.2.0", "5.3.0", "5.3.1", "5.3.2", "5.3.3", "5.4.0", "5.5.0",
)  # fmt: skip
# These shuffle the fault items before a stable sort, with a random source of their own: no two items may be equal.
SHUFFLING = ("4.7.1", "4.8.0", "4.9.0", "4.9.3")
QUESTIONS = ((True, 98), (False, 28))
REPLAYS = 5


NAMES = (
    ("broker-a", "broker-b", "broker-c", "broker-d", "broker-e", "broker-f", "broker-g"),
    ("b10", "b9", "b8", "b7", "b6", "b5", "b4", "b3", "b2", "b1", "b0", "b11", "b12", "b13", "b14", "b15"),
    ("брокер-1", "経路-乙", "経路-甲", "\U0001f418-1", "Ж", "zażółć", "ﬁ", "\u00e9", "e\u0301"),
    ("AaAa", "AaBB", "BBAa", "BBBB", "AaC#", "C#Aa", "Aa", "BB", "C#"),  # equal hash codes, by length
    tuple(f"DefaultCluster-broker-{number:02}" for number in range(30)),
)
STRANGER = "nobody"
UNLISTED = "unlisted"  # in the route, but not in the publish list

LAST = 2**31 - 1
EXTREMES = (LAST, LAST - 1, -(2**31), -(2**31) + 1, -1, 0, 1, -2)
# What the two generations of fault strategies compare a latency with.
LATENCIES = tuple(bound + near for bound in (50, 100, 550, 1000, 1800, 2000, 3000, 5000, 15000) for near in (-1, 0, 1))
SLOW = tuple(latency for latency in LATENCIES if latency >= 549)
FEW = (600, 600, 600, 1000, 30000)  # ties between brokers


# A broker and a queue id, {"error": the exception's simple name}, or None when nothing was picked.
Pick = list[Any] | dict[str, str] | None
READ_WRITE = 6


class Layout(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """All that is there before the first pick; a broker that is not in `perm` is readable and writable."""

    latency_fault: bool
    queues: tuple[tuple[str, str, int], ...] = field(name="mqs")
    write_queue_nums: dict[str, int]
    perm: dict[str, int] = {}
    index: int
    worst: int = field(name="worstIndex")


class Fault(Struct, frozen=True):
    """One item of the fault table; `reachable` is None in versions without such a flag."""

    latency: int
    start: int
    reachable: bool | None = None

    def document(self) -> list[Any]:
        return [self.latency, self.start] if self.reachable is None else [self.latency, self.start, self.reachable]


class Update(Struct, frozen=True, omit_defaults=True):
    """The report on a broker after a pick; `reachable` is None where the version does not ask."""

    broker: str
    latency: int
    isolation: bool
    reachable: bool | None = None


@dataclass(frozen=True)
class Mood:
    """How a sequence goes: the chances that a step has this or that."""

    quiet: float  # no time passes
    edge: float  # the time of an isolation's end, or a millisecond off
    isolation: float
    latencies: tuple[int, ...]
    steps: tuple[int, int]
    names: tuple[tuple[str, ...], ...] = NAMES
    brokers: tuple[int, ...] = (1, 2, 2, 3, 3, 4, 5, 6, 7, 7, 11, 16)
    queues: tuple[int, ...] = (1, 3, 4, 8)  # of a broker at the most
    ties: bool = False  # brokers with the same latency
    wraps: int | None = None  # both counters wrap after so many steps at the most
    own: bool = False  # updates are for the picked broker only


CALM = Mood(quiet=0.2, edge=0.4, isolation=0.05, latencies=(0, 1, 20, *LATENCIES), steps=(10, 25))
MIXED = Mood(quiet=0.2, edge=0.35, isolation=0.3, latencies=LATENCIES, steps=(15, 30))
STORM = Mood(quiet=0.5, edge=0.05, isolation=0.6, latencies=SLOW, steps=(20, 40))
EQUAL_HASHES_OFTEN = (NAMES[1], NAMES[2], NAMES[3], NAMES[3])
TIED = Mood(0.9, 0.03, 0.3, FEW, (20, 40), EQUAL_HASHES_OFTEN, brokers=(6, 9), queues=(3,), ties=True)
# More fault items than Java's table takes without growing.
CROWD = Mood(0.9, 0.03, 0.3, FEW, (40, 40), NAMES[4:], brokers=(26,), queues=(2,), ties=True, own=True)
# Negative counter values count where they meet a number that does not divide 2^31.
WRAP = Mood(0.5, 0, 0.6, SLOW, steps=(20, 30), brokers=(1, 2, 7), queues=(3, 5, 6, 7), wraps=24)
MOODS = (STORM, MIXED, CALM, STORM, MIXED, TIED, STORM, MIXED, CALM, STORM, WRAP, CROWD, MIXED, WRAP)


class Question:
    def __init__(self, number: int, latency_fault: bool) -> None:
        self._rng = random.Random(f"{'on' if latency_fault else 'off'} {number}")
        self._mood = MOODS[number % len(MOODS)] if latency_fault else CALM
        self.layout = self._layout(latency_fault, empty=number == 0)
        self.length = self._rng.randint(*self._mood.steps)
        self._now = self._rng.choice((0, 1000, self._rng.randrange(10**6)))
        self._previous: str | None = None

    def next_pick(self, faults: dict[str, Fault], *, can_reset: bool) -> tuple[int, str | None, int | None]:
        """When the next pick is, the broker it shall avoid, and the seed of a new index."""
        self._now = self._time(faults)
        brokers = [self._previous, *dict.fromkeys(broker for _, broker, _ in self.layout.queues)]
        chosen = self._weighted({None: 4, self._previous: 4, self._rng.choice(brokers): 2, STRANGER: 0.3})
        reset = self._rng.randrange(1000) if self._rng.random() < 0.2 else None
        return self._now, chosen, reset if can_reset else None

    def next_update(self, pick: Pick, faults: dict[str, Fault], *, tells_reachable: bool, ties: bool) -> Update | None:
        """What is said after the pick. Unless ties are wanted, no two brokers have the same latency."""
        rng = self._rng
        self._previous = pick[0] if isinstance(pick, list) else None
        listed = [broker for _, broker, _ in self.layout.queues] or [STRANGER]
        foreign = rng.choice((STRANGER, UNLISTED))
        chosen = self._weighted({None: 1, self._previous: 6, rng.choice(listed): 1.5, foreign: 0.4})
        broker = self._previous if self._mood.own else chosen
        latency = rng.choice(self._mood.latencies) if rng.random() < 0.8 else rng.randrange(40000)
        isolation, reachable = rng.random() < self._mood.isolation, rng.random() < 0.7
        if broker is None:
            return None
        if not (ties and self._mood.ties):
            while any(fault.latency == latency for other, fault in faults.items() if other != broker):
                latency += 1
        return Update(broker, latency, isolation, reachable if tells_reachable else None)

    def _time(self, faults: dict[str, Fault]) -> int:
        rng = self._rng
        edges = sorted({fault.start + off for fault in faults.values() for off in (-1, 0, 1)})
        edges = [edge for edge in edges if edge > self._now]
        roll = rng.random()
        if edges and roll < self._mood.edge:
            return rng.choice(edges[:4])
        if roll > 1 - self._mood.quiet:
            return self._now
        return self._now + rng.choice((1, 3, 20, 150, 2500))

    def _layout(self, latency_fault: bool, empty: bool) -> Layout:
        rng = self._rng
        names = rng.choice(self._mood.names)
        many = min(len(names), rng.choice(self._mood.brokers))
        brokers = rng.sample(names, 0 if empty else many)
        most = min(rng.choice(self._mood.queues), 2 if many > 7 else 8)
        counts = {broker: most if rng.random() < 0.5 else rng.randint(1, most) for broker in brokers}
        queues = [("T", broker, number) for broker, count in counts.items() for number in range(count)]
        order = rng.randrange(4)
        if order == 0:
            rng.shuffle(queues)
        elif order == 1:
            queues.sort(key=lambda queue: (queue[2], queue[1]))
        elif order == 2:
            queues.sort()
        write_queues, perm = (counts, dict[str, int]()) if self._mood.wraps else self._route(counts)
        return Layout(
            latency_fault=latency_fault, queues=tuple(queues), write_queue_nums=write_queues, perm=perm,
            index=self._counter(), worst=self._counter(),
        )  # fmt: skip

    def _route(self, counts: dict[str, int]) -> tuple[dict[str, int], dict[str, int]]:
        rng = self._rng
        write_queues = dict(counts)
        perm: dict[str, int] = {}
        odd = rng.random() < 0.4
        for broker, count in counts.items():
            kind = rng.randrange(6) if odd else 0
            if kind == 1:
                write_queues[broker] = max(0, count + rng.choice((-2, -1, 1, 3)))
            elif kind == 2:
                del write_queues[broker]
            elif kind == 3:
                perm[broker] = rng.choice((4, 2, 0))
        if odd and rng.random() < 0.5:
            write_queues[UNLISTED] = rng.randint(1, 5)
        return write_queues, perm

    def _counter(self) -> int:
        rng = self._rng
        if self._mood.wraps:
            return LAST - rng.randrange(self._mood.wraps)
        return rng.choice(
            (rng.randint(-(2**31), LAST), rng.choice(EXTREMES), LAST - rng.randrange(30), LAST - rng.randrange(3))
        )

    def _weighted(self, choices: dict[str | None, float]) -> str | None:
        return self._rng.choices(list(choices), list(choices.values()))[0]


class Step(Struct, frozen=True, omit_defaults=True, kw_only=True):
    at: int
    last: str | None
    reset: int | None = None
    update: Update | None


@dataclass(frozen=True)
class Client:
    java: subprocess.Popen[str]
    log: Path

    def ask(self, *fields: object) -> list[str]:
        """One line there and one line back; None is an empty field."""
        words = ["" if part is None else str(part).lower() if isinstance(part, bool) else str(part) for part in fields]
        assert self.java.stdin
        assert self.java.stdout
        self.java.stdin.write("\t".join(words) + "\n")
        self.java.stdin.flush()
        answer = self.java.stdout.readline()
        if not answer:
            raise RuntimeError(f"the client ended:\n{self.log.read_text(encoding='utf-8')[-4000:]}")
        return answer.rstrip("\n").split("\t")

    @cached_property
    def abilities(self) -> list[str]:
        """`reset` of an index, and `reachable`, whether an update says if the broker was reached."""
        return self.ask("abilities")

    def start(self, layout: Layout) -> None:
        self.ask("start", layout.latency_fault, layout.index, layout.worst)
        for queue in layout.queues:
            self.ask("queue", *queue)
        for broker, write_queues in layout.write_queue_nums.items():
            self.ask("route", broker, write_queues, layout.perm.get(broker, READ_WRITE))

    def pick(self, at: int, last: str | None, seed: int | None) -> Pick:
        """Pick a queue, if it may be not of the last broker; with a seed, from a new index."""
        answer = self.ask("pick", at, last, seed)
        if answer[0].startswith("!"):
            return {"error": answer[0][1:]}
        return [answer[0], int(answer[1])] if answer[0] else None

    def update(self, said: Update | None) -> None:
        if said:
            self.ask("update", said.broker, said.latency, said.isolation, said.reachable)

    def answers(self, picks: list[Pick]) -> dict[str, Any]:
        """The picks as a vector has them, and what they and the updates have left behind."""
        queues = [[topic, broker, int(number)] for topic, broker, number in _rows(self.ask("queues"), 3)]
        index, worst = map(int, self.ask("indexes"))
        faults = {broker: fault.document() for broker, fault in sorted(self.faults().items())}
        left = {"finalMqs": queues, "finalIndex": index, "finalWorstIndex": worst, "finalFaults": faults}
        return {"expected": picks, **left}

    def faults(self) -> dict[str, Fault]:
        rows = _rows(self.ask("faults"), 4 if "reachable" in self.abilities else 3)
        return {
            name: Fault(int(latency), int(start), *(flag == "true" for flag in more))
            for name, latency, start, *more in rows
        }

    def defaults(self) -> dict[str, Any]:
        return {name: json.loads(value) for name, value in _rows(self.ask("defaults"), 2)}


@contextmanager
def client(version: str, scratch: Path) -> Iterator[Client]:
    """The client of a version for the length of a ``with`` block; it ends by itself when its input does."""
    library = jars(version, ("rocketmq-client",), "rocketmq-client")
    classes = compiled(PROGRAMS, library, scratch / "classes")
    patched = _patched(library / f"rocketmq-client-{version}.jar", scratch / "patched")
    class_path = os.pathsep.join((str(patched), str(classes), f"{library}/*"))
    command = [tool("java"), "-Xmx256m", f"-Duser.home={scratch}", "-cp", class_path, "Picks"]
    log = scratch / "log"
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "encoding": "utf-8"}
    with log.open("wb") as errors, subprocess.Popen(command, stderr=errors, **pipes) as java:
        yield Client(java, log)


def _patched(jar: Path, into: Path) -> Path:
    """The fault classes with our clock: a constant pool names a class once, by its length and its name."""
    found, ours = (b"\1" + len(name).to_bytes(2) + name for name in (b"java/lang/System", b"VirtualClock"))
    patched = 0
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            content = archive.read(name) if name.startswith(PATCHED) else b""
            if found in content:
                assert content.count(found) == 1, name
                target = into / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.replace(found, ours))
                patched += 1
    assert patched == 2, f"{jar}: the clock is no longer read by the fault table and its items alone"
    return into


def _rows(fields: list[str], width: int) -> Iterator[list[str]]:
    if fields != [""]:
        for start in range(0, len(fields), width):
            yield fields[start : start + width]


def main() -> None:
    lines: dict[tuple[bool, int], list[dict[str, Any]]] = {}
    defaults = {}
    for version in VERSIONS:
        with tempfile.TemporaryDirectory() as scratch, client(version, Path(scratch)) as asked:
            defaults[version] = asked.defaults()
            for latency_fault, count in QUESTIONS:
                for number in range(count):
                    line = vector(asked, version, Question(number, latency_fault))
                    lines.setdefault((latency_fault, number), []).append(line)
        sys.stdout.write(f"{version} has answered\n")
        sys.stdout.flush()
    # The answers to one question stand together: versions that agree cost next to nothing then.
    write(line for same in lines.values() for line in same)
    rows = ",\n".join(f' "{version}": {json.dumps(values)}' for version, values in defaults.items())
    (FOLDER / "producer-defaults.json").write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")


def vector(asked: Client, version: str, question: Question) -> dict[str, Any]:
    steps, answers = ask(asked, question, ties=version not in SHUFFLING)
    for _ in range(REPLAYS):
        again = replay(asked, question.layout, steps)
        assert again == answers, f"{version} does not always answer alike: {answers}, then {again}"
    return {"version": version, **to_builtins(question.layout), "steps": to_builtins(steps), **answers}


def ask(asked: Client, question: Question, *, ties: bool) -> tuple[list[Step], dict[str, Any]]:
    asked.start(question.layout)
    steps: list[Step] = []
    picks: list[Pick] = []
    for _ in range(question.length):
        at, last, reset = question.next_pick(asked.faults(), can_reset="reset" in asked.abilities)
        picks.append(asked.pick(at, last, reset))
        faults = asked.faults()  # a pick may drop a fault item
        tells_reachable = "reachable" in asked.abilities
        said = question.next_update(picks[-1], faults, tells_reachable=tells_reachable, ties=ties)
        steps.append(Step(at=at, last=last, reset=reset, update=said))
        asked.update(said)
    return steps, asked.answers(picks)


def replay(asked: Client, layout: Layout, steps: list[Step]) -> dict[str, Any]:
    asked.start(layout)
    picks = []
    for step in steps:
        picks.append(asked.pick(step.at, step.last, step.reset))
        asked.update(step.update)
    return asked.answers(picks)


def write(lines: Iterable[dict[str, Any]]) -> None:
    text = "".join(f"{json.dumps(line, ensure_ascii=False, separators=(',', ':'))}\n" for line in lines)
    (FOLDER / "strategy.jsonl.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
