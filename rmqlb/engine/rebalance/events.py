"""Events prepared for a simulation: restarts split, in the order of time, free of contradictions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from rmqlb.errors import UsageError
from rmqlb.model.group_scenario import Event, EventKind
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import suggestion

ENDS: tuple[EventKind, ...] = ("leave", "crash", "host-loss")
_OF_CONSUMERS = (*ENDS, "join", "pull-stall", "freeze", "unfreeze")
_OF_FROZEN = ("crash", "host-loss", "unfreeze")  # the events that a frozen process can have
_PROCESS_AND_TIME = r"(?P<host>.*@\d+#)(?P<nanos>\d{1,18})"


def restarts(
    client_ids: Sequence[str],  # in the order in which they go down
    at_us: int,
    *,
    every_us: int,  # from one going down to the next
    down_us: int,
    at_once: int = 1,  # consumers that go down together
    becomes: Mapping[str, str] = {},  # client id → the id afterwards, of those whose id changes
    strategy: str | None = None,  # the strategy afterwards; None leaves it as it is
    end: Literal["leave", "crash"] = "leave",
    text: str = "",  # the event as the user wrote it
) -> tuple[Event, ...]:
    events: list[Event] = []
    for index, client_id in enumerate(client_ids):
        goes = at_us + index // at_once * every_us
        events.append(Event(end, goes, client_id, text))
        events.append(Event("join", goes + down_us, becomes.get(client_id, client_id), text, strategy=strategy))
    return tuple(events)


def renamed(client_id: str) -> str:
    """The client ID after a restart: `host@pid#time` gets a later time (`ClientConfig.changeInstanceNameToPID`).

    >>> renamed("10.0.0.5@1#7000000000000"), renamed("10.0.0.5@worker-3")
    ('10.0.0.5@1#7000000000001', '10.0.0.5@worker-3')
    """
    match = re.fullmatch(_PROCESS_AND_TIME, client_id)
    return client_id if match is None else f"{match['host']}{int(match['nanos']) + 1:0{len(match['nanos'])}d}"


def renamed_apart(client_ids: Iterable[str], taken: Iterable[str]) -> dict[str, str]:
    """Client ID → its new ID after a restart, if it changes; no two processes get the same ID.

    >>> renamed_apart(["h@1#7", "h@worker-3"], ["h@1#7", "h@1#8"])
    {'h@1#7': 'h@1#9'}
    """
    used, changed = set(taken), dict[str, str]()
    for client_id in client_ids:
        new = renamed(client_id)
        if new == client_id:
            continue
        while new in used:
            new = renamed(new)
        used.add(new)
        changed[client_id] = new
    return changed


def in_order(events: Iterable[Event], client_ids: Iterable[str], routes: Sequence[TopicRouteData]) -> tuple[Event, ...]:
    """The events in the order of time (raises UsageError if they contradict each other or the group)."""
    ordered = sorted(events, key=lambda event: event.at_us)
    cluster = _Cluster(client_ids, routes)
    for event in ordered:
        for error in cluster.contradictions(event):
            name = f"--event {event.text!r}" if event.text else f"{event.kind} {event.subject}"
            raise UsageError(error.message, prefix=f"{name}: ", hint=error.hint, code=error.code)
        cluster.happen(event)
    return tuple(replace(event, text=event.text or f"{event.kind} {event.subject}") for event in ordered)


class _Cluster:
    def __init__(self, client_ids: Iterable[str], routes: Sequence[TopicRouteData]) -> None:
        self._present = Counter(client_ids)
        self._frozen: Counter[str] = Counter()
        self._up = {broker.broker_name: True for route in routes for broker in route.broker_datas}
        self._routes = {route.topic: route for route in routes}

    def happen(self, event: Event) -> None:
        name = event.subject
        if event.kind in _OF_CONSUMERS:
            self._present[name] += (event.kind == "join") - (event.kind in ENDS)
            self._frozen[name] += (event.kind == "freeze") - (event.kind == "unfreeze")
            self._frozen[name] = min(self._frozen[name], self._present[name])
        elif event.kind != "route-change":
            self._up[name] = event.kind == "broker-up"

    def contradictions(self, event: Event) -> Iterator[UsageError]:
        if event.at_us < 0:
            yield UsageError("before the start", hint="times count from the start, 0s")
        if event.kind == "join":
            if not event.subject:
                yield UsageError("a client id cannot be empty")
            if self._present[event.subject]:
                hint = "let it leave or crash before, or give the new process another id"
                yield UsageError("it is already in the group then", hint=hint, code="already-in-group")
        elif event.kind in _OF_CONSUMERS:
            yield from self._of_consumer(event.kind, event.subject)
        elif event.kind == "route-change":
            yield from self._of_route(event)
        else:
            yield from self._of_broker(event)

    def _of_consumer(self, kind: EventKind, client_id: str) -> Iterator[UsageError]:
        present, frozen = self._present, self._frozen[client_id]
        if not present[client_id]:
            was = "no longer" if client_id in present else "not"
            hint = suggestion("consumers", client_id, sorted(+present))
            yield UsageError(f"it is {was} in the group then", hint=hint, code="not-in-group")
        if kind == "unfreeze" and not frozen:
            yield UsageError("it is not frozen then", hint="an end takes the freeze along")
        if frozen == present[client_id] and kind not in _OF_FROZEN:
            yield UsageError("it is frozen then, and does nothing", hint="let the freeze end before, or kill it: crash")

    def _of_broker(self, event: Event) -> Iterator[UsageError]:
        name, up = event.subject, self._up.get(event.subject)
        if event.kind != "broker-up":
            if up is None:
                hint = suggestion("brokers", name, self._up)
                yield UsageError("there is no such broker", hint=hint, code="unknown-broker")
            if not up:
                yield UsageError("it is down already")
        elif up:
            yield UsageError("it is up already")
        elif up is not None and (event.read_queues, event.write_queues) != (None, None):
            yield UsageError("it comes back with the queues that it had")

    def _of_route(self, event: Event) -> Iterator[UsageError]:
        topic, broker = event.subject, event.broker_name
        if topic not in self._routes:
            yield UsageError(f"topic {topic} is not simulated", hint=suggestion("topics", topic, self._routes))
            return
        if self._routes[topic].is_static:
            yield UsageError(f"{topic} is a static topic: its queues do not follow brokers", code="static-topic")
        brokers = [data.broker_name for data in self._routes[topic].queue_datas]
        if broker is not None and broker not in brokers:
            hint = suggestion("brokers", broker, brokers)
            yield UsageError(f"topic {topic} has no broker {broker}", hint=hint, code="unknown-broker")
