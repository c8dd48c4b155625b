"""The picture in a file: well formed, self-contained, true to the intervals, and harmless whatever names it is given."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from rmqlb.model.finding import Finding
from rmqlb.model.group_scenario import SECOND_US, Event
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.simulate_rebalance import RebalanceResult, Step
from rmqlb.views import pictures
from rmqlb.views.formats.text import visible
from rmqlb.views.pictures import runs, story
from rmqlb.views.simulate_rebalance import group_facts, group_report
from rmqlb.views.timeline import even_edges, strips
from tests.support.builders import queues
from tests.support.group_builders import interval, measured, simulated, takeover, timeline, trials
from tests.support.mismatches import every_case

SVG = "{http://www.w3.org/2000/svg}"
TWO = {"broker-a 0": "aaa  bbb", "broker-a 1": "bbb!!!.."}
HOSTILE = [
    "<script>alert(1)</script>",
    "]]>",
    "&amp;<!--",
    "\"'`",
    "e\x1b[31m\u202evil",
    "\x00\ud800\ufffe",
    "--></title></svg>",
]


def svg_picture(report: RebalanceResult) -> str:
    return pictures.svg_picture(report, group_facts(report))


def html_page(report: RebalanceResult, *findings: Finding) -> str:
    return pictures.html_page(report, group_report(report), findings)


class Page(HTMLParser):
    """What a browser would find: tags with their attributes, and the text of each element by its tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)


def svg(report: RebalanceResult) -> ET.Element:
    return ET.fromstring(svg_picture(report))


def texts(root: ET.Element, tag: str = "text") -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}{tag}")]


def test_tooltips_say_exactly_what_was_from_when_to_when() -> None:
    lines = [measured(queues(1)[0], [
        interval(0, 3_000_500, "one", ("a",)), interval(3_000_500, 3_102_000, "unassigned", ()),
        interval(3_102_000, 8 * SECOND_US, "duplicate-owners", ("a", "b")),
    ])]  # fmt: skip
    assert texts(svg(simulated(lines, events=())), "title") == [
        "T broker-a 0: a from 0s to 3.001s, 3.001s",
        "T broker-a 0: no owner from 3.001s to 3.102s, 101.5ms",
        "T broker-a 0: a, b from 3.102s to 8s, 4.898s",
    ]


def test_what_is_bad_is_drawn_last_and_never_too_narrow_to_be_seen() -> None:
    lines = [measured(queues(1)[0], [
        interval(0, 500, "unassigned", ()), interval(500, 600 * SECOND_US, "one", ("a",)),
        interval(600 * SECOND_US, 600 * SECOND_US + 7, "duplicate-owners", ("a", "b")), interval(600 * SECOND_US + 7, 601 * SECOND_US, "one", ("b",)),
    ])]  # fmt: skip
    root = svg(simulated(lines, events=()))
    (row,) = (group for group in root.findall(f"{SVG}g") if group.find(f"{SVG}g") is not None)
    bars = [bar.find(f"{SVG}rect") for bar in row.findall(f"{SVG}g")]
    fills = [bar.get("fill") for bar in bars if bar is not None]
    assert fills[-2:] == ["#ffffff", "url(#several-owners)"]
    assert all(float(bar.get("width", "0")) >= 1.5 for bar in bars[-2:] if bar is not None)
    assert bars[-2] is not None
    assert bars[-2].get("stroke") == "#cc0000"


def test_bars_lie_where_their_times_are() -> None:
    root = svg(simulated({"broker-a 0": "aa  bbbb"}, events=[Event("leave", 0, "a")]))
    bars = sorted(
        (float(bar.get("x", "")), float(bar.get("width", "")))
        for bar in root.iter(f"{SVG}rect")
        if bar.get("height") in ("15", "16")
    )
    left = bars[0][0]
    assert [round((x - left) / 100) for x, _ in bars] == [0, 2, 4]
    assert [round(width / 100) for _, width in bars] == [2, 2, 4]


def test_events_have_lines_with_labels_and_tooltips() -> None:
    root = svg(simulated(TWO, events=[Event("join", 3 * SECOND_US, "b"), Event("crash", 6 * SECOND_US, "a")]))
    assert {"1 join", "2 crash"} <= set(texts(root))
    assert {"3s: join b", "6s: crash a"} <= set(texts(root, "title"))


