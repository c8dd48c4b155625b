import re
from itertools import pairwise
from string import ascii_letters
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.color import Color
from rich.console import Console

from rmqlb.model.group_scenario import SECOND_US, Event, GroupScenario
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.result import Finding
from rmqlb.model.simulate_rebalance import RebalanceResult, Step
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views import pictures
from rmqlb.views.formats.html_page import html_page as html_page_of
from rmqlb.views.formats.palette import COLOURS, overlap_style, owner_style, owner_styles
from rmqlb.views.formats.people import print_tables
from rmqlb.views.formats.text import visible
from rmqlb.views.report import Section
from rmqlb.views.simulate_rebalance import group_report
from rmqlb.views.timeline import AnyInterval, begin_of, round_edges, strips, ticks, timeline_section
from tests.support.builders import queues
from tests.support.group_builders import simulated, takeover, timeline, trials
from tests.support.mismatches import every_case
from tests.views.shown import on_a_terminal, parsed

WORST_FIRST = ("duplicate-owners", "unassigned", "outage", "gone", "one")
SVG = "{http://www.w3.org/2000/svg}"
TWO = {"broker-a 0": "aaa  bbb", "broker-a 1": "bbb!!!.."}
HOSTILE = [
    "<script>alert(1)</script>", "]]>", "&amp;<!--", "\"'`", "e\x1b[31m\u202evil", "\x00\ud800\ufffe",
    "--></title></svg>",
]  # fmt: skip


def drawn(report: RebalanceResult, length: int = 72) -> Section:
    section = timeline_section(report)
    assert section.draw is not None
    return section.draw(length)


def sign(shown: AnyInterval, consumers: tuple[str, ...]) -> str:
    signs = {"duplicate-owners": "!", "unassigned": " ", "outage": "#", "gone": "."}
    return signs.get(shown.state) or dict(zip(consumers, ascii_letters, strict=False))[shown.owners[0]]


def test_a_picture_begins_before_the_first_event_and_a_broadcast_slice_has_its_fewest_owners() -> None:
    strip, scenario = "222 3313.99", GroupScenario(broadcasting=True)
    report = simulated({"broker-a 0": strip}, scenario=scenario, events=[Event("leave", 0, "b", "leave b@0s")])
    assert drawn(report, 13).rows[-1][3] == f"|{strip}|"
    (coarse,) = strips(report, (0, 4 * SECOND_US, 8 * SECOND_US, 11 * SECOND_US), fold=False)
    assert [(one.state, len(one.owners)) for one in coarse.slices] == [("unassigned", 0), ("one", 1), ("gone", 0)]
    report = simulated({"broker-a 0": "a" * 30 + "  bbb"}, events=[Event("leave", 30 * SECOND_US, "a")])
    assert 29 * SECOND_US < begin_of(report) < 30 * SECOND_US
    assert drawn(report).title.startswith("timeline from 29.")


@given(st.integers(0, 10**11), st.integers(0, 10**11), st.integers(2, 200))
def test_slices_and_ticks_are_round_and_not_too_many(begin: int, length: int, most: int) -> None:
    end = begin + length
    found, edges = ticks(begin, end, most), round_edges(begin, end, most)
    assert all(begin <= tick <= end for tick in found)
    assert len(found) <= most + 1
    assert len({after - before for before, after in pairwise(found)}) <= 1
    assert (edges[0] <= begin, edges[-1], len(edges) - 1 <= most, sorted(set(edges))) == (True, end, True, [*edges])
    assert len({after - before for before, after in pairwise(edges[:-1])}) <= 1
    if len(edges) > 2:
        assert edges[-1] - edges[-2] <= edges[1] - edges[0]
        assert len(edges) - 1 >= min(most, length) * 0.4


STRIPS = st.lists(st.text("ab !.#", min_size=1, max_size=60), min_size=1, max_size=40)


