from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from rmqlb.cli.results import RESULTS, result_of
from rmqlb.views.json_schema import json_schema


def strict(schema: Any) -> Any:
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: strict(value) for key, value in schema.items()}
    return {**inner, "additionalProperties": False} if isinstance(schema.get("properties"), dict) else inner


@cache
def schema_of(name: str) -> dict[str, Any]:
    """The schema as `rmqlb schema` prints it; it is shared, and not to be changed."""
    result = result_of(name)
    assert result is not None, f"{name} is not in {[each.name for each in RESULTS]}"
    return json_schema(result)


@cache
def published(name: str) -> Draft202012Validator:
    return Draft202012Validator(schema_of(name))


@cache
def exact(name: str) -> Draft202012Validator:
    """The same without leave for further keys."""
    return Draft202012Validator(strict(schema_of(name)))


def problems(value: Any, name: str | None = None) -> list[str]:
    errors = exact(name or value["schema"]).iter_errors(value)
    return [f"{error.json_path}: {error.message[:200]}" for error in errors]


def must_fit(value: Any, name: str | None = None) -> None:
    assert problems(value, name) == []
