"""`pipeline ingest`: new files → snapshots, quarantine, groups and queues.

A file is identified by name, size and time. The driver decides which files are read and which snapshot of a cluster and
night counts; one `mapInArrow` reads the documents (`documents.py`).
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from msgspec import convert

from rmqlb.errors import DataError
from rmqlb.model.message_queue import grouped
from rmqlb.model.pipeline_result import PipelineResult, RejectedFile
from rmqlb.model.result import Progress, in_utc, no_progress
from rmqlb.pipeline.documents import DocumentReader, labels, last_day
from rmqlb.pipeline.spark import in_workers
from rmqlb.pipeline.tables import (
    INGESTED,
    Groups,
    Quarantine,
    Queues,
    ReadFile,
    Row,
    Snapshots,
    columns,
    name,
    union_ddl,
)
from rmqlb.pipeline.warehouse import INGESTED as INGESTED_MARK
from rmqlb.pipeline.warehouse import Night, Warehouse, is_uri, short
from rmqlb.sources.user_files.text_file import read_text
from rmqlb.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BYTES_A_TASK = 4 << 20
_MOST_TASKS = 512
_INPUT = "unit string, path string, length bigint, modified bigint, content binary"
_HEAD = [column for column in columns(Snapshots) if column != "document"]  # for the driver


def find_files(inputs: Iterable[str]) -> tuple[list[ReadFile], list[str]]:
    """The files of this machine, and the URIs, of the inputs: files, folders, patterns and URIs (raises DataError).

    Names in folders that begin with `.` or `_` are skipped.
    """
    files: dict[str, ReadFile] = {}
    uris: list[str] = []
    for given in inputs:
        path = "/" + given.removeprefix("file:").lstrip("/") if given.startswith("file:/") else given
        if is_uri(path):
            uris.append(given)
            continue
        roots = [path] if os.path.lexists(path) else glob.glob(path, recursive=True)
        found = [file for root in roots for file in _below(os.path.abspath(root))]
        if not found:
            hint = "name files, folders, patterns or URIs that Hadoop reads"
            raise DataError(f"{given}: no file found", hint=hint)
        files |= {file.path: file for file in found}
    for path in files:
        if re.search("[\ud800-\udfff]", path):
            raise DataError(f"{path!r}: the file name is not UTF-8 text", hint="rename it")
    return [files[path] for path in sorted(files)], uris


def _below(root: str) -> Iterator[ReadFile]:
    if not os.path.isdir(root):
        yield _file(root)
        return
    for folder, folders, names in os.walk(root):
        folders[:] = [each for each in folders if not each.startswith((".", "_"))]
        yield from (_file(os.path.join(folder, each)) for each in names if not each.startswith((".", "_")))


def _file(path: str) -> ReadFile:
    try:
        state = os.stat(path)
    except OSError:  # a broken link, which is rejected later
        return ReadFile(path, 0, 0)
    return ReadFile(path, state.st_size, state.st_mtime_ns // 1_000_000)


def files_at(warehouse: Warehouse, uris: Iterable[str]) -> Iterator[ReadFile]:
    for uri in uris:
        found = warehouse.files_in(uri)
        if not found:
            raise DataError(f"{uri}: no file found", hint="name a file or a folder that Hadoop reads")
        yield from found


def ingest(
    warehouse: Warehouse,
    files: Sequence[ReadFile],
    cluster: str | None = None,
    *,
    force: bool,
    progress: Progress = no_progress,
) -> PipelineResult:
    """Read the new files, with `force` all, and write their nights (raises DataError).

    This process must be the only writer. `cluster` names the cluster of all files; by default the path or the brokers
    do.
    """
    nights = warehouse.nights()
    digests = _digests(files, cluster)
    chosen = files if force else _unknown(warehouse, files, nights, digests)
    broken = {day for day in warehouse.dates(Snapshots) if nights.get(day, Night()).ingested is None}
    if not chosen:
        return PipelineResult(warehouse.place, len(files), incomplete=tuple(sorted(broken)))
    reader = DocumentReader(cluster, __version__, last_day())
    progress("ingest", 0, len(chosen))
    number = len(chosen)
    read = in_workers(
        _inputs(warehouse, chosen),
        reader.rows,
        union_ddl(INGESTED),
        lambda done: progress("ingest", min(done, number - 1), number),
    )
    staged = warehouse.stage(read, "read")
    return _write(warehouse, staged, chosen, digests, broken, len(files))


def _digests(files: Iterable[ReadFile], cluster: str | None) -> dict[date, str]:
    of = grouped((day, file) for file in files if (day := labels(file.path).date) is not None)
    return {day: short(cluster, __version__, sorted((f.path, f.length, f.modified) for f in of[day])) for day in of}


def _unknown(
    warehouse: Warehouse, files: Sequence[ReadFile], nights: Mapping[date, Night], digests: Mapping[date, str]
) -> list[ReadFile]:
    """The new files; digests show nights without changes, whose tables need no look."""
    same = {day for day, digest in digests.items() if day in nights and nights[day].inputs == digest}
    rest = [file for file in files if labels(file.path).date not in same]
    if not rest:
        return []
    dates = {labels(file.path).date for file in rest}
    written = [day for day, night in nights.items() if night.ingested is not None]
    days = written if None in dates else [day for day in written if day in dates]
    known = set(_known(warehouse, days)) if days else set()
    new = {file.path for file in rest if file not in known}
    units = {labels(path).unit for path in new} - {None}
    return [file for file in rest if file.path in new or labels(file.path).unit in units]


def _known(warehouse: Warehouse, days: Sequence[date]) -> Iterator[ReadFile]:
    from pyspark.sql import functions as fn

    taken = warehouse.read(Snapshots, days).select(fn.explode("files").alias("file"))
    rejected = warehouse.read(Quarantine, days).where(fn.col("version") == __version__).select("file")
    for row in taken.union(rejected).collect():
        yield ReadFile(*row["file"])


def _inputs(warehouse: Warehouse, files: Sequence[ReadFile]) -> DataFrame:
    spark = warehouse.spark
    size = sum(file.length for file in files)
    units = set(map(_unit, files))
    cores = spark.sparkContext.defaultParallelism
    tasks = max(1, min(len(units), _MOST_TASKS, max(cores, size // _BYTES_A_TASK)))
    here = [file for file in files if not is_uri(file.path)]
    frame = spark.createDataFrame([(_unit(f), f.path, f.length, f.modified, None) for f in here], _INPUT)
    away = [file for file in files if is_uri(file.path)]
    if away:
        content = spark.read.format("binaryFile").load([file.path for file in away]).select("path", "content")
        rows = [(_unit(f), f.path, f.length, f.modified) for f in away]
        named = spark.createDataFrame(rows, _INPUT.rpartition(",")[0])
        frame = frame.union(named.join(content, "path").select(frame.columns))
    return frame.repartition(tasks, "unit").sortWithinPartitions("unit", "path")


def _unit(file: ReadFile) -> str:
    return labels(file.path).unit or file.path


def _write(
    warehouse: Warehouse,
    staged: DataFrame,
    chosen: Sequence[ReadFile],
    digests: Mapping[date, str],
    broken: set[date],
    given: int,
) -> PipelineResult:
    paths = {file.path for file in chosen}
    found = staged.selectExpr("snapshots", "quarantine").where("snapshots is not null or quarantine is not null")
    wanted = ", ".join(f"'{column}', snapshots.{column}" for column in _HEAD)
    rows = found.selectExpr(f"if(snapshots is null, null, named_struct({wanted})) as head", "quarantine").collect()
    new = [_head(row["head"]) for row in rows if row["head"] is not None]
    rejected = [convert(row["quarantine"].asDict(recursive=True), Quarantine) for row in rows if row["quarantine"]]
    touched = {head.date for head in new} | {row.date for row in rejected} | {day for day in digests if day in broken}
    written = set(warehouse.dates(Snapshots))
    earlier_days = sorted(touched & written)
    before = [day for day in written if touched and day < min(touched)][-1:]
    there = [*before, *earlier_days]
    old = [_head(row) for row in warehouse.read(Snapshots, there).select(*_HEAD).collect()] if there else []
    kept = [head for head in old if head.date in touched and paths.isdisjoint(each.path for each in head.files)]
    night_before = [head for head in old if head.date not in touched and head.counts]
    new = list({_key(head): head for head in new}.values())
    rivals = list(_rivals(new, kept, night_before))
    out = {_key(head) for head, _ in rivals}
    for head, other in rivals:
        reason = f"another cluster is named {head.cluster} too, with other brokers: {other}; rename one: cluster=NAME"
        of: dict[str, Any] = {"date": head.date, "cluster": head.cluster, "version": __version__}
        rejected += [
            Quarantine(**of, file=file, position=0, other=other, code="name-conflict", reason=reason)
            for file in head.files
        ]
    kept, new = [head for head in kept if _key(head) not in out], [head for head in new if _key(head) not in out]
    counting = _counting([*kept, *new])
    days = sorted(touched)
    for day in days:
        warehouse.unmark(day, ingested=True)
    chosen_rows = [(*_key(head), _key(head) in counting, head in kept) for head in [*kept, *new]]
    fields = "date date, cluster string, snapshot string, counts boolean, isOld boolean"
    choice = warehouse.spark.createDataFrame(chosen_rows, fields)
    for table in (Snapshots, Groups, Queues):
        warehouse.replace(table, _chosen(warehouse, staged, table, choice, earlier_days), days)
    if rejected or set(earlier_days).intersection(warehouse.dates(Quarantine)):
        warehouse.replace(Quarantine, _quarantine(warehouse, rejected, earlier_days, paths), days)
    for day in days:
        token = short(__version__, sorted(key for key in counting if key[0] == day))
        warehouse.mark(day, INGESTED_MARK, f"{token}.{digests.get(day, '')}")
    return PipelineResult(
        warehouse.place,
        files=given,
        read=len(chosen),
        snapshots=len(new),
        quarantined=tuple(RejectedFile(row.file.path, row.reason) for row in rejected),
        ingested=tuple(days),
        incomplete=tuple(sorted(broken - touched)),
    )


def _head(row: Any) -> Snapshots:
    return convert(row.asDict(recursive=True), Snapshots, strict=False)


def _key(head: Snapshots) -> tuple[date, str, str]:
    return head.date, head.cluster or "", head.snapshot


def _counting(heads: Iterable[Snapshots]) -> set[tuple[date, str, str]]:
    last: dict[tuple[date, str], Snapshots] = {}
    early = datetime.min.replace(tzinfo=UTC)
    for head in sorted(heads, key=lambda each: (in_utc(each.taken_at) or early, each.snapshot)):
        last[_key(head)[:2]] = head
    return {_key(head) for head in last.values()}


def _rivals(
    new: Sequence[Snapshots], kept: Sequence[Snapshots], before: Sequence[Snapshots]
) -> Iterator[tuple[Snapshots, str]]:
    """New snapshots that share no broker address with others of the same cluster name and night.

    A snapshot that shares an address with one in the warehouse stays. If none does, the right one is unknown, and all
    are rejected.
    """
    for day, cluster in sorted({(head.date, head.cluster) for head in new}):
        here = [head for head in new if (head.date, head.cluster) == (day, cluster) and head.broker_addresses]
        settled = [head for head in kept if (head.date, head.cluster) == (day, cluster) and head.broker_addresses]
        known = settled or [head for head in before if head.cluster == cluster and head.broker_addresses]
        for head in here:
            if settled and _share(head, known):
                continue
            others = [each for each in (*settled, *here) if each is not head and not _share(head, [each])]
            trusted = not settled and _share(head, known)
            if others and not trusted:
                yield head, others[0].files[0].path


def _share(head: Snapshots, others: Iterable[Snapshots]) -> bool:
    own = set(head.broker_addresses)
    return any(own.intersection(each.broker_addresses) for each in others)


def _chosen(
    warehouse: Warehouse, staged: DataFrame, table: type[Row], choice: DataFrame, days: Collection[date]
) -> DataFrame:
    """The rows of the snapshots in `choice`, new and old; groups and queues only of snapshots that count."""
    from pyspark.sql import functions as fn

    keys = ["date", "cluster", "snapshot"]
    own = columns(table)
    fresh = staged.where(fn.col(name(table)).isNotNull()).select(f"{name(table)}.*")
    if "counts" in own:
        fresh = fresh.drop("counts")
    else:
        choice = choice.where("counts")
    rows = fresh.join(choice.where("not isOld"), keys).select(*own)
    if days:
        there = warehouse.read(table, days).drop("counts")
        rows = rows.unionByName(there.join(choice.where("isOld"), keys).select(*own))
    return rows


def _quarantine(
    warehouse: Warehouse, rejected: Sequence[Quarantine], days: Collection[date], paths: Collection[str]
) -> DataFrame:
    from pyspark.sql import functions as fn

    rows = warehouse.frame(Quarantine, rejected)
    if not days:
        return rows
    there = warehouse.read(Quarantine, days)
    read_again = warehouse.spark.createDataFrame([(path,) for path in paths], "path string")
    there = there.join(read_again, fn.col("file.path") == fn.col("path"), "left_anti")
    return rows.unionByName(there.select(*rows.columns))


def read_expected(path: str) -> tuple[str, ...]:
    """The clusters that must report, one per line; `#` begins a comment (raises DataError, UsageError)."""
    lines = read_text(path, "--expect", 1 << 20, "the limit is 1 MB").splitlines()
    names = tuple(dict.fromkeys(name for line in lines if (name := line.partition("#")[0].strip())))
    if not names:
        raise DataError(f"--expect {path}: the file names no cluster", hint="write one name per line")
    return names
