"""The results that rmqlb prints as JSON, and their shapes as JSON Schema, draft 2020-12.

Rules of this file:
- msgspec gives the types. A docstring describes the object, and an annotation its key, as a text or as a figure; the
  glossary describes keys that mean the same everywhere.
- All keys that rmqlb only writes are required, and unknown values are null. A snapshot, which rmqlb reads too, may omit
  keys with a default.
- Keys are in the order of the shape, so that equal shapes give equal bytes.
- Further keys are allowed: a minor version of a format may add some.
"""

from collections.abc import Iterator, Sequence
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

import msgspec
from msgspec import Struct

from rmqlb.model.result import FORMAT_VERSION, annotated_figures
from rmqlb.views.columns import Cell, columns_from
from rmqlb.views.envelope import Envelope, PrintedResult
from rmqlb.views.report import Report, Section, section_of

GLOSSARY = {
    "topic": "name of the topic",
    "broker_name": "name of the broker",
    "queue_id": "number of the queue at its broker, from 0",
    "client_id": "client ID of the consumer",
    "strategy": "strategy, by RocketMQ's name",
    "conditions": "conditions of --fail-on",
    "sorted_consumers": "consumers in the clients' order, duplicates kept",
}
"""Field → meaning, for keys that mean the same in every result."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REF = "#/$defs/"

Schema = dict[str, Any]


def meaning(result: PrintedResult) -> str:
    return _docstring(result.shape)


def json_schema(result: PrintedResult) -> Schema:
    if result.kind == "data":
        top, defs = _components(Envelope, result.shape)
        top["properties"]["data"] |= {"$ref": _REF + result.shape.__name__}
    else:
        top, defs = _components(result.shape, is_read=result.kind == "snapshot")
    properties: Schema = top["properties"]
    if result.kind == "snapshot":  # the keys that rmqlb writes but does not read
        around, more = _components(Envelope)
        properties |= {key: around["properties"][key] for key in ("command", "findings")}
        defs |= {"Finding": more["Finding"]}
    if "schema" in properties:
        properties["schema"] = {"const": result.name, "description": properties["schema"]["description"]}
    if "command" in properties:
        properties["command"] |= {"enum": list(result.commands)}
    head = {"$schema": DIALECT, "$id": f"urn:rmqlb:{result.name.removeprefix('rmqlb/')}:{FORMAT_VERSION}"}
    named = {"title": result.name, "description": meaning(result)}
    return {**head, **top, **named, "$defs": defs}


def _components(whole: type[Struct], *others: type[Struct], is_read: bool = False) -> tuple[Schema, dict[str, Schema]]:
    shapes = shapes_in(whole, *others)
    _, defs = msgspec.json.schema_components((whole, *others), ref_template=_REF + "{name}")
    documented = {name: _documented(schema, shapes[name], is_read) for name, schema in defs.items()}
    return documented.pop(whole.__name__), documented


def shapes_in(*shapes: type[Struct]) -> dict[str, type[Struct]]:
    found: dict[str, type[Struct]] = {}
    for shape in shapes:
        for each in _classes(msgspec.inspect.type_info(shape)):
            found[each.__name__] = each
    return found


def _classes(info: Any) -> Iterator[type[Struct]]:
    if isinstance(info, msgspec.inspect.StructType):
        yield info.cls
        for field in info.fields:
            yield from _classes(field.type)
    else:
        for name in ("item_type", "key_type", "value_type"):
            if hasattr(info, name):
                yield from _classes(getattr(info, name))
        for each in getattr(info, "types", ()):
            yield from _classes(each)


def _documented(schema: Schema, shape: type[Struct], is_read: bool) -> Schema:
    summary, meanings = _docstring(shape), field_meanings(shape)
    encoded = dict(zip(shape.__struct_fields__, shape.__struct_encode_fields__, strict=True))
    properties = schema["properties"]
    keys = {key: {**properties[key], "description": _sentence(meanings.get(name, ""))} for name, key in encoded.items()}
    for key in keys if not is_read else ():
        keys[key].pop("default", None)
    must = schema.get("required", ()) if is_read or shape.__struct_config__.omit_defaults else keys
    schema.pop("additionalProperties", None)
    return {**schema, "description": summary, "properties": keys, "required": [key for key in keys if key in must]}


def field_meanings(shape: type[Struct]) -> dict[str, str]:
    hints = get_type_hints(shape, include_extras=True)
    texts = {name: t for name, hint in hints.items() for t in getattr(hint, "__metadata__", ()) if isinstance(t, str)}
    plain = get_type_hints(shape)
    figures = {
        name: f"{figure.what}; null {figure.unknown}" if NoneType in get_args(plain.get(name)) else figure.what
        for name, figure in annotated_figures(shape).items()
    }
    return GLOSSARY | texts | figures


def _sentence(text: str) -> str:
    return text if not text or text.endswith(".") else f"{text}."


def _docstring(shape: type) -> str:
    return " ".join((shape.__dict__.get("__doc__") or "").split())


class ResultSchema(Struct, frozen=True, rename="camel"):
    """A result that has a schema."""

    schema: Annotated[str, "its name; `rmqlb schema NAME` prints it"]
    format_version: Annotated[str, "the version of its format"]
    commands: Annotated[tuple[str, ...], "the commands that make it"]
    meaning: Annotated[str, "what it is"]


class Schemas(Struct, frozen=True):
    """The results that have a schema."""

    schemas: Annotated[tuple[ResultSchema, ...], "one by one"]


def schemas_report(results: Sequence[PrintedResult]) -> Report:
    columns = columns_from(
        "schema formatVersion/hidden commands/1 meaning=what_it_is:prose",
        commands=lambda schema: ", ".join(schema.commands),
    )
    schemas = tuple(ResultSchema(each.name, FORMAT_VERSION, each.commands, meaning(each)) for each in results)
    facts = (f"{len(schemas)} results have a JSON Schema; rmqlb schema COMMAND prints that of the command's -o json",)
    section = section_of("schemas", "schemas", columns, schemas, heads=1)
    return Report("rmqlb/schemas", Schemas(schemas), facts, (section,))


def keys_report(schema: Schema) -> Report:
    """A schema's keys, one per row, as `data.topics[].queues[].lag`."""
    columns = columns_from("key type/1 required/hidden meaning:prose")
    section = Section("keys", "keys", columns, tuple(_rows(schema, schema["$defs"], "")), heads=1)
    return Report(schema["title"], schema, (f"{schema['title']}: {schema['description']}",), (section,))


