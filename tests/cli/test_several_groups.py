import csv
import io
import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from rmqlb.cli.exit_codes import ExitCode
from tests.cli.run import EXAMPLE, ROOT, changed_example, data_of, envelope_of, run
from tests.support.builders import snapshot_text
from tests.support.mismatches import every_case
from tests.support.schemas import problems

SOURCE = ("-s", EXAMPLE)
FAULTS = ("-s", str(ROOT / "examples" / "four-groups.yaml"))
PLAN, SHOW = ("plan-rebalance", "--add", "1"), ("show-owners", "--strategy", "AVG")
SIMULATE = ("simulate-rebalance", "--event", "leave #0@10s")
GROUPS = ("order-svc", "bill-svc")
BOTH = ("-g", "order-svc", "-g", "bill-svc")
CONSUMERS, SIZE = ("show-consumers",), ("size-group",)
every_command = every_case("command", [PLAN, SHOW, SIMULATE, CONSUMERS, SIZE], ids=lambda command: command[0])


@every_command
def test_each_group_is_done_as_if_it_were_alone_and_once(command: tuple[str, ...]) -> None:
    several = envelope_of(*command, *SOURCE, *BOTH)
    alone = [envelope_of(*command, *SOURCE, "-g", group) for group in GROUPS]
    assert several["schema"] == f"{alone[0]['schema']}-of-groups"
    assert several["data"]["groups"] == [one["data"] for one in alone]
    assert several["data"]["summary"]["groups"] == 2
    assert envelope_of(*command, *SOURCE, *BOTH, "-g", "order-svc") == several
    assert envelope_of(*command, *SOURCE, "-g", "order-svc", "-g", "order-svc") == alone[0]


@every_case("command", [PLAN, SHOW, CONSUMERS, SIZE])
def test_a_pattern_is_the_groups_that_it_matches_in_the_order_of_their_names(command: tuple[str, ...]) -> None:
    named = envelope_of(*command, *FAULTS, "-g", "calm-svc", "-g", "mix-svc", "-g", "slow-svc")
    for patterns in (("[cms]*-svc",), ("calm-svc", "mix*", "slow-svc", "m?x-svc")):
        given = [part for pattern in patterns for part in ("-g", pattern)]
        assert envelope_of(*command, *FAULTS, *given) == named
    one = envelope_of(*command, *FAULTS, "-g", "cal*")
    assert (one["schema"].endswith("-of-groups"), one["data"]["summary"]["groups"]) == (True, 1)


def test_the_worst_group_is_first_on_a_screen() -> None:
    line = ("show-owners", *FAULTS, "-g", "*", "--strategy", "AVG")
    lines = run(*line, "-o", "table").stdout
    assert lines.startswith("4 groups: 6 of 32 queues are unassigned; 2 of 32 queues have duplicate owners;")
    rows = [row.split()[:2] for row in lines.split("\ngroups")[1].splitlines()[3:7]]
    assert rows == [["✗", "dup-svc"], ["✗", "mix-svc"], ["✓", "calm-svc"], ["✓", "slow-svc"]]
    data = envelope_of(*line)["data"]
    assert [group["group"] for group in data["groups"]] == ["calm-svc", "dup-svc", "mix-svc", "slow-svc"]
    assert data["summary"]["observedUnassigned"] == 6


@every_case("command", [PLAN, SHOW, CONSUMERS, SIZE])
def test_a_screen_has_a_line_per_group_and_all_tables_on_request(command: tuple[str, ...]) -> None:
    line = (*command, *SOURCE, "-g", "*-svc", "-o", "table")
    for width in (80, 100, 120):
        lines = run(*line, env={"COLUMNS": str(width)}).stdout.splitlines()
        assert (len(lines) <= 40, max(map(len, lines)) <= width) == (True, True)
    whole = run(*line, "--all").stdout
    for group in ("order-svc", "bill-svc", "audit-svc"):
        assert any(f"\n{group}: {title}" in whole for title in ("queues", "owners", "consumers", "sizes under"))
        assert re.search(rf"^ *{group}\b.*: |^ *{group} has ", whole, re.MULTILINE)


MANY = (PLAN, SHOW, SIMULATE)
TABLES: Any = [(command, name) for command in MANY for name in ("queues", "consumers", "summary")]
TABLES += [(CONSUMERS, "consumers"), (SIZE, "curve")]


