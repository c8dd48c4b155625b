"""`--event` as events of single members and brokers: patterns, labels and restarts taken apart.

Rule of this file: an event is about the members that are there at its time, so that events are taken in the order of
time; the answer has them in the order in which they were typed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from rmqlb.engine.plan.changes import placeholders
from rmqlb.engine.rebalance.events import renamed_apart, restarts
from rmqlb.errors import UsageError
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.group_scenario import Event, EventKind
from rmqlb.model.java import sort_key
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import suggestion
from rmqlb.verbs.group_simulation.parse_events import AskedEvent, parse_event
from rmqlb.verbs.parse import file_lines, new_broker, queue_number
from rmqlb.verbs.strategies import Strategies

_MOST_JOINING = 1000
_GLOB = "*?["
_LABEL = re.compile(r"#([0-9]{1,9})")
_NUMBER = re.compile(r"[0-9]+")
_ENDS = ("leave", "crash", "host-loss")


def event_texts(texts: Sequence[str]) -> tuple[str, ...]:
    """The events of `--event`, those of `@FILE` line by line (raises UsageError)."""
    return tuple(
        line for text in texts for line in (file_lines(text[1:], "--event") if text.startswith("@") else (text,))
    )


def events(
    texts: Sequence[str],
    client_ids: Sequence[str],
    routes: Sequence[TopicRouteData],
    strategies: Strategies | None = None,
    elsewhere: Collection[str] = (),
) -> tuple[tuple[Event, ...], tuple[Finding, ...]]:
    """`--event`, taken apart into what happens to single members (`client_ids`, duplicates kept) and brokers.

    Args:
        elsewhere: brokers that other topics have; what happens to them is no event of these.
    """
    known = {*client_ids, *(broker.broker_name for route in routes for broker in route.broker_datas)}
    asked = [parse_event(text, known) for text in texts]
    reading = _Reading(client_ids, routes, strategies or Strategies(), asked, elsewhere)
    places = sorted(range(len(asked)), key=lambda place: asked[place].at_us)
    found = {place: reading.take(asked[place]) for place in places}
    return tuple(event for place in range(len(asked)) for event in found[place]), tuple(reading.findings())


def events_of_brokers(
    texts: Sequence[str], routes: Sequence[TopicRouteData], elsewhere: Sequence[TopicRouteData]
) -> tuple[Event, ...]:
    """Those that happen to brokers of these routes, whichever group there is."""
    others = {broker.broker_name for route in (*routes, *elsewhere) for broker in route.broker_datas}
    of_brokers = [text for text in texts if "broker" in parse_event(text, others).verb]
    return events(of_brokers, (), routes, elsewhere=others)[0]


class _Reading:
    """The events read so far, and who is there because of them."""

    def __init__(
        self,
        client_ids: Sequence[str],
        routes: Sequence[TopicRouteData],
        strategies: Strategies,
        asked: Iterable[AskedEvent],
        elsewhere: Collection[str],
    ) -> None:
        self._elsewhere = elsewhere
        self._beginning = client_ids
        self._labelled = sort_client_ids(set(client_ids))
        self._routes = routes
        self._strategies = strategies
        self._brokers = sorted({data.broker_name for route in routes for data in route.broker_datas}, key=sort_key)
        self._ids = {*client_ids, *(each.subject for each in asked if each.verb == "join")}
        self._events: list[Event] = []
        self._has_placeholders = False
        self._renamed: dict[str, str] = {}
        self._new_brokers: list[str] = []

    def take(self, asked: AskedEvent) -> tuple[Event, ...]:
        """One more, which must not be earlier than those before."""
        match asked.verb:
            case "join":
                taken = tuple(self._join(asked))
            case "leave" | "crash" | "host-loss" | "pull-stall" as kind:
                ids = self._members([asked.subject], asked)
                taken = tuple(Event(kind, asked.at_us, client_id, asked.text) for client_id in ids)
            case "freeze":
                taken = tuple(self._freeze(asked))
            case "broker-down" | "broker-loss" | "broker-up" | "restart-broker":
                taken = tuple(self._broker(asked))
            case "route-change":
                taken = (self._route_change(asked),)
            case _:
                taken = self._restarts(asked)
        self._events += taken
        return taken

    def findings(self) -> Iterator[Finding]:
        if self._has_placeholders:
            text = "placeholder client IDs sort last, behind IP addresses; a real process may move other queues"
            yield Finding("placeholder-ids", text, severity=INFO)
        if self._renamed:
            old, new = next(iter(self._renamed.items()))
            more = f" and {len(self._renamed) - 1} more" if len(self._renamed) > 1 else ""
            yield Finding(
                "new-ids",
                f"a restarted process gets a new client ID, and may sort elsewhere: {old}{more} comes back as {new}; "
                "'same ids' after a comma keeps the IDs",
            )
        for name in self._new_brokers:
            yield Finding("new-broker", f"no topic has a broker {name} yet: it comes up as a new one")
        yield from self._slaves()
        lost = {event.subject for event in self._events if event.kind in ("broker-down", "broker-loss")}
        for route in self._routes:
            mapping = route.topic_queue_mapping_by_broker or {}
            holders = lost.intersection(mapping, (data.broker_name for data in route.queue_datas))
            if holders:
                yield Finding(
                    "static-queues",
                    f"topic {route.topic} is static: its queues keep their owners when {', '.join(sorted(holders))} is "
                    "lost, and those that it holds are in an outage until it is back",
                )

    def _slaves(self) -> Iterator[Finding]:
        alone = {e.subject for e in self._events if e.kind in ("broker-down", "broker-loss") and not e.with_slaves}
        brokers = (broker for route in self._routes for broker in route.broker_datas)
        names = {b.broker_name for b in brokers if b.has_master and len(b.broker_addrs) > 1 and b.broker_name in alone}
        if names:
            yield Finding(
                "slaves-go-on",
                f"only the master of {', '.join(sorted(names))} is lost: consumers read from its slaves once they have "
                "the new route; ', with slaves' after the time takes those down as well",
            )

    def _join(self, asked: AskedEvent) -> Iterator[Event]:
        strategy = asked.others.get("strategy")
        strategy = None if strategy is None else self._strategy(strategy, asked)
        ids = [asked.subject]
        if _NUMBER.fullmatch(asked.subject):
            number = int(asked.subject) if len(asked.subject) < 9 else _MOST_JOINING + 1
            if not 0 < number <= _MOST_JOINING:
                raise asked.wrong(f"{asked.subject} is not a number from 1 to {_MOST_JOINING}")
            ids = placeholders(number, self._ids)
            self._ids |= set(ids)
            self._has_placeholders = True
        elif set(asked.subject) & set("*?"):
            raise asked.wrong(f"{asked.subject} is a pattern, and a new consumer needs an id")
        for client_id in ids:
            yield Event("join", asked.at_us, client_id, asked.text, strategy=strategy)

    def _freeze(self, asked: AskedEvent) -> Iterator[Event]:
        for client_id in self._members([asked.subject], asked):
            yield Event("freeze", asked.at_us, client_id, asked.text)
            if asked.to_us is not None:
                yield Event("unfreeze", asked.to_us, client_id, asked.text)

    def _broker(self, asked: AskedEvent) -> Iterator[Event]:
        kind: EventKind = "broker-down" if asked.verb == "restart-broker" else asked.verb  # type: ignore[assignment]
        back_us = asked.at_us + asked.down_us if asked.down_us else asked.to_us
        name, reads, writes = asked.subject, None, None
        fitting = [name]
        if name not in self._brokers:
            fitting = [broker for broker in self._brokers if fnmatchcase(broker, name)]
            if not fitting and any(broker == name or fnmatchcase(broker, name) for broker in self._elsewhere):
                return
            if not fitting and set(name) & set(_GLOB):
                raise asked.wrong(f"{name} matches no broker", suggestion("brokers", name, self._brokers))
            if not fitting and kind == "broker-up":
                new = new_broker(re.sub(r"\s*:\s*", ":", name), asked.option, asked.hint)
                name, reads, writes = new.name, new.read_queue_nums, new.write_queue_nums
                writes = reads if writes is None else writes
                if name not in self._brokers:
                    self._brokers.append(name)
                    self._new_brokers.append(name)
            fitting = fitting or [name]
        for broker in fitting:
            yield Event(
                kind,
                asked.at_us,
                broker,
                asked.text,
                read_queues=reads,
                write_queues=writes,
                with_slaves=asked.with_slaves,
            )
            if back_us is not None:
                yield Event("broker-up", back_us, broker, asked.text)

    def _route_change(self, asked: AskedEvent) -> Event:
        where, equals, numbers = asked.subject.rpartition("=")
        if not equals:
            where, _, numbers = asked.subject.rpartition(":")
        topic, broker = where, None
        if equals:
            topic, colon, broker = ("", "", where) if where in self._brokers else where.partition(":")
            if not colon:
                topic, broker = "", where
            if not broker:
                raise asked.wrong("which broker?")
        topics = [route.topic for route in self._routes]
        if not topic and len(topics) > 1:
            raise asked.wrong("which topic?", f"write route-change {topics[0]}:{asked.subject}@TIME")
        reads, slash, writes = numbers.partition("/")
        read_queues = queue_number(reads.strip(), asked.option, asked.hint)
        return Event(
            "route-change",
            asked.at_us,
            topic or topics[0],
            asked.text,
            broker_name=broker or None,
            read_queues=read_queues,
            write_queues=queue_number(writes.strip(), asked.option, asked.hint) if slash else read_queues,
        )

    def _restarts(self, asked: AskedEvent) -> tuple[Event, ...]:
        strategy = None
        if asked.verb == "strategy-change":
            strategy = self._strategy(asked.subject, asked)
            named = self._members(asked.others.get("order", "").split(), asked)
            ids = list(dict.fromkeys((*named, *self._present(asked))))
        else:
            ids = self._members([asked.subject] if asked.verb == "restart" else asked.subject.split(), asked)
        if not ids:
            raise asked.wrong("no consumer is in the group then", "let one join before")
        self._each_alone(ids, asked)
        return restarts(
            ids,
            asked.at_us,
            every_us=asked.every_us,
            down_us=asked.down_us,
            at_once=asked.at_once,
            becomes=self._becomes(ids, asked),
            strategy=strategy,
            end="crash" if asked.by == "crash" else "leave",
            text=asked.text,
        )

    def _each_alone(self, ids: Sequence[str], asked: AskedEvent) -> None:
        for client_id, processes in Counter(self._present(asked)).items():
            if client_id in ids and processes > 1:
                raise asked.wrong(
                    f"{processes} processes share the id {client_id}", "restart one of them as leave and join ID"
                )

    def _becomes(self, ids: Sequence[str], asked: AskedEvent) -> dict[str, str]:
        """Client id → its id afterwards, of those that change."""
        if "as" in asked.others:
            if len(ids) > 1:
                raise asked.wrong(f"{asked.subject} matches {len(ids)} consumers, and one new ID is given")
            self._ids.add(asked.others["as"])
            return {ids[0]: asked.others["as"]}
        if asked.ids == "same":
            return {}
        changed = renamed_apart(ids, self._ids)
        self._ids |= set(changed.values())
        if asked.ids == "new" and not changed:
            raise asked.wrong(
                f"{ids[0]} is an id that the application chose, and stays", "only host@pid#time changes by itself"
            )
        if asked.ids is None:
            self._renamed |= changed
        return changed

    def _strategy(self, text: str, asked: AskedEvent) -> str:
        try:
            return self._strategies.name(text, asked.option)
        except UsageError as error:
            raise asked.wrong(error.problem, error.hint) from error.__cause__

    def _members(self, names: Sequence[str], asked: AskedEvent) -> list[str]:
        """Those that are meant, in the order of the names; an id that nobody has stays, for the check of all events."""
        present = self._present(asked)
        found: list[str] = []
        for name in names:
            label = _LABEL.fullmatch(name)
            if name in present:
                found.append(name)
            elif label:
                found.append(self._by_label(int(label[1]), asked))
            elif fitting := [client_id for client_id in present if fnmatchcase(client_id, name)]:
                found += fitting
            elif set(name) & set(_GLOB):
                why = f"{name} matches no consumer that is there then"
                raise asked.wrong(why, suggestion("consumers", name, present))
            else:
                found.append(name)
        return found if asked.verb in _ENDS else list(dict.fromkeys(found))

    def _by_label(self, index: int, asked: AskedEvent) -> str:
        if index >= len(self._labelled):
            raise asked.wrong(
                f"there is no consumer #{index}",
                f"the {len(self._labelled)} of the beginning are #0 to #{len(self._labelled) - 1} in sorted order"
                if self._labelled
                else "the group is empty at the beginning",
            )
        return self._labelled[index]

    def _present(self, asked: AskedEvent) -> list[str]:
        """The ids of the processes that run then, sorted as clients sort them."""
        present = Counter(self._beginning)
        for event in sorted(self._events, key=lambda event: event.at_us):
            if event.at_us <= asked.at_us and event.kind == "join":
                present[event.subject] += 1
            elif event.at_us <= asked.at_us and event.kind in _ENDS:
                present[event.subject] -= 1
        return sort_client_ids(present.elements())
