"""The stages do what the transcripts of `tests/golden/pipeline` say: `-m spark --update-golden` records them anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.run import run
from tests.support.schemas import must_fit
from tests.test_golden_pipeline import FLEET, RECORDED, WAREHOUSE, transcript, typed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def without_times(text: str) -> Any:
    """The envelope, but for how long each stage took."""
    value = json.loads(text)
    for stage in value["data"]["stages"]:
        assert stage.pop("seconds") > 0
    return value


def test_the_stages_do_what_is_recorded(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    assert spark.version
    monkeypatch.chdir(tmp_path)
    assert run("pipeline", "generate", "dumps", *FLEET.split(), "-q").code == 0
    ran = run(*typed("run", "json").split())
    assert ran.code == 0, ran.stderr[-2000:]
    printed = ran.stdout.replace(str(tmp_path / "warehouse"), WAREHOUSE)
    must_fit(json.loads(printed))
    if request.config.getoption("--update-golden"):
        RECORDED.parent.mkdir(exist_ok=True)
        RECORDED.write_text(transcript("run", "json", printed, ""), encoding="utf-8")
    _, _, rest = RECORDED.read_text(encoding="utf-8").partition("\n")
    assert without_times(printed) == without_times(rest.partition("\n--- stderr\n")[0])
