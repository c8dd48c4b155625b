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
