import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from rmqlb.cli.exit_codes import ExitCode
from tests.cli.run import EXAMPLE, changed_example, envelope_of, run
from tests.support.schemas import problems

SOURCE = ("simulate-rebalance", "-s", EXAMPLE)
BASE = (*SOURCE, "--group", "order-svc")
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
    for seconds, messages, error in ((0, 6, "is not earlier than the source"), (60, -1, "offsets run backwards")):
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


def test_the_summary_is_the_sum_of_its_parts() -> None:
    found = data("-g", "*", *RESTART, "--rate", "100", base=SOURCE)
    summary, figures = found["summary"], [group["figures"] for group in found["groups"]]
    totals = [producer["totals"] for producer in found["producers"]]
    assert (summary["groups"], summary["topics"]) == (len(figures), len(totals)) == (3, 2)
    assert summary["queues"] == sum(len(group["queues"]) for group in found["groups"])
    sums = {"queuesWithGap", "queuesWithOverlap", "queuesWithOutage", "queuesUnreadAtEnd", "redelivered"}
    longest = {"longestGapMs", "longestOverlapMs", "longestOutageMs", "unreadMs", "convergenceMs"}
    assert {key: summary[key] for key in sums} == {key: sum(each[key] for each in figures) for key in sums}
    assert {key: summary[key] for key in longest} == {key: max(each[key] for each in figures) for key in longest}
    for key in ("messages", "lost", "retried"):
        assert summary[key] == sum(each[key] for each in totals), key
    assert summary["longestSendMs"] == max(each["longestSendMs"] for each in totals)


def test_producers_are_those_of_simulate_send() -> None:
    groups = ("-g", "order-svc", "-g", "bill-svc", *RESTART, "--rate", "OrderEvents=50", "--set", "round-trip=2ms")
    found = {each["topic"]: each for each in data(*groups, base=SOURCE)["producers"]}
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
