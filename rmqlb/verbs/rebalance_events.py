"""`--event` as typed, and as events of single consumers and brokers.

    VERB SUBJECT@TIME[, QUALIFIER]…

Client IDs contain an @, a # or a colon themselves, so the last @ before the first comma is the one of the time.
Patterns, labels and restarts are expanded in the order of time; the result has the events in the order of typing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct, field

from rmqlb.engine.plan.changes import placeholders
from rmqlb.engine.rebalance.events import renamed_apart, restarts
from rmqlb.errors import UsageError
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.group_scenario import Event, EventKind
from rmqlb.model.java import sort_key
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import suggestion
from rmqlb.verbs.amounts import duration_us
from rmqlb.verbs.parse import file_lines, new_broker, queue_number
from rmqlb.verbs.strategies import Strategies


class Verb(Struct, frozen=True):
    """The syntax of one kind of event."""

    example: str
    qualifiers: tuple[str, ...] = ()  # what may follow its time
    needed: tuple[str, ...] = ()
    has_window: bool = False


_RESTART = ("down", "by", "ids")
VERBS: Mapping[str, Verb] = {
    "join": Verb("join 10.0.0.9@app@30s or join 2@30s", ("strategy",)),
    "leave": Verb("leave 10.0.0.5@app@30s"),
    "crash": Verb("crash 10.0.0.5@app@30s"),
    "host-loss": Verb("host-loss '10.0.0.5@*@30s'"),
    "broker-down": Verb("broker-down broker-a@30s or broker-down broker-a@30s-90s", ("with",), has_window=True),
    "broker-loss": Verb("broker-loss broker-a@30s or broker-loss broker-a@30s-90s", ("with",), has_window=True),
    "restart-broker": Verb("restart-broker broker-a@30s, down 1m", ("down", "with"), ("down",)),
    "broker-up": Verb("broker-up broker-a@90s or broker-up broker-c:8:8@90s for a new one"),
    "route-change": Verb("route-change 12@30s, TOPIC:broker-a=12@30s, or 12/8@30s for 12 read and 8 write queues"),
    "pull-stall": Verb("pull-stall 10.0.0.5@app@30s"),
    "freeze": Verb("freeze 10.0.0.5@app@30s or freeze 10.0.0.5@app@30s-3m", has_window=True),
    "restart": Verb("restart 10.0.0.5@app@30s, down 15s", (*_RESTART, "as"), ("down",)),
    "rolling-restart": Verb(
        "rolling-restart *@30s, every 60s, down 15s", (*_RESTART, "every", "at once"), ("every", "down")
    ),
    "strategy-change": Verb(
        "strategy-change AVG_BY_CIRCLE@30s, every 60s, down 15s",
        (*_RESTART, "every", "at once", "order"),
        ("every", "down"),
    ),
}
NUMBER_AT_ONCE = r"0{0,9}[1-9][0-9]{0,5}"  # how many go down together

_QUALIFIERS = {
    "as": "as ID",
    "at once": "at once N",
    "by": "by crash",
    "down": "down TIME",
    "every": "every TIME",
    "ids": "new ids or same ids",
    "order": "order ID ID …",
    "strategy": "strategy NAME",
    "with": "with slaves",
}


class TypedEvent(Struct, frozen=True):
    """An event as typed, in its parts."""

    text: str
    verb: str
    subject: str
    at_us: int
    to_us: int | None = None  # where its window ends, or None
    every_us: int = 0
    down_us: int = 0
    at_once: int = 1
    by: str = "leave"
    ids: str | None = None
    others: Mapping[str, str] = field(default_factory=dict)  # the qualifiers as, strategy and order, when given
    with_slaves: bool = False

    @property
    def option(self) -> str:
        return f"--event {self.text!r}"

    @property
    def hint(self) -> str:
        return f"write {VERBS[self.verb].example}"

    def wrong(self, why: str, hint: str | None = None) -> UsageError:
        """The error, with the right syntax as its hint if there is no better one."""
        return UsageError(f"{self.option}: {why}", hint=hint or self.hint)


def parse_event(text: str, known: Collection[str] = ()) -> TypedEvent:
    """Split an event into its parts; a known name may look like a name and a time (raises UsageError)."""
    head, *rest = text.split(",")
    verb, more = [*head.split(None, 1), "", ""][:2]
    verb = verb.lower()
    if verb not in VERBS:
        raise UsageError(
            f"--event {text!r}: there is no event {verb or 'without a verb'}",
            hint=suggestion("events", verb, VERBS),
        )
    typed = TypedEvent(text.strip(), verb, "", 0)
    subject, at, when = (part.strip() for part in more.strip().rpartition("@"))
    if not at or (more.strip() in known and subject not in known):
        raise typed.wrong("when?")
    if not subject:
        raise typed.wrong("who or what?")
    start, end = _times(when, typed)
    given = _qualifiers([part.strip() for part in rest], typed)
    at_once = given.get("at once", "1")
    if not re.fullmatch(NUMBER_AT_ONCE, at_once):
        raise typed.wrong(f"at once {at_once}: not a number of consumers", "write at once 2")
    return TypedEvent(
        text=typed.text,
        verb=verb,
        subject=subject,
        at_us=start,
        to_us=end,
        every_us=_time(given.get("every", "0"), typed),
        down_us=_time(given["down"], typed, zero=False) if "down" in given else 0,
        at_once=int(at_once),
        by=_one_of("by", given.get("by", "leave"), ("leave", "crash"), typed),
        ids=given.get("ids"),
        others={name: value for name, value in given.items() if name in ("as", "strategy", "order")},
        with_slaves=bool(_one_of("with", given["with"], ("slaves",), typed)) if "with" in given else False,
    )


def _times(when: str, typed: TypedEvent) -> tuple[int, int | None]:
    if when.startswith("-"):
        raise typed.wrong("before the start", "times count from the start, 0s")
    first, dash, second = when.partition("-")
    start = _time(first, typed)
    if not dash:
        return start, None
    if not VERBS[typed.verb].has_window:
        raise typed.wrong(f"{typed.verb} happens at one time, not from one to another")
    end = _time(second, typed)
    if end <= start:
        raise typed.wrong("the window ends before it starts", "write @FROM-TO with FROM before TO")
    return start, end


def _time(text: str, typed: TypedEvent, *, zero: bool = True) -> int:
    return duration_us(text.strip(), f"{typed.option}:", zero=zero)


def _qualifiers(parts: list[str], typed: TypedEvent) -> dict[str, str]:
    allowed = VERBS[typed.verb].qualifiers
    given: dict[str, str] = {}
    for part in parts:
        name, value = _qualifier(part, typed)
        if name not in allowed:
            names = ", ".join(_QUALIFIERS[each] for each in allowed)
            raise typed.wrong(
                f"{part or 'nothing'} cannot follow a comma of {typed.verb}",
                f"what may follow: {names}" if allowed else f"nothing may: {typed.hint}",
            )
        if not value:
            raise typed.wrong(f"{name} what?")
        if name in given:
            raise typed.wrong(f"{name} is said twice")
        given[name] = value
    for name in VERBS[typed.verb].needed:
        if name not in given:
            raise typed.wrong("how long is it away?" if name == "down" else "how long from one to the next?")
    return given


def _qualifier(part: str, typed: TypedEvent) -> tuple[str, str]:
    """Split `at once 2` into (at once, 2), and `same ids` into (ids, same)."""
    first, _, rest = part.partition(" ")
    name, value = first.lower(), rest.strip()
    if name in ("new", "same"):
        return ("ids", name) if value.lower() in ("id", "ids") else (part, name)
    if name == "at":
        once, _, number = value.partition(" ")
        return ("at once", number.strip()) if once.lower() == "once" else (part, value)
    if name == "at-once":
        raise typed.wrong("at-once?", "write at once 2")
    return name, value


def _one_of(what: str, text: str, names: tuple[str, ...], typed: TypedEvent) -> str:
    if not re.fullmatch("|".join(names), text.lower()):
        raise typed.wrong(f"{what} {text}?", f"write {what} {f' or {what} '.join(names)}")
    return text.lower()


_MOST_JOINING = 1000
_GLOB = "*?["
_LABEL = re.compile(r"#([0-9]{1,9})")
_NUMBER = re.compile(r"[0-9]+")
_ENDS = ("leave", "crash", "host-loss")


def event_texts(texts: Sequence[str]) -> tuple[str, ...]:
    """The values of `--event`, with the lines of `@FILE` (raises UsageError)."""
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
    """`--event` as events of single consumers and brokers (raises UsageError).

    Args:
        client_ids: of the consumers at the beginning, duplicates kept.
        elsewhere: brokers of other topics only; their events are left out.
    """
    known = {*client_ids, *(broker.broker_name for route in routes for broker in route.broker_datas)}
    typed = [parse_event(text, known) for text in texts]
    expansion = _Expansion(client_ids, routes, strategies or Strategies(), typed, elsewhere)
    places = sorted(range(len(typed)), key=lambda place: typed[place].at_us)
    found = {place: expansion.expand(typed[place]) for place in places}
    return tuple(event for place in range(len(typed)) for event in found[place]), tuple(expansion.findings())


def events_of_brokers(
    texts: Sequence[str], routes: Sequence[TopicRouteData], elsewhere: Sequence[TopicRouteData]
) -> tuple[Event, ...]:
    """The events of these routes' brokers, whichever group there is."""
    others = {broker.broker_name for route in (*routes, *elsewhere) for broker in route.broker_datas}
    of_brokers = [text for text in texts if "broker" in parse_event(text, others).verb]
    return events(of_brokers, (), routes, elsewhere=others)[0]


