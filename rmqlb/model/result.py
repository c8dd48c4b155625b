"""The answer of a verb: the data that `-o json` prints, what belongs next to it, and the progress of its work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.model.finding import Finding
from rmqlb.model.snapshot import ClusterSnapshot


class Meta(Struct, frozen=True):
    """The snapshot and the findings that accompany a result."""

    snapshot: Annotated[ClusterSnapshot, "the snapshot that the result is made from"]
    findings: Annotated[tuple[Finding, ...], "on that snapshot and on its groups"] = ()
    made_from: Annotated[Any, "what the engine found, for pictures and CI reports"] = None


class Result(Struct, frozen=True, rename="camel", dict=True):
    @property
    def meta(self) -> Meta:
        found = self.__dict__.get("meta")
        if isinstance(found, Meta):
            return found
        raise AttributeError("only the result of a verb has meta")


class Snapshot(Result, frozen=True, omit_defaults=True):
    """A snapshot as `rmqlb.fetch_routes` returns it; every verb takes it as a source."""

    topics: Annotated[tuple[Mapping[str, Any], ...], "each topic with its route and where it was seen"]
    groups: Annotated[tuple[Mapping[str, Any], ...], "each group with its consumers, owners and offsets"]
    unread: Annotated[tuple[Mapping[str, Any], ...], "the parts that could not be read, with the reason"]
    notes: Annotated[tuple[str, ...], "what was odd about the bytes of the source"] = ()


Kind = TypeVar("Kind", bound=Result)


def with_meta(result: Kind, meta: Meta) -> Kind:
    found = replace(result)
    found.__dict__["meta"] = meta
    return found


Progress = Callable[[str, int, int], None]  # the work, the number of parts done, of all


def no_progress(what: str, done: int, total: int) -> None:
    """A `Progress` for those who do not watch."""
