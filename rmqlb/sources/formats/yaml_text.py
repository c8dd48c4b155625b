"""Untrusted YAML: built from events, without aliases, merge keys and tags, bounded in depth and count.

Only null, true/false, integers and floats are recognised: `no`, `010` and a date stay texts. A float has a dot, and a
sign in its exponent, as in rmqlb's own YAML: `1e5` is a text, because it may be a topic's name. Duplicate keys are
refused. A loader's nodes would take ten times the memory of the values.
"""

import math
import re
import sys
from typing import Any

import yaml

from rmqlb.errors import DocumentError
from rmqlb.sources.formats.limits import MAX_DEPTH
from rmqlb.sources.formats.loose_json import MAX_DIGITS

_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_NODES = 1_000_000  # enough for 50,000 queues with their offsets, in two seconds and a hundred MB
_MAX_CHARACTERS = 12 << 20
"""More has too many nodes, as rmqlb's own YAML has ten bytes per node. The parser keeps several copies."""
_LARGE = "large snapshots are written in JSON: rmqlb fetch-routes -o json"
_CONSTANTS = {
    **dict.fromkeys(("~", "null", "Null", "NULL", "")),
    **{word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")},
}
_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)|([0-9]+\.[0-9]*(?:[eE][-+][0-9]+)?))")
_NUMERIC = frozenset("-+0123456789")
_SAME_HASHES = sys.hash_info.modulus  # larger integers share hashes, so a mapping of them could take hours
_NO_KEY: Any = object()


class AliasError(DocumentError):
    """A YAML alias, or text such as `*` that YAML reads as an alias."""


def read_yaml(text: str, where: str) -> object:
    if len(text) > _MAX_CHARACTERS:
        raise DocumentError(f"{where}: not JSON, and larger than the {_MAX_CHARACTERS >> 20} MB for YAML", hint=_LARGE)
    try:
        return _Reading(where).read(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = _problem(error.problem or error.context)
        if "maximum nesting depth" in problem:  # libyaml's own limit of 1,000, from PyYAML 6.0.4 on
            problem = f"nested deeper than {MAX_DEPTH} levels"
        # libyaml's text for errors after `*` or `&`; it has no kinds of errors.
        kind = AliasError if "alphabetic or numeric" in problem else DocumentError
        raise kind(f"{where}{place}: {problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DocumentError(f"{where}: {_problem(str(error))}") from None


class _Reading:
    def __init__(self, where: str) -> None:
        self._where = where
        self._value: object = None
        self._bad_key: yaml.YAMLError | None = None  # error of a key that is no plain value, raised last
        self._open: list[Any] = []
        self._keys: list[Any] = []
        self._anchors: set[str] = set()
        self._documents = 0

    def read(self, text: str) -> object:
        for nodes, event in enumerate(yaml.parse(text, Loader=_BASE), 1):
            if nodes > _MAX_NODES:
                raise self._refusal(f"more than {_MAX_NODES} YAML nodes", event, hint=_LARGE)
            self._require_plain(event)
            if isinstance(event, yaml.ScalarEvent):
                self._add(_scalar(event), event)
            elif isinstance(event, yaml.CollectionStartEvent):
                value: Any = [] if isinstance(event, yaml.SequenceStartEvent) else {}
                self._add(value, event)
                self._open.append(value)
                self._keys.append(_NO_KEY)
                if len(self._open) > MAX_DEPTH:
                    raise self._refusal(f"nested deeper than {MAX_DEPTH} levels", event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._open.pop()
                self._keys.pop()
            elif isinstance(event, yaml.DocumentStartEvent):
                self._documents += 1
                if self._documents > 1:
                    raise _error("but found another document", event)
        if self._bad_key is not None:
            raise self._bad_key
        return self._value

    def _add(self, value: Any, event: Any) -> None:
        """Add a value to the innermost open list or mapping; in a mapping, every other one is a key."""
        if not self._open:
            self._value = value
            return
        inside = self._open[-1]
        if type(inside) is list:
            inside.append(value)
        elif self._keys[-1] is _NO_KEY:
            self._keys[-1] = self._key(inside, value, event)
        else:
            inside[self._keys[-1]] = value
            self._keys[-1] = _NO_KEY

    def _key(self, mapping: dict[Any, Any], value: Any, event: Any) -> Any:
        if isinstance(value, list | dict):
            self._bad_key = self._bad_key or _error("found unhashable key", event)
            return object()
        if event.implicit[0] and event.value == "<<":
            raise _error("YAML merge keys are not read", event)
        if type(value) is int and abs(value) >= _SAME_HASHES:
            raise _error("a number too large for a key", event)
        if value in mapping:
            raise _error(f"the key {str(event.value)[:80]!r} stands twice", event)
        return value

    def _require_plain(self, event: Any) -> None:
        if isinstance(event, yaml.AliasEvent):
            raise self._refusal("YAML aliases are not supported", event, AliasError)
        if getattr(event, "tag", None) is not None:
            raise self._refusal("YAML tags are not read", event)
        anchor = getattr(event, "anchor", None)
        if anchor in self._anchors:  # harmless, but `lines_of` could not read it twice
            raise self._refusal(f"the anchor {anchor[:80]!r} stands twice", event)
        if anchor is not None:
            self._anchors.add(anchor)

    def _refusal(
        self, problem: str, event: Any, kind: type[DocumentError] = DocumentError, hint: str | None = None
    ) -> DocumentError:
        return kind(f"{self._where}, line {event.start_mark.line + 1}: {problem}", hint=hint)


def _scalar(event: Any) -> Any:
    text: str = event.value
    if not event.implicit[0]:
        return text
    number = _NUMBER.fullmatch(text) if text[:1] in _NUMERIC else None
    if number is None:
        return _CONSTANTS.get(text, text)
    if len(text) > MAX_DIGITS:
        raise _error(f"a number of more than {MAX_DIGITS} digits", event)
    value = int(text) if number[1] is None else float(text)
    if value in (math.inf, -math.inf):
        raise _error("a number too large", event)
    return value


def _error(problem: str, event: Any) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, event.start_mark)


def lines_of(text: str) -> dict[tuple[str | int, ...], int]:
    """Path of each key and list item → its line, from 1; a path has keys as text and places in lists."""
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


def _problem(text: str | None) -> str:
    return " ".join((text or "it is not YAML").split())
