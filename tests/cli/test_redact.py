from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from rmqlb.cli.exit_codes import ExitCode
from tests.cli.run import EXAMPLE, data_of, run
from tests.support.mismatches import every_case

RUNNING_INFO = Path(__file__).parent.parent / "data" / "dashboard" / "running-order-svc-inst0.json"
FETCH = ("fetch-routes", "-s", EXAMPLE, "--redact")
SECRET = ("order-svc", "OrderEvents", "192.0.2.2", "broker-a", "DefaultCluster", "cluster.json", "127.0.0.1")


def plan(source: str, stdin: str | None, group: str, strategy: str) -> Any:
    return data_of("plan-rebalance", "-s", source, "-g", group, "--remove", "1", "--strategy", strategy, stdin=stdin)


def test_no_name_is_left_anywhere_and_whoever_reads_it_is_told_what_it_cannot_tell() -> None:
    for fmt in ("json", "yaml"):
        done = run(*FETCH, "-o", fmt)
        assert done.code == 0
        assert [name for name in SECRET if name in done.stdout + done.stderr] == []
    shown = run("show-owners", "-s", "-", "-g", "group-1", stdin=done.stdout)
    assert "CONSISTENT_HASH hashes names and does not" in shown.stderr
    done = run(*FETCH, "--group", "order-*", "--topic", "zecret-*", "-o", "json")
    assert "zecret" not in done.stdout + done.stderr
    assert "none of the topics matches a pattern" in done.stdout


@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE"])
def test_a_plan_from_it_moves_the_same_queues(strategy: str, tmp_path: Path) -> None:
    redacted = run(*FETCH, "--redact-map", str(tmp_path / "map.json"))
    names = json.loads((tmp_path / "map.json").read_text())
    group = names["groups"]["order-svc"]
    back = json.dumps(plan("-", redacted.stdout, group, strategy))
    for kind in ("clientIds", "brokerNames", "topics", "groups", "addresses"):
        for old, new in sorted(names[kind].items(), key=lambda pair: -len(pair[1])):
            back = back.replace(json.dumps(new), json.dumps(old))
    found, planned = json.loads(back), plan(EXAMPLE, None, "order-svc", strategy)
    for each in (found, planned):
        del each["convergence"]  # each broker answers in times of its own, drawn by its name
    assert found == planned


def test_evidence_is_written_where_it_is_asked_for_and_names_nothing_then() -> None:
    saved = RUNNING_INFO.read_text()
    assert '"evidence"' not in run("fetch-routes", "-s", "-", stdin=saved).stdout
    with_names = run("fetch-routes", "-s", "-", "--evidence", stdin=saved).stdout
    (report,) = json.loads(with_names)["data"]["groups"][0]["reports"]
    assert len(report["evidence"]["queues"]) == 10
    for source in (saved, with_names):
        done = run("fetch-routes", "-s", "-", "--evidence", "--redact", stdin=source)
        (redacted,) = json.loads(done.stdout)["data"]["groups"][0]["reports"]
        assert [each | {"queue": None} for each in redacted["evidence"]["queues"]] == [
            each | {"queue": None} for each in report["evidence"]["queues"]
        ]
        assert sorted(redacted["evidence"]["statuses"]) == ["%RETRY%group-1", "topic-2", "topic-3"]
        assert [name for name in (*SECRET, "Skewed") if name in done.stdout + done.stderr] == []


def test_the_map_is_for_the_user_alone_and_leads_back(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    path.write_text("old")
    path.chmod(0o666)
    before = os.umask(0)
    try:
        assert run(*FETCH, "--redact-map", str(path)).code == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    written = json.loads(path.read_text())
    assert written["schema"] == "rmqlb/redact-map"
    assert "order-svc" in written["groups"]
    assert list(tmp_path.iterdir()) == [path]


@every_case(
    ("arguments", "problem"),
    [
        (("--redact-map", "x"), "--redact-map without --redact"),
        (("--redact", "--redact-map", "-"), "--redact-map - would show the names"),
        (("--redact", "--redact-map", "/nonexistent/x"), "--redact-map /nonexistent/x: No such file or directory"),
    ],
)
def test_a_map_that_cannot_be_is_refused_before_anything_is_written(
    arguments: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    done = run("fetch-routes", "-s", EXAMPLE, *arguments, "--to", str(tmp_path / "out.json"))
    assert (done.code, done.stdout) == (ExitCode.USAGE, "")
    assert done.stderr.splitlines()[0].startswith(f"error: {problem}")
    assert list(tmp_path.iterdir()) == []
