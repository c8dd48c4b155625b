"""A folder that each machine of a cluster has for itself, as a path that means another folder in each process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipeline.documents import snapshot, write

from .quick_java import QUICK_JAVA
from .scripts import ROOT
from .spark_servers import StandaloneCluster

pytestmark = [pytest.mark.spark, pytest.mark.slow]

OWN = "/proc/self/cwd"


def test_a_folder_that_executors_do_not_see_is_refused_before_it_takes_rows(
    tmp_path: Path, standalone_cluster: StandaloneCluster
) -> None:
    dumps = write(tmp_path / "dumps", {"a.json": snapshot()})
    conf = ("spark.executor.memory=512m", "spark.driver.memory=600m", f"spark.driver.extraJavaOptions={QUICK_JAVA}")
    command = [sys.executable, "-m", "rmqlb", "pipeline", "ingest", dumps, "-w", f"{OWN}/warehouse"]
    command += ["--master", standalone_cluster.master, "--log-file", "spark.log"]
    done = subprocess.run(
        [*command, *(part for setting in conf for part in ("--conf", setting))],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    line, hint = done.stderr.splitlines()[-2:]
    assert line == (
        f"error: --warehouse {OWN}/warehouse: of 16 files that Spark's machines wrote there, this machine sees 0 "
        "[folder-not-shared]"
    )
    assert hint.startswith("hint: mount one folder under this name on all of them, or name a URI")
    assert sorted(os.listdir(tmp_path / "warehouse")) == [".lock"]
