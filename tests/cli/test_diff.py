from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.replay_dashboard import Replay, dashboard

from .configured import Desk
from .run import EXAMPLE, ROOT, data_of, run
from .test_contexts import LOGIN, at, passwords

LATER = str(ROOT / "examples" / "cluster-later.json")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


def data(*args: str) -> Any:
    return data_of("diff", *args)


def test_a_context_is_a_source_by_its_name_and_a_file_goes_before_it(desk: Desk) -> None:
    then, now = f"then: {{source: {EXAMPLE}}}", f"now: {{source: {LATER}, source-timeout: 9s}}"
    desk.user(f"context: now\ncontexts:\n  {then}\n  {now}\n")
    found = data("then", "now")
    assert [found[side]["context"] for side in ("before", "after")] == ["then", "now"]
    assert found["summary"]["moved"] == 18
    ran = run("diff", "then", LATER)
    assert f"context then: {EXAMPLE}" in ran.stderr
    assert ran.stdout.splitlines()[1].startswith("then (2026-11-21")
    assert data(EXAMPLE, EXAMPLE)["after"]["context"] is None  # the active context is not compared
    (desk.project / "now").write_bytes(Path(EXAMPLE).read_bytes())
    assert data(EXAMPLE, "now")["summary"]["groupsChanged"] == 0
    ran = run("diff", EXAMPLE, "thenn")
    assert (ran.code, ran.stdout) == (4, "")
    assert "hint: did you mean then?" in ran.stderr


def test_a_context_logs_in_with_its_own_secret(desk: Desk) -> None:
    with dashboard(Replay(login=LOGIN)) as replay:
        desk.user(at(replay.url, "user: admin", f"secret: 'file:{desk.secret('of the context')}'"))
        ran = run("diff", EXAMPLE, "a", env={"RMQLB_PASSWORD": ""})
    assert ran.code in (0, 5)
    assert set(passwords(replay)) == {"of the context"}


def test_a_snapshot_is_compared_with_a_live_cluster() -> None:
    with dashboard(Replay()) as replay:
        found = data(EXAMPLE, replay.url)
    assert (found["after"]["kind"], found["topics"]) == ("dashboard", [])


def stored(path: Path, command: str, *args: str) -> str:
    ran = run(command, "-s", EXAMPLE, "-g", "order-svc", *args, "-o", "json")
    assert ran.code == 0, ran.stderr
    path.write_text(ran.stdout, encoding="utf-8")
    return str(path)


def test_a_stored_plan_says_whether_it_went_as_planned(tmp_path: Path) -> None:
    plan = stored(tmp_path / "plan.json", "plan-rebalance", "--add", "1")
    found = data(plan, LATER, "--fail-on", "differences>0")
    assert found["summary"] == {"queues": 25, "differences": 0, "otherOwner": 0, "notYet": 0, "unknown": 0}
    assert found["groups"][0]["placeholders"] == {"placeholder-01": "192.0.2.2@inst3"}
    ran = run("diff", plan, LATER, "-o", "csv")  # no queue differs
    assert (ran.code, len(ran.stdout.splitlines())) == (0, 1)
    ran = run("diff", plan, EXAMPLE, "--fail-on", "not-yet>0")  # nobody has joined there
    assert (ran.code, ran.stdout.splitlines()[0]) == (3, "13 of 25 queues as predicted; 12 not yet moved")
    assert run("diff", plan, LATER, "--fail-on", "moved>0").code == 2


def test_a_stored_simulation_is_compared_by_its_last_owners(tmp_path: Path) -> None:
    file = stored(tmp_path / "simulation.json", "simulate-rebalance", "--event", "leave 192.0.2.2@inst2@5s")
    found = data(file, EXAMPLE)
    assert (found["groups"][0]["kind"], found["summary"]["queues"]) == ("simulation", 25)
    assert found["summary"]["differences"] == found["summary"]["notYet"] > 0
    (tmp_path / "broken.json").write_text('{"schema": "rmqlb/plan", "data": {}}', encoding="utf-8")
    ran = run("diff", str(tmp_path / "broken.json"), EXAMPLE)
    assert (ran.code, "it is not a plan or a simulation" in ran.stderr) == (2, True)
