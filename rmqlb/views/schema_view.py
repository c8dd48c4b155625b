"""The results that have a schema, and a schema's keys, as reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Struct

from rmqlb.model.format_version import FORMAT_VERSION
from rmqlb.views.json_schema import Result, Schema
from rmqlb.views.report import Column, Report, Section


class ResultSchema(Struct, frozen=True, rename="camel"):
    """A result that has a schema."""

    schema: Annotated[str, "its name; `rmqlb schema NAME` prints it"]
    format_version: Annotated[str, "that it is of"]
    commands: Annotated[tuple[str, ...], "the commands that make it"]
    meaning: Annotated[str, "what it is"]


class Schemas(Struct, frozen=True):
    """All results."""

    schemas: Annotated[tuple[ResultSchema, ...], "one by one"]


def schemas_report(results: Sequence[Result]) -> Report:
    columns = (
        Column("schema", "schema"),
        Column("format", "formatVersion", shown=False),
        Column("commands", "commands", fold=1),
        Column("what it is", "meaning", "prose"),
    )
    schemas = tuple(ResultSchema(each.name, FORMAT_VERSION, each.commands, each.meaning) for each in results)
    rows = tuple((each.schema, each.format_version, ", ".join(each.commands), each.meaning) for each in schemas)
    facts = (f"{len(schemas)} results have a JSON Schema; rmqlb schema COMMAND prints that of the command's -o json",)
    section = Section("schemas", "schemas", columns, rows, heads=1)
    return Report("rmqlb/schemas", Schemas(schemas), facts, (section,))


def keys_report(schema: Schema) -> Report:
    """A schema's keys, one a row, as `data.topics[].queues[].lag`."""
    columns = (
        Column("key", "key"),
        Column("type", "type", fold=1),
        Column("", "required", shown=False),
        Column("meaning", "meaning", "prose"),
    )
    section = Section("keys", "keys", columns, tuple(_rows(schema, schema["$defs"], "")), heads=1)
    facts = (f"{schema['title']}: {schema['description']}",)
    return Report(schema["title"], schema, facts, (section,))


def _rows(schema: Schema, defs: Schema, prefix: str) -> Iterator[tuple[str, str, str, str]]:
    for name, inner in schema["properties"].items():
        path = f"{prefix}{name}"
        required = "yes" if name in schema["required"] else "no"
        yield path, _type(inner), required, inner["description"]
        for held, suffix in _held(inner, defs):
            yield from _rows(held, defs, f"{path}{suffix}.")


def _held(schema: Schema, defs: Schema) -> Iterator[tuple[Schema, str]]:
    """The objects that a value may hold, and how a path to their keys goes on."""
    if "$ref" in schema:
        yield defs[schema["$ref"].rpartition("/")[2]], ""
    for other in schema.get("anyOf", ()):
        yield from _held(other, defs)
    for key, suffix in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(schema.get(key), dict):
            yield from ((held, suffix + more) for held, more in _held(schema[key], defs))


def _type(schema: Schema) -> str:
    """A value's type in a few words.

    >>> _type({"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "string"}}]})
    'array of string, or null'
    """
    if "anyOf" in schema:
        # Which versions of msgspec put first, others put last.
        return ", or ".join(sorted((_type(other) for other in schema["anyOf"]), key="null".__eq__))
    if "const" in schema or "enum" in schema:
        return " | ".join(str(value) for value in schema.get("enum", [schema.get("const")]))
    if "$ref" in schema:
        return "object"
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"array of {_type(schema['items'])}"
    return f"object of {_type(schema['additionalProperties'])}" if "additionalProperties" in schema else kind
