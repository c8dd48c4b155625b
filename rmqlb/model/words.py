"""Numbers in sentences."""

from __future__ import annotations

from collections.abc import Iterable

_NAMED = 3


def counted(number: int, noun: str) -> str:
    """A number and its noun.

    >>> counted(0, "queue"), counted(1, "queue"), counted(1200, "queue")
    ('0 queues', '1 queue', '1200 queues')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def of_all(number: int, whole: int, noun: str = "queue") -> str:
    return f"{number} of {counted(whole, noun)}"


def are(number: int) -> str:
    return "is" if number == 1 else "are"


def have(number: int) -> str:
    return "has" if number == 1 else "have"


def at_least(unknown: int | None) -> str:
    """Words before a number that unknown cases may raise."""
    return "at least " if unknown else ""


def all_or_some(number: int, whole: int, noun: str = "queue") -> str:
    return f"all {counted(whole, noun)}" if number == whole > 1 else of_all(number, whole, noun)


def times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def messages(number: int, which: str = "") -> str:
    return f"{number:,} {which}message{'' if number == 1 else 's'}"


def named(names: Iterable[str]) -> str:
    """The first few names, and the number of others.

    >>> named("ab"), named("abcde")
    ('a, b', 'a, b, c and 2 more')
    """
    listed = list(names)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more


def runs(numbers: Iterable[int]) -> list[range]:
    """Ascending numbers as ranges without gaps.

    >>> runs([0, 1, 2, 5]), [span(run) for run in runs([0, 1, 2, 5])]
    ([range(0, 3), range(5, 6)], ['0-2', '5'])
    """
    found: list[range] = []
    for number in numbers:
        if found and number == found[-1].stop:
            found[-1] = range(found[-1].start, number + 1)
        else:
            found.append(range(number, number + 1))
    return found


def span(run: range) -> str:
    return str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}"
