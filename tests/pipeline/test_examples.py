"""The examples in the help of the pipeline's commands, run as they stand there, one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.run import run
from tools.manual.tree import command_tree

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FLEET = "--clusters 1 --brokers 2 --groups 4 --topics 2 --days 2 --odd-names 0 --faults 0"


QUICKER = {"generate": ("--queues", "2000"), "producers": ("--trials", "10"), "run": ("--trials", "10")}
"""Instead of what the example gives, where it would take minutes."""


def quicker(words: list[str], command: str) -> list[str]:
    option, number = QUICKER.get(command, ("", ""))
    if option in words:
        at = words.index(option)
        words = words[:at] + words[at + 2 :]
    return [*words, option, number] if option else words


def test_every_example_runs(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert spark.version
    monkeypatch.chdir(tmp_path)
    assert run("pipeline", "generate", "small", *FLEET.split(), "-q").code == 0
    (tmp_path / "dumps").mkdir()
    (tmp_path / "east").mkdir()
    for path in sorted((tmp_path / "small").rglob("*.json.gz")):
        place = tmp_path / "dumps" / "cluster=east" / path.parent.name / path.name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.read_bytes())
        (tmp_path / "east" / f"{path.parent.name.removeprefix('date=')}.json.gz").write_bytes(path.read_bytes())
    pipeline = next(command for command in command_tree().commands if command.name == "pipeline")
    for command in pipeline.commands:
        assert command.help.examples
        for example in command.help.examples:
            words = example.replace(" dumps --groups", " made --groups").replace("'", "").split()
            ran = run(*quicker(words[1:], command.name), "-q")
            assert ran.code == 0, (example, ran.stderr)
