"""The inflow of queues: given for a topic, or observed between two snapshots."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from rmqlb.errors import DataError
from rmqlb.model.group import ConsumerGroup, QueueState
from rmqlb.model.group_scenario import Event
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.result import utc_text
from rmqlb.model.route import TopicRouteData


def spread_evenly(
    rates: Mapping[str, float], routes: Sequence[TopicRouteData], events: Sequence[Event] = ()
) -> dict[MessageQueue, float]:
    """Each topic's rate per second, divided evenly among its initial read queues.

    A queue that an event adds has the same rate as the others, which is more than an even share: bounds stay bounds.
    """
    found: dict[MessageQueue, float] = {}
    for route in routes:
        queues = route.subscribe_queues()
        if route.topic not in rates or not queues:
            continue
        rate = rates[route.topic] / len(queues)
        found |= dict.fromkeys(queues, rate)
        brokers = [data.broker_name for data in route.queue_datas]
        usual = max(data.read_queue_nums for data in route.queue_datas)
        for event in events:
            names: list[str] = []
            if event.kind == "route-change" and event.subject == route.topic:
                names = brokers if event.broker_name is None else [event.broker_name]
            elif event.kind == "broker-up" and event.subject not in brokers:
                names = [event.subject]
            number = usual if event.read_queues is None else event.read_queues
            found |= {MessageQueue(route.topic, name, queue_id): rate for name in names for queue_id in range(number)}
    return found


def seconds_between(later: datetime | None, earlier: datetime | None, where: str, hint: str | None = None) -> float:
    """The time between two snapshots; `where` names the earlier one in errors (DataError)."""
    if later is None or earlier is None:
        which = f"{where} does" if earlier is None else "the source does"
        raise DataError(f"{which} not report when it was taken, so the rate is unknown", hint=hint)
    if later <= earlier:
        text = f"{where} is not earlier than the source: {utc_text(earlier)} and {utc_text(later)}"
        raise DataError(text, hint="pass the later snapshot with -s, and the earlier one with --earlier")
    return (later - earlier).total_seconds()


def observed_rates(
    now: ConsumerGroup,
    then: ConsumerGroup,
    taken: tuple[datetime | None, datetime | None],  # times of the later and the earlier snapshot
    queues: Iterable[MessageQueue],
    where: str,
) -> tuple[dict[MessageQueue, float], float]:
    """Messages per second of the queues that both snapshots have, and the seconds between them (raises DataError)."""
    length_s = seconds_between(*taken, where, hint="pass --rate R")
    rates: dict[MessageQueue, float] = {}
    for queue in queues:
        end, before = (each.queues.get(queue, QueueState()).broker_offset for each in (now, then))
        if end is None or before is None:
            continue
        if end < before:
            text = f"queue {queue.broker_name}:{queue.queue_id} of {queue.topic} ends at {end}, but in {where} at"
            hint = "are both snapshots of the same cluster?"
            raise DataError(f"{text} {before}: offsets went back", hint=hint)
        rates[queue] = (end - before) / length_s
    if not rates:
        hint = "fetch both with fetch-routes --group, which reads offsets"
        raise DataError(f"{where} and the source have no queue with both end offsets", hint=hint)
    return rates, length_s
