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

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from rmqlb.pipeline.ingest import ingest_steps as steps
from rmqlb.pipeline.ingest.arrow_udf import QUARANTINED, ROWS
from rmqlb.pipeline.ingest.document_ids import check_cluster
from rmqlb.pipeline.ingest.ingest_report import IngestReport, require_equal
from rmqlb.pipeline.ingest.input_files import Found, find
from rmqlb.pipeline.ingest.new_files import NewFiles, find_new, url_files
from rmqlb.pipeline.ingest.read_new import Read, announced, aside, read_new
from rmqlb.pipeline.ingest.taking import Taken, Taker
from rmqlb.pipeline.row_filter import RowFilter
from rmqlb.pipeline.schemas import CLUSTERS, DOCUMENTS, FILES, GROUPS, KEY, QUARANTINE, TOPICS, WRITTEN_BY
from rmqlb.pipeline.spark.progress import StageProgress
from rmqlb.pipeline.warehouse import Warehouse, Writing, no_rows


def ingest(
    spark: SparkSession,
    warehouse: Warehouse,
    given: Iterable[str],
    *,
    cluster: str | None = None,
    only: RowFilter | None = None,
    again: bool = False,
    progress: StageProgress | None = None,
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
        return _Ingest(spark, warehouse, writing, progress or StageProgress()).run(found, name, only, again=again)


def latest(documents: DataFrame, as_of: date | None = None) -> DataFrame:
    """DOCUMENTS → cluster, date and id of each cluster's last snapshot; up to a date, those without one are left out.

    Last is by date, then by time taken, what is unknown first; ties by snapshot id.
    """
    if as_of is not None:
        documents = documents.filter(fn.col("date") <= fn.lit(as_of))
    last = documents.groupBy("cluster").agg(fn.max(fn.struct("date", "takenAt", "snapshot")).alias("last"))
    return last.select("cluster", "last.date", "last.snapshot")


class _Ingest:
    def __init__(self, spark: SparkSession, warehouse: Warehouse, writing: Writing, progress: StageProgress) -> None:
        self._spark = spark
        self._warehouse = warehouse
        self._writing = writing
        self._progress = progress
        self._written: dict[str, int] = {table.name: 0 for table in WRITTEN_BY["ingest"]}

    def run(self, found: Found, cluster: str | None, only: RowFilter, *, again: bool = False) -> IngestReport:
        """Read what is new, write it, and compare the counts."""
        new = find_new(self._spark, self._warehouse, found, cluster, again=again)
        if not new.files:
            return self._report(found, new, {"documents": 0, "quarantined": 0}, None, 0)
        read = read_new(self._spark, self._writing, found, new, cluster, self._progress)
        taken = Taker(self._spark, self._warehouse, self._writing).take(read, new, only)
        self._written[DOCUMENTS.name] = taken.documents
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
        taken: Taken | None,
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

    def _require_equal(self, new: NewFiles, read: Read, taken: Taken, report: IngestReport, unread: int) -> None:
        counts, made = read.counts, taken.made
        if made is None:
            made = taken.rows.agg(*announced()).collect()[0].asDict()
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

    def _write_rows(self, taken: Taken) -> None:
        """All tables of rows; those that have no new ones are not touched."""
        for table in self._progress.each("tables", ROWS):
            empty = table.name in taken.empty
            if empty:
                rows = no_rows(self._spark, table)
            else:
                rows = taken.rows.filter(fn.col(table.name).isNotNull()).select(*KEY, f"{table.name}.*")
            self._written[table.name] = self._writing.add(table, rows, taken.gone, empty=empty)

    def _quarantine(self, read: Read, new: NewFiles, found: Found, taken: Taken) -> tuple[int, int]:
        """What cannot be read goes to QUARANTINE; how many documents that is, and how many files gave no content."""
        bad = read.heads.filter(fn.col("outcome") == QUARANTINED).select(*QUARANTINE.columns)
        number, unread = read.counts["quarantined"], 0
        if taken.lost is not None:
            bad, number = bad.unionByName(taken.lost), number + taken.lost.count()
        if new.urls:
            at_urls = url_files(self._spark, found.urls).filter(fn.col("_metadata.file_path").isin(new.urls))
            missing = aside(self._writing, "_unread", steps.unread_files(at_urls.select("path", "length"), read.heads))
            unread = missing.count()
            bad, number = bad.unionByName(missing), number + unread
        if number:
            there = self._warehouse.read_or_empty(self._spark, QUARANTINE)
            bad = steps.not_yet_quarantined(bad, there)
        else:
            bad = no_rows(self._spark, QUARANTINE)
        self._written[QUARANTINE.name] = self._writing.add(QUARANTINE, bad, empty=not number)
        return number, unread

    def _write_files(self, read: Read, taken: Taken) -> None:
        files = read.rows.filter("file.isRead").select("file.*")
        if taken.unsettled is not None:
            files = files.join(taken.unsettled.select("file").distinct(), "file", "left_anti")
        self._written[FILES.name] = self._writing.add(FILES, files)

    def _write_clusters(self, taken: Taken) -> None:
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
