import json
import re
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rmqlb.cli.check import check
from rmqlb.cli.common.output_files import snapshot_envelope
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.model.policy import GROUP, LIMITS
from rmqlb.views.formats.machine import as_json
from rmqlb.views.report import FORMATS as COMMON
from tests.cli.run import EXAMPLE, ROOT, data_of, run
from tests.engine.check.clusters import cluster
from tests.engine.sweep_failures.clusters import broker, consumers, route
from tests.support.mismatches import every_case
from tests.support.openmetrics import Labels, Metrics, read_metrics

BASE = ("sweep-failures", "-s", EXAMPLE)


def data(*args: str) -> Any:
    return data_of(*BASE, *args)


def test_every_counterexample_comes_with_a_command_that_shows_its_figures() -> None:
    found = data()["counterexamples"]
    assert {each["about"] for each in found} == {"group", "topic"}
    for one in found:
        _, *words = shlex.split(one["command"])
        shown = run(*words, "-o", "json")
        assert shown.code == 0, one["command"]
        result = json.loads(shown.stdout)["data"]
        if one["about"] == "topic":
            assert result["totals"]["failedAttempts"] > 0
            continue
        summary, group = result["summary"], one["group"]
        keys = ("unassigned", "idle", "imbalance", "moved", "lagMoved", "duplicateOwners")
        assert {key: summary[key] for key in keys} == {key: group[key] for key in keys}
        assert (summary["after"]["consumers"], summary["after"]["queues"]) == (group["consumers"], group["queues"])


