"""Stages of the pipeline in a process of their own, and what they took: time, rows, memory of all processes together.

Rules of this file:
- The process that is measured runs this module; it prints a line of JSON when a stage begins and one when it has ended.
- The one that measures (`run_stages`) is not counted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.installation import ROOT
from benchmarks.process_tree import Watch, look, peak

CONF: Mapping[str, str] = {"spark.driver.memory": "2g"}
"""What keeps driver and Python processes below 4 GiB together; it is rmqlb's own default."""

MASTER = "local[2]"


@dataclass(frozen=True)
class Job:
    """Stages to run one after the other, each whatever is there already.

    Attributes:
        warehouse: its folder.
        stages: their names; those of `fleet_peers.PEERS` do the work of allocate in another way, for comparison.
        strategies: those that are compared.
        inputs: what `ingest` reads.
        master: of the session.
        conf: Spark's settings.
        log_file: of Spark.
        force: stages that have nothing to do do it all the same.
    """

    warehouse: str
    stages: tuple[str, ...]
    strategies: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    master: str = MASTER
    conf: Mapping[str, str] = field(default_factory=lambda: dict(CONF))
    log_file: str = ""
    force: bool = True


@dataclass(frozen=True)
class Ran:
    """A stage that has run.

    Attributes:
        stage: its name.
        seconds: wall time.
        cpu_seconds: of all processes.
        peak_bytes: resident, of all processes together.
        tables: table → its rows, when the stage has written it.
        jobs: of Spark.
        read_bytes: by Spark's tasks.
        written: rows, by Spark's tasks.
    """

    stage: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    tables: Mapping[str, int]
    jobs: int = 0
    read_bytes: int = 0
    written: int = 0

    @property
    def rows(self) -> int:
        """Of all its tables, those of earlier runs among them."""
        return sum(self.tables.values())


def run_stages(job: Job) -> list[Ran]:
    """Run the stages in a new process, and watch it.

    Raises:
        RuntimeError: a stage failed, and what it said stands above; or documents were rejected.
    """
    command = [sys.executable, "-m", "benchmarks.fleet_run", json.dumps(asdict(job))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = []
    with (
        subprocess.Popen(  # noqa: S603 - our own module
            command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, cwd=ROOT, env=environment
        ) as process,
        Watch(process.pid) as watch,
    ):
        since = look(process.pid)
        for line in process.stdout or ():
            now, said = look(process.pid), json.loads(line)
            if "seconds" in said:
                cpu = now.cpu_seconds - since.cpu_seconds
                most = peak(watch.looks, since, now)
                counted = said["jobs"], said["readBytes"], said["written"]
                ran.append(Ran(said["stage"], said["seconds"], cpu, most, said["tables"], *counted))
            since = now
    if process.returncode != 0 or len(ran) != len(job.stages):
        raise RuntimeError(f"the stages {', '.join(job.stages)} ended with {process.returncode}")
    if rejected := sum(one.tables.get("quarantine", 0) for one in ran):
        raise RuntimeError(f"ingest rejected {rejected} documents: the figures would be of the others only")
    return ran


def main() -> None:
    """Run the job that is the one argument."""
    from rmqlb.pipeline.pipeline_plan import PipelinePlan
    from rmqlb.pipeline.spark.session import spark_session
    from rmqlb.pipeline.spark.settings import SessionSettings
    from rmqlb.pipeline.stages import STAGES, StageRun
    from tests.pipeline.spark_costs import costs

    from benchmarks.fleet_peers import peer
    from benchmarks.fleet_strategies import SETTINGS
    from rmqlb.pipeline.warehouse import Warehouse

    job = Job(**json.loads(sys.argv[1]))
    os.makedirs(job.warehouse, exist_ok=True)
    settings = SessionSettings(job.master, job.conf, job.log_file or os.path.join(job.warehouse, "spark.log"))
    plan = PipelinePlan(inputs=tuple(job.inputs), strategies=tuple(job.strategies), settings=SETTINGS, force=job.force)
    with spark_session(settings) as spark:
        run = StageRun(spark, Warehouse(job.warehouse), plan)
        for name in job.stages:
            do = STAGES.get(name) or peer(name, run)
            _say({"stage": name})
            with costs(spark) as took:
                report = do(run)
            tables = {each.table: each.rows for each in report.tables} if report.state == "written" else {}
            counted = {"jobs": took.jobs, "readBytes": took.bytes_read, "written": took.rows_written}
            _say({"stage": name, "seconds": report.seconds, "tables": tables, **counted})


def _say(what: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def stage_named(ran: Sequence[Ran], name: str) -> Ran:
    """The stage of that name."""
    return next(one for one in ran if one.stage == name)


if __name__ == "__main__":
    main()