def _rows(schema: Schema, defs: Schema, prefix: str) -> Iterator[tuple[Cell, ...]]:
    for name, inner in schema["properties"].items():
        path = f"{prefix}{name}"
        yield path, _type(inner), name in schema["required"], inner["description"]
        for inner_schema, suffix in _objects_in(inner, defs):
            yield from _rows(inner_schema, defs, f"{path}{suffix}.")


def _objects_in(schema: Schema, defs: Schema) -> Iterator[tuple[Schema, str]]:
    if "$ref" in schema:
        yield defs[schema["$ref"].rpartition("/")[2]], ""
    for other in schema.get("anyOf", ()):
        yield from _objects_in(other, defs)
    for key, suffix in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(schema.get(key), dict):
            yield from ((found, suffix + more) for found, more in _objects_in(schema[key], defs))


def _type(schema: Schema) -> str:
    """A value's type in a few words.

    >>> _type({"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "string"}}]})
    'array of string, or null'
    """
    if "anyOf" in schema:
        # The order depends on msgspec's version.
        return ", or ".join(sorted((_type(other) for other in schema["anyOf"]), key="null".__eq__))
    if "const" in schema or "enum" in schema:
        return " | ".join(str(value) for value in schema.get("enum", [schema.get("const")]))
    if "$ref" in schema:
        return "object"
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"array of {_type(schema['items'])}"
    return f"object of {_type(schema['additionalProperties'])}" if "additionalProperties" in schema else kind
