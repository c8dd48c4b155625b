"""`-o prometheus`: the limits of check as its JSON has them, and files that fit into one folder.

The other commands' metrics are golden (`tests/golden/*.prometheus.txt`).
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.model.policy import GROUP
from tests.support.openmetrics import Labels, Metrics, read_metrics

from .run import EXAMPLE, ROOT, run

POLICY = str(ROOT / "examples" / "policy.yaml")
CHECK = ("check", "-p", POLICY, "-s", EXAMPLE, "--today", "2026-11-21")


def both(*line: str, code: int = ExitCode.OK) -> tuple[Any, Metrics]:
    ran = {form: run(*line, "-o", form) for form in ("json", "prometheus")}
    assert {each.code for each in ran.values()} == {code}
    found = read_metrics(ran["prometheus"].stdout)
    return json.loads(ran["json"].stdout), {name.removeprefix("rocketmq_lb_"): own for name, own in found.items()}


def by(own: dict[Labels, float], *labels: str) -> dict[tuple[str | None, ...], float]:
    sums: Counter[tuple[str | None, ...]] = Counter()
    for key, value in own.items():
        sums[tuple(dict(key).get(label) for label in labels)] += value  # type: ignore[assignment]
    return dict(sums)


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
