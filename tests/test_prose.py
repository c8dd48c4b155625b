"""No code reads its own prose: a message, hint, reason or other sentence is shown, and never taken apart or compared.

What code has to know of an error, a finding or a part that could not be read stands in its kind, name and code; so a
sentence can be reworded without a change of behaviour. Text of others (a server's remark, an exception of Java, YAML or
the system) may be read where it comes in: it is no attribute of ours.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import rmqlb
from tests.support.mismatches import every_case

PACKAGE = Path(rmqlb.__file__).parent
PROSE = frozenset({"message", "problem", "hint", "reason", "what"})
"""Attributes that hold a sentence."""
MAKES_PROSE = frozenset({"suggestion", "close_names", "first_line", "reason_of"})
"""Functions that return one."""
READS = frozenset(
    {"startswith", "endswith", "split", "rsplit", "splitlines", "partition", "rpartition", "removeprefix"}
    | {"removesuffix", "find", "rfind", "index", "rindex", "count", "replace", "__contains__"}
)
MATCHES = frozenset({"match", "fullmatch", "search", "findall", "finditer", "sub", "split"})
SHOWS = ("views/", "cli/common/watch.py")
"""Where sentences are set for a reader: cut, wrapped, said once as long as they stay the same."""
ON_PURPOSE = {"sources/formats/snapshot_file.py": "what rmqlb wrote before parts had kinds is known by its words"}
"""File that has to read a sentence → why."""


_ASSIGNS = (ast.Assign, ast.AnnAssign, ast.NamedExpr)
_TELLING = (*_ASSIGNS, ast.Compare, ast.Call, ast.Subscript, ast.Match)


def prose_read(source: str) -> list[int]:
    """The lines in which a sentence is read."""
    tree = ast.parse(source)
    return sorted({line for scope in _scopes(tree) for line in _Scope(scope).lines()})


def _scopes(tree: ast.Module) -> Iterator[ast.AST]:
    yield tree
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


class _Scope:
    """One function: which names hold a sentence in it, and where it reads one."""

    def __init__(self, scope: ast.AST) -> None:
        self._nodes = [node for node in _within(scope) if isinstance(node, _TELLING)]
        self._names: set[str] = set()
        while self._learn():
            pass

    def lines(self) -> Iterator[int]:
        yield from (node.lineno for node in self._nodes if isinstance(node, ast.expr) and self._reads(node))
        for node in self._nodes:
            if isinstance(node, ast.Match) and self._is_prose(node.subject):
                yield node.lineno

    def _learn(self) -> bool:
        before = len(self._names)
        for node in self._nodes:
            if isinstance(node, _ASSIGNS) and node.value and self._is_prose(node.value):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                self._names |= {target.id for target in targets if isinstance(target, ast.Name)}
        return len(self._names) > before

    def _is_prose(self, node: ast.expr) -> bool:
        match node:
            case ast.Attribute(attr=attr):
                return attr in PROSE
            case ast.Name(id=name):
                return name in self._names or name.endswith("_HINT")
            case ast.BoolOp(values=values) | ast.Tuple(elts=values):
                return any(map(self._is_prose, values))
            case ast.IfExp(body=body, orelse=other):
                return self._is_prose(body) or self._is_prose(other)
            case ast.NamedExpr(value=value) | ast.Subscript(value=value):
                return self._is_prose(value)
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
                return name in MAKES_PROSE
        return False

    def _reads(self, node: ast.expr) -> bool:
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others):
                is_compared = any(isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for op in ops)
                return is_compared and any(map(self._is_prose, (left, *others)))
            case ast.Call(func=ast.Attribute(value=value, attr=attr), args=args):
                if attr in READS and self._is_prose(value):
                    return True
                if attr == "get":  # losses are counted by reason
                    args = [arg for arg in args if not isinstance(arg, ast.Attribute) or arg.attr != "reason"]
                return attr in MATCHES | {"get"} and any(map(self._is_prose, args))
            case ast.Subscript(value=value, slice=ast.Slice()):
                return self._is_prose(value)
        return False


def _within(scope: ast.AST) -> Iterator[ast.AST]:
    """What stands in a function, without the functions inside it."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, ast.FunctionDef):
            yield from _within(node)


def test_no_code_reads_its_own_prose() -> None:
    found = {
        name: lines
        for path in sorted(PACKAGE.rglob("*.py"))
        if not (name := path.relative_to(PACKAGE).as_posix()).startswith(SHOWS) and name not in ON_PURPOSE
        if (lines := prose_read(path.read_text(encoding="utf-8")))
    }
    assert found == {}, "give it a kind, a name or a code instead"


@pytest.mark.parametrize("name", ON_PURPOSE)
def test_prose_that_is_read_on_purpose_is_still_read(name: str) -> None:
    assert prose_read((PACKAGE / name).read_text(encoding="utf-8"))


@every_case(
    "line",
    [
        "topic = part.what[len(words) + 1 :] if part.what.startswith(words) else None",
        "kinds.setdefault(part.what.rpartition(' ')[0], [])",
        "text = _HINTS.get(error.hint)",
        "if error.hint not in _HINTS: raise",
        "if 'timed out' in error.message: retry()",
        "def f(part):\n    reason = part.reason or ''\n    return re.search('code (.*)', reason)",
        "def f(names):\n    close = suggestion('kinds', 'x', names)\n    return close.startswith('did you mean')",
        "text = PLACES_HINT.removeprefix('say where it ')",
        "match finding.message:\n    case 'x': pass",
    ],
)
def test_prose_that_is_read_is_found(line: str) -> None:
    assert prose_read(line)


@every_case(
    "line",
    [
        "print(error.message, error.hint or '')",
        "if part.reason is None: skip()",
        "if error.code == 'too-large': skip()",
        "first = text.partition(':')[0]",
    ],
)
def test_prose_that_is_shown_is_none_that_is_read(line: str) -> None:
    assert prose_read(line) == []
