from collections.abc import Iterable, Mapping

from rmqlb.engine.record.follow import Follower
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.recording import Look, Recording
from tests.support.builders import queues

T0 = 1_800_000_000_000
"""When the first look is answered, in milliseconds since 1970."""


def look(
    seconds: float,
    owners: str,
    *,
    took_ms: int = 100,
    silent: str = "",
    lists: bool = True,
    predicted: str | None = None,
    queues_there: int | None = None,
) -> Look:
    """A look whose last answer came so many seconds after the first look's.

    `owners` are "a:01 b:2 c:" of queues 0, 1, 2 of broker-a; `silent` are consumers that are listed and do not answer.
    """
    held = _held(owners)
    given = None if predicted is None else _held(predicted)
    there = tuple(queues(4 if queues_there is None else queues_there))
    return Look(
        T0 + round(seconds * 1000) - took_ms,
        T0 + round(seconds * 1000),
        owned=held,
        unanswered=dict.fromkeys(silent.split(), "timed out"),
        listed=frozenset(held.keys() | set(silent.split())) if lists else None,
        routes={"T": there},
        predicted=None if given is None else {q: tuple(sorted(i for i in given if q in given[i])) for q in there},
        strategy=None if given is None else "AVG",
    )


def failed(seconds: float, reason: str = "it does not answer") -> Look:
    return Look(T0 + round(seconds * 1000) - 100, T0 + round(seconds * 1000), failed=reason)


def _held(text: str) -> Mapping[str, frozenset[MessageQueue]]:
    parts = [part.partition(":") for part in text.split()]
    return {client_id: frozenset(MessageQueue("T", "broker-a", int(q)) for q in its) for client_id, _, its in parts}


def recorded(looks: Iterable[Look], *, event_at_ms: int | None = None) -> Recording:
    follower = Follower("g", 1000)
    for each in looks:
        follower.add(each)
    return follower.recording("time", event_at_ms)
