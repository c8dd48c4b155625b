"""`rmqlb pipeline`: a whole fleet on Spark, night by night; nothing of Spark is imported before a command runs."""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace
from typer import Argument

from rmqlb.cli.command_tree import grouped
from rmqlb.cli.common.declare import Options, Panel, Text, Texts, command, own
from rmqlb.cli.common.options import OutputOptions, StrategyOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.errors import DataError
from rmqlb.model.pipeline_result import PipelineResult
from rmqlb.model.result import WARNING, Finding, counted
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.verbs import amounts

if TYPE_CHECKING:
    from rmqlb.pipeline.judge import Question

_warehouse, _spark, _fleet = map(Panel, ("Warehouse", "Spark", "Fleet"))


class WarehouseOptions(Options):
    warehouse: Text = _warehouse(
        "-w DIR|URI",
        "Warehouse directory or URI. All Spark machines must have access to the directory. A URI needs a Hadoop file "
        "system, such as hdfs:// or s3a://.",
        envvar="RMQLB_WAREHOUSE",
    )
    force: bool = _warehouse.flag("Rebuild even if up to date.")
    master: str = _spark(
        "URL", "Spark master: local[N], spark://HOST:7077, yarn or k8s://….", "local[*]", envvar="RMQLB_SPARK_MASTER"
    )
    conf: Texts = _spark("KEY=VALUE", "Spark setting; repeatable.")
    log_file: Text = _spark("FILE", "File for Spark's log; default: in ~/.local/state/rmqlb.")


class FleetOptions(StrategyOptions):
    strategy: Texts = _fleet("STRATEGY", "Allocation strategy to compare with the current one; repeatable.")
    policy: Text = _fleet("-p FILE", "Policy file with rules and waivers for all clusters.")
    expect: Text = _fleet("FILE", "File of clusters that must report, one name per line.")


class ReportOptions(Options):
    to: str = own("DIR", "Write to this directory.", "rmqlb-report")


class IngestOptions(Options):
    cluster: Text = own(
        "NAME",
        "Cluster that the files belong to. Default: cluster=NAME in the path, otherwise the cluster of its brokers.",
    )
    keep: Text = _warehouse(
        "DAYS", "Drop nights that are older than this, such as 90d. The last night of each cluster stays."
    )


Paths = Annotated[list[str], Argument(metavar="PATH…", help="Files, folders, patterns or URIs.", show_default=False)]


@command
def ingest(paths: Paths, read: IngestOptions, where: WarehouseOptions, output: OutputOptions) -> None:
    """Read snapshots into the tables snapshots, groups, queues and quarantine.

    A path is a file, a folder, a pattern or a URI with rmqlb snapshots (JSON, YAML, JSON lines, gzip). The folder
    `cluster=NAME/date=YYYY-MM-DD` sets the cluster and the night of its files; several routes and saved
    responses in that folder make one snapshot. rmqlb recognises files already ingested by name, size and time.
    Unreadable input goes to quarantine, with the reason.

    Examples:
      rmqlb pipeline ingest -w warehouse snapshots/
      rmqlb pipeline ingest -w warehouse --cluster east 'east/2026-11-*.json.gz'

    Exit codes: 0 done, 2 usage, 4 no input found, 5 the Spark master or the storage cannot be reached.
    """
    _run("ingest", where, output, paths=paths, read=read)


@command
def judge(fleet: FleetOptions, where: WarehouseOptions, output: OutputOptions) -> None:
    """Compute assignments, figures, findings, failures and changes for the nights with new snapshots.

    Each group is judged under its current strategy. If the options differ from those of the last run, the last night is
    judged again. --force judges every night again.

    Examples:
      rmqlb pipeline judge -w warehouse
      rmqlb pipeline judge -w warehouse --policy examples/policy.yaml --strategy CONSISTENT_HASH

    Exit codes: 0 done, 2 usage, 3 a limit of the policy failed or an expected cluster is silent, 4 data is missing,
    5 the Spark master or the storage cannot be reached.
    """
    _run("judge", where, output, fleet=fleet, judged=True)


@command(without=("strategy_options",))
def report(to: ReportOptions, fleet: FleetOptions, where: WarehouseOptions, output: OutputOptions) -> None:
    """Write a report page for the fleet, and one for each cluster.

    Examples:
      rmqlb pipeline report -w warehouse --to report

    Exit codes: 0 done, 2 usage, 3 a limit of the policy failed or an expected cluster is silent, 4 data is missing,
    5 the Spark master or the storage cannot be reached.
    """
    _run("report", where, output, fleet=fleet, to=to.to)


@command
def run(
    paths: Paths,
    read: IngestOptions,
    to: ReportOptions,
    fleet: FleetOptions,
    where: WarehouseOptions,
    output: OutputOptions,
) -> None:
    """Run ingest, judge and report in one step.

    In addition to the common formats, there is -o prometheus. The first line is the verdict on the last night.

    Examples:
      rmqlb pipeline run -w warehouse snapshots/ --policy examples/policy.yaml --keep 90d

    Exit codes: 0 done, 2 usage, 3 a limit of the policy failed or an expected cluster is silent, 4 data is missing,
    5 the Spark master or the storage cannot be reached.
    """
    _run("run", where, output, paths=paths, read=read, fleet=fleet, judged=True, to=to.to)


