"""`--event` as typed, and as events of single consumers and brokers.

    VERB SUBJECT@TIME[, QUALIFIER]…

Client IDs contain an @, a # or a colon themselves, so the last @ before the first comma is the one of the time.
Patterns, labels and restarts are expanded in the order of time; the result has the events in the order of typing.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.plan.changes import placeholders
from rmqlb.engine.rebalance.simulate import ENDS, renamed_apart, restarts
from rmqlb.errors import DataError, UsageError
from rmqlb.model.group_scenario import Event, EventKind
from rmqlb.model.message_queue import sort_client_ids, sort_key
from rmqlb.model.result import INFO, Finding
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import suggestion
from rmqlb.verbs.amounts import duration_us
from rmqlb.verbs.parse import file_lines, new_broker, queue_number
from rmqlb.verbs.strategies import Strategies


class Verb(Struct, frozen=True):
    example: str
    qualifiers: tuple[str, ...] = ()  # what may follow its time; down and every must
    has_window: bool = False


NUMBER_AT_ONCE = r"0{0,9}[1-9][0-9]{0,5}"  # how many go down together
_QUALIFIERS = {
    "as": ("as ID", r"as\s+(.+)"),
    "at once": ("at once N", rf"at\s+once\s+({NUMBER_AT_ONCE})"),
    "by": ("by leave or by crash", r"by\s+(leave|crash)"),
    "down": ("down TIME", r"down\s+(.+)"),
    "every": ("every TIME", r"every\s+(.+)"),
    "ids": ("new ids or same ids", r"(new|same)\s+ids?"),
    "order": ("order ID ID …", r"order\s+(.+)"),
    "strategy": ("strategy NAME", r"strategy\s+(.+)"),
    "with": ("with slaves", r"with\s+(slaves)"),
}
"""What may follow a time: how it is written, and its form with its value."""
_RESTART = ("down", "by", "ids")
_ROLLING = (*_RESTART, "every")
VERBS: Mapping[str, Verb] = {
    "join": Verb("join 10.0.0.9@app@30s or join 2@30s", ("strategy",)),
    "leave": Verb("leave 10.0.0.5@app@30s"),
    "crash": Verb("crash 10.0.0.5@app@30s"),
    "host-loss": Verb("host-loss '10.0.0.5@*@30s'"),
    "broker-down": Verb("broker-down broker-a@30s or broker-down broker-a@30s-90s", ("with",), has_window=True),
    "broker-loss": Verb("broker-loss broker-a@30s or broker-loss broker-a@30s-90s", ("with",), has_window=True),
    "restart-broker": Verb("restart-broker broker-a@30s, down 1m", ("down", "with")),
    "broker-up": Verb("broker-up broker-a@90s or broker-up broker-c:8:8@90s for a new one"),
    "route-change": Verb("route-change 12@30s, TOPIC:broker-a=12@30s, or 12/8@30s for 12 read and 8 write queues"),
    "pull-stall": Verb("pull-stall 10.0.0.5@app@30s"),
    "freeze": Verb("freeze 10.0.0.5@app@30s or freeze 10.0.0.5@app@30s-3m", has_window=True),
    "restart": Verb("restart 10.0.0.5@app@30s, down 15s", (*_RESTART, "as")),
    "rolling-restart": Verb("rolling-restart *@30s, every 60s, down 15s", (*_ROLLING, "at once")),
    "strategy-change": Verb("strategy-change AVG_BY_CIRCLE@30s, every 60s, down 15s", (*_ROLLING, "at once", "order")),
}
_LABEL, _NUMBER = re.compile(r"#([0-9]{1,9})"), re.compile(r"[0-9]+")
_MOST_JOINING = 1000
_GLOB = "*?["


class TypedEvent(Struct, frozen=True):
    text: str
    verb: str
    subject: str = ""
    at_us: int = 0
    to_us: int | None = None  # the end of its window
    given: Mapping[str, str] = {}  # qualifier → its value

    @property
    def option(self) -> str:
        return f"--event {self.text!r}"

    @property
    def hint(self) -> str:
        return f"write {VERBS[self.verb].example}"

    def wrong(self, why: str, hint: str | None = None) -> UsageError:
        """The error, with the right syntax as its hint if there is no better one."""
        return UsageError(f"{self.option}: {why}", hint=hint or self.hint)

    def missing(self, why: str, hint: str) -> DataError:
        return DataError(f"{self.option}: {why}", hint=hint, code="not-in-group")

    def time(self, text: str, *, zero: bool = True) -> int:
        return duration_us(text.strip(), f"{self.option}:", zero=zero)

    def times(self, when: str) -> tuple[int, int | None]:
        if when.startswith("-"):
            raise self.wrong("the time is before the start", "times count from the start (0s)")
        first, dash, second = when.partition("-")
        start = self.time(first)
        if not dash:
            return start, None
        if not VERBS[self.verb].has_window:
            raise self.wrong(f"{self.verb} takes one time, not a range of times")
        end = self.time(second)
        if end <= start:
            raise self.wrong("the window ends before it starts", "write @FROM-TO with FROM before TO")
        return start, end

    def qualifiers(self, parts: Iterable[str]) -> dict[str, str]:
        verb, given = VERBS[self.verb], dict[str, str]()
        for part in parts:
            fitting = ((name, re.fullmatch(_QUALIFIERS[name][1], part, re.IGNORECASE)) for name in verb.qualifiers)
            name, match = next((each for each in fitting if each[1]), ("", None))
            if match is None:
                forms = ", ".join(_QUALIFIERS[name][0] for name in verb.qualifiers)
                hint = f"write after a comma: {forms}" if forms else self.hint
                raise self.wrong(f"{self.verb} does not take {part or 'an empty part'} after a comma", hint)
            if name in given:
                raise self.wrong(f"{name} is given twice")
            given[name] = match[1] if name in ("as", "order", "strategy") else match[1].lower()
        for name, question in (("every", "how much time between two restarts?"), ("down", "how long is the downtime?")):
            if name in given:
                self.time(given[name], zero=name == "every")
            elif name in verb.qualifiers:
                raise self.wrong(question)
        return given


_MEANT = {"kill": "crash", "stop": "leave", "remove": "leave", "start": "join", "add": "join", "pause": "freeze"}
"""Words of other tools, and the event that they mean."""


def parse_event(text: str, known: Collection[str] = ()) -> TypedEvent:
    """Split an event into its parts; a known name may look like a name and a time (raises UsageError)."""
    head, *rest = text.split(",")
    verb, more = [*head.split(None, 1), "", ""][:2]
    verb, more = verb.lower(), more.strip()
    if verb not in VERBS:
        hint = suggestion("events", _MEANT.get(verb, verb), VERBS)
        raise UsageError(f"--event {text!r}: there is no event {verb or 'without a verb'}", hint=hint)
    typed = TypedEvent(text.strip(), verb)
    subject, at, when = (part.strip() for part in more.rpartition("@"))
    if not at or (more in known and subject not in known):
        raise typed.wrong("when?")
    if not subject:
        raise typed.wrong("who or what?")
    start, end = typed.times(when)
    return TypedEvent(typed.text, verb, subject, start, end, typed.qualifiers(part.strip() for part in rest))


def event_texts(texts: Sequence[str]) -> tuple[str, ...]:
    lines = (file_lines(text[1:], "--event") if text.startswith("@") else (text,) for text in texts)
    return tuple(line for each in lines for line in each)


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
    brokers = sorted({broker.broker_name for route in routes for broker in route.broker_datas}, key=sort_key)
    typed = [parse_event(text, {*client_ids, *brokers}) for text in texts]
    ids = {*client_ids, *(each.subject for each in typed if each.verb == "join")}
    expansion = _Expansion(client_ids, routes, strategies or Strategies(), elsewhere, ids, brokers)
    places = sorted(range(len(typed)), key=lambda place: typed[place].at_us)
    found = {place: expansion.expand(typed[place]) for place in places}
    return tuple(event for place in range(len(typed)) for event in found[place]), tuple(expansion.findings())


def new_ids_finding(renamed: Mapping[str, str], remedy: str) -> Finding:
    """Report the IDs that restarts change: client ID → the new one."""
    old, new = next(iter(renamed.items()))
    more = f" and {len(renamed) - 1} more" if len(renamed) > 1 else ""
    text = f"a restarted process gets a new client ID, and may sort elsewhere: {old}{more} comes back as {new}"
    return Finding("new-ids", f"{text}; {remedy}")


def placeholder_findings(*, is_used: bool) -> tuple[Finding, ...]:
    text = "placeholder client IDs sort last, behind IP addresses; a real process may move other queues"
    return (Finding("placeholder-ids", text, severity=INFO),) if is_used else ()


def events_of_brokers(
    texts: Sequence[str], routes: Sequence[TopicRouteData], elsewhere: Sequence[TopicRouteData]
) -> tuple[Event, ...]:
    """The events of these routes' brokers, whichever group there is."""
    others = {broker.broker_name for route in (*routes, *elsewhere) for broker in route.broker_datas}
    of_brokers = [text for text in texts if "broker" in parse_event(text, others).verb]
    return events(of_brokers, (), routes, elsewhere=others)[0]


