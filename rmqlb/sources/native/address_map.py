"""Replacements for addresses that are unreachable from here: `--map-address FROM=TO`.

- A `*` in FROM is any run of characters, or none. Each star is as long as possible, the leftmost first: of `*:*` the
  second star is the port even of an IPv6 address.
- The stars of TO take the texts of FROM's stars, aligned from the right: `10.0.0.*:*=gw.example:*` keeps the port.
- The first rule that matches counts, and its result is not mapped again.
- Addresses come from servers, so matching takes linear time for every star.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from rmqlb.errors import UsageError

_HINT = "write --map-address '10.0.0.*:*=gateway.example:*', the address in the route first"


class AddressRule(Struct, frozen=True):
    source: tuple[str, ...]  # the texts around the stars of FROM
    target: tuple[str, ...]  # those of TO, with at most as many stars

    def apply(self, address: str) -> str | None:
        stars = _stars(self.source, address)
        if stars is None:
            return None
        first, *others = self.target
        kept = stars[len(stars) - len(others) :]
        return first + "".join(star + text for star, text in zip(kept, others, strict=True))


class AddressMap(Struct, frozen=True):
    """The rules of `--map-address`; the first one that matches counts.

    >>> addresses = parse_address_map(["10.0.0.9:10911=localhost:20911", "10.0.0.*:*=gw.example:*"])
    >>> [addresses.apply(each) for each in ("10.0.0.9:10911", "10.0.0.9:10912", "192.0.2.1:9876")]
    ['localhost:20911', 'gw.example:10912', '192.0.2.1:9876']
    """

    rules: tuple[AddressRule, ...] = ()

    def apply(self, address: str) -> str:
        return next((found for rule in self.rules if (found := rule.apply(address)) is not None), address)


def parse_address_map(texts: Iterable[str]) -> AddressMap:
    """Raises UsageError for a malformed rule, or two addresses for one FROM."""
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
    """The text of every star; None if the address does not match.

    Each part is placed as far to the right as possible, the last one first, so the stars before it are longest.
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
