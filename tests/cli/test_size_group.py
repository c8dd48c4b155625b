from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.mismatches import every_case
from tests.support.replay_remoting import at, cluster

from .run import EXAMPLE, ROOT, SKEWED, data_of, run

LATER = str(ROOT / "examples" / "cluster-later.json")
FAULTS = str(ROOT / "examples" / "faults.json")
ASKED = ("size-group", "-s", EXAMPLE, "-g", "order-svc")


def changed(tmp_path: Path, change: Callable[[Any], None]) -> str:
    cluster = json.loads(Path(EXAMPLE).read_text(encoding="utf-8"))
    change(cluster["data"])
    for each in cluster["data"]["groups"]:
        each["queues"] = []
    (path := tmp_path / "changed.json").write_text(json.dumps(cluster), encoding="utf-8")
    return str(path)


def size(*more: str, of: tuple[str, ...] = ASKED) -> Any:
    return data_of(*of, *more)


@every_case(
    ("sizes", "condition", "code"),
    [
        ("2..9 --max-imbalance 1", "unsatisfied", 3),
        ("3..9", "unsatisfied", 0),
        ("3..9", "consumers>2", 3),
        ("3..9", "unsatisfied>0", 0),
    ],
)
def test_conditions_are_about_the_answer(sizes: str, condition: str, code: int) -> None:
    ran = run(*ASKED, "--consumers", *sizes.split(), "--fail-on", condition, "-o", "json")
    assert (ran.code, f"condition met: {condition}" in ran.stderr) == (code, code == 3)


@every_case(
    ("options", "expected"),
    [
        ("--max-imbalance 1.1 --consumers 5..16", "9 consumers satisfy all; 8 do not: imbalance 1.28 > 1.1"),
        (
            "--no-idle --survive-broker --consumers 9..9",
            "none of 9 consumers satisfies all; 9 consumers come nearest, but with broker broker-a lost 1 idle consumer",
        ),
    ],
)
def test_the_answer_says_what_the_next_size_breaks(options: str, expected: str) -> None:
    assert run(*ASKED, *options.split(), "-o", "plain").stdout.startswith(f"order-svc: {expected}\n")


def test_without_limits_the_usual_ones_are_asked_for_and_it_is_said() -> None:
    ran = run(*ASKED, "--consumers", "3..9")
    assert "[assumed-limits]" in ran.stderr
    limits = size("--consumers", "3..9")["limits"]
    assert (limits["maxImbalance"], limits["noIdle"], limits["maxUtilisation"]) == (1.1, True, None)
    assert size("--survive", "1", "--consumers", "3..9")["limits"]["maxImbalance"] == 1.1
    assert size("--no-idle", "--consumers", "3..9")["limits"]["maxImbalance"] is None


def test_the_usual_sizes_go_up_to_the_queues_of_the_largest_topic() -> None:
    assert size()["curve"][-1]["consumers"] == 16
    assert size("--survive", "2")["curve"][-1]["consumers"] == 18
    assert size("--queues-per-broker", "4..9")["curve"][-1]["consumers"] == 18


def test_rates_and_a_consume_time_say_how_busy_consumers_are() -> None:
    data = size("--rate", "OrderEvents=800", "--rate", "Skewed=90", "--consume-time", "40ms", "--threads", "16")
    assert data["limits"]["maxUtilisation"] == 0.8
    assert data["threads"] == 16
    assert [(each["ratePerSecond"], each["consumeMs"]) for each in data["topics"]] == [(800, 40), (90, 40)]
    three = data["curve"][2]
    # The first of 3 consumers has 6 of 16 queues with 50 messages per second, and 3 of 9 with 10.
    assert three["utilisation"] == pytest.approx((6 * 50 + 3 * 10) * 0.04 / 16)
    assert data["consumers"] == 4


def test_two_snapshots_say_the_rates() -> None:
    later = ("size-group", "-s", LATER, "-g", "order-svc")
    data = size("--rates-since", EXAMPLE, "--consume-time", "1s", of=later)
    rates = {each["topic"]: each["ratePerSecond"] for each in data["topics"]}
    assert all(rate >= 0 for rate in rates.values())
    assert sum(rates.values()) > 0
    assert size("--rates-since", EXAMPLE, "--rate", "Skewed=7", "--consume-time", "1s", of=later)["topics"][1][
        "ratePerSecond"
    ] == pytest.approx(7)


def test_consumers_report_how_long_they_take() -> None:
    of = ("size-group", "-s", FAULTS, "-g", "stock-svc")
    data = size("--rate", "10", of=of)
    assert all(each["consumeMs"] > 0 for each in data["topics"])


def test_a_group_that_does_not_run_is_sized_by_its_topics() -> None:
    data = size("--consumers", "1..9", of=("size-group", "-s", SKEWED, "-t", "Skewed", "-g", "new-svc"))
    assert (data["group"], data["replicaCounts"]["allowed"]) == ("new-svc", [1, 3, 9])
    new = size(of=("size-group", "-s", EXAMPLE, "-t", "Skewed", "-g", "new-svc"))
    assert (new["replicaCounts"]["allowed"], new["consumersNow"]) == ([1, 3, 9], None)


def test_of_a_running_cluster_a_new_group_is_sized_by_its_topics_alone() -> None:
    with cluster() as servers:
        source = ("size-group", *at(servers))
        new = size(of=(*source, "-t", "OrderEvents"))
        assert (new["group"], new["consumersNow"], new["replicaCounts"]["allowed"]) == (None, None, [1, 2, 4, 8, 16])
        nothing = run(*source, "--consumers", "2..9")
    assert nothing.stderr.splitlines() == [
        "error: which group? [which-group]",
        "hint: name it with --group; of a group that does not run yet name only its topics, with --topic",
    ]


