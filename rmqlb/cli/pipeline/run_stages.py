"""How every stage command runs: a Spark session, the stages one after the other, and their summary."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

from rmqlb.cli.common.options import OutputOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.pipeline.options import OnlyOptions, StageOptions
from rmqlb.cli.pipeline.plan import plan_for
from rmqlb.errors import DataError, UsageError
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.model.stage import StageReport
from rmqlb.pipeline.ingest.input_files import find
from rmqlb.pipeline.spark.progress import told
from rmqlb.pipeline.spark.reachable import storage_must_answer
from rmqlb.pipeline.spark.session import spark_session
from rmqlb.pipeline.spark.settings import SessionSettings, parse_conf
from rmqlb.pipeline.stages import READ_ONLY, STAGES, UPKEEP, StageRun
from rmqlb.pipeline.warehouse import Warehouse
from rmqlb.views.pipeline_view import pipeline_report


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
    conf = parse_conf(stage.conf or ())
    place = _place(stage.warehouse)
    warehouse = Warehouse(place)
    log_file = stage.log_file or _log_of(warehouse.folder)
    settings = SessionSettings(stage.master, conf, log_file, delta=warehouse.needs_spark)
    find(plan.inputs)  # before Java starts, which takes seconds
    _make_folder(warehouse, place, must_be_there="ingest" not in stages)
    done: list[StageReport] = []
    with terminal.progress(stages=True, verb="running") as progress:
        progress("on Spark", 0, 0)
        with _session(warehouse, settings, writes=not READ_ONLY.issuperset(stages)) as spark:
            for name in stages:
                progress(name, 0, 0)
                run = StageRun(spark, warehouse, plan)
                with told(run.progress, partial(progress.of_units, name)):
                    done.append({**STAGES, **UPKEEP}[name](run))
    show_stages(terminal, warehouse.folder, done)


def show_stages(terminal: Terminal, folder: str, done: Sequence[StageReport]) -> None:
    """Show what stages have done, in the order in which they ran."""
    findings = [finding for report in done for finding in report.findings]
    terminal.show(pipeline_report(folder, done), ClusterSnapshot("warehouse", folder), findings)


@contextmanager
def _session(warehouse: Warehouse, settings: SessionSettings, *, writes: bool) -> Iterator[Any]:
    """A session in which this process is the only one that writes, which is settled before Spark has any work."""
    with ExitStack() as stack:
        if writes and not warehouse.needs_spark:
            stack.enter_context(warehouse.held())
        elif warehouse.needs_spark and not settings.master.startswith("sc://"):
            storage_must_answer(warehouse.folder, settings.conf)
        spark = stack.enter_context(spark_session(settings))
        warehouse.use(spark)
        if writes and warehouse.needs_spark:
            stack.enter_context(warehouse.held())
        yield spark


def _place(place: str | None) -> str:
    if not place:
        raise UsageError(
            "no warehouse", hint="name its folder or URI with --warehouse, or set RMQLB_WAREHOUSE", code="no-warehouse"
        )
    return place


def _make_folder(warehouse: Warehouse, place: str, *, must_be_there: bool) -> None:
    """Of a warehouse on this machine; what is at a URI only Spark can say."""
    if warehouse.needs_spark:
        return
    if must_be_there and not os.path.isdir(warehouse.folder):
        raise DataError(
            f"there is no warehouse {place}", hint="rmqlb pipeline ingest makes one", code="table-not-found"
        )
    try:
        os.makedirs(warehouse.folder, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--warehouse {place}: {error.strerror or error}", code="cannot-write") from None


def _log_of(place: str) -> str:
    """A file of this user's for each warehouse; where there is no home to write to, a temporary one."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    name = f"spark-{os.path.basename(place)}-{hashlib.sha256(os.fsencode(place)).hexdigest()[:8]}.log"
    for folder in (os.path.join(state, "rmqlb"), tempfile.gettempdir()):
        with suppress(OSError):
            os.makedirs(folder, exist_ok=True)
            if os.access(folder, os.W_OK):
                return os.path.join(folder, name)
    return name
