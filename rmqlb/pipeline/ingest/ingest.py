"""Stage 1, ingest: snapshots and saved answers, in files, become the tables that all other stages read.

Rules of this file:
- A document is read once, by `ingest_arrow.py`, into rows of all tables, written aside; the tables are filled of these.
- A snapshot that the warehouse has is not read again. Pieces (a route, a Dashboard answer) of one folder, cluster and
  date make one snapshot together, as the documents of one dump do, the later by file and position over the earlier; so
  when more come, it is made anew of all of them, and what it was before is shown no more.
- Counts in equal counts out, or nothing is taken over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as fn

from rmqlb.errors import DataError
from rmqlb.pipeline.ingest.documents import LARGEST_FILE, check_cluster
from rmqlb.pipeline.ingest.files import Found, find, nothing_at
from rmqlb.pipeline.ingest.in_arrow import FILES, KNOWN, PIECES, READ, READ_DOCUMENT, ROWS, known_key
from rmqlb.pipeline.ingest.in_arrow import put_together as put_together_in_arrow
from rmqlb.pipeline.ingest.in_arrow import read_files as read_files_in_arrow
from rmqlb.pipeline.ingest.report import IngestReport, Pair, check
from rmqlb.pipeline.ingest.steps import (
    document_rows,
    fresh_documents,
    heads_of,
    lost_pieces,
    new_pieces,
    not_yet_quarantined,
    semi,
    table_rows,
    unread_files,
    unreadable_documents,
    url_files,
)
from rmqlb.pipeline.only import Only
from rmqlb.pipeline.schemas import DOCUMENTS, GROUPS, QUARANTINE, TOPICS, ddl
from rmqlb.pipeline.warehouse import Warehouse, Writing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MOST_TASKS = 512
_FEW_FILES_AT_A_TIME = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4",
    "spark.sql.files.maxPartitionBytes": str(32 << 20),
}
"""While Spark hands over whole files."""


def ingest(
    spark: SparkSession,
    warehouse: Warehouse,
    inputs: Iterable[str],
    *,
    cluster: str | None = None,
    only: Only | None = None,
) -> IngestReport:
    """Read documents into the warehouse; all tables show together, or nothing does.

    Args:
        spark: the session.
        warehouse: where to.
        inputs: files, folders, globs, and URLs that Spark knows.
        cluster: the cluster of all documents, whatever paths and brokers say.
        only: by cluster and date; ingest takes whole snapshots, so its topics and groups do not matter here.

    Raises:
        DataError: an input stands for no file, the warehouse cannot be written, or counts do not agree.
        UsageError: another process is writing to the warehouse.
    """
    found = find(inputs)
    told = check_cluster(cluster) if cluster else None
    only = Only(cluster=only.cluster, date=only.date) if only else Only()
    with warehouse.writing() as writing:
        return _Ingest(spark, warehouse, writing).run(found, told, only)


def latest(documents: DataFrame, as_of: date | None = None) -> DataFrame:
    """The last snapshot of each cluster: by date, then by time taken, what is unknown first; ties by snapshot id.

    Args:
        documents: the table of that name.
        as_of: the last date to look at; what has no date is then left out.

    Returns:
        cluster, date, snapshot.
    """
    if as_of is not None:
        documents = documents.filter(fn.col("date") <= fn.lit(as_of))
    last = documents.groupBy("cluster").agg(fn.max(fn.struct("date", "takenAt", "snapshot")).alias("last"))
    return last.select("cluster", "last.date", "last.snapshot")


class _Ingest:
    """One run: its session, its warehouse, and what it writes aside."""

    def __init__(self, spark: SparkSession, warehouse: Warehouse, writing: Writing) -> None:
        self._spark = spark
        self._warehouse = warehouse
        self._writing = writing

    def run(self, found: Found, cluster: str | None, only: Only) -> IngestReport:
        """Read, see what is new, write it, and compare the counts."""
        documents = self._warehouse.read_or_empty(self._spark, DOCUMENTS)
        listed = self._aside("_listed", self._listed(found.urls))
        read = self._aside("_read", self._read(found, cluster, documents))
        heads = heads_of(read)
        fresh = self._aside("_fresh", fresh_documents(heads, documents))
        new = new_pieces(read, fresh)
        old = semi(self._warehouse.read_or_empty(self._spark, PIECES), new, "snapshot")
        together = self._aside("_together", self._together(old.unionByName(new)))
        made = together.filter("made IS NOT NULL")
        whole = only.filter(made.filter("made.reason IS NULL"))
        single = only.filter(fresh.filter("kind = 'snapshot'"))
        unread = unread_files(listed, heads)
        bad = unreadable_documents(heads).unionByName(unread).unionByName(lost_pieces(fresh, made))
        bad = self._aside("_bad", bad)
        rows = semi(read, single, "doc").unionByName(semi(together, whole, "snapshot"))
        again = _counted(semi(old, whole, "snapshot"), "snapshot")
        written = self._write(rows, semi(new, whole, "snapshot"), bad, again)

        outcomes, files, in_files = _counted(heads, "outcome"), *_files(heads)
        candidates = fresh.count()
        passed_over = 0
        if only != Only():
            left = semi(fresh, made.filter("made.reason IS NULL"), "snapshot").join(whole, "snapshot", "left_anti")
            passed_over = left.count() + fresh.filter("kind = 'snapshot'").count() - single.count()
        report = IngestReport(
            files=len(found.files) + listed.count(),
            hidden=found.hidden,
            found=sum(outcomes.values()) + unread.count(),
            ingested=written[DOCUMENTS.name] - sum(again.values()),
            known=outcomes.get(KNOWN, 0) + outcomes.get(READ_DOCUMENT, 0) - candidates,
            quarantined=bad.count(),
            passed_over=passed_over,
            rows=written,
        )
        announced = rows.agg(fn.sum("made.topics"), fn.sum("made.groups")).collect()[0]
        check(
            Pair("files", report.files, files + unread.count()),
            Pair("documents in files", in_files, sum(outcomes.values())),
            Pair(
                "documents",
                report.found,
                report.ingested + report.known + report.quarantined + report.passed_over,
            ),
            Pair("topics", announced[0] or 0, written[TOPICS.name]),
            Pair("groups", announced[1] or 0, written[GROUPS.name]),
        )
        return report

    def _listed(self, urls: tuple[str, ...]) -> DataFrame:
        """Path and length of the files at URLs.

        Raises:
            DataError: a URL stands for no file, or Spark cannot look there.
        """
        for url in urls:
            try:
                nothing = url_files(self._spark, (url,)).select("path").isEmpty()
            except PySparkException as error:
                raise DataError(f"{url}: {_first_line(error)}", hint="is it a URL that this Spark can read?") from None
            if nothing:
                raise nothing_at(url)
        return url_files(self._spark, urls).select("path", "length")

    def _read(self, found: Found, cluster: str | None, documents: DataFrame) -> DataFrame:
        """`READ`, of all files."""
        known = frozenset(
            known_key(row["hash"], row["snapshot"])
            for row in documents.filter("kind = 'snapshot'").select("hash", "snapshot").collect()
        )
        files = url_files(self._spark, found.urls).filter(fn.col("length") <= LARGEST_FILE)
        if found.files:
            # Largest first, so that the last task is a short one.
            local = sorted(zip(found.sizes, found.files, strict=True), reverse=True)
            frame = self._spark.createDataFrame([(path, size, None) for size, path in local], ddl(FILES))
            files = files.unionByName(frame.repartition(min(len(local), _MOST_TASKS)))
        return files.mapInArrow(read_files_in_arrow(cluster, known), ddl(READ))

    def _together(self, pieces: DataFrame) -> DataFrame:
        """`PIECES` → `READ`, of the snapshots that they make."""
        ordered = pieces.repartition("snapshot").sortWithinPartitions("snapshot", "file", "position")
        return ordered.mapInArrow(put_together_in_arrow(), ddl(READ))

    def _write(self, rows: DataFrame, pieces: DataFrame, bad: DataFrame, again: Collection[str]) -> dict[str, int]:
        """All tables; table → rows written."""
        instead_of = sorted(again)
        written = {DOCUMENTS.name: self._writing.add(DOCUMENTS, document_rows(rows), instead_of)}
        for table in ROWS:
            written[table.name] = self._writing.add(table, table_rows(rows, table), instead_of)
        self._writing.add(PIECES, pieces)
        quarantine = self._warehouse.read_or_empty(self._spark, QUARANTINE)
        written[QUARANTINE.name] = self._writing.add(QUARANTINE, not_yet_quarantined(bad, quarantine))
        return written

    def _aside(self, name: str, frame: DataFrame) -> DataFrame:
        """The same rows, from a file: what they are made of is computed once."""
        path = self._writing.aside(name)
        with _settings(self._spark, _FEW_FILES_AT_A_TIME):
            frame.write.parquet(path)
        return self._spark.read.schema(frame.schema).parquet(path)


def _counted(frame: DataFrame, column: str) -> dict[str, int]:
    """Value → its rows."""
    return {row[0]: row[1] for row in frame.groupBy(column).count().collect()}


def _files(heads: DataFrame) -> tuple[int, int]:
    """How many files the `HEADS` are of, and how many documents are in them."""
    files, documents = heads.filter("position = 1").agg(fn.count("*"), fn.sum("documents")).collect()[0]
    return files, documents or 0


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


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
