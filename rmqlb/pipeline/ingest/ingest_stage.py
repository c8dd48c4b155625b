"""Stage 1, ingest: snapshots and saved answers, in files, become the tables that all other stages read.

Pieces (a route, a Dashboard answer) of one folder, cluster and date make one snapshot together, as the documents of one
dump do, the later by file and position over the earlier; so when more come, it is made anew of all of them, and what it
was before is shown no more. So it is with a file that now says something else about the same cluster and time. Counts
in equal counts out, or nothing is taken over.

A night costs one night: files that were read before are not read again (`new_files.py`), and of the tables only the
dates of the new documents are looked at. Of new documents each table is one job, and whatever else has to be known is
counted while rows are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as fn

from rmqlb.pipeline.ingest import arrow_udf
from rmqlb.pipeline.ingest import ingest_steps as steps
from rmqlb.pipeline.ingest.arrow_udf import PIECES, QUARANTINED, READ, READ_DOCUMENT, ROWS
from rmqlb.pipeline.ingest.document_ids import check_cluster
from rmqlb.pipeline.ingest.ingest_report import IngestReport, require_equal
from rmqlb.pipeline.ingest.input_files import Found, find
from rmqlb.pipeline.ingest.new_files import NewFiles, find_new, inputs, url_files
from rmqlb.pipeline.row_filter import RowFilter
from rmqlb.pipeline.schemas import (
    CLUSTERS,
    DOCUMENTS,
    FILES,
    FORGOTTEN,
    GROUPS,
    KEY,
    QUARANTINE,
    TOPICS,
    WRITTEN_BY,
    ddl,
)
from rmqlb.pipeline.spark.in_workers import in_workers
from rmqlb.pipeline.storage.storage import Where
from rmqlb.pipeline.warehouse import Warehouse, Writing, no_rows
from rmqlb.version import __version__

_MOST_TASKS = 512
_BYTES_A_TASK = 4 << 20
_MOST_DAYS = 4000
_FEW_FILES_AT_A_TIME = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4",
    "spark.sql.files.maxPartitionBytes": str(32 << 20),
}
"""While Spark hands over whole files."""
_SLICES = "spark.sql.leafNodeDefaultParallelism"


def ingest(
    spark: SparkSession,
    warehouse: Warehouse,
    given: Iterable[str],
    *,
    cluster: str | None = None,
    only: RowFilter | None = None,
    again: bool = False,
) -> IngestReport:
    """Read documents into the warehouse; all tables show together, or nothing does.

    `cluster` is that of all documents, whatever paths and brokers say; of `only`, clusters and dates count, as ingest
    takes whole snapshots. `again`: also files that were read before, as their name, size and time say.

    Raises:
        DataError: an input stands for no file, the warehouse cannot be written, or counts do not agree.
        UsageError: another process is writing to the warehouse.
    """
    found = find(given)
    name = check_cluster(cluster) if cluster else None
    only = RowFilter(cluster=only.cluster, date=only.date) if only else RowFilter()
    with warehouse.writing() as writing:
        return _Ingest(spark, warehouse, writing).run(found, name, only, again=again)


def latest(documents: DataFrame, as_of: date | None = None) -> DataFrame:
    """DOCUMENTS → cluster, date and id of each cluster's last snapshot; up to a date, those without one are left out.

    Last is by date, then by time taken, what is unknown first; ties by snapshot id.
    """
    if as_of is not None:
        documents = documents.filter(fn.col("date") <= fn.lit(as_of))
    last = documents.groupBy("cluster").agg(fn.max(fn.struct("date", "takenAt", "snapshot")).alias("last"))
    return last.select("cluster", "last.date", "last.snapshot")


@dataclass(frozen=True)
class _Read:
    """What was read: `READ`, and what was counted of it while it was."""

    rows: DataFrame
    counts: Mapping[str, Any]

    @property
    def heads(self) -> DataFrame:
        return steps.heads_of(self.rows)

    @property
    def documents(self) -> int:
        return int(self.counts["snapshots"] + self.counts["pieces"])

    @property
    def dates(self) -> Where | None:
        """Where the warehouse has these documents if it has them; None when that is everywhere."""
        days: set[date | None] = set()
        for kind in ("snapshot", "piece"):
            first, last = self.counts[f"{kind}First"], self.counts[f"{kind}Last"]
            if self.counts[f"{kind}Undated"]:
                days.add(None)
            if first is not None and (last - first).days > _MOST_DAYS:
                return None
            if first is not None:
                days |= {first + timedelta(days=number) for number in range((last - first).days + 1)}
        return {"date": days}


@dataclass(frozen=True)
class _Taken:
    """What of it goes into the warehouse.

    `rows` are `READ`, `empty` the tables that have none. `kept` of the `documents` written were there before, in
    snapshots that are made anew or replaced (`gone`). `fresh` documents are new, of which `only` leaves `skipped` out.
    `unsettled` has the files that are to be read again; `lost` is quarantine of pieces that cannot be put together.
    `made` counts what is in `rows`, where it is known.
    """

    rows: DataFrame
    documents: int
    fresh: int
    kept: int = 0
    skipped: int = 0
    gone: tuple[str, ...] = ()
    changed: frozenset[str] = frozenset()
    empty: frozenset[str] = frozenset()
    made: Mapping[str, int] | None = None
    unsettled: DataFrame | None = None
    lost: DataFrame | None = None


@dataclass(frozen=True)
class _Choice:
    """Where there are pieces: the `rows` that are taken (`READ`), and all `pieces` of the snapshots that they make."""

    rows: DataFrame
    pieces: DataFrame
    skipped: int = 0
    unsettled: DataFrame | None = None
    lost: DataFrame | None = None


class _Ingest:
    def __init__(self, spark: SparkSession, warehouse: Warehouse, writing: Writing) -> None:
        self._spark = spark
        self._warehouse = warehouse
        self._writing = writing
        self._written: dict[str, int] = {table.name: 0 for table in WRITTEN_BY["ingest"]}

    def run(self, found: Found, cluster: str | None, only: RowFilter, *, again: bool = False) -> IngestReport:
        """Read what is new, write it, and compare the counts."""
        new = find_new(self._spark, self._warehouse, found, cluster, again=again)
        if not new.files:
            return self._report(found, new, {"documents": 0, "quarantined": 0}, None, 0)
        read = self._read(found, new, cluster)
        pieces = read.counts["pieces"] > 0
        taken = self._take_with_pieces(read, new, only) if pieces else self._take(read, new, only)
        self._write_rows(taken)
        bad, unread = self._quarantine(read, new, found, taken)
        self._write_files(read, taken)
        self._write_clusters(taken)
        report = self._report(found, new, read.counts, taken, unread, bad)
        self._require_equal(new, read, taken, report, unread)
        return report

    def _report(
        self,
        found: Found,
        new: NewFiles,
        counts: Mapping[str, Any],
        taken: _Taken | None,
        unread: int,
        bad: int = 0,
    ) -> IngestReport:
        fresh, ingested, skipped = (taken.fresh, taken.documents - taken.kept, taken.skipped) if taken else (0, 0, 0)
        good = counts["documents"] - counts["quarantined"]
        return IngestReport(
            files=new.listed,
            hidden=found.hidden,
            found=new.documents + counts["documents"] + unread,
            ingested=ingested,
            known=new.documents - new.quarantined + good - fresh,
            quarantined=new.quarantined + bad,
            skipped=skipped,
            rows=self._written,
        )

    def _require_equal(self, new: NewFiles, read: _Read, taken: _Taken, report: IngestReport, unread: int) -> None:
        counts, made = read.counts, taken.made
        if made is None:
            made = taken.rows.agg(*_announced()).collect()[0].asDict()
        known_or_not = report.ingested + report.known + report.quarantined + report.skipped
        require_equal(
            {
                "files": (len(new.files), counts["files"] + unread),
                "documents in files": (counts["inFiles"] or 0, counts["documents"]),
                "documents": (report.found, known_or_not),
                "topics": (made["madeTopics"] or 0, self._written[TOPICS.name]),
                "groups": (made["madeGroups"] or 0, self._written[GROUPS.name]),
            }
        )

    def _read(self, found: Found, new: NewFiles, cluster: str | None) -> _Read:
        """`READ`, of the new files."""
        size = sum(row["length"] for row in new.local)
        tasks = max(1, min(len(new.local), _MOST_TASKS, 2 + size // _BYTES_A_TASK))
        files = inputs(self._spark, new, found.urls, tasks)
        counted = Observation()
        rows = in_workers(files, partial(arrow_udf.read_files, cluster, __version__), ddl(READ))
        settings = {**_FEW_FILES_AT_A_TIME, _SLICES: str(tasks)}
        rows = self._aside("_read", rows.observe(counted, *_counts()), settings)
        return _Read(rows, counted.get)

    def _documents(self, read: _Read) -> DataFrame | None:
        """Those of the warehouse that may be the same as what was read; None when there are none."""
        if self._warehouse.stored(DOCUMENTS.name) is None:
            return None
        return self._warehouse.read(self._spark, DOCUMENTS, read.dates)

    def _fresh(self, read: _Read, documents: DataFrame | None) -> DataFrame:
        """`HEADS` of the documents that are not in the warehouse, and were not before it forgot them."""
        key = ("hash", "snapshot")
        known = None if documents is None else documents.select(*key)
        if self._warehouse.stored(FORGOTTEN.name) is not None:
            forgotten = self._warehouse.read(self._spark, FORGOTTEN).select(*key)
            known = forgotten if known is None else known.unionByName(forgotten)
        return steps.fresh_documents(read.heads, known, read.documents)

    def _take(self, read: _Read, new: NewFiles, only: RowFilter) -> _Taken:
        """Of whole snapshots: most nights all of them are new, and then nothing has to be looked for."""
        if not read.documents:
            self._writing.add(DOCUMENTS, no_rows(self._spark, DOCUMENTS), empty=True)
            return _Taken(no_rows(self._spark, PIECES), 0, 0, empty=_ALL_EMPTY, made=dict.fromkeys(_MADE, 0))
        documents = self._documents(read)
        fresh = self._fresh(read, documents)
        gone, changed = self._replaced(read, only.filter(fresh), documents, new)
        counted = Observation()
        kept = only.filter(fresh.observe(counted, fn.count(fn.lit(1)).alias("fresh")))
        written = self._writing.add(DOCUMENTS, kept, gone)
        number = counted.get["fresh"]
        self._written[DOCUMENTS.name] = written
        if written == read.documents:
            rows, empty = read.rows, frozenset(table.name for table in ROWS if not read.counts[table.name])
        else:
            rows = self._aside("_chosen", steps.semi(read.rows, only.filter(fresh), "doc"))
            empty = frozenset() if written else _ALL_EMPTY
        left_out = fresh.join(only.filter(fresh).select("doc"), "doc", "left_anti") if number > written else None
        return _Taken(
            rows,
            documents=written,
            fresh=number,
            skipped=number - written,
            gone=gone,
            changed=changed,
            empty=empty,
            made=read.counts if rows is read.rows else None,
            unsettled=left_out,
        )

    def _take_with_pieces(self, read: _Read, new: NewFiles, only: RowFilter) -> _Taken:
        """Of pieces too, which are put together with those of before."""
        documents = self._documents(read)
        counted = Observation()
        found = self._fresh(read, documents).observe(counted, fn.count(fn.lit(1)).alias("fresh"))
        fresh = self._aside("_fresh", found)
        number = counted.get["fresh"]
        pieces = read.rows.filter("piece IS NOT NULL")
        if number < read.documents:
            pieces = steps.semi(pieces, fresh, "doc")
        added = pieces.select("snapshot", "piece.*").select(*PIECES.columns)
        there, old = self._pieces_of_before(read, added)
        together = self._together(old.unionByName(added))
        snapshots = only.filter(fresh.filter("kind = 'snapshot'"))
        gone, changed = self._replaced(read, snapshots, documents, new)
        if number == read.documents and only == RowFilter() and not together.counts["failed"]:
            of_pieces = fn.col("piece").isNotNull() | fn.coalesce(fn.col("head.kind") == "pieces", fn.lit(False))  # noqa: FBT003
            choice = _Choice(read.rows.filter(~of_pieces).unionByName(together.rows), old.unionByName(added))
            made = {name: (read.counts[name] or 0) + (together.counts[name] or 0) for name in _MADE}
        else:
            choice, made = self._choose(read, fresh, snapshots, together.rows, added, old, only), None
        again = tuple(sorted(_values(there.join(choice.pieces.select("snapshot"), "snapshot", "left_semi"))))
        if again:
            changed |= self._clusters_of(again, choice.rows, documents)
        kept = old.filter(fn.col("snapshot").isin(list(again))).count() if again else 0
        written = self._writing.add(DOCUMENTS, steps.read_heads(choice.rows), (*gone, *again))
        self._written[DOCUMENTS.name] = written
        self._writing.add(PIECES, choice.pieces, again)
        return _Taken(
            choice.rows,
            documents=written,
            fresh=number,
            kept=kept,
            skipped=choice.skipped,
            gone=(*gone, *again),
            changed=changed,
            empty=frozenset(table.name for table in ROWS if made is not None and not made[table.name]),
            made=made,
            unsettled=choice.unsettled,
            lost=choice.lost,
        )

    def _pieces_of_before(self, read: _Read, added: DataFrame) -> tuple[DataFrame, DataFrame]:
        """The pieces of the same snapshots that are there, and those of them in whose place no other is added."""
        if self._warehouse.stored(PIECES.name) is None:
            nothing = no_rows(self._spark, PIECES)
            return nothing, nothing
        there = steps.semi(self._warehouse.read(self._spark, PIECES, read.dates), added, "snapshot")
        return there, there.join(added.select(*_PLACE), list(_PLACE), "left_anti").select(*PIECES.columns)

    def _together(self, pieces: DataFrame) -> _Read:
        """`PIECES` → `READ`, of the snapshots that they make."""
        ordered = pieces.repartition("snapshot").sortWithinPartitions("snapshot", "file", "position")
        counted = Observation()
        failed = fn.count_if(fn.col("made.reason").isNotNull()).alias("failed")
        rows = in_workers(ordered, arrow_udf.merge_pieces, ddl(READ)).observe(counted, failed, *_counts())
        rows = self._aside("_together", rows)
        return _Read(rows, counted.get)

    def _choose(
        self,
        read: _Read,
        fresh: DataFrame,
        snapshots: DataFrame,
        together: DataFrame,
        added: DataFrame,
        old: DataFrame,
        only: RowFilter,
    ) -> _Choice:
        """What is taken where not all is: there are known documents, ones that `only` leaves out, or unfit pieces."""
        made = together.filter("made IS NOT NULL")
        possible = made.filter("made.reason IS NULL")
        whole = only.filter(possible)
        rows = steps.semi(read.rows, snapshots, "doc").unionByName(steps.semi(together, whole, "snapshot"))
        skipped = steps.semi(added, possible.join(whole, "snapshot", "left_anti"), "snapshot").select("file")
        left_out = fresh.filter("kind = 'snapshot'").join(snapshots.select("doc"), "doc", "left_anti").select("file")
        skipped = skipped.unionAll(left_out)
        lost = steps.lost_pieces(fresh, made)
        return _Choice(
            self._aside("_chosen", rows),
            steps.semi(old.unionByName(added), whole, "snapshot"),
            skipped=0 if only == RowFilter() else skipped.count(),
            unsettled=skipped.union(lost.select("file")),
            lost=lost,
        )

    def _clusters_of(self, snapshots: tuple[str, ...], rows: DataFrame, documents: DataFrame | None) -> frozenset[str]:
        """The clusters in which these snapshots are, and were."""
        its = fn.col("snapshot").isin(list(snapshots))
        clusters = rows.filter(fn.col("head").isNotNull() & its).select("cluster")
        if documents is not None:
            clusters = clusters.union(documents.filter(its).select("cluster"))
        return frozenset(_values(clusters))

    def _replaced(
        self, read: _Read, fresh: DataFrame, documents: DataFrame | None, new: NewFiles
    ) -> tuple[tuple[str, ...], frozenset[str]]:
        """The snapshots in whose place a file has another one of the same cluster and time, and these clusters."""
        if documents is None or not new.changed:
            return (), frozenset()
        elsewhere = documents.join(read.heads.select("hash", "snapshot"), ["hash", "snapshot"], "left_anti")
        replaced = steps.replaced_documents(fresh.filter("kind = 'snapshot'"), elsewhere)
        rows = replaced.collect()
        return tuple(sorted({row["before"] for row in rows})), frozenset(row["cluster"] for row in rows)

    def _write_rows(self, taken: _Taken) -> None:
        """All tables of rows; those that have no new ones are not touched."""
        for table in ROWS:
            empty = table.name in taken.empty
            if empty:
                rows = no_rows(self._spark, table)
            else:
                rows = taken.rows.filter(fn.col(table.name).isNotNull()).select(*KEY, f"{table.name}.*")
            self._written[table.name] = self._writing.add(table, rows, taken.gone, empty=empty)

    def _quarantine(self, read: _Read, new: NewFiles, found: Found, taken: _Taken) -> tuple[int, int]:
        """What cannot be read goes to QUARANTINE; how many documents that is, and how many files gave no content."""
        bad = read.heads.filter(fn.col("outcome") == QUARANTINED).select(*QUARANTINE.columns)
        number, unread = read.counts["quarantined"], 0
        if taken.lost is not None:
            bad, number = bad.unionByName(taken.lost), number + taken.lost.count()
        if new.urls:
            at_urls = url_files(self._spark, found.urls).filter(fn.col("_metadata.file_path").isin(new.urls))
            missing = self._aside("_unread", steps.unread_files(at_urls.select("path", "length"), read.heads))
            unread = missing.count()
            bad, number = bad.unionByName(missing), number + unread
        if number:
            there = self._warehouse.read_or_empty(self._spark, QUARANTINE)
            bad = steps.not_yet_quarantined(bad, there)
        else:
            bad = no_rows(self._spark, QUARANTINE)
        self._written[QUARANTINE.name] = self._writing.add(QUARANTINE, bad, empty=not number)
        return number, unread

    def _write_files(self, read: _Read, taken: _Taken) -> None:
        files = read.rows.filter("file.isRead").select("file.*")
        if taken.unsettled is not None:
            files = files.join(taken.unsettled.select("file").distinct(), "file", "left_anti")
        self._written[FILES.name] = self._writing.add(FILES, files)

    def _write_clusters(self, taken: _Taken) -> None:
        """Each cluster's last snapshot; from all its documents only where one of before has gone."""
        is_there = self._warehouse.stored(CLUSTERS.name) is not None
        if is_there and not taken.documents:
            return
        before = self._warehouse.read_or_empty(self._spark, CLUSTERS)
        heads = steps.read_heads(taken.rows)
        if not is_there and self._warehouse.stored(DOCUMENTS.name) is not None:
            rows = steps.clusters_anew(before, self._writing.read(self._spark, DOCUMENTS), ())
        elif taken.gone:
            is_other = ~fn.col("cluster").isin(list(taken.changed))
            documents = self._writing.read(self._spark, DOCUMENTS, {"cluster": taken.changed})
            rows = steps.clusters_with_more(before.filter(is_other), heads.filter(is_other), taken.documents)
            rows = rows.unionByName(steps.clusters_anew(before, documents, taken.changed))
        else:
            rows = steps.clusters_with_more(before, heads, taken.documents)
        self._written[CLUSTERS.name] = self._writing.replace(CLUSTERS, rows)

    def _aside(self, name: str, frame: DataFrame, settings: Mapping[str, str] | None = None) -> DataFrame:
        """The same rows, from a file: what they are made of is computed once."""
        path = self._writing.aside(name)
        with _settings(self._spark, settings or {}):
            frame.write.parquet(path)
        return self._spark.read.schema(frame.schema).parquet(path)


