"""Where to reach an address that leads nowhere from here: `--map-address FROM=TO`.

Rules of this file:
- A `*` in FROM stands for any run of characters, none included. Where several readings are possible, each star takes as
  much as it can, the leftmost first: of `*:*` the second star is the port even of an IPv6 address.
- The stars of TO take the texts of FROM's stars, aligned from the right: `10.0.0.*:*=gw.example:*` keeps the port.
- The first rule that matches counts, and its result is not mapped again.
- Addresses come from the far side: matching takes time linear in their length for every star.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from rmqlb.errors import UsageError

_HINT = "write --map-address '10.0.0.*:*=gateway.example:*', the address in the route first"


class AddressRule(Struct, frozen=True):
    source: tuple[str, ...]  # the texts around the stars of FROM, one more than there are stars
    target: tuple[str, ...]  # those of TO, which has no more stars than FROM

    def apply(self, address: str) -> str | None:
        stars = _stars(self.source, address)
        if stars is None:
            return None
        first, *others = self.target
        kept = stars[len(stars) - len(others) :]
        return first + "".join(star + text for star, text in zip(kept, others, strict=True))


class AddressMap(Struct, frozen=True):
    """The rules of `--map-address`, in their order.

    >>> addresses = parse_address_map(["10.0.0.9:10911=localhost:20911", "10.0.0.*:*=gw.example:*"])
    >>> addresses.apply("10.0.0.9:10911")
    'localhost:20911'
    >>> addresses.apply("10.0.0.9:10912")
    'gw.example:10912'
    >>> addresses.apply("192.0.2.1:9876")
    '192.0.2.1:9876'
    """

    rules: tuple[AddressRule, ...] = ()  # the first one that matches counts

    def apply(self, address: str) -> str:
        return next((found for rule in self.rules if (found := rule.apply(address)) is not None), address)


def parse_address_map(texts: Iterable[str]) -> AddressMap:
    """The rules; UsageError when one is malformed, or one FROM leads to two addresses."""
    rules: dict[tuple[str, ...], AddressRule] = {}
    for text in texts:
        source, equals, target = text.partition("=")
        problem = None
        if not equals or not source or not target or "=" in target:
            problem = "is not FROM=TO"
        elif target.count("*") > source.count("*"):
            problem = "has more stars in TO than in FROM"
        elif not all(":" in side or "*" in side for side in (source, target)):
            problem = "has an address without a port"
        if problem:
            raise UsageError(f"{text[:80]!a} {problem}", prefix="--map-address ", hint=_HINT)
        rule = AddressRule(tuple(source.split("*")), tuple(target.split("*")))
        if rules.setdefault(rule.source, rule) != rule:
            problem, hint = f"{source}=…: it is given twice, with two addresses", "leave one of them out"
            raise UsageError(problem, prefix="--map-address ", hint=hint, code="given-twice")
    return AddressMap(tuple(rules.values()))


def _stars(parts: tuple[str, ...], address: str) -> list[str] | None:
    """The text of every star between the parts, or None if the address does not match.

    Each part is put as far to the right as it goes, the last one first, which leaves the stars before it the most.
    """
    first, *middle = parts
    if not middle:
        return [] if address == first else None
    last = middle.pop()
    end = len(address) - len(last)
    if end < len(first) or not address.startswith(first) or not address.endswith(last):
        return None
    stars: list[str] = []
    for part in reversed(middle):
        at = address.rfind(part, len(first), end)
        if at < 0:
            return None
        stars.append(address[at + len(part) : end])
        end = at
    stars.append(address[len(first) : end])
    return stars[::-1]
