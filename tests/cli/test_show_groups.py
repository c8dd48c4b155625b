from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rmqlb.remoting.codes import RequestCode
from tests.support import replay_dashboard
from tests.support.replay_remoting import Replay, at, cluster, refusing

from .run import EXAMPLE, ROOT, Ran, error_of, run

FAULTS = str(ROOT / "examples" / "four-groups.yaml")


def groups(*args: str) -> Ran:
    return run("show-groups", *args)


def data(ran: Ran) -> Any:
    return json.loads(ran.stdout)["data"]


def names(*args: str) -> list[str]:
    return [each["group"] for each in data(groups("-s", FAULTS, "-o", "json", *args))["groups"]]


@pytest.fixture
def brokers() -> Iterator[tuple[Replay, ...]]:
    with cluster(Replay(broker="b0"), Replay(broker="b1")) as running:
        yield running


def native(running: tuple[Replay, ...]) -> list[str]:
    return [*at(running), "--source-retries", "0"]


def test_globs_and_severities_choose_and_the_verdict_counts_what_was_looked_at() -> None:
    assert names() == ["dup-svc", "mix-svc", "slow-svc", "calm-svc"]
    assert names("-g", "[ds]*", "-g", "calm-svc") == ["dup-svc", "slow-svc", "calm-svc"]
    assert names("--severity", "info") == ["dup-svc", "mix-svc"]
    assert groups("-s", FAULTS, "--severity", "error", "-g", "*m*").stdout.splitlines()[0] == (
        "2 groups: 1 with an error, 1 in order; 1 shown"
    )


def test_a_glob_and_a_name_that_match_nothing_are_errors() -> None:
    for more in ((), ("-g", "*-svc")):
        ran = groups("-s", FAULTS, "-g", "pay-*", *more)
        assert (ran.code, ran.stdout) == (4, "")
        assert ran.stderr.splitlines() == [
            f"error: --group pay-*: it matches no group of {FAULTS} [group-not-found]",
            "hint: there are the groups calm-svc, dup-svc, mix-svc, slow-svc",
        ]
    assert error_of(groups("-s", FAULTS, "-g", "pay").stderr).code == "group-not-found"


def test_conditions_end_in_exit_code_3_and_unknown_figures_in_4() -> None:
    ran = groups("-s", FAULTS, "--fail-on", "groups-with-errors>0", "--fail-on", "lag[calm-svc]>0", "-o", "json")
    assert (ran.code, ran.stderr) == (3, "condition met: groups-with-errors>0 (it is 2)\n")
    assert [each["met"] for each in data(ran)["conditions"]] == [True, False]
    judged_by_all = groups("-s", FAULTS, "--severity", "error", "--fail-on", "lag[slow-svc]>0")
    assert judged_by_all.code == 3
    assert groups("-s", FAULTS, "--fail-on", "groups-with-errors>2").code == 0
    unknown = Path(FAULTS).read_text(encoding="utf-8").replace("consumerOffset: 1000", "lastTimestamp: 0")
    ran = run("show-groups", "-s", "-", "--fail-on", "lag>5000", stdin=unknown)
    assert (ran.code, error_of(ran.stderr).code) == (4, "figure-not-seen")


def test_a_running_cluster_is_read_with_so_many_requests_and_no_more(brokers: tuple[Replay, ...]) -> None:
    ran = groups(*native(brokers), "-o", "json")
    assert ran.code == 0, ran.stderr
    found = {each["group"]: each for each in data(ran)["groups"]}
    assert set(found) == {"order-svc", "audit-svc", "bill-svc"}
    assert found["order-svc"]["consumers"] == 3
    asked = Counter(request.code for replay in brokers for request in replay.requests)
    consumers = sum(each["consumers"] or 0 for each in found.values())
    assert asked[RequestCode.GET_CONSUMER_CONNECTION_LIST] <= 2 * len(found)
    assert asked[RequestCode.GET_CONSUME_STATS] <= 2 * len(found)
    assert asked[RequestCode.GET_CONSUMER_RUNNING_INFO] <= consumers
    assert asked[RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG] == 2


def test_a_broker_that_refuses_makes_findings_and_unknown_figures(brokers: tuple[Replay, ...]) -> None:
    for replay in brokers:
        replay.faults[RequestCode.GET_CONSUMER_RUNNING_INFO] = refusing(1, "busy")
        replay.faults[RequestCode.GET_CONSUME_STATS] = refusing(1, "busy")
    ran = groups(*native(brokers), "-o", "json", "-g", "order-svc")
    (order,) = data(ran)["groups"]
    assert (ran.code, order["status"], order["lag"], order["lagAtLeast"]) == (0, "warning", None, None)
    assert {finding["code"] for finding in order["findings"]} == {"unread", "no-route", "assumed-strategy"}


def test_a_dashboard_is_read_too() -> None:
    """The recorded list of groups is older than the groups; a name in full is asked for all the same."""
    with replay_dashboard.dashboard() as server:
        listed = groups("-s", server.url, "-o", "json", "-g", "*-svc")
        named = groups("-s", server.url, "-o", "json", "-g", "order-svc")
    assert (listed.code, json.loads(listed.stderr)["error"]["code"]) == (4, "group-not-found")
    (order,) = data(named)["groups"]
    assert (order["group"], order["consumers"], order["queues"], order["unassigned"]) == ("order-svc", 3, 25, 0)


def consumers(*args: str) -> Any:
    return data(run("show-consumers", *args, "-o", "json"))


def test_findings_are_in_the_result_for_people_and_in_the_envelope_for_programs() -> None:
    ran = run("show-consumers", "-s", FAULTS, "-g", "mix-svc", "-o", "table")
    assert (ran.stderr, "\n✗ mixed-strategies  " in ran.stdout) == ("", True)
    value = json.loads(run("show-consumers", "-s", FAULTS, "-g", "mix-svc", "-o", "json").stdout)
    assert [finding["code"] for finding in value["findings"]] == ["mixed-strategies"]
    (finding,) = value["data"]["findings"]
    assert (finding["code"], len(finding["queues"]), finding["explains"]["fixesAll"]) == ("mixed-strategies", 4, True)
    assert value["data"]["consumers"][1]["findings"] == ["mixed-strategies"]


def test_consumers_of_a_running_cluster(brokers: tuple[Replay, ...]) -> None:
    rows = consumers(*native(brokers), "-g", "order-svc")["consumers"]
    assert [row["clientId"] for row in rows] == [f"192.0.2.2@inst{number}" for number in range(3)]
    assert {(row["language"], len(row["addresses"])) for row in rows} == {("JAVA", 2)}


def test_a_source_without_a_group() -> None:
    ran = run("show-consumers", "-s", str(ROOT / "examples" / "topicRoute-Skewed.txt"))
    assert (ran.code, error_of(ran.stderr).code) == (4, "topic-not-named")
    routes = run("fetch-routes", "-s", EXAMPLE, "-g", "none*").stdout
    ran = run("show-consumers", "-s", "-", stdin=routes)
    assert (ran.code, error_of(ran.stderr).code) == (4, "consumers-unknown")
