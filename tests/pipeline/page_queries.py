"""The figures at the top of a page, with the queries that it gives for them, as an operator copies them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any

Ask = Callable[[str], Sequence[dict[str, Any]]]
_EACH = ("cluster", "snapshot", "group", "topic", "brokerName", "queueId", "clientId")


@dataclass(frozen=True)
class Shown:
    """A figure; `each` is empty where the page has no query of what it counts, one by one."""

    what: str
    value: int
    query: str
    each: str


def shown_on(page: str) -> list[Shown]:
    """All figures with a query."""
    values = dict(re.findall(r'<a href="#(rows-\d+)">([\d,]+)</a>', page))
    found = re.findall(r'<dt id="(rows-\d+)">(.*?)</dt><dd>(.*?)</dd>', page)
    return [Shown(what, int(values[anchor].replace(",", "")), *_queries(text)) for anchor, what, text in found]


def _queries(text: str) -> tuple[str, str]:
    query, *each = (unescape(one) for one in re.findall("<code>(.*?)</code>", text))
    return query, "".join(each)


def hold(page: str, ask: Ask) -> dict[str, int]:
    """Each figure is the number of its rows or the sum of a column; what there is of each of what it counts."""
    numbers = {}
    for one in shown_on(page):
        rows = ask(one.query)
        columns = zip(*(row.values() for row in rows), strict=True)
        sums = {sum(filter(None, its)) for its in columns if all(isinstance(value, int | None) for value in its)}
        assert one.value in {len(rows), *sums}, one
        if one.each:
            named = {tuple(row.get(name) for name in _EACH) for row in ask(one.each)}
            assert len(named) == one.value, one
            numbers[one.what] = len(named)
    return numbers