@given(STRIPS, st.integers(12, 90), st.integers(0, 60))
def test_every_character_is_the_worst_of_the_intervals_that_it_covers(texts: list[str], length: int, at: int) -> None:
    longest = max(map(len, texts))
    lines = [timeline(strip.ljust(longest, "a"), queue) for queue, strip in zip(queues(40), texts, strict=False)]
    report = simulated(lines, events=[Event("join", at * SECOND_US, "b")])
    edges = round_edges(begin_of(report), report.end_us, length - 2)
    shown: dict[int, str] = {}
    for row in (row for row in drawn(report, length).rows if row[1] == "broker-a"):
        first, _, last = str(row[2]).partition("-")
        shown |= dict.fromkeys(range(int(first), int(last or first) + 1), str(row[3])[1:-1])
    assert sorted(shown) == list(range(len(lines)))
    for line in lines:
        strip = shown[line.queue.queue_id]
        assert len(strip) == len(edges) - 1
        for place, character in enumerate(strip):
            covered = [i for i in line.intervals if i.from_us < edges[place + 1] and i.to_us > edges[place]]
            worst = min((one.state for one in covered), key=WORST_FIRST.index)
            assert character in {sign(one, tuple(report.client_ids)) for one in covered if one.state == worst}


def test_of_many_rows_the_worst_are_shown_and_the_others_on_demand() -> None:
    strips_ = ["a" * 9 + "b" * (place % 2) + " " * (place == 90) for place in range(100)]
    lines = [timeline(strip.ljust(11, "c"), queue) for strip, queue in zip(strips_, queues(100), strict=True)]
    report = group_report(simulated(lines))
    text = on_a_terminal(report, 80)
    assert re.findall(r"broker-a +(\d+) +\|", text) == ["90"]
    assert "and 99 more: --section timeline shows all" in text
    assert len(re.findall(r"broker-a +\d+ +\|", on_a_terminal(report, 80, "timeline"))) == 100


@every_case("width", [12, 20, 31, 40, 60, 80, 133, 250])
@every_case("broker", ["b", "broker-with-a-rather-long-name", "经纪人" * 5])
def test_the_picture_fits_its_terminal_and_uses_it(width: int, broker: str) -> None:
    report = group_report(simulated({f"{broker} 0": "aa  bbbb!b" * 20, f"{broker} 10": "b" * 200}))
    text = on_a_terminal(report, width, "timeline")
    assert max(map(cell_len, text.splitlines()[1:])) <= width
    longest = max(len(strip) for strip in re.findall(r"\|[^|\n]*\|", text))
    assert longest >= min(width - 4, 162) * (0.3 if cell_len(broker) > 10 else 0.5)


def svg_picture(report: RebalanceResult) -> str:
    return pictures.svg_picture(group_report(report))


def html_page(report: RebalanceResult, *findings: Finding) -> str:
    return html_page_of(group_report(report), "simulate-rebalance", ClusterSnapshot("dump", "cluster.json"), findings)


def texts_of(root: ET.Element, tag: str) -> list[str]:
    return ["".join(element.itertext()) for element in root.iter(tag)]


def hostile(name: str) -> RebalanceResult:
    queue = MessageQueue(name, name, 0)
    return simulated(
        [timeline("aaa  !!!", queue, [takeover(queue, name, 5)], ids={"a": name})],
        events=[Event("join", 3 * SECOND_US, name, name)],
        steps=[Step(1, name, "take", name, (queue,))],
        group=name,
    )


