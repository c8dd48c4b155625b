"""`check` as it is typed: the examples, exit codes, formats, hostile names, and policies of every kind."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rmqlb.cli.check import check
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.model.diagnosis import CODES
from rmqlb.model.policy import LIMITS
from rmqlb.views.formats.text import visible
from rmqlb.views.report import FORMATS as COMMON
from tests.support.mismatches import every_case
from tests.support.replay_remoting import cluster

from .run import EXAMPLE, ROOT, run, start

POLICY = str(ROOT / "examples" / "policy.yaml")
BASE = ("check", "-p", POLICY, "-s", EXAMPLE, "--today", "2026-11-21")
FORMATS = (*COMMON, "junit", "sarif", "prometheus")
EVIL = "e\x1b]0;x\x07\x1b[31m\u202evil|=[/red]"


def rules(*texts: str, waivers: str = "[]") -> str:
    return f"rules: [{', '.join(f'{{name: r{i}, {text}}}' for i, text in enumerate(texts))}]\nwaivers: {waivers}\n"


def checked(policy: str, *more: str, source: str = EXAMPLE) -> Any:
    """The exit code, stderr and data of a policy on the example."""
    ran = run("check", "-p", "-", "-s", source, "--today", "2026-11-21", "-o", "json", *more, stdin=policy)
    return ran.code, ran.stderr, json.loads(ran.stdout)["data"] if ran.stdout else None


PASSED = rules("groups: '*', limits: {idle: 0}")
BROKEN = rules("groups: '*', limits: {minConsumers: 4}")
NOTHING = rules("groups: 'none-*', limits: {idle: 0}")


@every_case(
    ("policy", "code", "outcome", "said"),
    [
        (PASSED, ExitCode.OK, "passed", ""),
        (BROKEN, ExitCode.CONDITION, "failed", "failed: 1 limit\n"),
        (NOTHING, ExitCode.DATA, "incomplete", "incomplete: 1 limit could not be judged\n"),
        (
            rules("groups: '*', limits: {minConsumers: 9}", "groups: 'none-*', limits: {idle: 0}"),
            ExitCode.CONDITION,
            "failed",
            "failed: 3 limits\nincomplete: 1 limit could not be judged\n",
        ),
        (rules("groups: '*', limits: {minConsumers: 4}, severity: warning"), ExitCode.OK, "passed", ""),
        (rules("groups: none, limits: {minConsumers: 4}, severity: info"), ExitCode.OK, "passed", ""),
        (
            rules(
                "groups: '*', limits: {minConsumers: 4}", waivers="[{group: order-svc, reason: x, until: 2026-11-21}]"
            ),
            ExitCode.OK,
            "passed",
            "",
        ),
        (
            rules(
                "groups: '*', limits: {minConsumers: 4}", waivers="[{group: order-svc, reason: x, until: 2026-11-20}]"
            ),
            ExitCode.CONDITION,
            "failed",
            "failed: 1 limit\n",
        ),
    ],
)
def test_the_exit_code_tells(policy: str, code: ExitCode, outcome: str, said: str) -> None:
    ran_code, stderr, data = checked(policy)
    assert (ran_code, data["outcome"], stderr) == (code, outcome, said)


def test_a_warning_fails_when_it_is_asked_to() -> None:
    policy = rules("groups: '*', limits: {minConsumers: 4}, severity: warning")
    assert checked(policy, "--fail-from", "warning")[0] == ExitCode.CONDITION
    assert checked(policy, "--fail-from", "info")[2]["failFrom"] == "info"


DUPLICATES = str(ROOT / "examples" / "four-groups.yaml")


def without_name(output: str) -> Any:
    data = json.loads(output)["data"]
    return {key: value for key, value in data.items() if key != "policy"}


@pytest.mark.parametrize("source", [EXAMPLE, DUPLICATES])
def test_the_printed_policy_gives_the_same_as_none(source: str, tmp_path: Path) -> None:
    printed = run("check", "--print-policy")
    assert (printed.code, printed.stderr) == (ExitCode.OK, "")
    (tmp_path / "p.yaml").write_text(printed.stdout)
    built_in = run("check", "-s", source, "--today", "2026-11-21", "-o", "json")
    own = run("check", "-p", str(tmp_path / "p.yaml"), "-s", source, "--today", "2026-11-21", "-o", "json")
    assert without_name(built_in.stdout) == without_name(own.stdout)
    assert json.loads(built_in.stdout)["data"]["policy"] == "built-in policy"
    assert (built_in.code, built_in.stderr) == (own.code, own.stderr)


def test_the_starter_explains_each_limit_and_can_be_written_out_in_full() -> None:
    """Each line that is commented out is one that can be used."""
    text = run("check", "--print-policy").stdout
    assert all(re.search(rf"\b{name}: .*#", text) for name in LIMITS if name not in ("strategies", "lag"))
    keys = "exclude|assume|movedOn.*|withoutLock|writableBrokers|lag|forbiddenFindings|waivers|  - rule|    group|    limit|    reason|    until"
    whole = re.sub(rf"^( *)# ({keys}): ", r"\1\2: ", text, flags=re.MULTILINE).replace("# waivers:", "waivers:")
    ran = run("check", "-p", "-", "-s", EXAMPLE, "-o", "json", stdin=whole)
    assert ran.code in (ExitCode.OK, ExitCode.DATA), ran.stderr
    data = json.loads(ran.stdout)["data"]
    assert {rule["rule"]: rule["limits"] / rule["names"] for rule in data["rules"]} == {
        "one-owner-per-queue": 6, "same-for-all": 2, "balanced": 5, "groups-online": 1, "masters": 1, "survives-a-broker": 2,
    }  # fmt: skip
    assert len(data["waivers"]) == 1


def test_the_built_in_policy_finds_what_show_groups_calls_an_error() -> None:
    data = json.loads(run("check", "-s", DUPLICATES, "-o", "json").stdout)["data"]
    grave = {one["name"] for one in data["failed"] if one["severity"] == "error"}
    groups = json.loads(run("show-groups", "-s", DUPLICATES, "-o", "json").stdout)["data"]["groups"]
    assert grave == {one["group"] for one in groups if one["status"] == "error"}


@every_case("fmt", FORMATS)
def test_the_exit_code_is_the_same_in_every_format(fmt: str) -> None:
    assert run(*BASE, "-o", fmt).code == ExitCode.CONDITION
    assert run("check", "-p", "-", "-s", EXAMPLE, "-o", fmt, stdin=PASSED).code == ExitCode.OK
    assert run("check", "-p", "-", "-s", EXAMPLE, "-o", fmt, stdin=NOTHING).code == ExitCode.DATA


def test_the_help_names_every_limit() -> None:
    assert all(re.search(rf"\b{name}\b", check.__doc__ or "") for name in LIMITS)


def test_json_and_yaml_hold_the_same_and_every_key() -> None:
    as_json, as_yaml = run(*BASE, "-o", "json"), run(*BASE, "-o", "yaml")
    value = json.loads(as_json.stdout)
    assert yaml.safe_load(as_yaml.stdout) == value
    assert (value["schema"], value["command"], value["findings"]) == ("rmqlb/check", "check", [])
    data = value["data"]
    assert list(data) == [
        "policy", "today", "failFrom", "outcome", "failed", "waived", "incomplete", "notApplicable", "rules",
        "waivers", "summary",
    ]  # fmt: skip
    counts = {"limits": 35, "passed": 33, "failed": 1, "waived": 1, "incomplete": 0, "notApplicable": 0}
    assert data["summary"] == {"rules": 5, **counts}
    assert {key: sum(rule[key] for rule in data["rules"]) for key in counts} == counts


def test_an_expired_waiver_is_a_warning_and_waives_no_more() -> None:
    ran = run(*BASE[:-1], "2027-01-01", "-o", "json")
    value = json.loads(ran.stdout)
    assert [finding["code"] for finding in value["findings"]] == ["expired-waiver"]
    assert len(value["data"]["failed"]) == 2
    assert value["data"]["waivers"][0]["state"] == "expired"
    plain = run(*BASE[:-1], "2027-01-01", "-o", "junit")
    assert plain.stderr.splitlines()[0] == (
        "warning: the waiver for rule even, limit imbalance, group audit-svc expired after 2026-12-31 [expired-waiver]"
    )


@every_case("section", ["failed", "waived", "incomplete", "not-applicable", "rules", "waivers", "summary"])
def test_every_table_can_be_asked_for_whatever_is_in_it(section: str) -> None:
    for policy in (PASSED, BROKEN, NOTHING):
        ran = run("check", "-p", "-", "-s", EXAMPLE, "-o", "csv", "--section", section, stdin=policy)
        rows = list(csv.reader(io.StringIO(ran.stdout, newline="")))
        assert len({len(row) for row in rows}) == 1


def test_numbers_are_numbers_in_csv() -> None:
    (row,) = csv.DictReader(io.StringIO(run(*BASE, "-o", "csv").stdout, newline=""))
    assert (row["name"], row["limit"], row["value"], row["bound"]) == ("bill-svc", "movedOnConsumerLoss", "1.0", "0.8")


@every_case(
    ("args", "code", "error", "hint"),
    [
        (["-p", "none.yaml"], ExitCode.USAGE, "--policy none.yaml: No such file or directory", None),
        (["-p", POLICY, "--today", "soon"], ExitCode.USAGE, "--today soon: not a date", "write YYYY-MM-DD"),
        (["-p", POLICY, "--fail-from", "fatal"], ExitCode.USAGE, "--fail-from fatal: no such severity", "there are the severities error, info, warning"),
        (["-p", POLICY, "-o", "junt"], ExitCode.USAGE, "unknown format junt", "did you mean junit?"),
        (["-p", POLICY, "--section", "fialed"], ExitCode.USAGE, "--section fialed: no such table", "did you mean failed?"),
        (["-p", POLICY, "--strategy-option", "inner=AVRG"], ExitCode.USAGE, "unknown strategy AVRG", None),
        (["-p", POLICY, "--print-policy"], ExitCode.USAGE, "--print-policy prints the built-in policy, and --policy names another one", None),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(args: list[str], code: ExitCode, error: str, hint: str | None) -> None:
    ran = run("check", "-s", EXAMPLE, *args)
    assert (ran.code, ran.stdout) == (code, "")
    assert ran.stderr.splitlines()[0].startswith(f"error: {error}")
    if hint:
        assert ran.stderr.splitlines()[1:] == [f"hint: {hint}"]


def test_one_stdin_is_not_read_twice() -> None:
    ran = run("check", "-p", "-", "-s", "-", stdin=PASSED)
    assert (ran.code, ran.stderr) == (ExitCode.USAGE, "error: -s - and --policy - both read stdin [usage]\n")


def test_a_malformed_policy_is_no_incomplete_data(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("rules:\n  - {name: r, groups: '*', limits: {idel: 0}}\n")
    ran = run("check", "-p", str(tmp_path / "p.yaml"), "-s", "not even read")
    assert (ran.code, ran.stdout) == (ExitCode.USAGE, "")
    assert ran.stderr == (
        f"error: {tmp_path}/p.yaml, line 2: rules[0].limits.idel: there is no key 'idel' here [policy-invalid]\nhint: did you mean idle?\n"
    )


def snapshot(name: str) -> str:
    """A group and a topic of that name; a member and a broker as well, so that some limits break."""
    queue = {
        "topic": name,
        "brokerName": name,
        "queueId": 0,
        "owners": [name, "b"],
        "brokerOffset": 9,
        "consumerOffset": 0,
    }
    data = {
        "topics": [{"topic": name, "route": {"queueDatas": [{"brokerName": name, "readQueueNums": 1, "writeQueueNums": 1, "perm": 6}]}}],
        "groups": [{"group": name, "clientIds": [name, name, "b"], "topics": [name], "queues": [queue]}],
        "unread": [{"what": f"group {name}-lost", "reason": name}],
    }  # fmt: skip
    return json.dumps({"schema": "rmqlb/snapshot", "formatVersion": "1.0", "data": data})


@every_case("fmt", FORMATS)
def test_hostile_names_reach_no_format_raw(fmt: str, tmp_path: Path) -> None:
    limits = {"group": {"duplicateOwners": 0, "duplicateClientIds": 0, "lag": 0, "idle": 0}, "topic": {"minBrokers": 2}}
    policy = {
        "rules": [{"name": f"{EVIL}{about}", f"{about}s": "*", "limits": bounds} for about, bounds in limits.items()],
        "waivers": [{"group": "e*", "limit": "lag", "reason": EVIL, "until": "2026-12-31"}, {"group": f"{EVIL}x", "reason": "=1", "until": "2026-01-01"}],
    }  # fmt: skip
    (tmp_path / "p.json").write_text(json.dumps(policy))
    ran = run(
        "check", "-p", str(tmp_path / "p.json"), "-s", "-", "--today", "2026-11-21", "-o", fmt, stdin=snapshot(EVIL)
    )
    assert ran.code == ExitCode.CONDITION, ran.stderr
    for stream in (ran.stdout, ran.stderr):
        plain = re.sub(r"\r?\n", "", stream)
        assert visible(plain) == plain
    if fmt == "junit":
        assert len(list(fromstring(ran.stdout.encode()).iter("failure"))) == 3
    if fmt == "json":
        assert {one["name"] for one in json.loads(ran.stdout)["data"]["failed"]} == {EVIL}


@every_case("columns", [20, 60, 80, 200])
def test_tables_fit_their_terminal(columns: int) -> None:
    ran = run(*BASE, "-o", "table", env={"COLUMNS": str(columns)})
    assert ran.code == ExitCode.CONDITION
    assert max(map(len, ran.stdout.splitlines())) <= columns


def test_equal_input_gives_equal_bytes() -> None:
    for fmt in FORMATS:
        assert run(*BASE, "-o", fmt).stdout == run(*BASE, "-o", fmt).stdout


def test_the_default_day_is_today() -> None:
    policy = rules("groups: '*', limits: {idle: 0}", waivers="[{group: x, reason: y, until: 2020-01-01}]")
    ran = run("check", "-p", "-", "-s", EXAMPLE, "-o", "json", stdin=policy)
    assert json.loads(ran.stdout)["data"]["today"] > "2026"
    assert json.loads(ran.stdout)["data"]["waivers"][0]["state"] == "expired"


def test_a_live_cluster_with_gaps_is_incomplete_and_says_where() -> None:
    policy = rules("groups: order-svc, limits: {idle: 0}", "topics: '*', limits: {minBrokers: 1}")
    with cluster() as (a, b):
        live = (f"rocketmq://{a.address}", "--map-address", a.mapped, "--map-address", b.mapped)
        code, _, data = checked(policy, *live[1:], source=live[0])
        assert a.forbidden == b.forbidden == []
    assert code == ExitCode.DATA
    assert {one["name"]: one["why"] for one in data["incomplete"]} == {
        "order-svc": "the route of topic Skewed is not known: it is listed and has no route",
        "Skewed": "its route could not be read: it is listed and has no route",
    }
    assert [rule["passed"] for rule in data["rules"]] == [0, 1]


def test_a_policy_for_topics_reads_no_group() -> None:
    with cluster() as (a, b):
        live = (f"rocketmq://{a.address}", "--map-address", a.mapped, "--map-address", b.mapped)
        checked(rules("topics: OrderEvents, limits: {minBrokers: 1}"), *live[1:], source=live[0])
        assert not any("group" in what.lower() for _, what in (*a.asked, *b.asked))


def test_it_runs_as_a_process() -> None:
    ran = start(*BASE, "-o", "junit")
    assert (ran.code, ran.stderr) == (ExitCode.CONDITION, "failed: 1 limit\n")


def bounds(name: str) -> st.SearchStrategy[Any]:
    unit = LIMITS[name].unit
    if unit == "noneOf":
        return st.lists(st.sampled_from(CODES), min_size=1, max_size=2, unique=True)
    if unit == "names":
        return st.lists(st.sampled_from(["AVG", "CONSISTENT_HASH", "OurOwn"]), min_size=1, max_size=2)
    if unit == "share":
        return st.integers(0, 100).map(lambda number: f"{number}%")
    return st.integers(1, 20) | (st.floats(1, 3) if unit == "ratio" else st.just(1))


def limits_of(about: str) -> st.SearchStrategy[dict[str, Any]]:
    names = [name for name, kind in LIMITS.items() if kind.about == about]
    chosen = st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)
    return chosen.flatmap(lambda picked: st.fixed_dictionaries({name: bounds(name) for name in picked}))


def rule_of(about: str) -> st.SearchStrategy[dict[str, Any]]:
    patterns = st.sampled_from(["*", "order-*", "[", "none", "*-svc", "Order*"])
    optional = {
        "exclude": patterns,
        "severity": st.sampled_from(["error", "warning", "info"]),
        **({"assume": st.sampled_from(["AVG", "MACHINE_ROOM"])} if about == "group" else {}),
    }
    return st.fixed_dictionaries({f"{about}s": patterns, "limits": limits_of(about)}, optional=optional)


WAIVERS = st.fixed_dictionaries(
    {"reason": st.just("x"), "until": st.sampled_from(["2026-11-20", "2026-11-21"]), "group": st.sampled_from(["*", "bill-svc"])},
    optional={"rule": st.just("r0"), "limit": st.just("lag")},
)  # fmt: skip
POLICIES = st.tuples(
    st.lists(rule_of("group") | rule_of("topic"), min_size=1, max_size=3), st.lists(WAIVERS, max_size=2)
)


@settings(max_examples=50)
@given(POLICIES, st.sampled_from(FORMATS))
def test_any_policy_ends_as_its_figures_say(
    policy: tuple[list[dict[str, Any]], list[dict[str, Any]]], fmt: str
) -> None:
    named = [{"name": f"r{index}", **rule} for index, rule in enumerate(policy[0])]
    text = json.dumps({"rules": named, "waivers": policy[1]})
    args = ("check", "-p", "-", "-s", EXAMPLE, "--today", "2026-11-21", "--fail-from", "info")
    ran = run(*args, "-o", fmt, stdin=text)
    if ran.code == ExitCode.USAGE:
        assert "waivers[" in ran.stderr  # of a limit that the rule does not have
        return
    data = json.loads(run(*args, "-o", "json", stdin=text).stdout)["data"]
    expected = ExitCode.CONDITION if data["failed"] else ExitCode.DATA if data["incomplete"] else ExitCode.OK
    assert ran.code == expected
    assert "Traceback" not in ran.stderr