class _Expansion(Struct):
    """The events so far, and which consumers exist because of them."""

    beginning: Sequence[str]  # client IDs
    routes: Sequence[TopicRouteData]
    strategies: Strategies
    elsewhere: Collection[str]
    ids: set[str]  # of all consumers, those that join included
    brokers: list[str]
    events: list[Event] = []
    has_placeholders: bool = False
    renamed: dict[str, str] = {}
    new_brokers: list[str] = []

    def expand(self, typed: TypedEvent) -> tuple[Event, ...]:
        """One more event, which must not be earlier than those before: it is about the consumers of its time."""
        match typed.verb:
            case "join":
                found = tuple(self._join(typed))
            case "leave" | "crash" | "host-loss" | "pull-stall" | "freeze" as kind:
                found = tuple(self._happen(kind, typed))
            case "restart-broker":
                found = tuple(self._broker("broker-down", typed, typed.at_us + typed.time(typed.given["down"])))
            case "broker-down" | "broker-loss" | "broker-up" as kind:
                found = tuple(self._broker(kind, typed, typed.to_us))
            case "route-change":
                found = (self._route_change(typed),)
            case _:
                found = self._restarts(typed)
        self.events += found
        return found

    def findings(self) -> Iterator[Finding]:
        yield from placeholder_findings(is_used=self.has_placeholders)
        if self.renamed:
            yield new_ids_finding(self.renamed, "'same ids' after a comma keeps the IDs")
        for name in self.new_brokers:
            yield Finding("new-broker", f"no topic has a broker {name}: it starts as a new one")
        lost = [event for event in self.events if event.kind in ("broker-down", "broker-loss")]
        alone = {event.subject for event in lost if not event.with_slaves}
        brokers = (broker for route in self.routes for broker in route.broker_datas)
        names = {b.broker_name for b in brokers if b.has_master and len(b.broker_addrs) > 1 and b.broker_name in alone}
        if names:
            yield Finding(
                "slaves-go-on",
                f"only the master of {', '.join(sorted(names))} is lost: consumers read from its slaves once they have "
                "the new route; ', with slaves' after the time takes those down as well",
            )
        for route in self.routes:
            mapping = route.topic_queue_mapping_by_broker or {}
            names = {data.broker_name for data in route.queue_datas}
            holders = names.intersection(mapping, (event.subject for event in lost))
            if holders:
                yield Finding(
                    "static-queues",
                    f"topic {route.topic} is static: its queues keep their owners when {', '.join(sorted(holders))} is "
                    "lost, and those that it holds are in an outage until it is back",
                )

    def _join(self, typed: TypedEvent) -> Iterator[Event]:
        name, ids = typed.given.get("strategy"), [typed.subject]
        strategy = None if name is None else self._strategy(name, typed)
        if _NUMBER.fullmatch(typed.subject):
            number = int(typed.subject) if len(typed.subject) < 9 else _MOST_JOINING + 1
            if not 0 < number <= _MOST_JOINING:
                raise typed.wrong(f"{typed.subject} is not a number from 1 to {_MOST_JOINING:,}")
            ids = placeholders(number, self.ids)
            self.ids |= set(ids)
            self.has_placeholders = True
        elif set(typed.subject) & set("*?"):
            raise typed.wrong(f"{typed.subject} is a pattern, but a new consumer needs an ID")
        for client_id in ids:
            yield Event("join", typed.at_us, client_id, typed.text, strategy=strategy)

    def _happen(self, kind: EventKind, typed: TypedEvent) -> Iterator[Event]:
        for client_id in self._consumers([typed.subject], typed):
            yield Event(kind, typed.at_us, client_id, typed.text)
            if typed.to_us is not None:
                yield Event("unfreeze", typed.to_us, client_id, typed.text)

    def _broker(self, kind: EventKind, typed: TypedEvent, back_us: int | None) -> Iterator[Event]:
        event = Event(kind, typed.at_us, typed.subject, typed.text, with_slaves="with" in typed.given)
        name = typed.subject
        fitting = [name] if name in self.brokers else [each for each in self.brokers if fnmatchcase(each, name)]
        if not fitting:
            if any(broker == name or fnmatchcase(broker, name) for broker in self.elsewhere):
                return
            if set(name) & set(_GLOB):
                raise typed.wrong(f"{name} matches no broker", suggestion("brokers", name, self.brokers))
            if kind == "broker-up":
                new = new_broker(re.sub(r"\s*:\s*", ":", name), typed.option, typed.hint)
                name, reads, writes = new.name, new.read_queue_nums, new.write_queue_nums
                event = replace(event, read_queues=reads, write_queues=reads if writes is None else writes)
                if name not in self.brokers:
                    self.brokers.append(name)
                    self.new_brokers.append(name)
            fitting = [name]
        for broker in fitting:
            yield replace(event, subject=broker)
            if back_us is not None:
                yield Event("broker-up", back_us, broker, typed.text)

    def _route_change(self, typed: TypedEvent) -> Event:
        """Parse [TOPIC:][BROKER=]READ[/WRITE]."""
        where, equals, numbers = typed.subject.rpartition("=")
        topic, broker = "", None
        if not equals:
            topic, _, numbers = typed.subject.rpartition(":")
        elif where in self.brokers or ":" not in where:
            broker = where
        else:
            topic, _, broker = where.partition(":")
        if broker == "":
            raise typed.wrong("which broker?")
        topics = [route.topic for route in self.routes]
        if not topic and len(topics) > 1:
            raise typed.wrong("which topic?", f"write route-change {topics[0]}:{typed.subject}@TIME")
        reads, slash, writes = numbers.partition("/")
        read_queues = queue_number(reads.strip(), typed.option, typed.hint)
        write_queues = queue_number(writes.strip(), typed.option, typed.hint) if slash else read_queues
        changed = Event("route-change", typed.at_us, topic or topics[0], typed.text, broker_name=broker)
        return replace(changed, read_queues=read_queues, write_queues=write_queues)

    def _restarts(self, typed: TypedEvent) -> tuple[Event, ...]:
        strategy, given, present = None, typed.given, self._present(typed)
        if typed.verb == "strategy-change":
            strategy = self._strategy(typed.subject, typed)
            ids = list(dict.fromkeys((*self._consumers(given.get("order", "").split(), typed), *present)))
        else:
            ids = self._consumers([typed.subject] if typed.verb == "restart" else typed.subject.split(), typed)
        if not ids:
            raise typed.wrong("the group is empty at that time", "let a consumer join before")
        for client_id, processes in Counter(present).items():
            if client_id in ids and processes > 1:
                why = f"{processes} processes share the client ID {client_id}"
                raise typed.wrong(why, "to restart one of them, write leave and join ID")
        return restarts(
            ids,
            typed.at_us,
            every_us=typed.time(given.get("every", "0")),
            down_us=typed.time(given["down"]),
            at_once=int(given.get("at once", "1")),
            becomes=self._becomes(ids, typed),
            strategy=strategy,
            end="crash" if given.get("by") == "crash" else "leave",
            text=typed.text,
        )

    def _becomes(self, ids: Sequence[str], typed: TypedEvent) -> dict[str, str]:
        new, which = typed.given.get("as"), typed.given.get("ids")
        if new is not None:
            if len(ids) > 1:
                raise typed.wrong(f"{typed.subject} matches {len(ids)} consumers, but you gave only one new ID")
            self.ids.add(new)
            return {ids[0]: new}
        if which == "same":
            return {}
        changed = renamed_apart(ids, self.ids)
        self.ids |= set(changed.values())
        if which == "new" and not changed:
            why = f"{ids[0]} is set by the application, so a restart keeps it"
            raise typed.wrong(why, "only IDs of the form host@pid#time change at a restart")
        if which is None:
            self.renamed |= changed
        return changed

    def _strategy(self, text: str, typed: TypedEvent) -> str:
        try:
            return self.strategies.name(text, typed.option)
        except UsageError as error:
            problem = f"{typed.option}: {error.problem}"
            raise type(error)(problem, hint=error.hint or typed.hint, code=error.code) from error.__cause__

    def _consumers(self, names: Sequence[str], typed: TypedEvent) -> list[str]:
        """The consumers that are named, in that order; an unknown ID stays, for the check of all events."""
        present, labelled = self._present(typed), sort_client_ids(set(self.beginning))
        found: list[str] = []
        for name in names:
            label = _LABEL.fullmatch(name)
            fitting = [client_id for client_id in present if fnmatchcase(client_id, name)]
            if name in present:
                found.append(name)
            elif label and int(label[1]) < len(labelled):
                found.append(labelled[int(label[1])])
            elif label:
                there = f"the {len(labelled)} initial consumers are #0 to #{len(labelled) - 1} in sorted order"
                hint = there if labelled else "the group is empty at the start"
                raise typed.missing(f"there is no consumer #{int(label[1])}", hint)
            elif not fitting and set(name) & set(_GLOB):
                why = f"{name} matches no consumer that is in the group at that time"
                raise typed.missing(why, suggestion("consumers", name, present))
            else:
                found += fitting or [name]
        return found if typed.verb in ENDS else list(dict.fromkeys(found))

    def _present(self, typed: TypedEvent) -> list[str]:
        """The IDs of the processes that run then, sorted as clients sort them."""
        present = Counter(self.beginning)
        for event in sorted(self.events, key=lambda event: event.at_us):
            if event.at_us <= typed.at_us:
                present[event.subject] += (event.kind == "join") - (event.kind in ENDS)
        return sort_client_ids(present.elements())
