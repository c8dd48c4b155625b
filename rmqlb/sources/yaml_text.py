"""YAML from strangers: the safe loader, without aliases and tags, bounded in depth and count, duplicate keys refused.

Only null, true/false, integers and floats are recognised: `no`, `010` and a date stay texts. A float has a dot, and a
sign in its exponent, as those have that rmqlb's own YAML holds: `1e5` is a text, for it may be a topic's name.
"""

from __future__ import annotations

import math
import re
from typing import Any, ClassVar

import yaml

from rmqlb.errors import DocumentError
from rmqlb.sources.bounded import MAX_DEPTH
from rmqlb.sources.loose_json import MAX_DIGITS

_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_NODES = 5_000_000
_MERGE = "tag:yaml.org,2002:merge"


class _Loader(_BASE):  # type: ignore[misc]
    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        if len(mapping) < len(node.value):
            raise self._twice(node)
        return mapping

    def flatten_mapping(self, node: Any) -> None:
        """Where the safe loader would merge: what another mapping holds must not come in unseen."""
        for key_node, _ in node.value:
            if key_node.tag == _MERGE:
                raise _error("YAML merge keys are not read", key_node)

    def number(self, node: Any) -> int | float:
        """An integer or a float; the texts come from the patterns below, so only their size can be wrong."""
        text = node.value
        if len(text) > MAX_DIGITS:
            raise _error(f"a number of more than {MAX_DIGITS} digits", node)
        if "." not in text:
            return int(text)
        value = float(text)
        if math.isinf(value):
            raise _error("a number too large", node)
        return value

    def _twice(self, node: Any) -> yaml.YAMLError:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node)
            if key in seen:
                return _error(f"the key {str(key_node.value)[:80]!r} stands twice", key_node)
            seen.add(key)
        raise AssertionError("called for a mapping that has a key twice")


def _error(problem: str, node: Any) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _resolve(tag: str, pattern: str, first: str) -> None:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), [*first, ""])


_resolve("null", r"~|null|Null|NULL|", "~nN")
_resolve("merge", r"<<", "<")
_resolve("bool", r"true|True|TRUE|false|False|FALSE", "tTfF")
_resolve("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789")
_resolve("float", r"[-+]?[0-9]+\.[0-9]*(?:[eE][-+][0-9]+)?", "-+0123456789")
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.number)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.number)


def read_yaml(text: str, where: str) -> object:
    """The one document of a YAML text.

    Raises:
        DocumentError: it is not YAML, holds aliases or tags, is nested too deeply, or has a key twice.
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


def lines_of(text: str) -> dict[tuple[str | int, ...], int]:
    """Where things stand in a text that `read_yaml` takes: path of each key and list item → its line, from 1.

    A path has keys as text and places in lists, from the outside in; the empty one is the document.
    """
    lines: dict[tuple[str | int, ...], int] = {}
    waiting: list[tuple[tuple[str | int, ...], Any, Any]] = [((), None, yaml.compose(text, Loader=_BASE))]
    while waiting:
        path, key, node = waiting.pop()
        if node is None:
            continue
        lines[path] = (key or node).start_mark.line + 1
        if isinstance(node, yaml.MappingNode):
            waiting += [((*path, str(name.value)), name, value) for name, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            waiting += [((*path, place), None, item) for place, item in enumerate(node.value)]
    return lines


def _check(text: str, where: str) -> None:
    """Refuse aliases, tags and depth before anything is built: the C loader cannot be told to."""
    depth = 0
    for nodes, event in enumerate(yaml.parse(text, Loader=_BASE), 1):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent):
            raise DocumentError(f"{where}, line {line}: YAML aliases are not read")
        if getattr(event, "tag", None) is not None:
            raise DocumentError(f"{where}, line {line}: YAML tags are not read")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise DocumentError(f"{where}, line {line}: nested deeper than {MAX_DEPTH}")
        if nodes > _MAX_NODES:
            raise DocumentError(f"{where}, line {line}: more than {_MAX_NODES} YAML nodes")


def _problem(text: str | None) -> str:
    return " ".join((text or "it is not YAML").split())
