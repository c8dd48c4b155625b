"""Names as fleets have them, and names that no one should have and some do; clusters share many of them."""

from __future__ import annotations

from random import Random

_WORDS = ("order", "stock", "ship", "bill", "audit", "user", "cart", "price", "mail", "trace", "alert", "refund")
_KINDS = ("Events", "Commands", "Changes", "Log")
ODD = (
    "\U0001f680rocket",
    "\ue000private",
    "with space",
    "price$1",
    'say "hi"',
    "it's",
    "=1+1",
    "a,b;c",
    "<b>&amp;</b>",
    "back\\slash",
    "up/../down",
    "\uff21\u202eleft",
    "{}%s",
    "x" * 250,
)
"""Above U+FFFF and above U+E000 (which Java sorts the other way round), and what CSV, HTML, SQL, shells and
spreadsheets stumble over."""


def letters(number: int) -> str:
    """A name for the so many-th thing."""
    text = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        text = chr(ord("a") + digit) + text
    return text


def odd_name(kind: int, number: int) -> str:
    """An odd name of its own for each number; the kinds go round."""
    return f"{ODD[kind % len(ODD)]}-{number}"


def topic_name(number: int) -> str:
    """`OrderEvents-0`, `StockEvents-1` and so on."""
    kind = _KINDS[number // len(_WORDS) % len(_KINDS)]
    return f"{_WORDS[number % len(_WORDS)].capitalize()}{kind}-{number}"


def group_name(number: int) -> str:
    """`order-svc-0`, `stock-svc-1` and so on."""
    return f"{_WORDS[number % len(_WORDS)]}-svc-{number}"


def broker_name(number: int, *, rooms: bool, odd: bool) -> str:
    """`broker-a`; in rooms `r1@broker-3`; odd ones differ in their order between Java and Python."""
    if odd:
        return "broker-" + ODD[number % 2]
    return f"r{number % 3 + 1}@broker-{number}" if rooms else f"broker-{letters(number)}"


def address(random: Random, first: str) -> str:
    """An IPv4 address below two given numbers, such as `10.4`."""
    return f"{first}.{random.randrange(256)}.{random.randrange(1, 255)}"


def client_id(random: Random, ip: str, *, container: bool) -> str:
    """`IP@PID#NANOS`, the id that a client gives itself; in a container the process is always the first."""
    return f"{ip}@{1 if container else random.randrange(300, 65536)}#{random.randrange(10**12, 10**16)}"
