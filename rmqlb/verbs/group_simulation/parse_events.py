"""`--event` as it is typed: a verb, who, when, and what else.

    VERB SUBJECT@TIME[, QUALIFIER]…

Rule of this file: the text's form only. Who the subject is, and whether it is there then, is for `group_values`. Client
ids hold an @, a # or a colon themselves, so that the last @ before the first comma is the one of the time.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from msgspec import Struct, field

from rmqlb.errors import UsageError
from rmqlb.model.snapshot import suggestion
from rmqlb.verbs.amounts import duration_us


class Verb(Struct, frozen=True):
    """How an event is written."""

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
NUMBER_AT_ONCE = r"0{0,9}[1-9][0-9]{0,5}"
"""The pattern of how many go down together."""

_SAID = {
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


class AskedEvent(Struct, frozen=True):
    """An event as typed, taken apart."""

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
    others: Mapping[str, str] = field(default_factory=dict)  # the qualifiers as, strategy and order, when said
    with_slaves: bool = False

    @property
    def option(self) -> str:
        return f"--event {self.text!r}"

    @property
    def hint(self) -> str:
        """A text that would be right."""
        return f"write {VERBS[self.verb].example}"

    def wrong(self, why: str, hint: str | None = None) -> UsageError:
        """The error that says so, with a text that would be right when there is no better hint."""
        return UsageError(f"{self.option}: {why}", hint=hint or self.hint)


def parse_event(text: str, known: Collection[str] = ()) -> AskedEvent:
    """An event as typed; one of the known names may look like a name and a time."""
    head, *rest = text.split(",")
    verb, more = [*head.split(None, 1), "", ""][:2]
    verb = verb.lower()
    if verb not in VERBS:
        raise UsageError(
            f"--event {text!r}: there is no event {verb or 'without a verb'}",
            hint=suggestion("events", verb, VERBS),
        )
    asked = AskedEvent(text.strip(), verb, "", 0)
    subject, at, when = (part.strip() for part in more.strip().rpartition("@"))
    if not at or (more.strip() in known and subject not in known):
        raise asked.wrong("when?")
    if not subject:
        raise asked.wrong("who or what?")
    start, end = _times(when, asked)
    said = _qualifiers([part.strip() for part in rest], asked)
    at_once = said.get("at once", "1")
    if not re.fullmatch(NUMBER_AT_ONCE, at_once):
        raise asked.wrong(f"at once {at_once}: not a number of consumers", "write at once 2")
    return AskedEvent(
        text=asked.text,
        verb=verb,
        subject=subject,
        at_us=start,
        to_us=end,
        every_us=_time(said.get("every", "0"), asked),
        down_us=_time(said["down"], asked, zero=False) if "down" in said else 0,
        at_once=int(at_once),
        by=_one_of("by", said.get("by", "leave"), ("leave", "crash"), asked),
        ids=said.get("ids"),
        others={name: value for name, value in said.items() if name in ("as", "strategy", "order")},
        with_slaves=bool(_one_of("with", said["with"], ("slaves",), asked)) if "with" in said else False,
    )


def _times(when: str, asked: AskedEvent) -> tuple[int, int | None]:
    if when.startswith("-"):
        raise asked.wrong("before the start", "times count from the start, 0s")
    first, dash, second = when.partition("-")
    start = _time(first, asked)
    if not dash:
        return start, None
    if not VERBS[asked.verb].has_window:
        raise asked.wrong(f"{asked.verb} happens at one time, not from one to another")
    end = _time(second, asked)
    if end <= start:
        raise asked.wrong("the window ends before it starts", "write @FROM-TO with FROM before TO")
    return start, end


def _time(text: str, asked: AskedEvent, *, zero: bool = True) -> int:
    return duration_us(text.strip(), f"{asked.option}:", zero=zero)


def _qualifiers(parts: list[str], asked: AskedEvent) -> dict[str, str]:
    allowed = VERBS[asked.verb].qualifiers
    said: dict[str, str] = {}
    for part in parts:
        name, value = _qualifier(part, asked)
        if name not in allowed:
            names = ", ".join(_SAID[each] for each in allowed)
            raise asked.wrong(
                f"{part or 'nothing'} cannot follow a comma of {asked.verb}",
                f"what may follow: {names}" if allowed else f"nothing may: {asked.hint}",
            )
        if not value:
            raise asked.wrong(f"{name} what?")
        if name in said:
            raise asked.wrong(f"{name} is said twice")
        said[name] = value
    for name in VERBS[asked.verb].needed:
        if name not in said:
            raise asked.wrong("how long is it away?" if name == "down" else "how long from one to the next?")
    return said


def _qualifier(part: str, asked: AskedEvent) -> tuple[str, str]:
    """Its name and value: `at once 2` is (at once, 2), `same ids` is (ids, same)."""
    first, _, rest = part.partition(" ")
    name, value = first.lower(), rest.strip()
    if name in ("new", "same"):
        return ("ids", name) if value.lower() in ("id", "ids") else (part, name)
    if name == "at":
        once, _, number = value.partition(" ")
        return ("at once", number.strip()) if once.lower() == "once" else (part, value)
    if name == "at-once":
        raise asked.wrong("at-once?", "write at once 2")
    return name, value


def _one_of(what: str, text: str, names: tuple[str, ...], asked: AskedEvent) -> str:
    if not re.fullmatch("|".join(names), text.lower()):
        raise asked.wrong(f"{what} {text}?", f"write {what} {f' or {what} '.join(names)}")
    return text.lower()
