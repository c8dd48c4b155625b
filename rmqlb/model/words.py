"""Numbers in sentences."""

from __future__ import annotations

from collections.abc import Iterable

_NAMED = 3


def counted(number: int, noun: str) -> str:
    """A number and what is counted, as tables have numbers.

    >>> counted(0, "queue"), counted(1, "queue"), counted(1200, "queue")
    ('0 queues', '1 queue', '1200 queues')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def of_all(number: int, whole: int, noun: str = "queue") -> str:
    """How many of what there is.

    >>> of_all(3, 25), of_all(1, 1, "consumer")
    ('3 of 25 queues', '1 of 1 consumer')
    """
    return f"{number} of {counted(whole, noun)}"


def are(number: int) -> str:
    return "is" if number == 1 else "are"


def have(number: int) -> str:
    return "has" if number == 1 else "have"


def at_least(unknown: int | None) -> str:
    """What stands before a number that so many unknown cases may raise.

    >>> at_least(2) + of_all(3, 25), at_least(0)
    ('at least 3 of 25 queues', '')
    """
    return "at least " if unknown else ""


def all_or_some(number: int, whole: int, noun: str = "queue") -> str:
    """The same, where it may be all of several.

    >>> all_or_some(3, 3), all_or_some(2, 3), all_or_some(1, 1)
    ('all 3 queues', '2 of 3 queues', '1 of 1 queue')
    """
    return f"all {counted(whole, noun)}" if number == whole > 1 else of_all(number, whole, noun)


def times(number: int) -> str:
    """How often.

    >>> times(1), times(17)
    ('once', '17 times')
    """
    return "once" if number == 1 else f"{number} times"


def messages(number: int, which: str = "") -> str:
    """How many messages, of which kind.

    >>> messages(1), messages(1204, "unread ")
    ('1 message', '1,204 unread messages')
    """
    return f"{number:,} {which}message{'' if number == 1 else 's'}"


def named(names: Iterable[str]) -> str:
    """The first few names, and how many more there are.

    >>> named("ab"), named("abcde")
    ('a, b', 'a, b, c and 2 more')
    """
    listed = list(names)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more
