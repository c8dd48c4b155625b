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

GOLDEN = Path(__file__).parent / "golden"
ROOT = Path(__file__).parent.parent
CASES = {
    path.stem: path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("$ rmqlb ")
    for path in sorted(GOLDEN.glob("*.txt"))
}
"""A transcript begins with its command: write that line into a new file, and update."""
BASIC = {
    name.removesuffix(".plain"): line.removesuffix(" -o plain") for name, line in CASES.items() if ".plain" in name
}
CONTEXTS = """\
context: saved
contexts:
  staging: {source: 'http://10.0.0.2:8082', user: viewer, secret: 'env:STAGING_PASSWORD', source-timeout: 9s}
  saved: {source: /data/cluster.json}
"""
"""What the user's file says before a command on contexts."""
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


def test_every_recorded_transcript_of_the_pipeline_is_still_checked() -> None:
    assert {path.stem for path in (GOLDEN / "pipeline").iterdir()} == {f"run.{fmt}" for fmt in OF_PIPELINE}
