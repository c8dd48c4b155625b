"""YAML from strangers: the safe loader, without aliases, bounded in depth and count, duplicate keys refused.

Only null, true/false, integers and floats are recognised, as in YAML 1.2: `no` stays a word and a date stays a text.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from rmqlb.errors import DocumentError
from rmqlb.sources.loose_json import MAX_DEPTH

_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_NODES = 5_000_000


class _Loader(_BASE):  # type: ignore[misc]
    yaml_implicit_resolvers: dict[str, Any] = {}

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = (key_node.tag, str(key_node.value))
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key_node.value!r} stands twice", key_node.start_mark
                )
            seen.add(key)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def _resolve(tag: str, pattern: str, first: str) -> None:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), list(first))


_resolve("null", r"~|null|Null|NULL|", "~nN\0")
_resolve("bool", r"true|True|TRUE|false|False|FALSE", "tTfF")
_resolve("int", r"[-+]?(?:0|[1-9][0-9]{0,400})", "-+0123456789")
_resolve("float", r"[-+]?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?", "-+0123456789")


def read_yaml(text: str, where: str) -> object:
    """The one document of a YAML text.

    Raises:
        DocumentError: it is not YAML, holds aliases, is nested too deeply, or has a key twice.
    """
    try:
        _check(text, where)
        value: object = yaml.load(text, Loader=_Loader)  # noqa: S506 - _Loader is a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise DocumentError(f"{where}{place}: {_problem(error.problem or error.context)}") from None
    except yaml.YAMLError as error:
        raise DocumentError(f"{where}: {_problem(str(error))}") from None
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"{where}: {_problem(str(error))}") from None
    return value


def _check(text: str, where: str) -> None:
    """Refuse aliases and depth before anything is built: the C loader cannot be told to."""
    depth = nodes = 0
    for event in yaml.parse(text, Loader=_BASE):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent):
            raise DocumentError(f"{where}, line {line}: YAML aliases are not read")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        nodes += 1
        if depth > MAX_DEPTH:
            raise DocumentError(f"{where}, line {line}: nested deeper than {MAX_DEPTH}")
        if nodes > _MAX_NODES:
            raise DocumentError(f"{where}, line {line}: more than {_MAX_NODES} YAML nodes")


def _problem(text: str | None) -> str:
    return " ".join((text or "it is not YAML").split())
