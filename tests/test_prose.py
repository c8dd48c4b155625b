"""No code reads its own prose: a message, hint or reason is shown, and never taken apart or compared.

What code has to know of an error, a finding or a part that could not be read is in its kind, name and code, so a
sentence can be reworded without a change of behaviour.
"""

import ast
from pathlib import Path

import rmqlb

PACKAGE = Path(rmqlb.__file__).parent
PROSE = {"message", "problem", "hint", "reason", "what"}
"""Attributes that hold a sentence."""
READS = {
    "startswith", "endswith", "split", "rsplit", "splitlines", "partition", "rpartition", "removeprefix", "removesuffix",
    "find", "rfind", "index", "rindex", "count", "replace",
}  # fmt: skip
MATCHES = {"match", "fullmatch", "search", "findall", "finditer", "sub"}
NOT_HELD = ("views/", "cli/common/watch.py", "sources/formats/snapshot_file.py")
"""Where sentences are set for a reader, and where old snapshots are read, whose parts have no kinds."""


def prose_read(source: str) -> list[int]:
    return sorted({node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.expr) and _reads(node)})


def _is_prose(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in PROSE


def _reads(node: ast.expr) -> bool:
    match node:
        case ast.Compare(left=left, ops=ops, comparators=others):
            is_compared = any(isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for op in ops)
            return is_compared and any(map(_is_prose, (left, *others)))
        case ast.Call(func=ast.Attribute(value=value, attr=attr), args=args):
            return (attr in READS and _is_prose(value)) or (attr in MATCHES and any(map(_is_prose, args)))
        case ast.Subscript(value=value, slice=ast.Slice()):
            return _is_prose(value)
    return False


def test_no_code_reads_its_own_prose() -> None:
    found = {
        name: lines
        for path in sorted(PACKAGE.rglob("*.py"))
        if not (name := path.relative_to(PACKAGE).as_posix()).startswith(NOT_HELD)
        if (lines := prose_read(path.read_text(encoding="utf-8")))
    }
    assert found == {}, "give it a kind, a name or a code instead"


READ = """
topic = part.what[3:] if part.what.startswith(words) else None
if error.hint not in _HINTS: raise
if 'timed out' in error.message: retry()
re.search('code (.*)', part.reason)
"""
NOT_READ = "print(error.message, error.hint or '')\nif part.reason is None: skip()\nif error.code == 'too-large': end()"


def test_prose_that_is_read_is_found() -> None:
    assert all(map(prose_read, READ.strip().splitlines()))
    assert not any(map(prose_read, NOT_READ.splitlines()))