def _run(
    verb: str,
    where: WarehouseOptions,
    output: OutputOptions,
    *,
    paths: list[str] | None = None,
    read: IngestOptions | None = None,
    fleet: FleetOptions | None = None,
    judged: bool = False,
    to: str | None = None,
) -> None:
    """The steps of a command: whatever can be refused without Java is refused first."""
    from rmqlb.pipeline import ingest
    from rmqlb.pipeline.spark import SparkSettings, fit, must_be_ready, parse_conf, spark_session
    from rmqlb.pipeline.warehouse import Warehouse, first_kept, is_uri, location, make_folder

    terminal = Terminal(f"pipeline {verb}", output, more_formats=("prometheus",))
    place, keep_days = location(where.warehouse), amounts.given(amounts.days, read.keep if read else None, "--keep")
    settings = SparkSettings(where.master, parse_conf(where.conf or ()), where.log_file or _log_of(place))
    question = _question(fleet or FleetOptions())
    local, uris = ingest.find_files(paths or ())
    if paths is None and not is_uri(place) and not os.path.isdir(place):
        hint = "rmqlb pipeline ingest creates one"
        raise DataError(f"there is no warehouse {where.warehouse}", hint=hint, code="table-not-found")
    if paths is not None and not is_uri(place):
        make_folder(place)
    must_be_ready(settings, place, *uris)
    from rmqlb.pipeline import judge
    from rmqlb.pipeline.documents import last_day
    from rmqlb.pipeline.report.page import write

    result, interrupted = PipelineResult(place), False
    size = sum(file.length for file in local) if paths is not None else _largest_night(Path(place))
    if uris or (paths is None and is_uri(place)):
        size = _UNKNOWN_SIZE
    with terminal.progress(stages=True, verb="running") as progress:
        progress("on Spark", 0, 0)
        with spark_session(settings, size) as spark:
            warehouse = Warehouse(spark, place)
            with warehouse.writing() if paths is not None or judged else nullcontext(enter_result=False) as interrupted:
                if paths is not None:
                    files = [*local, *ingest.files_at(warehouse, uris)]
                    fit(spark, settings, sum(file.length for file in files))
                    of_cluster = read.cluster if read else None
                    result = ingest.ingest(warehouse, files, of_cluster, force=where.force, progress=progress)
                    if keep_days is not None:
                        first = first_kept(warehouse.nights(), keep_days, last_day())
                        result = replace(result, dropped=tuple(warehouse.drop_before(first)))
                if judged:
                    progress("judge groups", 0, 0)
                    done = judge.judge(warehouse, question, force=where.force, progress=progress)
                    result = replace(result, judged=done.judged, incomplete=done.incomplete, verdict=done.verdict)
            if to is not None:
                progress("report", 0, 0)
                verdict = result.verdict or judge.verdict_of_last_night(warehouse, question)
                shown = write(spark, warehouse, Path(to), question.policy)
                verdict = None if verdict is None else replace(verdict, line=shown.line)
                result = replace(result, page=shown.page, verdict=verdict)
    show(result, terminal, interrupted=interrupted)


_UNKNOWN_SIZE = 1 << 40
_PACKED = 10  # Parquet takes about a tenth of the documents' bytes


def _largest_night(place: Path) -> int:
    """About how many bytes of documents a night of the warehouse has, at most."""
    nights = place.glob("groups/date=*")
    return _PACKED * max((sum(file.stat().st_size for file in night.iterdir()) for night in nights), default=0)


def show(result: PipelineResult, terminal: Terminal, *, interrupted: bool) -> None:
    """Show what a run did; it ends with exit code 3 where a limit of the policy failed."""
    from rmqlb.views.pipeline_view import pipeline_report

    findings = [*_findings(result, interrupted=interrupted)]
    terminal.show(pipeline_report(result), ClusterSnapshot("warehouse", result.warehouse), findings)
    if result.verdict is not None and result.verdict.is_violated:
        raise typer.Exit(ExitCode.CONDITION)


def _findings(result: PipelineResult, *, interrupted: bool) -> Iterator[Finding]:
    if interrupted:
        text = "an interrupted run left rows behind: they were removed, and its nights are written again"
        yield Finding("interrupted-run", text, severity=WARNING)
    if result.quarantined:
        text = f"{counted(len(result.quarantined), 'document')} rejected: see the table quarantine"
        yield Finding("rejected-document", text, severity=WARNING)
    for day in result.incomplete:
        yield Finding("incomplete-night", f"{day} is incomplete: ingest its files again", severity=WARNING)


def _question(fleet: FleetOptions) -> "Question":
    from rmqlb.engine.allocate.rules import NAMES
    from rmqlb.engine.assignment.detect import must_be_set
    from rmqlb.pipeline.ingest import read_expected
    from rmqlb.pipeline.judge import Question
    from rmqlb.sources.user_files.policy_file import read_policy
    from rmqlb.verbs.strategies import Strategies

    named = Strategies(fleet.strategy_options)
    strategies = tuple(dict.fromkeys(named.name(each) for each in fleet.strategy or ()))
    policy = None if fleet.policy is None else read_policy(fleet.policy, NAMES)
    if policy is not None:
        named.named += [rule.assume for rule in policy.rules if rule.assume is not None]
    named.must_apply(reported=True)
    settings = named.settings_for(["*"])
    must_be_set(strategies, settings)
    expected = () if fleet.expect is None else read_expected(fleet.expect)
    basis = repr((strategies, fleet.strategy_options, policy, named.sources))
    return Question(settings, strategies, policy, expected, basis)


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


app = grouped("pipeline", {"ingest": ingest, "judge": judge, "report": report, "run": run})


@app.callback()
def pipeline() -> None:
    """Analyse a whole fleet on Spark, night by night.

    The pipeline turns snapshots of all clusters into Parquet tables: the owner of each queue, figures and findings of
    each group, the effect of a lost consumer, host or broker, and changes since the previous night. `run` does all
    steps. Install rmqlb[pipeline] first.
    """