@every_case(("command", "section"), TABLES)
def test_a_table_of_a_program_has_the_groups_in_its_first_column(command: tuple[str, ...], section: str) -> None:
    def rows(*groups: str) -> list[list[str]]:
        text = run(*command, *SOURCE, *groups, "--section", section, "-o", "csv").stdout
        return list(csv.reader(io.StringIO(text, newline="")))

    several, alone = rows(*BOTH), {group: rows("-g", group) for group in GROUPS}
    assert several[0] == ["group", *alone["order-svc"][0]]
    assert several[1:] == [[group, *row] for group in GROUPS for row in alone[group][1:]]


def test_an_earlier_snapshot_from_stdin_is_of_all_groups() -> None:
    before, later = Path(EXAMPLE), ("-s", str(ROOT / "examples" / "cluster-later.json"))
    command = ("size-group", *later, "-g", "order-svc", "-g", "audit*", "--consume-time", "4ms", "--earlier")
    assert data_of(*command, "-", stdin=before.read_text()) == data_of(*command, EXAMPLE)
    plan = (*PLAN, *later, "-g", "order-svc", "--timeline", "--set", "consume-time=4ms", "--set")
    drawn = run(*plan, "earlier=-", stdin=before.read_text())
    assert (drawn.code, "\nlag of the group from " in drawn.stdout) == (0, True)


@every_case("command", [PLAN, SHOW[:1], (*SIMULATE[:2], "join z@10s")], ids=" ".join)
@every_case("topics", [["T"], ["%RETRY%g", "T"], None])
@every_case("named", ["", "-t T", "-t T -t %RETRY%g", "-t T -g g"])
def test_the_retry_topic_is_always_taken(command: tuple[str, ...], topics: list[str] | None, named: str) -> None:
    def shown(*routes: str) -> tuple[set[str], list[str]]:
        text = snapshot_text(*routes, clientIds=["a@1", "b@1"], topics=topics)
        document = envelope_of(*command, "--include-retry", "-s", "-", *options, stdin=text)
        rows = document["data"]["topics" if command[0] == PLAN[0] else "queues"]
        return {row["topic"] for row in rows}, [finding["code"] for finding in document["findings"]]

    options = named.split()
    found, codes = shown("%RETRY%g", "T")
    assert (found, "not-subscribed" in codes) == ({"%RETRY%g", "T"}, False)
    if topics is not None:
        options = options[:2]
        found, codes = shown("T")
        assert (found, codes.count("no-route")) == ({"T"}, 1)


OF_EXAMPLE = ("simulate-rebalance", "-s", EXAMPLE)
BASE = (*OF_EXAMPLE, "--group", "order-svc")
JOIN = ("--event", "join 192.0.2.2@inst3@30s")
CRASH = ("--event", "crash 192.0.2.2@inst1@30s")
RESTART = ("--event", "restart-broker broker-b@30s, down 1m")


def data(*args: str, base: tuple[str, ...] = BASE) -> Any:
    document = envelope_of(*base, *args)
    assert not problems(document)
    return document["data"]


def test_the_order_in_which_a_cluster_lists_brokers_and_topics_means_nothing(tmp_path: Path) -> None:
    def reverse(document: Any) -> None:
        for sighting in document["data"]["topics"]:
            sighting["route"]["brokerDatas"].reverse()
            sighting["route"]["queueDatas"].reverse()
        for topics in (document["data"]["topics"], *(group["topics"] for group in document["data"]["groups"])):
            topics.reverse()

    other = ("simulate-rebalance", "-s", changed_example(tmp_path, reverse), "-g", "order-svc")
    for events in (("--event", "crash #1@30s", *RESTART), ("--event", "restart-broker *@30s, down 1m")):
        assert data(*events, "--trials", "3") == data(*events, "--trials", "3", base=other)


