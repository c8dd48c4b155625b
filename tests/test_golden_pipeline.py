"""What the pipeline prints in each format, without Spark; `pytest tests/test_golden_pipeline.py --update-golden`."""

from datetime import date
from pathlib import Path

import pytest
import typer
from msgspec.structs import replace

from rmqlb.cli.common.options import OutputOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.pipeline import show
from rmqlb.model.pipeline_result import PipelineResult, RejectedFile, Verdict

GOLDEN = Path(__file__).parent / "golden" / "pipeline"
FORMATS = ("table", "json", "prometheus")
NIGHTS = (date(2026, 11, 20), date(2026, 11, 21))
VERDICT = Verdict(
    NIGHTS[1],
    NIGHTS[0],
    clusters=2,
    silent=("west",),
    groups=9,
    failed=1,
    incomplete=0,
    waived=2,
    errors=3,
    new=2,
    gone=1,
)
RESULT = PipelineResult(
    "/data/warehouse",
    files=5,
    read=5,
    snapshots=4,
    quarantined=(RejectedFile("/snapshots/cut.json.gz", "the compressed data is cut short"),),
    ingested=NIGHTS,
    judged=NIGHTS,
    page="rmqlb-report/index.html",
    verdict=replace(VERDICT, line=VERDICT.sentence),
)


@pytest.mark.parametrize("fmt", FORMATS)
def test_output_is_as_recorded(
    fmt: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("COLUMNS", "110")
    terminal = Terminal("pipeline run", OutputOptions(output=fmt), more_formats=("prometheus",))
    with pytest.raises(typer.Exit) as ended:
        show(RESULT, terminal, interrupted=False)
    out, err = capsys.readouterr()
    line = f"$ rmqlb pipeline run -w warehouse snapshots -o {fmt}"
    parts = [line, out.rstrip("\n"), "--- stderr", err.rstrip("\n"), f"--- exit {int(ended.value.exit_code)}"]
    text = "\n".join("\n".join(row.rstrip() for row in part.splitlines()) for part in parts) + "\n"
    path = GOLDEN / f"run.{fmt}.txt"
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_every_recorded_transcript_is_still_checked() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {f"run.{fmt}.txt" for fmt in FORMATS}
