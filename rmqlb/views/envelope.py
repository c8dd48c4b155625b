"""The JSON of rmqlb: the results by name, the envelope around their data, and the error."""

from importlib import import_module
from typing import Annotated, Any, Literal

from msgspec import Struct

from rmqlb.model.result import Finding, SnapshotSide

Kind = Literal["data", "snapshot", "whole"]
"""data: in the envelope; snapshot: with fewer keys around it, so that rmqlb can read it; whole: without an envelope."""


def imported(path: str) -> Any:
    """What MODULE.NAME below `rmqlb` is: a command imports only what it needs."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(f"rmqlb.{module}"), name)


class PrintedResult(Struct, frozen=True):
    name: str  # the schema's
    commands: tuple[str, ...]  # the commands that print it
    struct: str  # MODULE.NAME without rmqlb: of the data in the envelope, otherwise of the whole
    kind: Kind = "data"

    @property
    def shape(self) -> type[Struct]:
        """Imported on first use: one schema does not need the modules of all others."""
        shape: type[Struct] = imported(self.struct)
        return shape


class Envelope(Struct, frozen=True, rename="camel"):
    """What is around the data of a result."""

    schema: Annotated[str, "the name of the result"]
    format_version: Annotated[
        str, "format version of the result; a minor version only adds keys, a major one may remove some"
    ]
    command: Annotated[str, "the command that made it"]
    source: Annotated[SnapshotSide, "where it comes from"]
    data: Annotated[Any, "the result"]
    findings: Annotated[tuple[Finding, ...], "findings and notes about it"]


class Error(Struct, frozen=True, rename="camel"):
    """An error."""

    code: Annotated[str, "stable, for scripts; `rmqlb explain CODE` says what it means"]
    message: Annotated[str, "one line: what happened and where"]
    hint: Annotated[str | None, "one line: what to try next"]
    exit_code: Annotated[int, "the process ends with it"]


class ErrorDocument(Struct, frozen=True, rename="camel"):
    """An error, alone on a line of stderr, of any command with -o json."""

    schema: Annotated[str, "rmqlb/error"]
    format_version: Annotated[str, "of this object"]
    error: Annotated[Error, "what happened"]
