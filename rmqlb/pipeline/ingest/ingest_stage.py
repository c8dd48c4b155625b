"""Stage 1, ingest: snapshots and saved answers, in files, become the tables that all other stages read.

Pieces (a route, a Dashboard answer) of one folder, cluster and date make one snapshot together, as the documents of one
dump do, the later by file and position over the earlier; so when more come, it is made anew of all of them, and what it
was before is shown no more. Counts in equal counts out, or nothing is taken over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from rmqlb.errors import DataError
from rmqlb.pipeline.ingest import arrow_udf
from rmqlb.pipeline.ingest import ingest_steps as steps
from rmqlb.pipeline.ingest.arrow_udf import FILES, KNOWN, PIECES, QUARANTINED, READ, READ_DOCUMENT, ROWS
from rmqlb.pipeline.ingest.document_ids import check_cluster
from rmqlb.pipeline.ingest.ingest_report import IngestReport, require_equal
from rmqlb.pipeline.ingest.input_files import Found, find, nothing_at
from rmqlb.pipeline.row_filter import RowFilter
from rmqlb.pipeline.schemas import DOCUMENTS, FORGOTTEN, GROUPS, KEY, QUARANTINE, TOPICS, ddl
from rmqlb.pipeline.spark.in_workers import in_workers
from rmqlb.pipeline.warehouse import Warehouse, Writing
from rmqlb.sources.dump.read_document import LARGEST_FILE

_MOST_TASKS = 512
_BYTES_A_TASK = 4 << 20
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
    only: RowFilter | None = None,
) -> IngestReport:
    """Read documents into the warehouse; all tables show together, or nothing does.

    `cluster` is that of all documents, whatever paths and brokers say; of `only`, clusters and dates count, as ingest
    takes whole snapshots.

    Raises:
        DataError: an input stands for no file, the warehouse cannot be written, or counts do not agree.
        UsageError: another process is writing to the warehouse.
    """
    found = find(inputs)
    name = check_cluster(cluster) if cluster else None
    only = RowFilter(cluster=only.cluster, date=only.date) if only else RowFilter()
    with warehouse.writing() as writing:
        return _Ingest(spark, warehouse, writing).run(found, name, only)


def latest(documents: DataFrame, as_of: date | None = None) -> DataFrame:
    """DOCUMENTS → cluster, date and id of each cluster's last snapshot; up to a date, those without one are left out.

    Last is by date, then by time taken, what is unknown first; ties by snapshot id.
    """
    if as_of is not None:
        documents = documents.filter(fn.col("date") <= fn.lit(as_of))
    last = documents.groupBy("cluster").agg(fn.max(fn.struct("date", "takenAt", "snapshot")).alias("last"))
    return last.select("cluster", "last.date", "last.snapshot")


@dataclass(frozen=True)
class _Chosen:
    """What of the fresh documents goes into the warehouse.

    `rows` are `READ`, `pieces` the new `PIECES`, `again` the snapshots of pieces that are made anew → the pieces that
    they had, `lost` the quarantine of new pieces that cannot be put together, `skipped` the documents that `only`
    leaves out.
    """

    rows: DataFrame
    pieces: DataFrame
    again: Mapping[str, int]
    lost: DataFrame
    skipped: int


class _Ingest:
    def __init__(self, spark: SparkSession, warehouse: Warehouse, writing: Writing) -> None:
        self._spark = spark
        self._warehouse = warehouse
        self._writing = writing

    def run(self, found: Found, cluster: str | None, only: RowFilter) -> IngestReport:
        """Read, see what is new, write it, and compare the counts."""
        documents = self._known()
        listed = self._listed(found.urls)
        read = self._aside("_read", self._read(found, cluster, documents))
        heads = steps.heads_of(read)
        fresh = self._aside("_fresh", steps.fresh_documents(heads, documents))
        kinds = _rows_by(fresh, "kind")
        chosen = self._choose(read, fresh, kinds, only)
        bad = heads.filter(fn.col("outcome") == QUARANTINED).select(*QUARANTINE.columns).unionByName(chosen.lost)
        unread = 0
        if found.urls:
            missing = self._aside("_unread", steps.unread_files(listed, heads))
            bad, unread = bad.unionByName(missing), missing.count()
        bad = self._aside("_bad", bad)
        written = self._write(chosen, bad, nothing_new=not kinds)

        outcomes = _rows_by(heads, "outcome")
        files, in_files = heads.filter("position = 1").agg(fn.count("*"), fn.sum("documents")).collect()[0]
        report = IngestReport(
            files=len(found.files) + (listed.count() if found.urls else 0),
            hidden=found.hidden,
            found=sum(outcomes.values()) + unread,
            ingested=written[DOCUMENTS.name] - sum(chosen.again.values()),
            known=outcomes.get(KNOWN, 0) + outcomes.get(READ_DOCUMENT, 0) - sum(kinds.values()),
            quarantined=bad.count(),
            skipped=chosen.skipped,
            rows=written,
        )
        topics, groups = chosen.rows.agg(fn.sum("made.topics"), fn.sum("made.groups")).collect()[0]
        known_or_not = report.ingested + report.known + report.quarantined + report.skipped
        require_equal(
            {
                "files": (report.files, files + unread),
                "documents in files": (in_files or 0, sum(outcomes.values())),
                "documents": (report.found, known_or_not),
                "topics": (topics or 0, written[TOPICS.name]),
                "groups": (groups or 0, written[GROUPS.name]),
            }
        )
        return report

    def _known(self) -> DataFrame:
        """Documents that are in the warehouse, or were and are no longer kept: hash, snapshot and kind."""
        there, forgotten = (self._warehouse.read_or_empty(self._spark, table) for table in (DOCUMENTS, FORGOTTEN))
        return there.select(*FORGOTTEN.columns).unionByName(forgotten)

    def _choose(self, read: DataFrame, fresh: DataFrame, kinds: Mapping[str, int], only: RowFilter) -> _Chosen:
        snapshots = only.filter(fresh.filter("kind = 'snapshot'"))
        rows = steps.semi(read, snapshots, "doc")
        nothing = self._empty(PIECES.columns)
        skipped = 0 if only == RowFilter() else kinds.get("snapshot", 0) - snapshots.count()
        if not kinds.get("pieces"):
            return _Chosen(rows, nothing, {}, self._empty(QUARANTINE.columns), skipped)
        pieces = steps.semi(read.filter("piece IS NOT NULL"), fresh, "doc")
        new = pieces.select("snapshot", "piece.*").select(*PIECES.columns)
        old = steps.semi(self._warehouse.read_or_empty(self._spark, PIECES), new, "snapshot")
        together = self._aside("_together", self._together(old.unionByName(new)))
        made = together.filter("made IS NOT NULL")
        possible = made.filter("made.reason IS NULL")
        whole = only.filter(possible)
        if only != RowFilter():
            skipped += steps.semi(new, possible.join(whole, "snapshot", "left_anti"), "snapshot").count()
        return _Chosen(
            rows=rows.unionByName(steps.semi(together, whole, "snapshot")),
            pieces=steps.semi(new, whole, "snapshot"),
            again=_rows_by(steps.semi(old, whole, "snapshot"), "snapshot"),
            lost=steps.lost_pieces(fresh, made),
            skipped=skipped,
        )

    def _listed(self, urls: tuple[str, ...]) -> DataFrame:
        """Path and length of the files at URLs."""
        if not urls:
            return self._empty({"path": "string", "length": "bigint"})
        for url in urls:
            try:
                nothing = steps.url_files(self._spark, (url,)).select("path").isEmpty()
            except Exception as error:  # noqa: BLE001 - what a file system of Spark's throws has no common type
                raise DataError(f"{url}: {_first_line(error)}", hint="is it a URL that this Spark can read?") from None
            if nothing:
                raise nothing_at(url)
        return self._aside("_listed", steps.url_files(self._spark, urls).select("path", "length"))

    def _read(self, found: Found, cluster: str | None, documents: DataFrame) -> DataFrame:
        """`READ`, of all files."""
        known = frozenset(
            arrow_udf.known_key(row["hash"], row["snapshot"])
            for row in documents.filter("kind = 'snapshot'").select("hash", "snapshot").collect()
        )
        files = steps.url_files(self._spark, found.urls).filter(fn.col("length") <= LARGEST_FILE)
        if found.files:
            # Largest first, so that the last task is a short one.
            local = sorted(zip(found.sizes, found.files, strict=True), reverse=True)
            frame = self._spark.createDataFrame([(path, size, None) for size, path in local], ddl(FILES))
            tasks = min(len(local), _MOST_TASKS, 2 + sum(found.sizes) // _BYTES_A_TASK)
            files = files.unionByName(frame.repartition(tasks))
        return in_workers(files, partial(arrow_udf.read_files, cluster, known), ddl(READ))

    def _together(self, pieces: DataFrame) -> DataFrame:
        """`PIECES` → `READ`, of the snapshots that they make."""
        ordered = pieces.repartition("snapshot").sortWithinPartitions("snapshot", "file", "position")
        return in_workers(ordered, arrow_udf.merge_pieces, ddl(READ))

    def _write(self, chosen: _Chosen, bad: DataFrame, *, nothing_new: bool) -> dict[str, int]:
        """All tables; table → rows written. Where nothing is new, tables that are there are not touched."""
        again = sorted(chosen.again)
        rows = chosen.rows
        frames = [(DOCUMENTS, steps.heads_of(rows).select(*DOCUMENTS.columns)), (PIECES, chosen.pieces)]
        frames += [
            (table, rows.filter(fn.col(table.name).isNotNull()).select(*KEY, f"{table.name}.*")) for table in ROWS
        ]
        written: dict[str, int] = {}
        for table, frame in frames:
            if nothing_new and self._warehouse.stored(table.name) is not None:
                written[table.name] = 0
            else:
                written[table.name] = self._writing.add(table, frame, () if table is PIECES else again)
        quarantine = self._warehouse.read_or_empty(self._spark, QUARANTINE)
        written[QUARANTINE.name] = self._writing.add(QUARANTINE, steps.not_yet_quarantined(bad, quarantine))
        del written[PIECES.name]
        return written

    def _empty(self, columns: Mapping[str, str]) -> DataFrame:
        return self._spark.createDataFrame([], ddl(columns))

    def _aside(self, name: str, frame: DataFrame) -> DataFrame:
        """The same rows, from a file: what they are made of is computed once."""
        path = self._writing.aside(name)
        with _settings(self._spark, _FEW_FILES_AT_A_TIME):
            frame.write.parquet(path)
        return self._spark.read.schema(frame.schema).parquet(path)


def _rows_by(frame: DataFrame, column: str) -> dict[str, int]:
    """Value → its rows."""
    return {row[0]: row[1] for row in frame.groupBy(column).count().collect()}


def _first_line(error: Exception) -> str:
    """What Java says, without where it was called from."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return next((line.removeprefix(": ") for line in lines if line.startswith(": ")), lines[0])


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
