from pathlib import Path

import pytest

from tests.support.mismatches import SHOWN, every_case


def test_every_case_is_run_and_every_mismatch_is_listed_by_name() -> None:
    seen = []

    @every_case(("number", "word"), [(1, "a"), pytest.param(2, "b", id="two"), (3, "c"), (4, "d"), (5, "e")])
    def check(number: int, word: str) -> None:
        seen.append((number, word))
        assert number % 2, "even"
        if number == 3:
            pytest.fail("three")
        if number == 5:
            pytest.skip("not today")

    with pytest.raises(AssertionError) as caught:
        check()
    assert seen == [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")]
    first, *lines = str(caught.value).splitlines()
    assert first == "4 of 5 cases do not match:"
    assert [line.partition(" (line")[0] for line in lines if " (line" in line] == ["two", "3-'c'", "4-'d'", "5-'e'"]
    assert "three" in str(caught.value)
    assert isinstance(caught.value.__cause__, AssertionError)


def test_a_failure_shows_at_most_so_many_mismatches() -> None:
    @every_case("number", range(SHOWN + 5))
    def check(number: int) -> None:
        raise KeyError(number)

    with pytest.raises(AssertionError) as caught:
        check()
    assert len(str(caught.value).splitlines()) == SHOWN + 2
    assert str(caught.value).endswith("… and 5 more")


def test_a_test_without_cases_and_a_case_with_a_mark_are_refused() -> None:
    for cases, match in (([], "there is no case"), ([pytest.param(1, marks=pytest.mark.slow)], "a case with a mark")):
        with pytest.raises(ValueError, match=match):
            every_case("number", cases)


@every_case("number", [1, 2])
@pytest.mark.parametrize("letter", ["a", "b"])
def test_a_case_has_its_own_folder(number: int, letter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made").mkdir()
    monkeypatch.delattr(pytest, "Item")
    assert (number in (1, 2), letter in "ab") == (True, True)
