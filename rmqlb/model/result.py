"""The answer of a verb: the data that `-o json` prints, and what belongs next to it."""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.model.finding import Finding
from rmqlb.model.snapshot import ClusterSnapshot


class Meta(Struct, frozen=True):
    """What belongs next to a result.

    Attributes:
        snapshot: the snapshot that the result is made from.
        findings: what is odd about it.
    """

    snapshot: ClusterSnapshot
    findings: tuple[Finding, ...] = ()


class Result(Struct, frozen=True, rename="camel", dict=True):
    """A result of a verb; its fields are the `data` of `-o json`."""

    @property
    def meta(self) -> Meta:
        """What belongs next to the result (raises AttributeError where a function of the engine made it)."""
        found = self.__dict__.get("meta")
        if isinstance(found, Meta):
            return found
        raise AttributeError("only the result of a verb has meta")


Any = TypeVar("Any", bound=Result)


def with_meta(result: Any, meta: Meta) -> Any:
    """The result with what belongs next to it."""
    found = replace(result)
    found.__dict__["meta"] = meta
    return found
