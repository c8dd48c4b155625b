"""Events as they must be before a simulation: restarts taken apart, in the order of time, free of contradictions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from rmqlb.errors import UsageError
from rmqlb.model.group_scenario import Event, EventKind
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import suggestion

_ENDS: tuple[EventKind, ...] = ("leave", "crash", "host-loss")
_OF_MEMBERS = (*_ENDS, "join", "pull-stall", "freeze", "unfreeze")
_OF_FROZEN = ("crash", "host-loss", "unfreeze")  # what can happen to a process that does nothing
_PROCESS_AND_TIME = r"(?P<host>.*@\d+#)(?P<nanos>\d{1,18})"


def restarts(
    client_ids: Sequence[str],  # in the order in which they go down
    at_us: int,
    *,
    every_us: int,  # from one going down to the next
    down_us: int,
    at_once: int = 1,  # how many go down together
    becomes: Mapping[str, str] | None = None,  # client id → the id afterwards, of those whose id changes
    strategy: str | None = None,  # what they run afterwards; None leaves it as it is
    end: Literal["leave", "crash"] = "leave",
    text: str = "",  # the event as the user wrote it
) -> tuple[Event, ...]:
    """A restart of each of the members in turn: it ends, and comes back some time later."""
    events: list[Event] = []
    for index, client_id in enumerate(client_ids):
        goes = at_us + index // at_once * every_us
        comes = (becomes or {}).get(client_id, client_id)
        events.append(Event(end, goes, client_id, text))
        events.append(Event("join", goes + down_us, comes, text, strategy=strategy))
    return tuple(events)


def renamed(client_id: str) -> str:
    """The id of the process after a restart, as far as its form tells (`ClientConfig.changeInstanceNameToPID`).

    An id `host@pid#time` changes: on the same host, with the same pid (1 in a container), the time is a later one. Any
    other id was chosen by the application, and stays.

    >>> renamed("10.0.0.5@1#7000000000000"), renamed("10.0.0.5@worker-3")
    ('10.0.0.5@1#7000000000001', '10.0.0.5@worker-3')
    """
    match = re.fullmatch(_PROCESS_AND_TIME, client_id)
    return client_id if match is None else f"{match['host']}{int(match['nanos']) + 1:0{len(match['nanos'])}d}"


def renamed_apart(client_ids: Iterable[str], taken: Iterable[str]) -> dict[str, str]:
    """Client id → its id after a restart, of those that change; no two processes get the same.

    >>> renamed_apart(["h@1#7", "h@worker-3"], ["h@1#7", "h@1#8"])
    {'h@1#7': 'h@1#9'}
    """
    used = set(taken)
    changed: dict[str, str] = {}
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
    """The events in the order of time, if they can happen (raises UsageError); an id of two processes stands twice."""
    for event in events:
        if event.at_us < 0:
            raise UsageError(f"{_named(event)}: before the start", hint="times count from the start, 0s")
    ordered = sorted(events, key=lambda event: event.at_us)
    _check_members(ordered, Counter(client_ids))
    _check_brokers(ordered, routes)
    by_topic = {route.topic: route for route in routes}
    for event in ordered:
        if event.kind == "route-change":
            _check_route_change(event, by_topic)
    return tuple(replace(event, text=event.text or f"{event.kind} {event.subject}") for event in ordered)


def _check_members(events: Sequence[Event], present: Counter[str]) -> None:
    ever = set(present)
    frozen: Counter[str] = Counter()
    for event in events:
        if event.kind not in _OF_MEMBERS:
            continue
        client_id = event.subject
        if event.kind == "join":
            if not client_id:
                raise UsageError(f"{_named(event)}: a client id cannot be empty")
            if present[client_id]:
                raise UsageError(
                    f"{_named(event)}: it is already in the group then",
                    hint="let it leave or crash before, or give the new process another id",
                    code="already-in-group",
                )
            present[client_id] += 1
            ever.add(client_id)
        elif not present[client_id]:
            known = sorted(name for name, number in present.items() if number)
            was = "no longer" if client_id in ever else "not"
            raise UsageError(
                f"{_named(event)}: it is {was} in the group then",
                hint=suggestion("consumers", client_id, known),
                code="not-in-group",
            )
        elif event.kind == "unfreeze" and not frozen[client_id]:
            raise UsageError(f"{_named(event)}: it is not frozen then", hint="an end takes the freeze along")
        elif frozen[client_id] == present[client_id] and event.kind not in _OF_FROZEN:
            raise UsageError(
                f"{_named(event)}: it is frozen then, and does nothing",
                hint="let the freeze end before, or kill it: crash",
            )
        else:
            frozen[client_id] += {"freeze": 1, "unfreeze": -1}.get(event.kind, 0)
            if event.kind in _ENDS:
                present[client_id] -= 1
                frozen[client_id] = min(frozen[client_id], present[client_id])


def _check_brokers(events: Sequence[Event], routes: Sequence[TopicRouteData]) -> None:
    up = {broker.broker_name: True for route in routes for broker in route.broker_datas}
    for event in events:
        name = event.subject
        if event.kind in ("broker-down", "broker-loss"):
            if name not in up:
                hint = suggestion("brokers", name, up)
                raise UsageError(f"{_named(event)}: there is no such broker", hint=hint, code="unknown-broker")
            if not up[name]:
                raise UsageError(f"{_named(event)}: it is down already")
            up[name] = False
        elif event.kind == "broker-up":
            if up.get(name):
                raise UsageError(f"{_named(event)}: it is up already")
            if name in up and (event.read_queues, event.write_queues) != (None, None):
                raise UsageError(f"{_named(event)}: it comes back with the queues that it had")
            up[name] = True


def _check_route_change(event: Event, routes: Mapping[str, TopicRouteData]) -> None:
    topic = event.subject
    if topic not in routes:
        raise UsageError(f"{_named(event)}: topic {topic} is not simulated", hint=suggestion("topics", topic, routes))
    if routes[topic].is_static:
        text = f"{_named(event)}: {topic} is a static topic: its queues do not follow brokers"
        raise UsageError(text, code="static-topic")
    brokers = [data.broker_name for data in routes[topic].queue_datas]
    if event.broker_name is not None and event.broker_name not in brokers:
        hint = suggestion("brokers", event.broker_name, brokers)
        text = f"{_named(event)}: topic {topic} has no broker {event.broker_name}"
        raise UsageError(text, hint=hint, code="unknown-broker")


def _named(event: Event) -> str:
    return f"--event {event.text!r}" if event.text else f"{event.kind} {event.subject}"
