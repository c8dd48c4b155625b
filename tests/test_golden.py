"""What each command prints in each format, kept as transcripts: `pytest tests/test_golden.py --update-golden` rewrites."""

import re
import shlex
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import typer
from msgspec.structs import replace
from typer.testing import CliRunner

from rmqlb.cli.common.options import OutputOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.main import app
from rmqlb.cli.pipeline import show
from rmqlb.model.pipeline_result import PipelineResult, RejectedFile, Verdict
from rmqlb.views.report import FORMATS

GOLDEN = Path(__file__).parent / "golden"
ROOT = Path(__file__).parent.parent
EXAMPLE = "-s examples/cluster.json"
LOOKS = "-s examples/faults.json --earlier examples/faults-before.json"
FAULTS = "-s examples/four-groups.yaml"
MQADMIN = "-s examples/topicRoute-Skewed.txt --topic Skewed"
BASIC = {
    "show-groups": f"show-groups {EXAMPLE}",
    "show-consumers": f"show-consumers {EXAMPLE} -g order-svc",
    "show-route": f"show-route {EXAMPLE}",
    "show-owners": f"show-owners {EXAMPLE} --group bill-svc",
    "diagnose": f"diagnose {EXAMPLE} -g order-svc",
    "diff": "diff examples/cluster.json examples/cluster-later.json",
    "plan-rebalance": f"plan-rebalance {EXAMPLE} --group order-svc --add 192.0.2.2@inst3",
    "simulate-rebalance": f"simulate-rebalance {EXAMPLE} --group bill-svc --event 'join 192.0.2.2@inst9@10s'",
    "plan-rollout": f"plan-rollout {EXAMPLE} --group order-svc --to-strategy AVG_BY_CIRCLE --pause 20s --trials 5",
    "size-group": f"size-group {EXAMPLE} --group order-svc --max-imbalance 1.1 --no-idle --survive 1 --sizes 7..12",
    "sweep-failures": f"sweep-failures {EXAMPLE}",
    "record": "record --replay examples/recording.json",
    "check": f"check -p examples/policy.yaml {EXAMPLE} --today 2027-01-01",
    "simulate-send": f"simulate-send {EXAMPLE} --topic Skewed --fail broker-b@#5-#9 --messages 12 --round-trip 1ms",
    "plan-topic": f"plan-topic {EXAMPLE} --topic OrderEvents --queues 16",
    "select-queue": f"select-queue {EXAMPLE} --topic Skewed --key order-1 --key order-2 --key order-3",
    "simulate-receive": f"simulate-receive {EXAMPLE} --topic Skewed --messages 40 --target-wait 1s",
}
SMALL = {
    "context-add": "context add prod -s rocketmq://10.0.0.1:9876 --access-key viewer --secret keyring:rmqlb/prod --use",
    "context-list": "context list",
    "context-use": "context use staging",
    "context-show": "context show staging",
    "context-remove": "context remove staging",
    "config-show": "config show --source-timeout 9s",
    "schema": "schema",
    "explain": "explain no-master",
    "doctor": f"doctor {EXAMPLE}",
}
"""Commands whose formats other commands show."""
HELD_BY_TESTS = ("context-add", "context-use", "context-show", "context-remove")
"""Commands whose output `tests/cli/test_contexts.py` reads."""
CONTEXTS = """\
context: saved
contexts:
  staging: {source: 'http://10.0.0.2:8082', user: viewer, secret: 'env:STAGING_PASSWORD', source-timeout: 9s}
  saved: {source: /data/cluster.json}
"""
"""What the user's file says before a command on contexts."""
CASES = {
    **{f"{name}.{fmt}": f"{command} -o {fmt}" for name, command in BASIC.items() for fmt in ("table", "plain", "json")},
    **{f"{name}.json": f"{command} -o json" for name, command in SMALL.items() if name not in HELD_BY_TESTS},
    "context-list.table": f"{SMALL['context-list']} -o table",
    **{f"plan-rebalance.{fmt}": f"{BASIC['plan-rebalance']} -o {fmt}" for fmt in FORMATS if fmt != "yaml"},
    "plan-explained": f"plan-rebalance {EXAMPLE} --group audit-svc --topic OrderEvents --add 10.0.0.9@1 --add 10.0.0.10@1 --explain",
    "plan-compared": f"plan-rebalance {EXAMPLE} --group order-svc --remove-broker broker-b --strategy all --section strategies --section summary",
    "plan-screen-80": f"plan-rebalance {EXAMPLE} -g order-svc --scale-to 4 -o table",
    "plan-unassigned-80": f"plan-rebalance {FAULTS} -g mix-svc --add 1 -o table",
    "plans-of-pattern-80": f"plan-rebalance {EXAMPLE} -g '*-svc' --scale-to 5 -o table",
    "owners-screen-80": f"show-owners {FAULTS} -g mix-svc -o table",
    "plan-queues": f"plan-rebalance {EXAMPLE} --group bill-svc --read-queues broker-a=2 --add-broker broker-c:2 --section queues",
    "keys-screen-80": f"select-queue {EXAMPLE} --topic Skewed --keys examples/keys.txt -o table",
    "keys-jsonl": f"select-queue {EXAMPLE} --topic Skewed --key order-1 --sdk go-grpc@5.1.3 --sdk csharp-grpc "
    "--add-broker broker-c:4 -o jsonl",
    "size-screen-80": f"size-group {EXAMPLE} -g order-svc --rate 500 --consume-time 40ms --max-imbalance 1.1 -o table",
    "size-queues-120": f"size-group {EXAMPLE} -g order-svc --queues-per-broker 4..32 --sizes 10..60 -o table",
    "consumers-of-groups-80": f"show-consumers {FAULTS} -g '*-svc' -o table",
    "sizes-of-groups-80": f"size-group {EXAMPLE} -g '*-svc' --survive 1 -o table",
    **{
        f"plans-of-groups.{fmt}": f"plan-rebalance {EXAMPLE} -g order-svc -g bill-svc --remove 1 --changed "
        f"--fail-on 'moved>60%' --section queues --section consumers -o {fmt}"
        for fmt in ("table", "json")
    },
    "owners-mixed-sdks": f"show-owners {EXAMPLE} --group order-svc --topic Skewed --strategy CONSISTENT_HASH "
    "--sdk 192.0.2.2@inst0=go --explain",
    "owners-by-pop": f"show-owners {EXAMPLE} --group order-svc --topic Skewed --pop-share 1",
    "owners-explained": f"show-owners {MQADMIN} --consumers 2 --strategy AVG --explain --section reasons",
    "fetch-routes.json": f"fetch-routes {EXAMPLE} --group bill-svc --topic Skewed -o json",
    **{f"groups-with-faults.{fmt}": f"show-groups {FAULTS} -o {fmt}" for fmt in ("table", "csv")},
    "diagnoses-of-all-80": f"diagnose {LOOKS} --all-groups -o table",
    **{f"diagnoses-of-groups.{fmt}": f"diagnose {FAULTS} -g '*-svc' -o {fmt}" for fmt in ("json", "jsonl")},
    "diagnosis.prometheus": f"diagnose {FAULTS} --all-groups -o prometheus",
    "diagnosis-unknown": f"diagnose {FAULTS} -g calm-svc --fail-on error",
    "diagnosis-of-two-looks": f"diagnose {LOOKS} -g ship-svc",
    "diagnosis-narrow": f"diagnose {FAULTS} -g dup-svc -o table",
    "diff-nothing": "diff examples/cluster.json examples/cluster.json --fail-on 'groups-changed>0'",
    "record-jsonl": "record --replay examples/recording.json -o jsonl",
    "plan-jsonl": f"plan-rebalance {EXAMPLE} --group bill-svc --add 1 --changed -o jsonl",
    "send-compared": f"simulate-send {EXAMPLE} --topic Skewed --fail broker-b@45s-1m30s --rate 100 --for 2m --compare latency-fault",
    "send-sdks-80": f"simulate-send {EXAMPLE} --topic OrderEvents --fail broker-b@10s-1m10s --set nameserver-notices=never "
    "--rate 100 --for 90s --compare sdks -o table",
    "send-go-grpc": f"simulate-send {EXAMPLE} --topic OrderEvents --fail broker-b@5s- --rate 10 --for 1m --sdk go-grpc -o plain",
    "send-jsonl-traced": f"simulate-send {EXAMPLE} --topic Skewed --fail 'broker-*@#2-#3' --messages 3 -o jsonl --trace",
    "rebalance-rolling": f"simulate-rebalance {EXAMPLE} --group order-svc --event 'rolling-restart *@0s, every 30s, down 9s' "
    "--trials 20 --section timeline --section trials --fail-on 'longest-gap-ms>500'",
    "restart-of-groups.csv": f"simulate-rebalance {EXAMPLE} -g '*' --event 'restart-broker broker-b@30s, down 1m' "
    f"--section groups --section producers --fail-on 'taken>20' -o csv",
    "rebalance-screen-80": f"simulate-rebalance {EXAMPLE} -g order-svc --event 'restart-broker broker-b@30s, down 1m' -o table",
    "restart-of-groups-80": f"simulate-rebalance {EXAMPLE} -g '*' --event 'restart-broker broker-b@30s, down 1m' -o table",
    "send-screen-80": f"simulate-send {EXAMPLE} --topic OrderEvents --fail broker-b:timeout -o table",
    "rollout-restart": f"plan-rollout {EXAMPLE} --group bill-svc --pause 10s,30s --at-once 1,2 --trials 5",
    "check.junit": f"check -p examples/policy.yaml {EXAMPLE} --today 2026-12-31 -o junit",
    "show-groups.prometheus": "show-groups -s examples/four-groups.yaml -o prometheus",
    "show-owners.prometheus": f"show-owners {EXAMPLE} -g bill-svc -g audit-svc --strategy AVG -o prometheus",
    "check.sarif": f"check -p examples/policy.yaml {EXAMPLE} --today 2026-12-31 -o sarif",
    "check-built-in": "check -s examples/four-groups.yaml --today 2026-12-31 -o table",
    "check-policy": "check --print-policy",
    "schema-of-the-error": "schema rmqlb/error",
    "explain-unknown": "explain shared-id",
    "help-plan": "plan-rebalance --help",
}
NARROW = 60


