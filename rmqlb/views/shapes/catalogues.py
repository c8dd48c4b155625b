"""`rmqlb/schemas` and `rmqlb/explanations`: what rmqlb says about itself."""

from __future__ import annotations

from typing import Literal, TypedDict

Kind = Literal["warning", "error", "exit"]


class SchemaData(TypedDict):
    """A result that has a schema.

    Attributes:
        schema: its name; `rmqlb schema NAME` prints it.
        formatVersion: that it is of.
        commands: the commands that make it.
        meaning: what it is.
    """

    schema: str
    formatVersion: str
    commands: list[str]
    meaning: str


class SchemasData(TypedDict):
    """All results.

    Attributes:
        schemas: one by one.
    """

    schemas: list[SchemaData]


class ExplanationData(TypedDict):
    """What a code means.

    Attributes:
        code: of a warning or an error, or an exit code as text.
        kind: warning, error, or exit for an exit code.
        exitCode: what the command ends with; null for a warning.
        means: what it says.
        why: why it is so.
        todo: what to do.
    """

    code: str
    kind: Kind
    exitCode: int | None
    means: str
    why: str
    todo: str


class ExplanationsData(TypedDict):
    """What codes mean.

    Attributes:
        explanations: code by code.
    """

    explanations: list[ExplanationData]
