import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import rmqlb
import rmqlb.engine.group
import rmqlb.sources.source
from rmqlb.cli.error_boundary import OUTPUT_LOST
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.errors import RmqlbError
from rmqlb.views.explanations import Explanation, explanations
from tests.support.mismatches import every_case

ROOT = Path(rmqlb.__file__).parent
HAS_CODES = re.compile(r"\bcode\s*=|\b(?:Finding|rule|PageCode)\(")
"""What a file has that `_of_call` finds something in: errors say their code by keyword."""


class Used(NamedTuple):
    kind: str
    code: str
    exit: int | None
    where: str


def error_classes() -> dict[str, type[RmqlbError]]:
    found: dict[str, type[RmqlbError]] = {}
    waiting: list[type[RmqlbError]] = [RmqlbError]
    while waiting:
        each = waiting.pop()
        found[each.__name__] = each
        waiting += each.__subclasses__()
    return found


@cache
def used_codes() -> Sequence[Used]:
    """The code of every finding and error; a finding that says what an error says has the error's code."""
    found = list(_all_codes())
    errors = {each.code for each in found if each.kind == "error"}
    return [each for each in found if each.kind == "error" or each.code not in errors]


def _all_codes() -> Iterator[Used]:
    yield Used("error", OUTPUT_LOST, ExitCode.UNEXPECTED, "cli/error_boundary.py")
    for each in error_classes().values():
        if "code" not in vars(each):
            continue  # it has its parent's; which classes are loaded depends on the tests before
        yield Used("error", each.code, _exit(each), each.__module__)
    for path in sorted(ROOT.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if HAS_CODES.search(source) is None:
            continue  # most files: to parse them all took every process of the tests seconds
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                yield from _of_call(node, node.func.id, f"{path.relative_to(ROOT)}:{node.lineno}")


def _of_call(node: ast.Call, name: str, where: str) -> Iterator[Used]:
    keyword = next((each.value for each in node.keywords if each.arg == "code"), None)
    if name == "Finding" and not _is_anothers(keyword or node.args[0]):
        for code in _literals(keyword or node.args[0], where):
            yield Used("finding", code, None, where)
    elif name in ("rule", "PageCode"):
        for code in _literals(node.args[0], where):
            yield Used("finding", code, None, where)
    elif name in error_classes() and keyword is not None and not _is_anothers(keyword):
        for code in _literals(keyword, where):
            yield Used("error", code, _exit(error_classes()[name]), where)


def _literals(node: ast.expr, where: str) -> Iterator[str]:
    """A code, or the two between which a condition decides; None is the class's own."""
    if isinstance(node, ast.IfExp):
        yield from (*_literals(node.body, where), *_literals(node.orelse, where))
        return
    assert isinstance(node, ast.Constant), f"{where}: a code is written out, so that it can be found"
    if node.value is not None:
        assert isinstance(node.value, str), where
        yield node.value


def _is_anothers(node: ast.expr) -> bool:
    """`error.code`: the code of an error that is told on."""
    return isinstance(node, ast.Attribute) and node.attr == "code"


def _exit(kind: type[RmqlbError]) -> int:
    return kind.exit_code


CATALOGUE = explanations()
SENTENCES = re.compile(r"[^\n]{10,450}[.?]")


def of_kind(kind: str) -> dict[str, Explanation]:
    return {code: one for code, one in CATALOGUE.items() if one.kind == kind}


@pytest.mark.parametrize("kind", ["finding", "error"])
def test_every_code_is_explained_and_every_explanation_is_of_a_code(kind: str) -> None:
    used = {each.code: each.where for each in used_codes() if each.kind == kind}
    missing = {code: where for code, where in used.items() if code not in of_kind(kind)}
    assert missing == {}, "write them into rmqlb/views/explanations.toml"
    assert set(of_kind(kind)) - set(used) == set(), "nothing has these codes any more"


def test_every_exit_code_is_explained_and_a_code_means_one() -> None:
    assert set(of_kind("exit")) == {str(code.value) for code in ExitCode}
    for each in used_codes():
        if each.kind == "error":
            assert CATALOGUE[each.code].exit_code == each.exit, each.where
    assert all(one.exit_code is None for one in CATALOGUE.values() if one.kind == "finding")


@every_case("code", CATALOGUE)
def test_an_explanation_is_whole_sentences_in_a_line(code: str) -> None:
    one = CATALOGUE[code]
    assert re.fullmatch(r"[a-z]+(-[a-z0-9]+)*" if one.kind != "exit" else r"\d+", code)
    for text in (one.means, one.why, one.todo):
        assert SENTENCES.fullmatch(text), text
        assert "  " not in text