def transcript(command: str, columns: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "rmqlb").mkdir()
    (folder / "rmqlb" / "config.yaml").write_text(CONTEXTS, encoding="utf-8")
    (folder / "rmqlb" / "config.yaml").chmod(0o600)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder) if command.startswith("context") else "/nonexistent")
    result = CliRunner().invoke(app, shlex.split(command), prog_name="rmqlb")
    text = told(command, result.stdout, result.stderr, result.exit_code)
    return text.replace(str(folder), "$XDG_CONFIG_HOME")


def told(command: str, out: str, err: str, code: int) -> str:
    parts = (f"$ rmqlb {command}", out.rstrip("\n"), "--- stderr", err.rstrip("\n"), f"--- exit {code}")
    return "\n".join("\n".join(line.rstrip() for line in part.splitlines()) for part in parts) + "\n"


def must_be_recorded(text: str, path: Path, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_output_is_as_recorded(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    # The path of a user's file is longer or shorter with each run, and must not decide where a line is wrapped.
    columns = NARROW if name.endswith("narrow") else 500 if name.startswith("context") else 110
    columns = int(named[1]) if (named := re.search(r"-(\d+)$", name)) else columns
    must_be_recorded(transcript(CASES[name], columns, tmp_path, monkeypatch), GOLDEN / f"{name}.txt", request)


OF_PIPELINE = ("table", "json", "prometheus")
NIGHTS = (date(2026, 11, 20), date(2026, 11, 21))
COUNTS: dict[str, Any] = {"groups": 9, "failed": 1, "incomplete": 0, "waived": 2, "errors": 3, "new": 2, "gone": 1}
VERDICT = Verdict(NIGHTS[1], NIGHTS[0], clusters=2, silent=("west",), **COUNTS)
CUT = RejectedFile("/snapshots/cut.json.gz", "the compressed data is cut short")
RESULT = PipelineResult(
    "/data/warehouse", files=5, read=5, snapshots=4, quarantined=(CUT,), ingested=NIGHTS, judged=NIGHTS,
    page="rmqlb-report/index.html", verdict=replace(VERDICT, line=VERDICT.sentence),
)  # fmt: skip


@pytest.mark.parametrize("fmt", OF_PIPELINE)
def test_what_the_pipeline_prints_is_as_recorded_without_spark(
    fmt: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("COLUMNS", "110")
    terminal = Terminal("pipeline run", OutputOptions(output=fmt), more_formats=("prometheus",))
    with pytest.raises(typer.Exit) as ended:
        show(RESULT, terminal, interrupted=False)
    text = told(f"pipeline run -w warehouse snapshots -o {fmt}", *capsys.readouterr(), int(ended.value.exit_code))
    must_be_recorded(text, GOLDEN / "pipeline" / f"run.{fmt}.txt", request)


def test_every_recorded_transcript_is_still_checked() -> None:
    recorded = {path.relative_to(GOLDEN).with_suffix("").as_posix() for path in GOLDEN.rglob("*.txt")}
    assert recorded == {*CASES, *(f"pipeline/run.{fmt}" for fmt in OF_PIPELINE)}
