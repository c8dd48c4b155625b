"""What a table was made from, cluster by cluster: so a stage makes anew only clusters of which there is something new.

A table says of each of its clusters what the rows were made from (`made_from`), beside what was asked of the stage. A
cluster of which nothing has changed keeps its rows untouched, whatever has come of others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from rmqlb.errors import DataError
from rmqlb.pipeline.schemas import WRITTEN_BY, Table
from rmqlb.pipeline.storage.storage import Where
from rmqlb.pipeline.warehouse import Warehouse

_ASKED, _CLUSTER = "plan", "cluster "


@dataclass(frozen=True)
class Part:
    """The clusters whose rows are made anew.

    Attributes:
        clusters: those that have new rows.
        gone: those that have no rows any more.
        where: the rows that give way; None for all.
        made_from: what the whole table is made from afterwards.
    """

    clusters: frozenset[str]
    gone: frozenset[str]
    where: Where | None
    made_from: Mapping[str, str]

    @property
    def nothing(self) -> bool:
        """All is as it should be."""
        return self.where is not None and not self.clusters and not self.gone


def made_of(asked: str, tokens: Mapping[str, str]) -> dict[str, str]:
    """What a table is made from: what was asked, and of each cluster a text that changes with what its rows come of."""
    return {_ASKED: asked, **{f"{_CLUSTER}{name}": token for name, token in sorted(tokens.items())}}


def part_to_make(warehouse: Warehouse, stage: str, asked: str, tokens: Mapping[str, str], *, force: bool) -> Part:
    """What of a stage's tables is to be made anew; all of it when something else was asked before."""
    made_from = made_of(asked, tokens)
    before = tokens_before(warehouse, stage, asked)
    if force or before is None:
        return Part(frozenset(tokens), frozenset(), None, made_from)
    changed = frozenset(name for name, token in tokens.items() if before.get(name) != token)
    gone = frozenset(before.keys() - tokens.keys())
    return Part(changed, gone, {"cluster": changed | gone}, made_from)


def tokens_before(warehouse: Warehouse, stage: str, asked: str) -> dict[str, str] | None:
    """Cluster → what its rows in all tables of the stage were made from; None when not all are there, made as asked."""
    made_from: dict[str, str] | None = None
    for table in WRITTEN_BY[stage]:
        its = warehouse.stored(table.name)
        if its is None or its.columns != dict(table.columns) or made_from not in (None, its.made_from):
            return None
        made_from = its.made_from
    return _tokens(made_from or {}, asked)


def tokens_of(warehouse: Warehouse, table: Table, stage: str) -> dict[str, str]:
    """Cluster → what its rows in a table of another stage are made from, with what was asked for there.

    Raises:
        DataError: an earlier version of rmqlb wrote the table.
    """
    stored = warehouse.stored(table.name)
    if stored is None:
        return {}
    asked = stored.made_from.get(_ASKED, "")
    tokens = _tokens(stored.made_from, asked)
    if tokens is None:
        text = f"table {table.name} in {warehouse.folder} does not say what its clusters were made from"
        raise DataError(text, hint=f"rebuild it: rmqlb pipeline {stage} --force")
    return {name: short(asked, token) for name, token in tokens.items()}


def short(*texts: Any) -> str:
    """A short text that is equal only when these are."""
    return hashlib.sha256(repr(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True)
class LastSnapshot:
    """A cluster's last snapshot; `token` changes with what it says."""

    date: date | None
    snapshot: str
    token: str


def _tokens(made_from: Mapping[str, str], asked: str) -> dict[str, str] | None:
    named = {name: token for name, token in made_from.items() if name != _ASKED}
    if made_from.get(_ASKED) != asked or not all(name.startswith(_CLUSTER) for name in named):
        return None
    return {name.removeprefix(_CLUSTER): token for name, token in named.items()}
