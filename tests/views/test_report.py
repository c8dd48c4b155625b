"""Sections that are brief for people, and whole for machines and for who names them."""

from __future__ import annotations

from rmqlb.views.formats.people import as_markdown, as_plain
from rmqlb.views.report import Column, Report, Section
from tests.views.shown import on_a_terminal

COLUMNS = (Column("letter", "letter"),)
BRIEF = Section("letters", "letters", COLUMNS, (("x",), ("y",), ("z",)), brief=(0, 2))


def report(*sections: Section) -> Report:
    return Report("rmqlb/test", {}, (), sections, {})


def picture(length: int) -> Section:
    """A row of as many characters, below names that need some room."""
    columns = (Column("name", "name"), Column("", "strip", "strip"))
    rows = (("above", "=" * length), ("the one below", "-" * length))
    return Section("picture", "picture", columns, rows, heads=1, brief=(1,), draw=picture)


def test_people_see_what_is_brief_and_how_to_see_the_rest() -> None:
    for text in (as_plain(report(BRIEF)), as_markdown(report(BRIEF)), on_a_terminal(report(BRIEF), 60)):
        assert "y" not in text.replace("--section letters", "").replace("any", "")
        assert text.rstrip().endswith("and 1 more: --section letters shows all")


def test_a_section_that_is_named_is_whole() -> None:
    named = report(BRIEF).only(("letters",))
    assert "y" in as_plain(named)
    assert "more" not in as_plain(named)


def test_the_one_table_of_a_csv_is_no_picture_unless_there_is_nothing_else() -> None:
    assert report(picture(5), BRIEF).table is BRIEF
    assert report(picture(5)).table.name == "picture"


def test_a_picture_takes_the_width_that_its_names_leave() -> None:
    text = on_a_terminal(report(picture(5)).only(("picture",)), 80)
    assert len(max(text.splitlines(), key=len)) == 80
    assert "=" * 64 in text


def test_a_picture_in_a_pipe_is_as_long_as_it_says_itself() -> None:
    assert "-----" in as_plain(report(picture(5)))
    assert f" {'-' * 5}\n" in on_a_terminal(report(picture(5)), 100_000)
