"""What a real producer does about each way a broker may take its message; scripted brokers play the ways.

Three brokers: `a` with four queues, `b` and `c` with two. The first attempt goes to queue 3 of `a`, which reacts as the
case says; `b` and `c` are well, unless the case says that all react so. Each case begins with an empty fault table.

Some outcomes are left to chance: whether a producer whose time is up makes one more attempt depends on where in a
millisecond it began. Those are counted (`timeouts`); all others are told message by message (`rows`).
"""

import json
import re
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Literal

from .jvm import Java
from .producers import Producer, Queue, RecordedMessage, running_producer
from .scripted_brokers import HANGS_UP, IS_SILENT, REFUSES, STORES, Reaction, ScriptedCluster, after_ms, answers

Mode = Literal["sync", "async", "oneway"]
Row = dict[str, Any]

FACTS: Final = Path(__file__).parents[1] / "data" / "vectors" / "producer-reactions.json"
TOPIC: Final = "Reactions"
QUEUES: Final = {"a": 4, "b": 2, "c": 2}
FAILING: Final = "a"
OTHERS: Final = ("b", "c")
BEFORE_LAST_QUEUE: Final = 2
"""The index whose successor is the last queue of `a`; neither of the others has a queue with that number."""
SHORT_TIMEOUT_MS: Final = 300
LONG_TIMEOUT_MS: Final = 3000
"""RocketMQ's own default."""
PER_REQUEST_MS: Final = 100
ERROR_CODES: Final = (1, 2, 13, 14, 16, 17, 29, 204, 205, 215, 1500)
STORE_STATUSES: Final = (10, 11, 12)
SLOW_MS: Final = (600, 1100, 1850, 2800)

REPETITIONS: Final = 40

_REMARK: Final = "as the script says"
# An async answer in the same millisecond may be noted before the request is noted as handed over, and a connection that
# ends in the millisecond of its birth may be missed. Brokers are slower than that.
_BROKERS_PACE_MS: Final = 30
# So many messages make the connections, and let the JVM compile what it measures.
_WARM_UP: Final = 500
# Not a part of the second between two looks of the client at its unanswered requests, so that all phases are met.
_ASYNC_PAUSE_MS: Final = 137
# For the client to notice that a connection is gone, and for a broker to note a message whose answer nobody awaits.
_NOTICE: Final = 0.05
_NOT_SET: Final[Mapping[str, Mapping[str, object]]] = {
    "5.5.0": {
        "retryAnotherBrokerWhenNotStoreOK": False,
        "sendMsgMaxTimeoutPerRequest": -1,
        "startDetectorEnable": False,
    },
    "4.9.7": {"retryAnotherBrokerWhenNotStoreOK": False},
}


