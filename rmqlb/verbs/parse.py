"""Option values as typed, parsed: consumers, brokers, patterns of names. Each error names the option."""

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, TypeVar

from rmqlb.errors import DataError, UsageError, typed
from rmqlb.model.group import is_system_group, is_system_topic
from rmqlb.model.result import Finding
from rmqlb.model.snapshot import is_pattern, not_in, suggestion
from rmqlb.verbs.amounts import count

if TYPE_CHECKING:
    from rmqlb.engine.conditions import Condition, FailOn
    from rmqlb.engine.plan.changes import NewBroker, QueueCount

Value = TypeVar("Value")
_IS_OWN = {"topic": is_system_topic, "group": is_system_group}
Kind = Literal["topic", "group"]
Names = Collection[str]
_NUMBER = re.compile(r"[+-]?\d+")
_MOST_PLACEHOLDERS = 100_000
_LONGEST_FILE = 16 * 1024 * 1024


def texts_of(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """One text or several: a plain text is one value, not its characters; None is none."""
    return (given,) if isinstance(given, str) else tuple(given or ())


def names_of(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """One name or several, each once."""
    return tuple(dict.fromkeys(texts_of(given)))


def conditions(given: str | Sequence[str] | None, figures: "FailOn") -> "list[Condition]":
    from rmqlb.engine.conditions import parse_condition

    return [parse_condition(text, figures) for text in texts_of(given)]


def count_or_id(text: str, option: str) -> int | str:
    """`--add` and `--remove`: digits are a number of consumers, anything else is a client id."""
    if _NUMBER.fullmatch(text):
        number = int(text) if len(text) < 9 else _MOST_PLACEHOLDERS + 1
        if number < 0:
            raise UsageError(f"{option} {text}: a number of consumers cannot be negative")
        if number > _MOST_PLACEHOLDERS:
            raise UsageError(f"{option} {text}: more than {_MOST_PLACEHOLDERS} consumers")
        return number
    return client_id(text, option)


def added(text: str) -> int | str:
    """`--add`: a number of consumers, or the client ID of one, which RocketMQ's clients make as IP@NAME."""
    value = count_or_id(text, "--add")
    if isinstance(value, str) and "@" not in value:
        hint = "write a number such as --add 2, or a client ID such as --add 10.0.0.5@app"
        raise UsageError(f"--add {text}: neither a number nor a client ID", hint=hint)
    return value


def scale_to(text: str, most: int) -> int:
    if re.fullmatch(r"[+-]\d+", text):
        option = "--add" if text[0] == "+" else "--remove"
        raise UsageError(
            f"--scale-to {text}: how many consumers in the end?", hint=f"write {option} {text[1:]}, or --scale-to N"
        )
    return count(text, "--scale-to", most=most, least=0)


def client_id(text: str, option: str) -> str:
    if not text.strip():
        raise UsageError(f"{option}: a client ID cannot be empty")
    return text


def members(text: str) -> tuple[str, ...] | int:
    """`--consumers`: IDs with commas, `@FILE` with one per line, or a number of invented ones."""
    if text.startswith("@"):
        return file_lines(text[1:], "--consumers")
    value = count_or_id(text, "--consumers")
    if isinstance(value, int):
        return value
    ids = tuple(part.strip() for part in value.split(","))
    if not all(ids):
        raise UsageError(f"--consumers {text}: a client ID is empty")
    return ids


def pair(text: str, option: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise UsageError(f"{option} {text}: expected OLD=NEW")
    return old, new


def new_broker(text: str, option: str, hint: str | None = None) -> "NewBroker":
    """NAME[:READ[:WRITE]]."""
    from rmqlb.engine.plan.changes import NewBroker

    name, *numbers = text.split(":")
    if not name or len(numbers) > 2:
        raise UsageError(f"{option}: expected NAME, NAME:READ or NAME:READ:WRITE", hint=hint)
    return NewBroker(name, *(queue_number(number, option, hint) for number in numbers))


def queue_counts(texts: Sequence[str], option: str) -> "tuple[QueueCount, ...]":
    """[BROKER=]N, the number of each broker first and those of single ones after it: they go before it."""
    from rmqlb.engine.plan.changes import QueueCount

    counts = []
    for text in texts:
        broker, equals, number = text.rpartition("=")
        if equals and not broker:
            raise UsageError(f"{option} {text}: expected N or BROKER=N")
        counts.append(QueueCount(queue_number(number, f"{option} {text}"), broker or None))
    must_differ(texts, [count.broker_name for count in counts], option)
    return tuple(sorted(counts, key=lambda count: count.broker_name is not None))


def must_differ(texts: Sequence[str], abouts: Sequence[Hashable], option: str) -> None:
    """Refuse an option that may be given several times, but once for each thing that it is about."""
    first: dict[Hashable, int] = {}
    for place, about in enumerate(abouts):
        other = first.setdefault(about, place)
        if other != place:
            both = f"{option} {texts[place]}: {option} {texts[other]} already sets this"
            raise UsageError(both, hint="leave one of them out", code="given-twice")


def queue_number(text: str, what: str, hint: str | None = None) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text):
        raise UsageError(f"{what}: {text or 'an empty text'} is not a number of queues (0 to 99999)", hint=hint)
    return int(text)


def lines_of(text: str) -> list[str]:
    r"""The text's lines, ended by `\n`, `\r\n` or `\r` alone: what else Unicode calls the end of a line is data."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def file_lines(path: str, option: str) -> tuple[str, ...]:
    """The lines of `@FILE`, or of stdin for `@-`, without blank ones and comments (raises UsageError)."""
    from rmqlb.sources.user_files.text_file import read_text

    text = read_text(path, f"{option} @", _LONGEST_FILE, "the limit is 16 MB")
    lines = (line.strip() for line in lines_of(text))
    return tuple(line for line in lines if line and not line.startswith("#"))


def by_consumer(
    texts: Sequence[str], option: str, read: Callable[[str], Value]
) -> tuple[Value | None, dict[str, Value]]:
    """`[ID=]VALUE`: the value of all consumers, or None, and client ID → its own (raises UsageError)."""
    usual: Value | None = None
    by_id: dict[str, Value] = {}
    for text in texts:
        client_id, equals, value = text.rpartition("=")
        if client_id in by_id or (not equals and usual is not None):
            raise UsageError(f"{typed(option, text)}: it is given twice", code="given-twice")
        try:
            found = read(value.lower())
        except UsageError as error:
            prefix = f"{typed(option, text)}: "
            raise UsageError(error.problem, prefix=prefix, hint=error.hint, code=error.code) from None
        if equals:
            by_id[client_id] = found
        else:
            usual = found
    return usual, by_id


def named_topic(topic: str | None) -> str:
    if topic is None:
        raise UsageError("which topic?", hint="name the topic: TOPIC or --topic TOPIC", code="which-topic")
    return topic


def sdk(name: str) -> str:
    from rmqlb.engine.allocate.rules import sdk_named

    sdk_named(name)
    return name


def require_members(said: Iterable[str], client_ids: Collection[str], option: str) -> None:
    for client_id in said:
        if client_id not in client_ids:
            hint = suggestion("consumers", client_id, client_ids)
            raise DataError(f"{typed(option, client_id)}=…: it is never in the group", hint=hint, code="not-in-group")


def in_vain_of(
    kind: Kind, globs: Names, present: Names, taken: Names, endpoint: str, *, names_globs: bool = True
) -> list[Finding]:
    """A finding for each pattern that matches nothing (raises DataError where a name in full is not there)."""
    return [
        Finding("matches-nothing", f"none of the {kind}s matches {glob if names_globs else 'a pattern'}{own}")
        for glob, own in _unmatched(kind, globs, present, taken, endpoint, " without --system")
    ]


def each_matches(kind: Kind, globs: Names, present: Names, taken: Names, endpoint: str) -> None:
    """DataError for a name or a pattern that matches nothing."""
    for glob, own in _unmatched(kind, globs, present, taken, endpoint):
        hint = suggestion(f"{kind}s", glob, present)
        problem = f"--{kind} {glob}: it matches no {kind} of {endpoint}{own}"
        raise DataError(problem, hint=hint, code="topic-not-found" if kind == "topic" else "group-not-found")


def _unmatched(
    kind: Kind, globs: Names, present: Names, taken: Names, endpoint: str, how: str = ""
) -> Iterator[tuple[str, str]]:
    for name in globs:
        if name not in present and not is_pattern(name):
            raise not_in(kind, name, present, endpoint)
    for glob in globs:
        if not any(fnmatchcase(name, glob) for name in taken):
            left_out = _IS_OWN[kind](glob) or any(fnmatchcase(name, glob) for name in present)
            yield glob, f"; RocketMQ's own are left out{how}" if left_out else ""


def require_lag(max_lag: int) -> None:
    if max_lag < 0:
        raise UsageError(f"--max-lag {max_lag}: less than 0")
