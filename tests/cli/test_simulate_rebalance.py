"""`simulate-rebalance` as it is typed: the examples, the options, the pictures, and one clear line for each mistake."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rmqlb.cli.exit_codes import ExitCode
from tests.cli.run import EXAMPLE, SKEWED, instead, run
from tests.support.mismatches import every_case

BASE = ("simulate-rebalance", "-s", EXAMPLE, "--group", "order-svc")
I0, I1, I2 = (f"192.0.2.2@inst{number}" for number in range(3))
JOIN = ("--event", "join 192.0.2.2@inst3@30s")


def data(*args: str, code: int = 0) -> dict[str, Any]:
    ran = run(*BASE, *args, "-o", "json")
    assert ran.code == code, ran.stderr
    value = json.loads(ran.stdout)
    assert (value["schema"], value["command"]) == ("rmqlb/simulate-rebalance", "simulate-rebalance")
    found: dict[str, Any] = value["data"]
    return found


def test_the_order_in_which_a_cluster_lists_brokers_and_topics_means_nothing(tmp_path: Path) -> None:
    """One seed, one cluster, one answer: also where an event is about all brokers."""
    cluster = json.loads(Path(EXAMPLE).read_text(encoding="utf-8"))
    for sighting in cluster["data"]["topics"]:
        for key in ("brokerDatas", "queueDatas"):
            sighting["route"][key].reverse()
    cluster["data"]["topics"].reverse()
    for group in cluster["data"]["groups"]:
        group["topics"].reverse()
    (other := tmp_path / "other.json").write_text(json.dumps(cluster), encoding="utf-8")
    for events in (("crash #1@30s", "restart-broker broker-b@60s, down 1m"), ("restart-broker *@30s, down 1m",)):
        typed = [word for event in events for word in ("--event", event)]
        figures = []
        for source in (EXAMPLE, str(other)):
            ran = run("simulate-rebalance", "-s", source, "-g", "order-svc", *typed, "--trials", "3", "-o", "json")
            assert ran.code == 0, ran.stderr
            figures.append(json.loads(ran.stdout)["data"])
        assert figures[0] == figures[1]


def test_what_would_never_end_is_one_line_that_says_what_to_do() -> None:
    ran = run(*BASE, *JOIN, "--for", "366d", "--timer", "heartbeat=1ms", "-q")
    assert (ran.code, ran.stdout) == (ExitCode.USAGE, "")
    first, second = ran.stderr.splitlines()
    assert re.fullmatch(
        r"error: the simulation takes more than 30,000,000 steps; it got as far as \d+ ms \[too-many-steps]", first
    )
    assert second == "hint: simulate a shorter time, longer timers, or fewer consumers, brokers and events"


def test_rates_bound_the_messages_that_come_again() -> None:
    known = data("--event", f"crash {I1}@30s", "--rate", "1000")["figures"]["redelivered"]
    assert known > 0
    assert data("--event", f"crash {I1}@30s")["figures"]["redelivered"] is None
    assert data("--event", f"crash {I1}@30s", "--rate", "0")["figures"]["redelivered"] == 0
    assert data("--event", f"crash {I1}@30s", "--rate", "2000")["figures"]["redelivered"] >= known


def earlier(folder: Path, *, seconds: int = 60, messages: int = 6, **changes: object) -> str:
    """The example as it was so many seconds and messages a queue before."""
    document = json.loads(Path(EXAMPLE).read_text(encoding="utf-8"))

    def before(text: str) -> str:
        return (datetime.fromisoformat(text) - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")

    document["source"]["takenAt"] = before(document["source"]["takenAt"])
    for group in document["data"]["groups"]:
        group["seen"]["at"] = before(group["seen"]["at"])
        for queue in group["queues"]:
            queue["brokerOffset"] = max(queue["brokerOffset"] - messages, 0) if messages >= 0 else 10**6
    path = folder / "earlier.json"
    path.write_text(json.dumps(document | changes), encoding="utf-8")
    return str(path)


def test_rates_follow_from_an_earlier_snapshot(tmp_path: Path) -> None:
    crash = ("--event", f"crash {I1}@30s")
    one = data(*crash, "--rates-since", earlier(tmp_path, seconds=1))["figures"]["redelivered"]
    assert one > 0
    assert data(*crash, "--rates-since", earlier(tmp_path, seconds=6))["figures"]["redelivered"] <= one
    overruled = data(*crash, "--rates-since", earlier(tmp_path), "--rate", "0")["figures"]["redelivered"]
    assert overruled == 0


@every_case(
    ("made", "error"),
    [
        ({"seconds": 0}, "is not earlier than the source"),
        ({"seconds": -5}, "is not earlier than the source"),
        ({"messages": -1}, "offsets run backwards"),
    ],
)
def test_an_earlier_snapshot_that_cannot_be_is_refused(made: dict[str, int], error: str, tmp_path: Path) -> None:
    ran = run(*BASE, *JOIN, "--rates-since", earlier(tmp_path, **made))
    assert (ran.code, ran.stdout) == (ExitCode.DATA, "")
    assert error in ran.stderr.splitlines()[0]


def snapshot(**group: object) -> str:
    """A hand-written snapshot of one group on one topic."""
    queues = [{"brokerName": "a", "readQueueNums": 4, "writeQueueNums": 4, "perm": 6}]
    brokers = [{"cluster": "c", "brokerName": "a", "brokerAddrs": {"0": "10.0.0.1:10911"}}]
    topics = [{"topic": "T", "route": {"queueDatas": queues, "brokerDatas": brokers}}]
    groups = [{"group": "g", "clientIds": ["x@1", "y@1"], **group}]
    return json.dumps(
        {"schema": "rmqlb/snapshot", "formatVersion": "1.0", "data": {"topics": topics, "groups": groups}}
    )


def test_a_broadcasting_group_is_simulated_and_a_pop_group_is_not() -> None:
    def piped(event: str, **group: object) -> Any:
        return run("simulate-rebalance", "-s", "-", "-o", "json", "--event", event, stdin=snapshot(**group))

    value = json.loads(piped("crash x@1@10s", messageModel="BROADCASTING").stdout)
    assert value["data"]["scenario"]["broadcasting"] is True
    assert all(queue["intervals"][0]["owners"] == ["x@1", "y@1"] for queue in value["data"]["queues"])
    assert "broadcasting" in [finding["code"] for finding in value["findings"]]
    for ran, error in (
        (piped("crash x@1@10s", consumeType="CONSUME_POP"), "consumes by POP"),
        (piped("join x@10s", clientIds=["h@1@0@2z"]), "look like gRPC clients"),
    ):
        assert (ran.code, error in ran.stderr) == (ExitCode.DATA, True)


def test_the_pictures_are_written_whole(tmp_path: Path) -> None:
    svg, html = tmp_path / "p.svg", tmp_path / "p.html"
    ran = run(*BASE, *JOIN, "--svg", str(svg), "--html", str(html), "-o", "json")
    assert ran.code == 0
    assert json.loads(ran.stdout)["data"]["queues"]
    assert ran.stderr == f"written to {svg}\nwritten to {html}\n"
    assert ET.fromstring(svg.read_text(encoding="utf-8")).tag.endswith("svg")
    assert "<html" in html.read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.html", "p.svg"]
    for option, path in (("--svg", svg), ("--html", html)):
        ran = run(*BASE, *JOIN, option, "-")
        assert (ran.code, ran.stdout) == (0, path.read_text(encoding="utf-8"))


MISTAKES = [
    ((), 2, "nothing happens to the group", "--event 'join 1@30s'"),
    (("--event", "leave 192.0.2.2@inst9@30s"), 2, "it is not in the group then", "did you mean"),
    ((*JOIN, "--for", "10s"), 2, "not within --for 10s", "make it longer"),
    ((*JOIN, "--timer", "rebalance=1s"), 2, "there is no timer rebalance", "did you mean rebalance-"),
    ((*JOIN, "--rate", "Orders=5"), 2, "topic Orders is not simulated", "OrderEvents"),
    ((*JOIN, "--rates-since", "http://x:1/"), 2, "an earlier snapshot is a file", "fetch-routes --to"),
    ((*JOIN, "--rates-since", "none.json"), 4, "cannot read none.json", ""),
    ((*JOIN, "--rates-since", SKEWED), 4, "is the route of one topic", ""),
    ((*JOIN, "--rates-since", EXAMPLE), 4, "is not earlier than the source", "--rates-since the earlier one"),
    ((*JOIN, "--consume-from", "middle"), 2, "write last, first or timestamp", ""),
    ((*JOIN, "--client", "3.2.6"), 2, "clients older than 4.0.0 are not known", ""),
    ((*JOIN, "--latency", "slow"), 2, "--latency slow: not a time", ""),
    ((*JOIN, "--strategy", "AVGE"), 2, "unknown strategy AVGE", "did you mean AVG"),
    ((*JOIN, "--trials", "1"), 2, "--trials 1: not a number from 2", ""),
    ((*JOIN, "--trials", "5", "--trial", "5"), 2, "there are the trials 0 to 4", ""),
    ((*JOIN, "--trial", "-1"), 2, "--trial -1: not a number from 0", ""),
    ((*JOIN, "--fail-on", "lost>0"), 2, "there is no figure lost", ""),
    ((*JOIN, "--fail-on", "total-gap-ms[max]>0"), 2, "is of many trials", "give --trials N"),
    ((*JOIN, "--svg", "-", "--html", "-"), 2, "both write to stdout", ""),
    ((*JOIN, "--group", "order-svx"), 4, "group order-svx is not in", "did you mean order-svc"),
]


@every_case(("args", "code", "error", "hint"), MISTAKES, ids=[" ".join(m[0]) for m in MISTAKES])
def test_a_mistake_is_one_clear_line(args: tuple[str, ...], code: int, error: str, hint: str) -> None:
    ran = run(*instead(BASE, *args))
    lines = ran.stderr.splitlines()
    assert (ran.code, ran.stdout, len(lines) <= 2, lines[0].startswith("error: ")) == (code, "", True, True)
    assert error in lines[0]
    assert hint in " ".join(lines[1:])


EVENTS = st.sampled_from(
    [
        f"leave {I0}@20s",
        f"crash {I1}@20s",
        "host-loss #2@1s",
        "join 1@5s",
        "join x@1@6s, strategy AVG_BY_CIRCLE",
        "leave *@30s",
        "broker-down broker-b@10s-40s",
        "broker-loss broker-*@10s",
        "broker-up broker-c:4@3s",
        "route-change Skewed:broker-b=9@8s",
        "rolling-restart *@0s, every 5s, down 2s, at once 2",
        "strategy-change CONSISTENT_HASH@2s, every 3s, down 1s, by crash",
        "pull-stall #0@2s",
        "leave nobody@4s",
        "leave @",
    ]
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(EVENTS, min_size=1, max_size=3), st.booleans(), st.sampled_from(["5.5.0", "5.1.0", "4.9.7"]))
def test_any_events_are_a_simulation_or_one_line(texts: list[str], orderly: bool, client: str) -> None:
    told = [word for text in texts for word in ("--event", text)]
    flags = ["--orderly"] if orderly else []
    ran = run(*BASE, *told, *flags, "--client", client, "--for", "45s", "-o", "json")
    if ran.code == 0:
        for queue in json.loads(ran.stdout)["data"]["queues"]:
            times = [(each["fromMs"], each["toMs"]) for each in queue["intervals"]]
            assert (times[0][0], times[-1][1]) == (0, 45_000)
            assert [end for _, end in times[:-1]] == [start for start, _ in times[1:]]
    else:
        assert (ran.code, ran.stdout) == (ExitCode.USAGE, "")
        assert json.loads(ran.stderr)["error"]["message"].startswith("--event ")


def test_an_outage_is_counted_and_met() -> None:
    """The broker is down for 4m30s: nothing less may be said, and a bound on it is met."""
    down = ("--event", "broker-down broker-b@30s-5m")
    found = data(*down)["figures"]
    assert (found["longestOutageMs"], found["queuesWithOutage"]) == (270_000, 11)
    assert found["totalOutageMs"] == 11 * 270_000
    assert found["unreadMs"] > 270_000
    ran = run(*BASE, *down, "--trials", "3", "--fail-on", "longest-outage-ms[p50]>269999", "-o", "json")
    assert ran.code == ExitCode.CONDITION
    assert json.loads(ran.stdout)["data"]["trials"]["figures"]["longestOutageMs"]["max"] == 270_000
