from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rmqlb import Members, MessageQueue, TopicRouteData, simulate_group
from rmqlb.engine.rebalance.timelines import EventLog, Hold, timelines
from rmqlb.model.group_scenario import SECOND_US, Event, EventKind, GroupScenario
from rmqlb.model.simulate_rebalance import QueueTimeline, RebalanceResult, Takeover
from tests.support.builders import route

QUEUE = MessageQueue("T", "a", 0)


def at(kind: EventKind, subject: str, seconds: float = 10, **more: Any) -> Event:
    return Event(kind, round(seconds * SECOND_US), subject, **more)


def simulate(
    client_ids: str,
    *events: Event,
    routes: Sequence[TopicRouteData] = (),
    sdk: str = "java",
    sdk_of: Mapping[str, str] = MappingProxyType({}),
    trial: int = 0,
    explain: bool = False,
    **scenario: Any,
) -> RebalanceResult:
    """The consumers, named in one text, on two brokers with four queues each unless routes are given."""
    members = Members(tuple(client_ids.split()), "AVG", sdk=sdk, sdk_of=sdk_of)
    topics = routes or (route(a=4, b=4),)
    return simulate_group("g", members, topics, GroupScenario(events, **scenario), trial=trial, explain=explain)


def trials(number: int, client_ids: str, *events: Event, **scenario: Any) -> Iterator[RebalanceResult]:
    return (simulate(client_ids, *events, trial=trial, **scenario) for trial in range(number))


def length(report: RebalanceResult, name: str) -> float:
    ms = getattr(report.figures, f"{name}_ms")
    assert ms is not None
    return float(ms / 1000)


def takeovers(report: RebalanceResult, client_id: str | None = None) -> list[Takeover]:
    return [each for one in report.queues for each in one.takeovers if client_id in (None, each.client_id)]


def line(report: RebalanceResult, broker_name: str, queue_id: int) -> QueueTimeline:
    return next(each for each in report.queues if each.queue == MessageQueue("T", broker_name, queue_id))


def hold(client_id: str, from_us: int, to_us: int | None = None, *, persisted: bool = True, **more: Any) -> Hold:
    """A consumer that stores its offsets at 0, 50, 100, …, and reads from the moment it takes the queue."""
    made = Hold(QUEUE, client_id, from_us, lambda moment: moment // 50 * 50, reads_from_us=from_us, to_us=to_us)
    for name, value in more.items():
        setattr(made, name, value)
    made.persisted = persisted and to_us is not None and not made.is_paused
    return made


def read(
    *holds: Hold,
    there: Iterable[tuple[int, bool]] = ((0, True),),
    served: Iterable[tuple[int, bool]] = (),
    end_us: int = 1000,
    latency_us: int = 0,
) -> QueueTimeline:
    log = EventLog(explain=False, holds=list(holds), there={QUEUE: list(there)})
    if served:
        log.served[QUEUE] = list(served)
    (found,) = timelines(log, GroupScenario(latency_us=latency_us, rates={QUEUE: 1e6}), {}, end_us)
    return found


def spans(found: QueueTimeline) -> list[tuple[str, int, int]]:
    return [(each.state, each.from_us, each.to_us) for each in found.intervals]


def again(found: QueueTimeline) -> list[int | None]:
    return [takeover.redelivered for takeover in found.takeovers]
