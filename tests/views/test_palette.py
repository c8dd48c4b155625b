import re

from rich.color import Color
from rich.console import Console

from rmqlb.views.formats.palette import COLOURS, owner_styles
from rmqlb.views.formats.people import print_tables
from rmqlb.views.simulate_rebalance import group_report
from tests.support.group_builders import simulated
from tests.support.mismatches import every_case
from tests.views.shown import on_a_terminal

STRIPS = {"broker-a 0": "aaa  bbb", "broker-a 1": "bbb!!!bb", "broker-a 2": "cc###ccc"}


def painted(system: str, name: str = "timeline") -> str:
    console = Console(width=100, force_terminal=True, color_system=system, highlight=False, markup=False)  # type: ignore[arg-type]
    with console.capture() as capture:
        print_tables(group_report(simulated(STRIPS)).only((name,), screen=True), console)
    return capture.get()


def runs(text: str) -> list[tuple[str, str]]:
    return [(codes, run) for codes, run, _ in re.findall(r"\x1b\[([\d;]+)m(([a-z!#])\3+)\x1b\[0m", text)]


def test_a_consumer_has_one_colour_and_each_another_one() -> None:
    by_letter: dict[str, set[str]] = {}
    for codes, run in runs(painted("standard")):
        by_letter.setdefault(run[0], set()).add(codes)
    assert by_letter.keys() == {"a", "b", "c", "!", "#"}
    assert all(len(codes) == 1 for codes in by_letter.values())
    assert len(set.union(*by_letter.values())) == 5


def test_sixteen_colours_are_enough_and_letters_are_dark_on_them() -> None:
    styles = owner_styles("standard")
    assert len(set(styles.values())) == len(COLOURS) == 8
    assert all(style.startswith("black on ") for style in styles.values())
    numbers = [Color.parse(style.removeprefix("black on ")).number for style in styles.values()]
    assert all(number is not None and number < 16 for number in numbers)
    assert not {1, 9, 0, 8} & set(numbers)  # red is for what is bad, and nobody reads black on black


@every_case("width", [60, 80, 120])
def test_without_colour_the_same_letters_are_there(width: int) -> None:
    text = on_a_terminal(group_report(simulated(STRIPS)), width, "timeline")
    assert "letter = owner, blank = gap, ! = overlap" in " ".join(text.split())
    assert re.search(r"\|a+ +b+\|", text)
    assert re.search(r"\|b+!+b+\|", text)
    assert re.search(r"\|c+#+c+\|", text)
