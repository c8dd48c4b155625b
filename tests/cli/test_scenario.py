"""`--scenario`: options that are kept in a file, to which those of the line are added; each fault has its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from typer.main import get_command

from rmqlb.cli import click
from rmqlb.cli.common.scenario import NOT_KEPT, SCENARIO_COMMANDS
from rmqlb.cli.main import app
from tests.support.schemas import schema_of

from .run import EXAMPLE, ROOT, error_of, run

KEPT = ROOT / "examples" / "scenario.yaml"
PLAN = ("plan-rebalance", "-s", EXAMPLE)


@pytest.fixture
def kept(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    path = tmp_path / "s.yaml"
    path.write_text(request.param)
    return str(path)


def data(*args: str) -> dict[str, Any]:
    ran = run(*args, "-o", "json")
    assert ran.code in (0, 3), ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)["data"]
    return found


def test_what_is_not_for_a_file_is_an_option_that_would_be_one_otherwise() -> None:
    root = get_command(app)
    commands = [root.get_command(click.Context(root), name) for name in SCENARIO_COMMANDS]  # type: ignore[attr-defined]
    options = {option.name for command in commands for option in command.params if option.envvar is None}
    assert options >= NOT_KEPT


def test_the_example_says_what_the_line_would_say() -> None:
    typed = ("-g", "order-svc", "--add", "192.0.2.2@inst3", "--fail-on", "moved>60%", "--fail-on", "unassigned>0")
    assert data(*PLAN, "--scenario", str(KEPT)) == data(*PLAN, *typed)
    send = ("simulate-send", "-s", EXAMPLE)
    failing = ("-t", "OrderEvents", "--fail", "broker-b@1m-2m", "--rate", "100", "--for", "3m", "--latency", "3ms")
    assert data(*send, "--scenario", str(KEPT)) == data(*send, *failing, "--fail-on", "lost>0")


@pytest.mark.parametrize("kept", ["plan-rebalance: {group: [order-svc], add: x@1, fail-on: idle>9}"], indirect=True)
def test_the_line_adds_to_repeatable_options_and_goes_before_others(kept: str) -> None:
    found = data(*PLAN, "--scenario", kept, "--add", "y@1", "--fail-on", "moved>0")
    assert found["changes"] == ["add x@1", "add y@1"]
    assert [each["condition"] for each in found["conditions"]] == ["idle>9", "moved>0"]
    assert data(*PLAN, "--scenario", kept, "-g", "bill-svc")["group"] == "bill-svc"


@pytest.mark.parametrize(
    "kept", ["simulate-send: {topic: Skewed, messages: 5, threads: 2, retry-not-store-ok: true}"], indirect=True
)
def test_numbers_and_flags_are_what_they_are(kept: str) -> None:
    scenario = data("simulate-send", "-s", EXAMPLE, "--scenario", kept, "--messages", "7")["scenario"]
    assert (scenario["messages"], scenario["threads"], scenario["retryNotStoreOk"]) == (7, 2, True)


@pytest.mark.parametrize(
    "kept", ["plan-rollout: {group: order-svc, pause: 30s, trials: 2, fail-on: ['misassigned>0']}"], indirect=True
)
def test_rollouts_and_conditions_are_replayed_too(kept: str) -> None:
    found = data("plan-rollout", "-s", EXAMPLE, "--scenario", kept)
    assert {choice["pauseMs"] for choice in found["choices"] if choice["atOnce"] == 1} == {30_000}
    assert [each["condition"] for each in found["conditions"]] == ["misassigned>0"]


FAULTS = [
    ("- a\n", "line 1: a list is not a mapping"),
    ("plan: {}\n", "line 1: plan: there is no key 'plan' here"),
    ("description: x\n", "line 1: it has no part plan-rebalance"),
    ("description: [x]\nplan-rebalance: {}\n", "line 1: description: a list is not a text"),
    ("plan-rebalance: 7\n", "line 1: plan-rebalance: 7 is not a mapping"),
    ("plan-rebalance:\n  ad: 1\n", "line 2: plan-rebalance.ad: there is no key 'ad' here"),
    ("plan-rebalance:\n  source: x\n", "line 2: plan-rebalance.source: there is no key 'source' here"),
    ("plan-rebalance:\n  add: [1, -2]\n", "line 2: plan-rebalance.add[1]: --add -2: a number of consumers"),
    ("plan-rebalance:\n  add: []\n", "line 2: plan-rebalance.add: the list is empty"),
    ("plan-rebalance:\n  add: {a: 1}\n", "line 2: plan-rebalance.add: a mapping is neither a text nor a number"),
    ("plan-rebalance:\n  add: ''\n", "line 2: plan-rebalance.add: it is empty"),
    ("plan-rebalance:\n  include-retry: 1\n", "line 2: plan-rebalance.include-retry: 1 is neither true nor false"),
    ("plan-rebalance:\n  to-strategy: true\n", "line 2: plan-rebalance.to-strategy: True is neither a text nor"),
    ("plan-rebalance:\n  replace:\n    - a\n", "line 3: plan-rebalance.replace[0]: --replace a: expected OLD=NEW"),
    (
        "plan-rebalance:\n  add: 1\n  fail-on:\n    - idle>0\n    - idel>0\n",
        "line 5: plan-rebalance.fail-on[1]: --fail-on 'idel>0': there is no figure idel",
    ),
    ("plan-rebalance: {add: 1, add: 2}\n", "line 1, column 26: the key 'add' stands twice"),
    ("plan-rebalance: &a {}\nplan-rollout: *a\n", "line 2: YAML aliases are not read"),
]


@pytest.mark.parametrize(("kept", "problem"), FAULTS, indirect=["kept"])
def test_each_fault_has_file_line_and_key(kept: str, problem: str) -> None:
    ran = run(*PLAN, "-g", "order-svc", "--scenario", kept)
    assert (ran.code, ran.stdout) == (2, "")
    failed = error_of(ran.stderr)
    assert failed.code == "scenario-invalid"
    assert failed.message.startswith(f"{kept}, {problem}")


@pytest.mark.parametrize(
    ("command", "kept", "problem"),
    [
        (
            "simulate-rebalance",
            "simulate-rebalance:\n  event: jon x@3s\n",
            "simulate-rebalance.event: --event 'jon x@3s'",
        ),
        ("simulate-rebalance", "simulate-rebalance:\n  timer: beat=1s\n", "simulate-rebalance.timer: --timer beat=1s"),
        ("simulate-send", "simulate-send:\n  fail: b@9s-1s\n", "simulate-send.fail: --fail b@9s-1s"),
        ("simulate-send", "simulate-send:\n  threads: 0\n", "simulate-send.threads: 0 is not in the range"),
        ("simulate-send", "simulate-send:\n  threads: 1.5\n", "simulate-send.threads: '1.5' is not a valid"),
        ("plan-rollout", "plan-rollout:\n  down: soon\n", "plan-rollout.down: --down soon: not a time"),
    ],
    indirect=["kept"],
)
def test_events_failures_and_times_are_read_before_the_source(command: str, kept: str, problem: str) -> None:
    failed = error_of(run(command, "-s", "/nowhere", "--scenario", kept).stderr)
    assert failed.message.startswith(f"{kept}, line 2: {problem}")


def test_a_file_that_cannot_be_read_is_told() -> None:
    failed = error_of(run(*PLAN, "--scenario", "/nowhere.yaml").stderr)
    assert failed.message == "--scenario /nowhere.yaml: No such file or directory"
    assert error_of(run("plan-rebalance", "-s", "-", "--scenario", "-").stderr).message == (
        "-s - and --scenario - both read stdin"
    )


def test_a_scenario_comes_from_stdin_too() -> None:
    found = json.loads(run(*PLAN, "--scenario", "-", "-o", "json", stdin=KEPT.read_text()).stdout)["data"]
    assert found["changes"] == ["add 192.0.2.2@inst3"]


def test_the_schema_takes_the_example_and_refuses_other_keys() -> None:
    printed = schema_of("rmqlb/scenario")
    schema = Draft202012Validator(printed)
    example = yaml.safe_load(KEPT.read_text(encoding="utf-8"))
    assert schema.is_valid(example)
    assert set(printed["properties"]) == {"description", *SCENARIO_COMMANDS}
    for name in SCENARIO_COMMANDS:
        assert not schema.is_valid({name: {"source": "x"}})
        assert schema.is_valid(
            {name: {"topic" if name in ("simulate-send", "simulate-receive") else "group": "x", "fail-on": ["a>0"]}}
        )
    assert not schema.is_valid({"plan": {}})
