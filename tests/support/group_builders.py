"""Simulations of a group, drawn where the reader can see them: a character a second."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec.structs import asdict, replace

from rmqlb.engine.rebalance.simulate import consumer_parts, echo, event_echo, figures
from rmqlb.engine.rebalance.timelines import EventLog
from rmqlb.model.group_scenario import SECOND_US, Event, GroupScenario
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.plan import RolloutChoice
from rmqlb.model.result import milliseconds, milliseconds_if_known, sum_if_known
from rmqlb.model.simulate_rebalance import (
    BAD_STATES,
    FigureSpread,
    FigureSpreads,
    GroupTrials,
    Interval,
    OwnerState,
    QueueTimeline,
    RebalanceResult,
    Step,
    Takeover,
)

JOIN = Event("join", 3 * SECOND_US, "b", "join b@3s")
_STATES: Mapping[str, OwnerState] = {" ": "unassigned", "#": "outage", ".": "gone"}


def timeline(
    strip: str, queue: MessageQueue, takeovers: Sequence[Takeover] = (), *, ids: Mapping[str, str] | None = None
) -> QueueTimeline:
    """A queue whose owners a text draws: a letter is the member of that name, or the one that `ids` says.

    A blank is nobody, # an outage of a queue that a owns, a dot is a queue that is gone, `!` is members a and b, a digit so many members from a on.
    """
    intervals: list[Interval] = []
    at = 0
    for character, group in groupby(strip):
        to = at + len(list(group)) * SECOND_US
        owners = _owners(character, ids or {})
        state: OwnerState = _STATES.get(character, "one" if len(owners) == 1 else "duplicate-owners")
        intervals.append(interval(at, to, state, owners))
        at = to
    return measured(queue, intervals, takeovers)


def measured(queue: MessageQueue, intervals: Iterable[Interval], takeovers: Sequence[Takeover] = ()) -> QueueTimeline:
    intervals = tuple(intervals)
    lengths: dict[str, float] = {}
    for kind, state in BAD_STATES.items():
        runs = (list(run) for each, run in groupby(intervals, key=lambda one: one.state) if each == state)
        found = [run[-1].to_us - run[0].from_us for run in runs]
        lengths[f"total_{kind}_ms"] = milliseconds(sum(found))
        lengths[f"longest_{kind}_ms"] = milliseconds(max(found, default=0))
    return QueueTimeline(
        topic=queue.topic, broker_name=queue.broker_name, queue_id=queue.queue_id, **lengths,
        unread_ms=max(lengths["longest_outage_ms"], *(takeover.unread_ms or 0 for takeover in takeovers), 0),
        unread_at_end=bool(intervals) and intervals[-1].state in ("unassigned", "outage"),
        redelivered=sum_if_known(takeover.redelivered for takeover in takeovers), intervals=intervals,
        takeovers=tuple(takeovers),
    )  # fmt: skip


def us(ms: float | None) -> Any:
    """Milliseconds of a result in microseconds, which count exactly; None stays None."""
    return None if ms is None else round(ms * 1000)


def simulated(
    strips: Mapping[str, str] | Iterable[QueueTimeline],
    *,
    events: Sequence[Event] = (JOIN,),
    settled_us: int | None = SECOND_US,
    scenario: GroupScenario | None = None,
    group: str | None = "g",
    steps: Sequence[Step] | None = None,
    ids: Mapping[str, str] | None = None,
    found: GroupTrials | None = None,
) -> RebalanceResult:
    """A simulation of queues: `simulated({"broker-a 0": "aaa  bbb"})`, or of timelines."""
    if isinstance(strips, Mapping):
        lines = {_queue(name): timeline(strip, _queue(name), ids=ids) for name, strip in strips.items()}
    else:
        lines = {line.queue: line for line in strips}
    queues = tuple(lines[queue] for queue in sort_queues(lines))
    seen = {owner for line in queues for interval in line.intervals for owner in interval.owners}
    client_ids = sort_client_ids(seen | {event.subject for event in events if event.kind == "join"})
    log = EventLog(explain=False, rebalances=7)
    end_us = max((line.intervals[-1].to_us for line in queues if line.intervals), default=0)
    return RebalanceResult(
        group=group, strategy="AVG", scenario=echo(scenario or GroupScenario(events=tuple(events)), "5.5.0 and newer"),
        events=tuple(map(event_echo, events)), trial=0, end_ms=milliseconds(end_us),
        figures=replace(figures(queues, log, 0, settled=True), convergence_ms=milliseconds_if_known(settled_us)),
        queues=queues, consumers=consumer_parts(queues, client_ids), steps=None if steps is None else tuple(steps),
        trials=found,
    )  # fmt: skip


def takeover(
    queue: MessageQueue, client_id: str, at: float, *, again: int | None = None, again_s: float = 0
) -> Takeover:
    """A member takes a queue after so many seconds, and reads half a second later from a stored offset."""
    return Takeover(
        *(queue.topic, queue.broker_name, queue.queue_id), client_id=client_id, at_ms=round(at * 1000),
        reads_from_ms=round(at * 1000) + 500, unread_ms=500, start_rule="stored", start_offset=42,
        start_reason="the group's offset", redelivered_ms=round(again_s * 1000), redelivered=again,
    )  # fmt: skip


def trials(number: int = 20, converged: int | None = None, **spreads: tuple[float, float, float]) -> GroupTrials:
    """Trials whose figures have these medians, 95th percentiles and largest values, in trial 3; others have 0."""
    unknown = {"convergence_ms": None, "redelivered": None}
    none: dict[str, Any] = {name: FigureSpread(0, 0, 0, 0) for name in FigureSpreads.__struct_fields__} | unknown
    found = {field: FigureSpread(*values, 3) for field, values in spreads.items()}
    return GroupTrials(number, number if converged is None else converged, FigureSpreads(**{**none, **found}))


def choice(tried: GroupTrials, order: Sequence[str] = (), name: str = "sorted", **more: Any) -> RolloutChoice:
    usual = {"at_once": 1, "pause_ms": 30_000, "down_ms": 15_000, "takes_ms": 90_000, "best": False}
    order_and_size = {"order": tuple(order), "order_name": name, "restarts": len(order)}
    return RolloutChoice(**{**asdict(tried), **usual, **order_and_size, **more})


def interval(from_us: int, to_us: int, state: OwnerState, owners: Sequence[str] = ()) -> Interval:
    return Interval(milliseconds(from_us), milliseconds(to_us), state, tuple(owners))


def _owners(character: str, ids: Mapping[str, str]) -> tuple[str, ...]:
    if character.isdigit():
        return tuple(ids.get(name, name) for name in "abcdefghi"[: int(character)])
    letters = {" ": "", ".": "", "#": "a", "!": "ab"}.get(character, character)
    return tuple(sort_client_ids(ids.get(letter, letter) for letter in letters))


def _queue(name: str) -> MessageQueue:
    """`broker 3` of topic T, or `topic broker 3`."""
    *topic, broker_name, queue_id = name.split(" ")
    return MessageQueue(topic[0] if topic else "T", broker_name, int(queue_id))
