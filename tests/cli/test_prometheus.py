"""`-o prometheus` of the commands that have it: the same figures as their JSON."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.model.policy import GROUP
from tests.support.openmetrics import Labels, Metrics, read_metrics

from .run import EXAMPLE, ROOT, run

FAULTS = str(ROOT / "examples" / "four-groups.yaml")
POLICY = str(ROOT / "examples" / "policy.yaml")
CHECK = ("check", "-p", POLICY, "-s", EXAMPLE, "--today", "2026-11-21")
FIGURES = {
    "consumers": "consumers",
    "processes": "processes",
    "queues": "queues",
    "group_lag": "lag",
    "group_lag_at_least": "lagAtLeast",
    "unassigned_queues": "unassigned",
    "queues_with_duplicate_owners": "duplicateOwners",
    "idle_consumers": "idle",
    "duplicate_client_ids": "duplicateClientIds",
    "mismatches": "mismatches",
    "imbalance": "imbalance",
}
UNDER = {
    "strategy_unassigned_queues": "unassigned",
    "strategy_queues_with_duplicate_owners": "duplicateOwners",
    "strategy_idle_consumers": "idle",
    "strategy_imbalance": "imbalance",
    "strategy_mismatches": "mismatches",
}


def both(*line: str, code: int = ExitCode.OK) -> tuple[Any, Metrics]:
    """The envelope of the JSON, and the metrics by their names without the prefix."""
    ran = {form: run(*line, "-o", form) for form in ("json", "prometheus")}
    assert {each.code for each in ran.values()} == {code}
    found = read_metrics(ran["prometheus"].stdout)
    return json.loads(ran["json"].stdout), {name.removeprefix("rocketmq_lb_"): own for name, own in found.items()}


def by(own: dict[Labels, float], *labels: str) -> dict[tuple[str | None, ...], float]:
    """Sums by some of the labels."""
    sums: Counter[tuple[str | None, ...]] = Counter()
    for key, value in own.items():
        sums[tuple(dict(key).get(label) for label in labels)] += value  # type: ignore[assignment]
    return dict(sums)


def known(values: dict[Any, Any]) -> dict[Any, Any]:
    return {key: value for key, value in values.items() if value is not None}


@pytest.mark.parametrize("source", [EXAMPLE, FAULTS])
def test_each_figure_of_a_group_is_that_of_the_json(source: str) -> None:
    envelope, found = both("show-groups", "-s", source)
    lines = envelope["data"]["groups"]
    for name, key in FIGURES.items():
        assert by(found[name], "group") == known({(line["group"],): line[key] for line in lines}), name
    status = {(line["group"], line["status"]): 1 for line in lines}
    assert {key: value for key, value in by(found["group_status"], "group", "status").items() if value} == status
    summary = envelope["data"]["summary"]
    assert by(found["groups"]) == {(): summary["groups"]}
    assert by(found["groups"], "status")[("inOrder",)] == summary["inOrder"]
    for name, key in (("group_lag", "lag"), ("unassigned_queues", "unassigned"), ("mismatches", "mismatches")):
        assert by(found[name]) == {(): summary[key]}


def test_findings_are_counted_as_the_json_has_them() -> None:
    envelope, found = both("show-groups", "-s", FAULTS)
    told = Counter(
        (line["group"], one["code"], one["severity"]) for line in envelope["data"]["groups"] for one in line["findings"]
    )
    assert told
    assert by(found["findings"], "group", "code", "severity") == told
    assert by(found["findings"], "command") == {("show-groups",): told.total()}
    assert by(found["findings"], "cluster").keys() == {("c1",)}


@pytest.mark.parametrize("chosen", [("-g", "dup-svc"), ("--all-groups",)])
def test_a_diagnosis_is_counted_as_the_json_has_it(chosen: tuple[str, ...]) -> None:
    envelope, found = both("diagnose", "-s", FAULTS, *chosen)
    diagnoses = envelope["data"].get("groups", [envelope["data"]])
    told = Counter((each["group"], one["code"]) for each in diagnoses for one in each["findings"])
    assert told
    assert by(found["findings"], "group", "code") == told
    outcomes = {key: value for key, value in by(found["diagnosis_outcome"], "group", "outcome").items() if value}
    assert outcomes == {(each["group"], each["outcome"]): 1 for each in diagnoses}
    assert by(found["diagnosis_undecided_rules"], "group") == {(d["group"],): len(d["unknown"]) for d in diagnoses}
    assert by(found["diagnosis_undecided_rules"], "cluster").keys() == {("c1",)}


@pytest.mark.parametrize("groups", [("order-svc",), ("order-svc", "bill-svc", "audit-svc")])
def test_each_queue_is_that_of_the_json(groups: tuple[str, ...]) -> None:
    chosen = [part for group in groups for part in ("-g", group)]
    envelope, found = both("show-owners", "-s", EXAMPLE, *chosen)
    reports = envelope["data"]["groups"] if len(groups) > 1 else [envelope["data"]]
    queues = {
        (report["group"], queue["topic"], queue["brokerName"], str(queue["queueId"])): queue
        for report in reports
        for queue in report["queues"]
    }
    labels = ("group", "topic", "broker", "queue")
    assert by(found["queue_lag"], *labels) == known({key: queue["lag"] for key, queue in queues.items()})
    assert by(found["queue_owners"], *labels) == {key: len(queue["ownersObserved"]) for key, queue in queues.items()}
    assert by(found["queue_lag"], "cluster").keys() == {("DefaultCluster",)}
    for name, key in UNDER.items():
        assert by(found[name], "group", "strategy") == known(
            {(report["group"], each["strategy"]): each[key] for report in reports for each in report["strategies"]}
        ), name


def test_each_limit_is_that_of_the_json() -> None:
    envelope, found = both(*CHECK, code=ExitCode.CONDITION)
    data = envelope["data"]
    verdicts = ("passed", "failed", "waived", "incomplete", "notApplicable")
    assert by(found["check_limits"], "verdict") == {(verdict,): data["summary"][verdict] for verdict in verdicts}
    assert by(found["check_limits"], "rule", "verdict") == {
        (rule["rule"], verdict): rule[verdict] for rule in data["rules"] for verdict in verdicts
    }
    assert by(found["check_outcome"], "outcome") == {("passed",): 0, ("failed",): 1, ("incomplete",): 0}
    judged = [(verdict, one) for verdict in ("failed", "waived", "incomplete") for one in data[verdict]]
    assert by(found["check_not_passed"], "rule", "limit", "verdict") == Counter(
        (one["rule"], one["limit"], verdict) for verdict, one in judged
    )
    assert by(found["check_not_passed"], "cluster").keys() == {("DefaultCluster",)}
    for name, key in (("check_value", "value"), ("check_bound", "bound")):
        assert by(found[name], "group", "topic", "limit") == {
            ((one["name"], None) if one["about"] == GROUP else (None, one["name"])) + (one["limit"],): one[key]
            for _, one in judged
        }


def test_what_a_limit_could_not_measure_has_no_value() -> None:
    policy = "rules: [{name: r, groups: 'none-*', limits: {idle: 0}}, {name: s, topics: '*', limits: {minBrokers: 9}}]"
    ran = run("check", "-p", "-", "-s", EXAMPLE, "--today", "2026-11-21", "-o", "prometheus", stdin=policy)
    found = read_metrics(ran.stdout)
    assert by(found["rocketmq_lb_check_not_passed"], "rule", "verdict")["r", "incomplete"] == 1
    assert by(found["rocketmq_lb_check_not_passed"], "rule", "cluster").keys() == {("r", None), ("s", "DefaultCluster")}
    assert by(found["rocketmq_lb_check_value"], "rule").keys() == {("s",)}
    assert by(found["rocketmq_lb_check_bound"], "rule").keys() == {("s",)}


def test_a_folder_may_hold_a_file_of_each_command() -> None:
    """node_exporter joins the files, and refuses a series that stands in two."""
    lines = (("show-groups", "-s", EXAMPLE), ("show-owners", "-s", EXAMPLE, "-g", "*"), CHECK)
    texts = [run(*line, "-o", "prometheus").stdout.removesuffix("# EOF\n").splitlines() for line in lines]
    series = [line.rpartition(" ")[0] for text in texts for line in text if not line.startswith("#")]
    assert len(set(series)) == len(series)
