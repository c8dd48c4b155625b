from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.mismatches import SHOWN, every_case


def test_every_case_is_run_and_every_mismatch_is_listed_by_name() -> None:
    seen = []

    @every_case(("number", "word"), [(1, "a"), pytest.param(2, "b", id="two"), (3, "c"), (4, "d")])
    def check(number: int, word: str) -> None:
        seen.append((number, word))
        assert number % 2, "even"
        if number == 3:
            pytest.fail("three")

    with pytest.raises(AssertionError) as caught:
        check()
    assert seen == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    first, *lines = str(caught.value).splitlines()
    assert first == "3 of 4 cases do not match:"
    assert [line.partition(" (line")[0] for line in lines if " (line" in line] == ["two", "3-'c'", "4-'d'"]
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


def test_a_case_that_skips_is_a_mismatch() -> None:
    @every_case("number", [1])
    def check(number: int) -> None:
        pytest.skip(f"not today: {number}")

    with pytest.raises(AssertionError, match="1 of 1 cases do not match"):
        check()


def test_a_test_without_cases_and_a_case_with_a_mark_are_refused() -> None:
    with pytest.raises(ValueError, match="there is no case"):
        every_case("number", [])
    with pytest.raises(ValueError, match="a case with a mark"):
        every_case("number", [pytest.param(1, marks=pytest.mark.slow)])


@every_case("number", [1, 2])
@pytest.mark.parametrize("letter", ["a", "b"])
def test_a_case_has_its_own_folder_and_patches(
    number: int, letter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context():
        (tmp_path / "made").mkdir()
    monkeypatch.delattr(pytest, "Item")
    assert (number in (1, 2), letter in "ab") == (True, True)
