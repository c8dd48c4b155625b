"""How every stage command runs: a Spark session, the stages one after the other, and their summary."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rmqlb.cli.common.options import OutputOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.pipeline.options import OnlyOptions, StageOptions
from rmqlb.cli.pipeline.plan import plan_for
from rmqlb.errors import DataError, UsageError
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.model.stage import StageReport
from rmqlb.pipeline.spark.progress import stage_progress
from rmqlb.pipeline.spark.session import spark_session
from rmqlb.pipeline.spark.settings import SessionSettings, parse_conf
from rmqlb.pipeline.stages import STAGES, StageRun
from rmqlb.pipeline.warehouse import Warehouse
from rmqlb.views.pipeline_view import pipeline_report

_LOG = "spark.log"


def run_stages(
    stages: Sequence[str],
    which: OnlyOptions,
    stage: StageOptions,
    output: OutputOptions,
    *,
    command: str | None = None,
    **asked: Any,
) -> None:
    """Run stages and show what they have done; `command`: its name, by default that of the one stage."""
    plan = plan_for(which, force=stage.force, **asked)
    terminal = Terminal(command or f"pipeline {stages[0]}", output)
    settings = SessionSettings(master=stage.master, conf=parse_conf(stage.conf or ()))
    folder = _folder(stage.warehouse, must_be_there="ingest" not in stages)
    settings = replace(settings, log_file=stage.log_file or os.path.join(folder, _LOG))
    done: list[StageReport] = []
    with terminal.progress(stages=True, verb="running") as progress:
        progress("on Spark", 0, 0)
        with spark_session(settings) as spark:
            run = StageRun(spark, Warehouse(folder), plan)
            for name in stages:
                progress(name, 0, 0)
                with stage_progress(spark, lambda tasks, of, name=name: progress(name, tasks, of)):  # type: ignore[misc]
                    done.append(STAGES[name](run))
    show_stages(terminal, folder, done)


def show_stages(terminal: Terminal, folder: str, done: Sequence[StageReport]) -> None:
    """Show what stages have done, in the order in which they ran."""
    findings = [finding for report in done for finding in report.findings]
    terminal.show(pipeline_report(folder, done), ClusterSnapshot("warehouse", folder), findings)


def _folder(warehouse: str | None, *, must_be_there: bool) -> str:
    if not warehouse:
        raise UsageError(
            "no warehouse", hint="name its folder with --warehouse, or set RMQLB_WAREHOUSE", code="no-warehouse"
        )
    folder = os.path.abspath(warehouse)
    if must_be_there and not os.path.isdir(folder):
        raise DataError(
            f"there is no warehouse {warehouse}", hint="rmqlb pipeline ingest makes one", code="table-not-found"
        )
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--warehouse {warehouse}: {error.strerror or error}", code="cannot-write") from None
    return folder