_ALL_EMPTY = frozenset(table.name for table in ROWS)
_PLACE = ("snapshot", "file", "position")
_MADE = ("madeTopics", "madeGroups", *(table.name for table in ROWS))


def _counts() -> Iterator[Column]:
    """What is counted while documents are read."""
    head = fn.col("head")
    is_snapshot = (head["outcome"] == READ_DOCUMENT) & (head["kind"] == "snapshot")
    yield fn.count("file").alias("files")
    yield fn.sum("file.documents").alias("inFiles")
    yield fn.count("head").alias("documents")
    yield fn.count_if(head["outcome"] == QUARANTINED).alias("quarantined")
    yield fn.count_if(is_snapshot).alias("snapshots")
    yield fn.count("piece").alias("pieces")
    for kind, where, day in (
        ("snapshot", is_snapshot, fn.col("date")),
        ("piece", fn.col("piece").isNotNull(), fn.col("piece.date")),
    ):
        yield fn.min(fn.when(where, day)).alias(f"{kind}First")
        yield fn.max(fn.when(where, day)).alias(f"{kind}Last")
        yield fn.count_if(where & day.isNull()).alias(f"{kind}Undated")
    for table in ROWS:
        yield fn.count(table.name).alias(table.name)
    yield from _announced()


def _announced() -> Iterator[Column]:
    """How many topics and groups the snapshots say that they have."""
    yield fn.sum("made.topics").alias("madeTopics")
    yield fn.sum("made.groups").alias("madeGroups")


def _values(frame: DataFrame) -> list[str]:
    """The distinct values of the first column."""
    return [row[0] for row in frame.select(frame.columns[0]).distinct().collect()]


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Spark's settings for a while."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)