@dataclass(frozen=True)
class Case:
    """One way to fail, on all brokers if `everywhere` and on `a` if not, and the producer's settings."""

    name: str
    reaction: Reaction
    mode: Mode = "sync"
    latency_fault: bool = False
    everywhere: bool = False
    timeout_ms: int = LONG_TIMEOUT_MS
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass
class Bench:
    version: str
    producer: Producer
    cluster: ScriptedCluster

    def prepare(self, case: Case) -> None:
        self.cluster.all_store()
        self.producer.set(
            mode=case.mode, sendMsgTimeout=case.timeout_ms, sendLatencyFaultEnable=case.latency_fault,
            **{**_NOT_SET[self.version], **case.settings},
        )  # fmt: skip
        for name in QUEUES if case.everywhere else (FAILING,):
            self.cluster[name].react(case.reaction)
        if case.reaction.kind == "refuses":
            time.sleep(_NOTICE)

    def message(self) -> RecordedMessage:
        """Send one message, its first attempt at the last queue of `a`, with nothing known of any broker."""
        self.cluster.seen.clear()
        self.producer.forget_faults()
        self.producer.preset_index(BEFORE_LAST_QUEUE)
        (message,) = self.producer.send()
        return message

    def row(self, case: Case) -> Row:
        """The case and what came of it, without what time and chance make of it.

        attempts: queue and outcome of each attempt that the hook saw.
        received: the queues at which the message arrived.
        isolatedMs, reachable: of `a`; the latter null where nothing is held of it, or the version has no such flag.
        othersIsolatedMs: of `b` and `c`, the greater.
        """
        self.prepare(case)
        message = self.message()
        if case.mode == "oneway":
            time.sleep(_NOTICE)
        fault = message.fault(FAILING)
        picked = [attempt.queue for attempt in message.attempts]
        outcomes = [attempt.outcome for attempt in message.attempts]
        return {
            "version": self.version, "mode": case.mode, "latencyFault": case.latency_fault, "reaction": case.name,
            "everywhere": case.everywhere, "settings": {"sendMsgTimeout": case.timeout_ms, **case.settings},
            "attempts": list(map(list, zip(self._names(case, picked), outcomes, strict=True))),
            "received": self._names(case, [seen.queue for seen in self.cluster.seen]), "outcome": message.outcome,
            "responseCode": message.response_code, "text": self._text(case, message), "cause": message.cause,
            "isolatedMs": message.isolated_ms(FAILING),
            "othersIsolatedMs": max(message.isolated_ms(name) for name in OTHERS),
            "reachable": None if fault is None else fault.reachable,
        }  # fmt: skip

    def sync_timeouts(self, case: Case, repetitions: int) -> Row:
        """How a sync message ends whose first attempt uses up all the time, counted over many.

        firstAttemptOverMs: by how much the first attempt outlasted the timeout, from hook to hook; the client's own
            clock starts a moment earlier, so -1 is none too few.
        isolated: which brokers were isolated, all for the same time.
        """
        self.prepare(case)
        messages, received = [], list[str]()
        for _ in range(repetitions):
            messages.append(self.message())
            time.sleep(_NOTICE)
            received.append(" ".join(f"{seen.broker_name}{seen.queue_id}" for seen in self.cluster.seen))
        over = (message.attempts[0].took_ms - case.timeout_ms for message in messages)
        later = (attempt for message in messages for attempt in message.attempts[1:])
        return self._timeouts(case, messages) | {
            "attempts": _counted(len(message.attempts) for message in messages),
            "firstAttemptOverMs": _counted(over),
            "laterAttempts": _counted(f"{attempt.outcome}: {timeless(attempt.text or '')}" for attempt in later),
            "isolated": _counted(" ".join(self._isolated(message)) for message in messages),
            "isolatedMs": max(message.isolated_ms(name) for message in messages for name in QUEUES),
            "received": _counted(received),
        }

    def async_timeouts(self, case: Case, repetitions: int) -> Row:
        """How late the callback of an async message is told that nobody answers.

        tookOverMs: least, median and greatest time from the timeout to the callback.
        received: at how many brokers each message arrived.
        """
        self.prepare(case)
        self.cluster.seen.clear()
        messages = self.producer.send(repetitions, pause_ms=_ASYNC_PAUSE_MS)
        over = sorted(message.took_ms - case.timeout_ms for message in messages)
        return self._timeouts(case, messages) | {
            "tookOverMs": [over[0], round(statistics.median(over)), over[-1]],
            "received": _counted(Counter(seen.body for seen in self.cluster.seen).values()),
        }

    def _timeouts(self, case: Case, messages: list[RecordedMessage]) -> Row:
        return {
            "version": self.version, "mode": case.mode, "latencyFault": case.latency_fault, "reaction": case.name,
            "everywhere": case.everywhere, "timeoutMs": case.timeout_ms, "repetitions": len(messages),
            "outcomes": _counted(f"{message.outcome}: {self._text(case, message)}" for message in messages),
        }  # fmt: skip

    def _isolated(self, message: RecordedMessage) -> list[str]:
        return [name for name in QUEUES if message.isolated_ms(name)]

    def _names(self, case: Case, queues: Sequence[Queue]) -> list[str]:
        """`a3`, or `other` for a retry whose broker is left to chance; an async retry keeps its queue's number."""
        if not self._is_by_chance(case):
            return [f"{name}{queue_id}" for name, queue_id in queues]
        first = list(takewhile(lambda queue: queue[0] == FAILING, queues))
        retries = queues[len(first) :]
        return [f"{name}{queue_id}" for name, queue_id in first] + [
            "other" if case.mode == "sync" else f"other{queue_id}" for _, queue_id in retries
        ]

    def _text(self, case: Case, message: RecordedMessage) -> str | None:
        if message.text is None:
            return None
        text = timeless(message.text)
        return re.sub(r"(?<=[\[ ])[bc](?=[],])", "other", text) if self._is_by_chance(case) else text

    def _is_by_chance(self, case: Case) -> bool:
        """Whether a retry's queue is random: version 5's async retries are, and sync ones with latency fault tolerance."""
        return self.version != "4.9.7" and (case.latency_fault or case.mode == "async")