def earlier(folder: Path, seconds: int = 60, messages: int = 6) -> str:
    def before(text: str) -> str:
        return (datetime.fromisoformat(text) - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")

    def go_back(document: Any) -> None:
        document["source"]["takenAt"] = before(document["source"]["takenAt"])
        for group in document["data"]["groups"]:
            group["seen"]["at"] = before(group["seen"]["at"])
            for queue in group["queues"]:
                queue["brokerOffset"] = max(queue["brokerOffset"] - messages, 0) if messages >= 0 else 10**6

    return changed_example(folder, go_back)


def test_rates_follow_from_an_earlier_snapshot(tmp_path: Path) -> None:
    one, six, overruled = (
        data(*CRASH, "--set", f"earlier={earlier(tmp_path, seconds)}", *more)["figures"]["redelivered"]
        for seconds, more in ((1, ()), (6, ()), (60, ("--rate", "0")))
    )
    assert one >= six > overruled == 0
    for seconds, messages, error in ((0, 6, "is not earlier than the source"), (60, -1, "offsets went back")):
        ran = run(*BASE, *JOIN, "--set", f"earlier={earlier(tmp_path, seconds, messages)}")
        assert (ran.code, ran.stdout) == (ExitCode.DATA, "")
        assert error in ran.stderr.splitlines()[0]


def test_the_pictures_are_written_whole(tmp_path: Path) -> None:
    svg, html = tmp_path / "p.svg", tmp_path / "p.html"
    ran = run(*BASE, *JOIN, "--svg", str(svg), "--html", str(html), "-o", "json")
    assert (ran.code, ran.stderr) == (0, f"written to {svg}\nwritten to {html}\n")
    assert json.loads(ran.stdout)["data"]["queues"]
    assert ET.fromstring(svg.read_text(encoding="utf-8")).tag.endswith("svg")
    assert "<html" in html.read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.html", "p.svg"]
    for option, path in (("--svg", svg), ("--html", html)):
        ran = run(*BASE, *JOIN, option, "-")
        assert (ran.code, ran.stdout) == (0, path.read_text(encoding="utf-8"))


# Several groups, and the producers of their topics.


def test_producers_are_those_of_simulate_send() -> None:
    groups = ("-g", "order-svc", "-g", "bill-svc", *RESTART, "--rate", "OrderEvents=50", "--set", "round-trip=2ms")
    found = {each["topic"]: each for each in data(*groups, base=OF_EXAMPLE)["producers"]}
    assert found.keys() == {"OrderEvents", "Skewed"}
    for topic, rate in (("OrderEvents", ("--rate", "50")), ("Skewed", ())):
        fail = ("--topic", topic, "--fail", "broker-b@30s-90s", *rate, "--round-trip", "2ms")
        alone = data(*fail, base=("simulate-send", "-s", EXAMPLE))
        same = ("scenario", "totals", "brokers", "failures", "timeline")
        assert {key: found[topic][key] for key in same} == {key: alone[key] for key in same}


def test_a_group_that_is_not_on_the_broker_is_not_affected(tmp_path: Path) -> None:
    """bill-svc reads another topic, on other brokers; no group reads a third one."""

    def two_clusters(document: Any) -> None:
        (skewed,) = (each for each in document["data"]["topics"] if each["topic"] == "Skewed")
        text, groups = json.dumps(skewed), document["data"]["groups"]
        moved = text.replace("broker-", "other-").replace("Skewed", "Bills")
        document["data"]["topics"] += [json.loads(moved), json.loads(text.replace("Skewed", "Unread"))]
        place = next(place for place, group in enumerate(groups) if group["group"] == "bill-svc")
        groups[place] = json.loads(json.dumps(groups[place]).replace("broker-", "other-").replace("Skewed", "Bills"))

    source = ("simulate-rebalance", "-s", changed_example(tmp_path, two_clusters), "-g", "*", *RESTART)
    found = data(base=source)
    bills = next(group for group in found["groups"] if group["group"] == "bill-svc")
    assert (bills["events"], bills["figures"]["convergenceMs"], bills["figures"]["unreadMs"]) == ([], 0, 0)
    assert (found["summary"]["groups"], found["summary"]["groupsAffected"]) == (3, 2)
    assert [each["topic"] for each in found["producers"]] == ["OrderEvents", "Skewed", "Unread"]
    lines = run(*source, "-o", "table").stdout.splitlines()
    assert lines[0].startswith("restart-broker broker-b@30s, down 1m: 2 of 3 groups affected; ")
    assert next(line for line in lines if "bill-svc" in line).startswith("✓")