def test_a_thousand_queues_that_look_alike_stay_small() -> None:
    names = [MessageQueue("T", f"broker-{broker}", i) for broker in range(10) for i in range(100)]
    lines = [timeline("aaa  bbb" if queue.queue_id > 90 else "aaaaaaaa", queue) for queue in names]
    text = svg_picture(simulated(lines))
    assert len(text) < 20_000
    assert "broker-3 91-99" in texts(ET.fromstring(text))


@given(st.lists(st.text("ab !.", min_size=8, max_size=8), min_size=1, max_size=70), st.integers(1, 12))
def test_runs_cover_the_strip_and_their_story_is_of_intervals_that_are_there(drawn: list[str], number: int) -> None:
    report = simulated([timeline(strip, queue) for strip, queue in zip(drawn, queues(70), strict=False)])
    edges = even_edges(0, report.end_us, number)
    for strip in strips(report, edges, fold=True):
        found = runs(strip, edges)
        assert [run.from_us for run in found] == [0, *(run.to_us for run in found[:-1])]
        assert found[-1].to_us == report.end_us
        for run in found:
            first = re.search(r" from (\d+)s to (\d+)s", story(run))
            assert first is not None
            begin, end = (int(second) * SECOND_US for second in first.groups())
            ends = {(i.from_us, i.to_us) for line in strip.queues for i in line.intervals if i.state == run.shown.state}
            assert begin in {one for one, _ in ends}
            assert end in {one for _, one in ends}


def hostile(name: str) -> RebalanceResult:
    queue = MessageQueue(name, name, 0)
    return simulated(
        [timeline("aaa  !!!", queue, [takeover(queue, name, 5)], ids={"a": name})],
        events=[Event("join", 3 * SECOND_US, name, name)],
        steps=[Step(1, name, "take", name, (queue,))],
        group=name,
    )


@every_case("name", HOSTILE)
def test_hostile_names_are_text_in_the_picture(name: str) -> None:
    text = svg_picture(hostile(name))
    assert visible(text.replace("\n", "")) == text.replace("\n", "")
    root = ET.fromstring(text)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        "svg", "style", "defs", "pattern", "rect", "path", "text", "g", "title",
    }  # fmt: skip
    assert all("<" not in value and name not in value for element in root.iter() for value in element.attrib.values())
    told = visible(name).replace("\ufffe", "\\ufffe")
    assert any(f"{told} {told} 0: no owner" in title for title in texts(root, "title"))


@every_case("name", HOSTILE)
def test_hostile_names_are_text_on_the_page(name: str) -> None:
    text = html_page(hostile(name), Finding("name", name))
    assert visible(text.replace("\n", "")) == text.replace("\n", "")
    page = Page(text)
    assert not {"script", "img", "iframe", "link", "object", "base", "a"} & set(page.tags)
    assert not [key for key, _ in page.attributes if key.startswith("on") or key in ("href", "src", "style")]
    told = visible(name).replace("\ufffe", "\\ufffe")
    assert told in page.texts["td"]
    (title,) = page.texts["h1"]
    assert title.startswith(f"{told}, {told}: ")
    assert title.endswith("; converged 1.0 s after it")
    assert f"warning: {told} [name]" in page.texts["li"]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_every_name_makes_well_formed_files(name: str) -> None:
    report = hostile(name)
    ET.fromstring(svg_picture(report))
    assert Page(html_page(report, Finding("name", name))).texts["style"]


def test_nothing_is_fetched_or_run() -> None:
    page, drawn = html_page(simulated(TWO)), svg_picture(simulated(TWO))
    for text in (page, drawn):
        addresses = [
            address for address in re.findall(r"\w+://[^\"'\s)]+", text) if address != "http://www.w3.org/2000/svg"
        ]
        assert addresses == []
        assert "<script" not in text
        assert set(re.findall(r"url\([^)]*\)", text)) <= {"url(#several-owners)"}
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'" in page


def test_the_page_has_the_picture_the_facts_and_the_tables() -> None:
    steps = [Step(3_000_000, "b", "take", "takes one", ())]
    report = simulated(TWO, steps=steps, found=trials(convergence_ms=(1000, 2000, 3000)))
    page = Page(html_page(report, Finding("code", "beware")))
    titles = [title.partition(":")[0] for title in page.texts["h2"]]
    assert titles == [
        "gaps, overlaps", "events", "consumers",
        "20 trials", "summary", "queues", "takeovers", "what happens and why",
    ]  # fmt: skip
    assert "svg" in page.tags
    assert "takes one" in page.texts["td"]
    assert any("20 trials converged" in fact for fact in page.texts["li"])