class _Expansion:
    """The events so far, and which consumers exist because of them."""

    def __init__(
        self,
        client_ids: Sequence[str],
        routes: Sequence[TopicRouteData],
        strategies: Strategies,
        typed: Iterable[TypedEvent],
        elsewhere: Collection[str],
    ) -> None:
        self._elsewhere = elsewhere
        self._beginning = client_ids
        self._labelled = sort_client_ids(set(client_ids))
        self._routes = routes
        self._strategies = strategies
        self._brokers = sorted({data.broker_name for route in routes for data in route.broker_datas}, key=sort_key)
        self._ids = {*client_ids, *(each.subject for each in typed if each.verb == "join")}
        self._events: list[Event] = []
        self._has_placeholders = False
        self._renamed: dict[str, str] = {}
        self._new_brokers: list[str] = []

    def expand(self, typed: TypedEvent) -> tuple[Event, ...]:
        """One more event, which must not be earlier than those before: it is about the consumers of its time."""
        match typed.verb:
            case "join":
                found = tuple(self._join(typed))
            case "leave" | "crash" | "host-loss" | "pull-stall" as kind:
                ids = self._members([typed.subject], typed)
                found = tuple(Event(kind, typed.at_us, client_id, typed.text) for client_id in ids)
            case "freeze":
                found = tuple(self._freeze(typed))
            case "broker-down" | "broker-loss" | "broker-up" | "restart-broker":
                found = tuple(self._broker(typed))
            case "route-change":
                found = (self._route_change(typed),)
            case _:
                found = self._restarts(typed)
        self._events += found
        return found

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

    def _join(self, typed: TypedEvent) -> Iterator[Event]:
        strategy = typed.others.get("strategy")
        strategy = None if strategy is None else self._strategy(strategy, typed)
        ids = [typed.subject]
        if _NUMBER.fullmatch(typed.subject):
            number = int(typed.subject) if len(typed.subject) < 9 else _MOST_JOINING + 1
            if not 0 < number <= _MOST_JOINING:
                raise typed.wrong(f"{typed.subject} is not a number from 1 to {_MOST_JOINING}")
            ids = placeholders(number, self._ids)
            self._ids |= set(ids)
            self._has_placeholders = True
        elif set(typed.subject) & set("*?"):
            raise typed.wrong(f"{typed.subject} is a pattern, and a new consumer needs an id")
        for client_id in ids:
            yield Event("join", typed.at_us, client_id, typed.text, strategy=strategy)

    def _freeze(self, typed: TypedEvent) -> Iterator[Event]:
        for client_id in self._members([typed.subject], typed):
            yield Event("freeze", typed.at_us, client_id, typed.text)
            if typed.to_us is not None:
                yield Event("unfreeze", typed.to_us, client_id, typed.text)

    def _broker(self, typed: TypedEvent) -> Iterator[Event]:
        kind: EventKind = "broker-down" if typed.verb == "restart-broker" else typed.verb  # type: ignore[assignment]
        back_us = typed.at_us + typed.down_us if typed.down_us else typed.to_us
        name, reads, writes = typed.subject, None, None
        fitting = [name]
        if name not in self._brokers:
            fitting = [broker for broker in self._brokers if fnmatchcase(broker, name)]
            if not fitting and any(broker == name or fnmatchcase(broker, name) for broker in self._elsewhere):
                return
            if not fitting and set(name) & set(_GLOB):
                raise typed.wrong(f"{name} matches no broker", suggestion("brokers", name, self._brokers))
            if not fitting and kind == "broker-up":
                new = new_broker(re.sub(r"\s*:\s*", ":", name), typed.option, typed.hint)
                name, reads, writes = new.name, new.read_queue_nums, new.write_queue_nums
                writes = reads if writes is None else writes
                if name not in self._brokers:
                    self._brokers.append(name)
                    self._new_brokers.append(name)
            fitting = fitting or [name]
        for broker in fitting:
            yield Event(
                kind,
                typed.at_us,
                broker,
                typed.text,
                read_queues=reads,
                write_queues=writes,
                with_slaves=typed.with_slaves,
            )
            if back_us is not None:
                yield Event("broker-up", back_us, broker, typed.text)

    def _route_change(self, typed: TypedEvent) -> Event:
        where, equals, numbers = typed.subject.rpartition("=")
        if not equals:
            where, _, numbers = typed.subject.rpartition(":")
        topic, broker = where, None
        if equals:
            topic, colon, broker = ("", "", where) if where in self._brokers else where.partition(":")
            if not colon:
                topic, broker = "", where
            if not broker:
                raise typed.wrong("which broker?")
        topics = [route.topic for route in self._routes]
        if not topic and len(topics) > 1:
            raise typed.wrong("which topic?", f"write route-change {topics[0]}:{typed.subject}@TIME")
        reads, slash, writes = numbers.partition("/")
        read_queues = queue_number(reads.strip(), typed.option, typed.hint)
        return Event(
            "route-change",
            typed.at_us,
            topic or topics[0],
            typed.text,
            broker_name=broker or None,
            read_queues=read_queues,
            write_queues=queue_number(writes.strip(), typed.option, typed.hint) if slash else read_queues,
        )

    def _restarts(self, typed: TypedEvent) -> tuple[Event, ...]:
        strategy = None
        if typed.verb == "strategy-change":
            strategy = self._strategy(typed.subject, typed)
            named = self._members(typed.others.get("order", "").split(), typed)
            ids = list(dict.fromkeys((*named, *self._present(typed))))
        else:
            ids = self._members([typed.subject] if typed.verb == "restart" else typed.subject.split(), typed)
        if not ids:
            raise typed.wrong("no consumer is in the group then", "let one join before")
        self._each_alone(ids, typed)
        return restarts(
            ids,
            typed.at_us,
            every_us=typed.every_us,
            down_us=typed.down_us,
            at_once=typed.at_once,
            becomes=self._becomes(ids, typed),
            strategy=strategy,
            end="crash" if typed.by == "crash" else "leave",
            text=typed.text,
        )

    def _each_alone(self, ids: Sequence[str], typed: TypedEvent) -> None:
        for client_id, processes in Counter(self._present(typed)).items():
            if client_id in ids and processes > 1:
                raise typed.wrong(
                    f"{processes} processes share the id {client_id}", "restart one of them as leave and join ID"
                )

    def _becomes(self, ids: Sequence[str], typed: TypedEvent) -> dict[str, str]:
        """Client ID → its ID afterwards, of those that change."""
        if "as" in typed.others:
            if len(ids) > 1:
                raise typed.wrong(f"{typed.subject} matches {len(ids)} consumers, and one new ID is given")
            self._ids.add(typed.others["as"])
            return {ids[0]: typed.others["as"]}
        if typed.ids == "same":
            return {}
        changed = renamed_apart(ids, self._ids)
        self._ids |= set(changed.values())
        if typed.ids == "new" and not changed:
            raise typed.wrong(
                f"{ids[0]} is an id that the application chose, and stays", "only host@pid#time changes by itself"
            )
        if typed.ids is None:
            self._renamed |= changed
        return changed

    def _strategy(self, text: str, typed: TypedEvent) -> str:
        try:
            return self._strategies.name(text, typed.option)
        except UsageError as error:
            raise typed.wrong(error.problem, error.hint) from error.__cause__

    def _members(self, names: Sequence[str], typed: TypedEvent) -> list[str]:
        """The consumers that are named, in that order; an unknown ID stays, for the check of all events."""
        present = self._present(typed)
        found: list[str] = []
        for name in names:
            label = _LABEL.fullmatch(name)
            if name in present:
                found.append(name)
            elif label:
                found.append(self._by_label(int(label[1]), typed))
            elif fitting := [client_id for client_id in present if fnmatchcase(client_id, name)]:
                found += fitting
            elif set(name) & set(_GLOB):
                why = f"{name} matches no consumer that is there then"
                raise typed.wrong(why, suggestion("consumers", name, present))
            else:
                found.append(name)
        return found if typed.verb in _ENDS else list(dict.fromkeys(found))

    def _by_label(self, index: int, typed: TypedEvent) -> str:
        if index >= len(self._labelled):
            raise typed.wrong(
                f"there is no consumer #{index}",
                f"the {len(self._labelled)} of the beginning are #0 to #{len(self._labelled) - 1} in sorted order"
                if self._labelled
                else "the group is empty at the beginning",
            )
        return self._labelled[index]

    def _present(self, typed: TypedEvent) -> list[str]:
        """The IDs of the processes that run then, sorted as clients sort them."""
        present = Counter(self._beginning)
        for event in sorted(self._events, key=lambda event: event.at_us):
            if event.at_us <= typed.at_us and event.kind == "join":
                present[event.subject] += 1
            elif event.at_us <= typed.at_us and event.kind in _ENDS:
                present[event.subject] -= 1
        return sort_client_ids(present.elements())
