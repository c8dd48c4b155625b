"""The README tells the truth: its examples print what they say, its commands are the ones that CI runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.engine.allocate.rules import NAMES
from rmqlb.model.group_scenario import TIMER_NAMES
from rmqlb.model.snapshot import Wanted
from rmqlb.sources.dump.source import DumpSource
from rmqlb.views.report import FORMATS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def transcripts() -> Iterator[tuple[str, str]]:
    """Each command of the console blocks with the output below it."""
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


@pytest.mark.parametrize(("command", "output"), list(transcripts()), ids=[command[:60] for command, _ in transcripts()])
def test_examples_print_what_the_readme_shows(
    command: str, output: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if re.search(r"\bjq\b", command) and shutil.which("jq") is None:
        pytest.skip("this machine has no jq")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "rmqlb"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rmqlb "$@"\n')
    program.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, env=env, check=True)
    assert done.stderr == ""
    printed = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
    if request.config.getoption("--update-golden"):
        page = ROOT / "README.md"
        before, after = (f"$ {command}\n{shown.rstrip()}\n" for shown in (output, printed))
        page.write_text(page.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    else:
        assert printed == output


def test_there_are_seven_worked_examples() -> None:
    section = README.partition("\n## Seven examples\n")[2].partition("\n## ")[0]
    assert section.count("```console\n") == 7


def test_the_python_example_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    first, *others = blocks("python")
    assert len(others) == 3
    exec(compile(first + "".join(others), "README.md", "exec"), {})


def test_the_snapshot_written_by_hand_is_read(tmp_path: Path) -> None:
    (example,) = blocks("yaml")
    (tmp_path / "s.txt").write_text(example)
    snapshot = DumpSource(str(tmp_path / "s.txt")).fetch(Wanted(group="pay-svc"))
    assert snapshot.group("pay-svc").client_ids == ("10.0.1.7@4711", "10.0.1.8@4711")
    assert len(snapshot.route("Payments").subscribe_queues()) == 8


def test_ci_runs_the_test_command_of_the_readme() -> None:
    main, tests = (block.strip() for block in blocks("sh"))
    assert "rmqlb plan-rebalance -s examples/" in main
    assert tests in (ROOT / ".ci" / "run").read_text()


def test_every_strategy_format_and_exit_code_is_named() -> None:
    assert all(name in README for name in (*NAMES, *FORMATS))
    assert all(f" {code.value} " in README for code in ExitCode)


def test_the_changelog_has_the_version() -> None:
    from rmqlb import __version__

    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_examples_are_what_the_captures_give() -> None:
    from tests.support.make_examples import cluster_json

    assert (ROOT / "examples" / "cluster.json").read_text() == cluster_json()
    assert (ROOT / "examples" / "topicRoute-Skewed.txt").read_bytes() == (
        ROOT / "tests/data/mqadmin/5.5.0-topicRoute-Skewed.txt"
    ).read_bytes()


def test_every_figure_of_fail_on_is_named() -> None:
    from rmqlb.engine.fail_on_figures.of_plan import PLAN_FIGURES
    from rmqlb.engine.fail_on_figures.of_sends import SEND_FIGURES
    from rmqlb.engine.fail_on_figures.of_simulation import GROUP_FIGURES, ROLLOUT_FIGURES

    names = (*PLAN_FIGURES.names, *SEND_FIGURES.names, *SEND_FIGURES.of_subject, *GROUP_FIGURES.names)
    assert all(figure in README for figure in (*names, *ROLLOUT_FIGURES.names))


def test_every_timer_is_named() -> None:
    assert all(timer in README for timer in TIMER_NAMES)


def golden_data(name: str) -> dict[str, Any]:
    from tests.test_golden import GOLDEN

    text = (GOLDEN / f"{name}.json.txt").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text[text.index("{") : text.index("--- stderr")])["data"]
    return data


def test_the_keys_of_a_plan_are_named() -> None:
    data = golden_data("plan-rebalance")
    for key in ("group", "strategy", "strategyAfter", "topics", "consumers", "summary", "comparison", "conditions"):
        assert key in data
        assert key in README


def test_the_keys_of_a_simulation_are_named() -> None:
    data = golden_data("simulate-send")
    assert all(f"`{key}" in README for key in data if key != "topic")
    assert all(key in README for key in data["attempts"][0])
