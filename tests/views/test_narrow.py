"""Tables for people on narrow terminals: nothing is cut into pieces that can stand otherwise."""

from __future__ import annotations

import pytest

from rmqlb import BrokerData, Event, GroupScenario, Members, QueueData, TopicRouteData, simulate_group
from rmqlb.model.group_scenario import SECOND_US
from rmqlb.views.formats.people import as_plain
from rmqlb.views.report import Column, Report, Section
from rmqlb.views.simulate_rebalance import group_report
from tests.cli.run import EXAMPLE
from tests.cli.terminals import OnTerminal
from tests.support.mismatches import every_case
from tests.views.shown import on_a_terminal


def lines(columns: int, *args: str) -> list[str]:
    with OnTerminal(*args, "-s", EXAMPLE, "-q", "--no-pager", columns=columns, lines=200) as terminal:
        assert terminal.end() == 0
    return terminal.lines


@every_case("columns", [60, 80, 100])
def test_the_strips_of_a_timeline_are_whole(columns: int) -> None:
    send = ("simulate-send", "-t", "OrderEvents", "--fail", "broker-b@45s-1m20s", "--rate", "10", "--for", "2m")
    shown = lines(columns, *send, "--section", "timeline")
    rows = [line.split() for line in shown if line.startswith("broker-") and len(line.split()) == 2]
    assert [name for name, _ in rows] == ["broker-a", "broker-b"]
    assert len({len(strip) for _, strip in rows}) == 1
    assert "X" in rows[1][1]
    (legend,) = (at for at, line in enumerate(shown) if line.startswith("failed, 9 = "))
    assert shown[legend + 1] == ""


def test_a_sentence_of_long_names_is_clipped_on_a_terminal() -> None:
    section = Section("a", "a", (Column("b", "b"),), ())
    report = Report("rmqlb/x", {}, (f"group {'x' * 10_000}, 3 consumers",), (section,), {})
    shown = on_a_terminal(report, 80).replace("\n", "")
    assert "…" in shown
    assert ", 3 consumers" in shown
    assert len(shown) < 1_100


def test_on_the_narrowest_terminal_a_row_is_a_block() -> None:
    shown = lines(24, "plan-rebalance", "-g", "bill-svc", "--add", "1", "--section", "queues")
    assert shown[shown.index("broker-b  2") + 1].startswith("    before #")


BRIEF = Section(
    "windows",
    "windows",
    (Column("topic", "topic", quiet=True), Column("row", "row", "number"), Column("before", "before", "clients")),
    tuple((f"topic-{row // 20}", 1000 + row, ("192.0.2.1@1-with-a-long-name",)) for row in range(60)),
    heads=2,
    brief=(3, 19, 20, 25, 41, 42, 59),
    chosen="the worst",
)


@every_case("width", range(20, 133))
def test_of_rows_that_are_left_out_none_is_shown_and_of_the_others_each_once(width: int) -> None:
    shown = on_a_terminal(Report("rmqlb/x", {}, (), (BRIEF,), {"192.0.2.1@1-with-a-long-name": "#0"}), width)
    words = shown.split()
    assert [int(word) for word in words if word in map(str, range(1000, 1060))] == [
        1003,
        1019,
        1020,
        1025,
        1041,
        1042,
        1059,
    ]
    assert " ".join(words).count("windows, the worst") == words.count("windows,") > 0
    assert "and 53 more" in " ".join(words)


@pytest.fixture(scope="module")
def restarted() -> Report:
    """Three topics on four brokers, whose consumers are restarted one after the other."""
    brokers = [f"broker-{name}" for name in "abcd"]
    routes = [
        TopicRouteData(
            topic,
            tuple(QueueData(broker, 4, 4, 6, 0) for broker in brokers),
            tuple(BrokerData("c", broker, {0: f"{broker}:10911"}) for broker in brokers),
        )
        for topic in ("Invoices", "Orders", "Payments")
    ]
    ids = tuple(f"192.0.2.{host}@{host}#1" for host in range(1, 5))
    events = [
        event
        for at_us, client_id in zip(range(10 * SECOND_US, 180 * SECOND_US, 45 * SECOND_US), ids, strict=False)
        for event in (Event("leave", at_us, client_id), Event("join", at_us + 15 * SECOND_US, f"{client_id}0"))
    ]
    scenario = GroupScenario(tuple(events))
    return group_report(simulate_group("order-svc", Members(ids, "AVG"), routes, scenario))


@every_case("width", range(40, 133, 4))
def test_a_simulation_of_several_topics_fits_any_terminal(width: int, restarted: Report) -> None:
    shown = on_a_terminal(restarted, width)
    assert max(map(len, shown.splitlines())) <= width
    (windows,) = (section for section in restarted.sections if section.name == "windows")
    assert len(windows.brief or ()) == 30
    assert f"and {len(windows.rows) - 30} more: --section windows shows all" in as_plain(restarted.only(()))


def test_a_table_of_one_value_or_of_bars_only_keeps_a_column() -> None:
    one = Section("one", "one", (Column("topic", "topic", quiet=True),), (("Orders",),))
    bars = Section("bars", "bars", (Column("share", "share", "bar"),), ((0.5,),))
    shown = on_a_terminal(Report("rmqlb/x", {}, (), (one, bars), {}), 40)
    assert [word for word in shown.split() if "─" not in word] == ["one", "topic", "Orders", "bars", "share", "█" * 10]