def test_an_orderly_group_has_one_thread_for_each_queue() -> None:
    work = ("--rate", "OrderEvents=800", "--rate", "Skewed=90", "--consume-time", "40ms")
    assert size(*work)["orderly"] is False
    data = size(*work, "--orderly")
    # A queue of OrderEvents alone needs 50 x 0.04 s of its thread per second.
    assert (data["orderly"], data["consumers"], data["curve"][-1]["utilisation"]) == (True, None, 2.0)
    assert "of which an orderly group has 1 for each queue" in run(*ASKED, *work, "--orderly").stdout


def test_a_topic_that_is_lost_with_its_broker_is_found(tmp_path: Path) -> None:
    def alone(data: Any) -> None:
        (skewed,) = (each for each in data["topics"] if each["topic"] == "Skewed")
        del skewed["route"]["queueDatas"][1:]

    limits = ("-g", "order-svc", "--no-idle", "--survive-broker")
    assert "topic Skewed is on one broker only" in run("size-group", "-s", changed(tmp_path, alone), *limits).stderr
    assert "one-broker" not in run(*ASKED, *limits[2:]).stderr


def test_ids_that_decide_are_tried_and_the_share_is_told() -> None:
    more = ("--strategy", "CONSISTENT_HASH", "--max-imbalance", "2", "--consumers", "5..6")
    strict, lenient = size(*more), size(*more, "--share", "90%")
    assert (strict["everyOrder"], strict["trials"], strict["consumers"], lenient["consumers"]) == (False, 100, None, 5)
    assert "holds for 90.0% of 100 sets of client IDs" in run(*ASKED, *more, "--share", "90%").stdout
    assert "now 3 consumers" not in run(*ASKED, "--strategy", "CONSISTENT_HASH", "--no-idle").stdout
    assert "now 3 consumers" in run(*ASKED, "--no-idle").stdout
    assert size(*more, "--trials", "7", "--seed", "2")["trials"] == 7


def test_all_strategies_are_those_that_the_library_has() -> None:
    compared = {
        each["strategy"] for each in size("--strategy", "all", "--sdk", "cpp", "--consumers", "3")["candidates"]
    }
    assert compared == {"AVG"}
    data = size("--strategy", "all", "--sdk", "go", "--consumers", "3")
    assert (data["sdk"], len(data["candidates"])) == ("go", 3)
    assert "AVG of go consumers, 25 queues" in run(*ASKED, "--sdk", "go").stdout


def unread_topic(tmp_path: Path, group: str) -> tuple[str, ...]:
    def unread(data: Any) -> None:
        (events,) = (each for each in data["topics"] if each["topic"] == "OrderEvents")
        events["route"]["queueDatas"] = [{**each, "readQueueNums": 0} for each in events["route"]["queueDatas"]]

    (place := tmp_path / group).mkdir(exist_ok=True)
    return "size-group", "-s", changed(place, unread), "-g", group


def test_the_rate_of_a_topic_without_read_queues_goes_to_the_queues_that_it_gets(tmp_path: Path) -> None:
    """100 messages a second of 1 s each, on two topics alike: 100 threads at 80 % are 125, and a consumer has 8."""
    work = ("--rate", "OrderEvents=50", "--rate", "Skewed=50", "--consume-time", "1s", "--threads", "8")
    sizes = ("--queues-per-broker", "16", "--consumers", "1..40")
    unread = size(*work, *sizes, of=unread_topic(tmp_path, "order-svc"))
    assert unread["consumers"] == size(*work, *sizes)["consumers"] == 16
    topics = {each["topic"]: (each["queues"], each["queuesNow"], each["ratePerSecond"]) for each in unread["topics"]}
    assert topics == {"OrderEvents": (32, 0, 50.0), "Skewed": (32, 9, 50.0)}


def test_a_topic_that_gets_no_queue_brings_no_work(tmp_path: Path) -> None:
    of = unread_topic(tmp_path, "audit-svc")
    ran = run(*of, "--rate", "OrderEvents=50", "--consume-time", "1s")
    assert (ran.code, "no readable queue in OrderEvents" in ran.stderr) == (4, True)
    assert "--queues-per-broker" in ran.stderr
    ran = run(*of, "--rate", "50")
    assert (ran.code, "hint: say it: --consume-time 40ms" in ran.stderr) == (4, True)
    ran = run(*unread_topic(tmp_path, "order-svc"), "--rate", "OrderEvents=50", "--consume-time", "1s")
    assert (ran.code, "--rate Skewed=R" in ran.stderr) == (4, True)


def test_differing_subscriptions_are_those_of_the_plan(tmp_path: Path) -> None:
    """One consumer of three does not read Skewed: the plan leaves its share unassigned, and so does the size."""

    def mixed(data: Any) -> None:
        (group,) = (each for each in data["groups"] if each["group"] == "order-svc")
        (first,) = (each for each in group["reports"] if each["clientId"].endswith("inst0"))
        first["topics"].remove("Skewed")

    path = changed(tmp_path, mixed)
    found = size("--consumers", "1..6", of=("size-group", "-s", path, "-g", "order-svc"))
    ran = run("plan-rebalance", "-s", path, "-g", "order-svc", "--scale-to", "3", "-o", "json")
    planned = json.loads(ran.stdout)["data"]["summary"]["unassigned"]
    assert found["curve"][2]["unassigned"] == planned > 0
    shown = run("size-group", "-s", path, "-g", "order-svc", "--consumers", "1..6", "-o", "plain").stdout
    assert f"now 3 consumers, which do not: {planned} queues unassigned" in shown
    assert "consumers subscribe to different topics" in shown
