"""Numbers in sentences."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """A number and what is counted, as tables have numbers.

    >>> counted(0, "queue"), counted(1, "queue"), counted(1200, "queue")
    ('0 queues', '1 queue', '1200 queues')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


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