def test_the_gap_of_a_counterexample_is_simulated_by_its_command(tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text(
        "rules: [{name: r, groups: ['*'], limits: {minConsumers: 3, movedOnBrokerLoss: 0%, withoutLock: 0}}]"
    )
    brokers = broker("a", "10.0.0.1", "10.0.0.3"), broker("b", "10.0.0.2")
    ids = ["10.1.0.1@1", "10.1.0.1@1", "10.1.0.2@2", "10.1.0.2@3"]
    source = tmp_path / "c.json"
    groups = [consumers("g", ids, ["T"]), consumers("h", ids[1:], ["T"], "CONSISTENT_HASH")]
    snapshot = cluster(*groups, routes=(route("T", brokers, [3, 4]),))
    source.write_text(as_json(snapshot_envelope(snapshot)))
    ran = run("sweep-failures", "-s", str(source), "-p", str(policy), "--orderly-group", "h", "-o", "json")
    found = [each for each in json.loads(ran.stdout)["data"]["counterexamples"] if each["gapCommand"] is not None]
    texts = [re.findall(r"'(\S+) [^']*'", each["gapCommand"]) for each in found]
    assert {each for its in texts for each in its} == {"host-loss", "crash", "broker-down"}
    for one in found:
        _, *words = shlex.split(one["gapCommand"])
        figures = json.loads(run(*words, "-o", "json").stdout)["data"]["trials"]["figures"]
        owners_die = "crash" in one["gapCommand"] or "host-loss" in one["gapCommand"]
        assert (figures["longestGapMs"]["max"] > 0) == owners_die, one["gapCommand"]


POLICY = str(ROOT / "examples" / "policy.yaml")
CHECKED = ("check", "-p", POLICY, "-s", EXAMPLE, "--today", "2026-11-21")
FORMATS = (*COMMON, "junit", "sarif", "prometheus")


def rules(*texts: str) -> str:
    return f"rules: [{', '.join(f'{{name: r{i}, {text}}}' for i, text in enumerate(texts))}]\n"


DUPLICATES = str(ROOT / "examples" / "four-groups.yaml")


@pytest.mark.parametrize("source", [EXAMPLE, DUPLICATES])
def test_the_printed_policy_gives_the_same_as_none(source: str, tmp_path: Path) -> None:
    printed = run("check", "--print-policy")
    assert (printed.code, printed.stderr) == (ExitCode.OK, "")
    (tmp_path / "p.yaml").write_text(printed.stdout)
    built_in = run("check", "-s", source, "--today", "2026-11-21", "-o", "json")
    own = run("check", "-p", str(tmp_path / "p.yaml"), "-s", source, "--today", "2026-11-21", "-o", "json")
    ours, theirs = (json.loads(each.stdout)["data"] for each in (built_in, own))
    assert (ours.pop("policy"), theirs.pop("policy")) == ("built-in policy", str(tmp_path / "p.yaml"))
    assert ours == theirs
    assert (built_in.code, built_in.stderr) == (own.code, own.stderr)


def test_the_starter_explains_each_limit_and_can_be_written_out_in_full() -> None:
    text = run("check", "--print-policy").stdout
    assert all(re.search(rf"\b{name}: .*#", text) for name in LIMITS if name not in ("strategies", "lag"))
    assert all(re.search(rf"\b{name}\b", check.__doc__ or "") for name in LIMITS)
    keys = "exclude|assume|movedOn.*|withoutLock|writableBrokers|lag|maxDrainTime|forbiddenFindings|waivers|  - rule|    group|    limit|    reason|    until"
    whole = re.sub(rf"^( *)# ({keys}): ", r"\1\2: ", text, flags=re.MULTILINE).replace("# waivers:", "waivers:")
    ran = run("check", "-p", "-", "-s", EXAMPLE, "-o", "json", stdin=whole)
    assert ran.code in (ExitCode.OK, ExitCode.DATA), ran.stderr
    data = json.loads(ran.stdout)["data"]
    assert {rule["rule"]: rule["limits"] / rule["names"] for rule in data["rules"]} == {
        "one-owner-per-queue": 6, "same-for-all": 2, "balanced": 6, "groups-online": 1, "masters": 1, "survives-a-broker": 2,
    }  # fmt: skip
    assert len(data["waivers"]) == 1


def test_the_built_in_policy_finds_what_show_groups_calls_an_error() -> None:
    data = json.loads(run("check", "-s", DUPLICATES, "-o", "json").stdout)["data"]
    grave = {one["name"] for one in data["failed"] if one["severity"] == "error"}
    groups = json.loads(run("show-groups", "-s", DUPLICATES, "-o", "json").stdout)["data"]["groups"]
    assert grave == {one["group"] for one in groups if one["status"] == "error"}


@every_case("fmt", FORMATS)
def test_every_limit_ends_in_every_format_as_its_figures_say(fmt: str) -> None:
    bounds = {"noneOf": "[slow-consumer]", "names": "[AVG]", "share": "50%", "ms": "10m"}
    limits = [f"{kind.about}s: '*', limits: {{{name}: {bounds.get(kind.unit, 1)}}}" for name, kind in LIMITS.items()]
    ran = run("check", "-p", "-", "-s", EXAMPLE, "--fail-on", "info", "-o", fmt, stdin=rules(*limits))
    assert (ran.code, "Traceback" in ran.stderr) == (ExitCode.CONDITION, False)


def both(*line: str, code: int = ExitCode.OK) -> tuple[Any, Metrics]:
    ran = {form: run(*line, "-o", form) for form in ("json", "prometheus")}
    assert {each.code for each in ran.values()} == {code}
    found = read_metrics(ran["prometheus"].stdout)
    return json.loads(ran["json"].stdout), {name.removeprefix("rmqlb_"): own for name, own in found.items()}


def by(own: dict[Labels, float], *labels: str) -> dict[tuple[str | None, ...], float]:
    sums: Counter[tuple[str | None, ...]] = Counter()
    for key, value in own.items():
        sums[tuple(dict(key).get(label) for label in labels)] += value  # type: ignore[assignment]
    return dict(sums)


def test_each_limit_is_that_of_the_json() -> None:
    envelope, found = both(*CHECKED, code=ExitCode.CONDITION)
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
    assert by(found["rmqlb_check_not_passed"], "rule", "verdict")["r", "incomplete"] == 1
    assert by(found["rmqlb_check_not_passed"], "rule", "cluster").keys() == {("r", None), ("s", "DefaultCluster")}
    assert by(found["rmqlb_check_value"], "rule").keys() == {("s",)}
    assert by(found["rmqlb_check_bound"], "rule").keys() == {("s",)}


def test_a_folder_may_hold_a_file_of_each_command() -> None:
    """node_exporter joins the files, and refuses a series that stands in two."""
    lines = (("show-groups", "-s", EXAMPLE), ("show-owners", "-s", EXAMPLE, "-g", "*"), CHECKED)
    texts = [run(*line, "-o", "prometheus").stdout.removesuffix("# EOF\n").splitlines() for line in lines]
    series = [line.rpartition(" ")[0] for text in texts for line in text if not line.startswith("#")]
    assert len(set(series)) == len(series)
