import re

import pytest

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.views.explanations import Explanation, explanations
from tests.support.codes import used_codes
from tests.support.mismatches import every_case

USED = list(used_codes())
CATALOGUE = explanations()
SENTENCES = re.compile(r"[^\n]{10,450}[.?]")


def of_kind(kind: str) -> dict[str, Explanation]:
    return {code: one for code, one in CATALOGUE.items() if one.kind == kind}


@pytest.mark.parametrize("kind", ["finding", "error"])
def test_every_code_is_explained_and_every_explanation_is_of_a_code(kind: str) -> None:
    used = {each.code: each.where for each in USED if each.kind == kind}
    missing = {code: where for code, where in used.items() if code not in of_kind(kind)}
    assert missing == {}, "write them into rmqlb/views/explanations.toml"
    assert set(of_kind(kind)) - set(used) == set(), "nothing has these codes any more"


def test_every_exit_code_is_explained() -> None:
    assert set(of_kind("exit")) == {str(code.value) for code in ExitCode}


def test_a_code_means_one_exit_code() -> None:
    for each in USED:
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