@given(st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_every_name_is_text_in_the_picture_and_on_the_page(name: str) -> None:
    text, html = svg_picture(hostile(name)), html_page(hostile(name), Finding("name", name))
    for written in (text, html):
        assert visible(written.replace("\n", "")) == written.replace("\n", "")
    root, page, shown = (
        ET.fromstring(text),
        parsed(html),
        visible(name).replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff"),
    )
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags <= {"svg", "style", "defs", "clipPath", "rect", "circle", "text", "g"}
    texts = "".join(texts_of(root, f"{SVG}text")).replace("\xa0", "").replace("\n", "")
    assert shown.replace(" ", "").replace("\xa0", "") in texts.replace(" ", "")
    assert not {"script", "img", "iframe", "link", "object", "base", "a"} & {element.tag for element in page.iter()}
    attributes = [key for element in page.iter() for key in element.attrib]
    assert not [key for key in attributes if key.startswith("on") or key in ("href", "src", "style")]
    assert shown.strip(" ") in texts_of(page, "td")
    assert texts_of(page, "h1")[0].startswith(f"{shown}, {shown}: ".lstrip(" "))
    assert ["".join(item.itertext()) for item in page.iter("li")] == [f"! name {shown.strip(' ')}"]


def test_the_page_has_the_picture_the_facts_and_the_tables() -> None:
    steps = [Step(3_000_000, "b", "take", "takes one", ())]
    report = simulated(TWO, steps=steps, found=trials(convergence_ms=(1000, 2000, 3000)))
    html = html_page(report, Finding("code", "beware"))
    page = parsed(html)
    shown, closed = (", ".join(texts_of(page, tag)) for tag in ("h2", "summary"))
    timeline_title = "timeline from 2.55 s to 8 s, 50 ms per column: T"
    assert shown == f"{timeline_title}, takeovers, steps and reasons, consumers: queues before and after, 20 trials"
    assert closed == "gaps, overlaps: T, queues: T, events, summary"
    assert re.search(r'<span class="owner1">b+</span><span class="overlap[01]">!</span>', html)
    assert "takes one" in texts_of(page, "td")
    assert any("20 trials converged" in fact for fact in texts_of(page, "p"))


COLOURED_STRIPS = {"broker-a 0": "aaa  bbb", "broker-a 1": "bbb!!!bb", "broker-a 2": "cc###ccc"}


def painted(system: str, name: str = "timeline") -> str:
    console = Console(width=100, force_terminal=True, color_system=system, highlight=False, markup=False)  # type: ignore[arg-type]
    with console.capture() as capture:
        print_tables(group_report(simulated(COLOURED_STRIPS)).only((name,), screen=True), console)
    return capture.get()


def test_a_consumer_has_one_colour_and_each_another_one() -> None:
    by_letter: dict[str, set[str]] = {}
    for codes, letter in re.findall(r"\x1b\[([\d;]+)m([a-z!#])\2*\x1b\[0m", painted("standard")):
        by_letter.setdefault(letter, set()).add(codes)
    overlaps = by_letter.pop("!")
    assert by_letter.keys() == {"a", "b", "c", "#"}
    assert all(len(codes) == 1 for codes in by_letter.values())
    assert len(set.union(*by_letter.values())) == 4
    assert overlaps == {f"1;{codes}" for letter in "ab" for codes in by_letter[letter]}  # bold, in its owners' colours


def test_sixteen_colours_are_enough_and_letters_are_dark_on_them() -> None:
    named = owner_styles("standard")
    styles = [named[owner_style(place)] for place in range(len(COLOURS))]
    assert len(set(styles)) == len(COLOURS) == 8
    assert [named[overlap_style(place)] for place in range(8)] == [f"bold {style}" for style in styles]
    numbers = {Color.parse(style.removeprefix("black on ")).number for style in styles}
    assert numbers <= set(range(16)) - {1, 9, 0, 8}  # red is for what is bad, and nobody reads black on black


@every_case("width", [60, 80, 120])
def test_without_colour_the_same_letters_are_there(width: int) -> None:
    text = on_a_terminal(group_report(simulated(COLOURED_STRIPS)), width, "timeline")
    assert "letter = owner, blank = gap, ! = overlap" in " ".join(text.split())
    assert re.search(r"\|a+ +b+\|(?s:.)*\|b+!+b+\|(?s:.)*\|c+#+c+\|", text)
