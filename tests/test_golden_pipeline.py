"""What the stages of the pipeline print in each format, without Spark.

`golden/pipeline/run.json.txt` is what Spark did (`tests/pipeline/test_golden.py` holds the stages to it); each command's
other transcripts are that, shown. They are rewritten by `pytest tests/test_golden_pipeline.py --update-golden`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from rmqlb.cli.common.options import OutputOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.pipeline.run_stages import show_stages
from rmqlb.cli.results import RESULTS
from rmqlb.model.finding import Finding
from rmqlb.model.stage import StageReport, stage_report
from rmqlb.views.report import FORMATS

GOLDEN = Path(__file__).parent / "golden" / "pipeline"
RECORDED = GOLDEN / "run.json.txt"
WAREHOUSE = "/data/warehouse"
FLEET = "--clusters 1 --brokers 2 --groups 4 --topics 2 --days 2 --odd-names 0 --faults 0 --bad-files 1"
"""The fleet that was ingested, as options of `pipeline generate`."""
NAMES = [
    command.removeprefix("pipeline ")
    for result in RESULTS
    if result.name == "rmqlb/pipeline"
    for command in result.commands
]
OF_A_STAGE = {"ingest": ("quarantined",), "report": ("info",)}
"""Stage → the codes of its findings."""


def recorded() -> list[StageReport]:
    """The stages as Spark did them."""
    _, _, rest = RECORDED.read_text(encoding="utf-8").partition("\n")
    value = json.loads(rest.partition("\n--- stderr\n")[0])
    findings = msgspec.convert(value["findings"], list[Finding])
    return [
        stage_report(
            stage["stage"],
            stage["seconds"],
            {table["table"]: table["rows"] for table in stage["tables"]},
            state=stage["state"],
            counts=stage["counts"],
            findings=tuple(finding for finding in findings if finding.code in OF_A_STAGE.get(stage["stage"], ())),
        )
        for stage in value["data"]["stages"]
    ]


def compacted() -> StageReport:
    """What `compact --keep 1d` says of the tables that those stages made; `test_commands.py` has Spark do it."""
    rows = {table.table: table.rows for stage in recorded()[:-1] for table in stage.tables}
    return stage_report("compact", 12.5, dict(sorted(rows.items())), counts={"removedSnapshots": 1})


def typed(name: str, fmt: str) -> str:
    """The command line."""
    inputs = {"run": " dumps --trials 10", "ingest": " dumps", "compact": " --keep 1d"}.get(name, "")
    return f"pipeline {name} -w warehouse{inputs} -o {fmt}"


def transcript(name: str, fmt: str, stdout: str, stderr: str) -> str:
    """In the form of all transcripts."""
    parts = [f"$ rmqlb {typed(name, fmt)}", stdout.rstrip("\n"), "--- stderr", stderr.rstrip("\n"), "--- exit 0"]
    return "\n".join("\n".join(line.rstrip() for line in part.splitlines()) for part in parts) + "\n"


def shown(name: str, fmt: str, stages: Sequence[StageReport], capsys: pytest.CaptureFixture[str]) -> str:
    """The transcript of a command that did these stages."""
    show_stages(Terminal(f"pipeline {name}", OutputOptions(output=fmt)), WAREHOUSE, stages)
    return transcript(name, fmt, *capsys.readouterr())


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_output_is_as_recorded(
    name: str,
    fmt: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.setenv("COLUMNS", "110")
    stages = [compacted()] if name == "compact" else [stage for stage in recorded() if name in (stage.stage, "run")]
    assert stages
    text = shown(name, fmt, stages, capsys)
    path = GOLDEN / f"{name}.{fmt}.txt"
    if request.config.getoption("--update-golden") and path != RECORDED:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_every_recorded_transcript_is_still_checked() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {f"{name}.{fmt}.txt" for name in NAMES for fmt in FORMATS}


def test_no_finding_of_a_stage_is_lost() -> None:
    _, _, rest = RECORDED.read_text(encoding="utf-8").partition("\n")
    findings = json.loads(rest.partition("\n--- stderr\n")[0])["findings"]
    assert [finding.code for stage in recorded() for finding in stage.findings] == [each["code"] for each in findings]
    assert len(findings) == 2