@contextmanager
def bench(java: Java) -> Iterator[Bench]:
    with ScriptedCluster(TOPIC, QUEUES) as cluster, running_producer(java, cluster.name_server, TOPIC) as producer:
        producer.send(_WARM_UP)
        yield Bench(java.version, producer, cluster)


def measured(java: Java) -> tuple[list[Row], list[Row]]:
    with bench(java) as of_version:
        rows = [of_version.row(case) for case in cases(java.version)]
        silent = Case("is silent", IS_SILENT, latency_fault=True, timeout_ms=SHORT_TIMEOUT_MS)
        timeouts = [of_version.sync_timeouts(silent, REPETITIONS)]
        if not _notices_a_closed_connection(java.version):
            closed = replace(silent, name="hangs up", reaction=HANGS_UP)
            timeouts.append(of_version.sync_timeouts(closed, REPETITIONS // 4))
        nobody_answers = Case("is silent", IS_SILENT, "async", everywhere=True, timeout_ms=SHORT_TIMEOUT_MS)
        timeouts.append(of_version.async_timeouts(nobody_answers, REPETITIONS))
        return rows, timeouts


def cases(version: str) -> Iterator[Case]:
    reactions = [
        ("refuses", REFUSES),
        *((f"answers {code}", answers(code, _REMARK)) for code in (*ERROR_CODES, *STORE_STATUSES)),
    ]
    if _notices_a_closed_connection(version):
        reactions.append(("hangs up", replace(HANGS_UP, delay_ms=_BROKERS_PACE_MS)))
    for latency_fault in (False, True):
        for everywhere in (False, True):
            for name, reaction in reactions:
                case = Case(name, reaction, "sync", latency_fault, everywhere)
                yield case
                yield replace(case, mode="async", reaction=replace(reaction, delay_ms=_BROKERS_PACE_MS))
                if reaction.code in STORE_STATUSES:
                    yield replace(case, settings={"retryAnotherBrokerWhenNotStoreOK": True})
        yield Case("is silent", IS_SILENT, "async", latency_fault, timeout_ms=SHORT_TIMEOUT_MS)
        for name, reaction in (("stores", STORES), ("refuses", REFUSES), ("is silent", IS_SILENT)):
            yield Case(name, reaction, "oneway", latency_fault)
    for delay in SLOW_MS:
        yield Case(f"stores after {delay} ms", after_ms(delay), latency_fault=True)
    if version != "4.9.7":
        yield from _cases_of_version_5()


def _cases_of_version_5() -> Iterator[Case]:
    """With settings that version 4 does not have."""
    per_request = {"sendMsgMaxTimeoutPerRequest": PER_REQUEST_MS}
    yield Case("is silent", IS_SILENT, settings=per_request)
    yield Case("is silent", IS_SILENT, latency_fault=True, settings=per_request)
    detecting = {"startDetectorEnable": True}
    yield Case("refuses", REFUSES, latency_fault=True, settings=detecting)
    yield Case("answers 1", answers(1, _REMARK), latency_fault=True, settings=detecting)
    yield Case("refuses", REFUSES, "async", latency_fault=True, settings=detecting)


def _notices_a_closed_connection(version: str) -> bool:
    """Before 5.1.3 a client does not look up when the far side closes: it waits for the answer until its time is up."""
    return version != "4.9.7"


def read_facts() -> tuple[list[Row], list[Row]]:
    facts = json.loads(FACTS.read_text(encoding="utf-8"))
    return facts["rows"], facts["timeouts"]


def write_facts(rows: Iterable[Row], timeouts: Iterable[Row]) -> None:
    parts = [f'"{name}": [\n{_lines(of_name)}\n]' for name, of_name in (("rows", rows), ("timeouts", timeouts))]
    FACTS.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _lines(rows: Iterable[Row]) -> str:
    return ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


def _counted(values: Iterable[object]) -> dict[str, int]:
    counts = Counter(values)
    return {str(value): counts[value] for value in sorted(counts)}  # type: ignore[type-var]


def timeless(text: str) -> str:
    """A text of the client's with N for what differs from run to run: ports, durations."""
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:N", text)
    text = re.sub(r"\d+\(ms\)", "N(ms)", text)
    text = re.sub(r"cost \[\d+\]ms", "cost [N]ms", text)
    return re.sub(r"cost=\d+", "cost=N", text)
