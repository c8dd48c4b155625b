"""What of the documents that were read goes into the warehouse, and what gives way to it.

Most nights all documents are new: then nothing has to be looked for, and their rows are taken as they were read. Others
are known by their content, or not asked for; and pieces are put together with those that came before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as fn

from rmqlb.errors import DataError
from rmqlb.pipeline.ingest import arrow_udf
from rmqlb.pipeline.ingest import ingest_steps as steps
from rmqlb.pipeline.ingest.arrow_udf import PIECES, READ, ROWS
from rmqlb.pipeline.ingest.new_files import NewFiles
from rmqlb.pipeline.ingest.read_new import MADE, Read, aside, counted
from rmqlb.pipeline.row_filter import RowFilter
from rmqlb.pipeline.schemas import DOCUMENTS, FORGOTTEN, ddl
from rmqlb.pipeline.spark.in_workers import in_workers
from rmqlb.pipeline.warehouse import Warehouse, Writing, no_rows

_ALL_EMPTY = frozenset(table.name for table in ROWS)
_PLACE = ("snapshot", "file", "position")


@dataclass(frozen=True)
class Taken:
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


class Taker:
    """Writes the documents and pieces of an ingest, and says what is to be written beside them."""

    def __init__(self, spark: SparkSession, warehouse: Warehouse, writing: Writing) -> None:
        self._spark = spark
        self._warehouse = warehouse
        self._writing = writing

    def take(self, read: Read, new: NewFiles, only: RowFilter) -> Taken:
        """What was read of the new files, as far as `only` asks for it."""
        if read.counts["pieces"]:
            return self._take_with_pieces(read, new, only)
        if read.documents:
            return self._take(read, new, only)
        self._writing.add(DOCUMENTS, no_rows(self._spark, DOCUMENTS), empty=True)
        return Taken(read.rows.limit(0), 0, 0, empty=_ALL_EMPTY, made=dict.fromkeys(MADE, 0))

    def _documents(self, read: Read) -> DataFrame | None:
        """Those of the warehouse that may be the same as what was read; None when there are none."""
        if self._warehouse.stored(DOCUMENTS.name) is None:
            return None
        return self._warehouse.read(self._spark, DOCUMENTS, read.dates)

    def _fresh(self, read: Read, documents: DataFrame | None) -> DataFrame:
        """`HEADS` of the documents that are not in the warehouse, and were not before it forgot them."""
        key = ("hash", "snapshot")
        known = None if documents is None else documents.select(*key)
        if self._warehouse.stored(FORGOTTEN.name) is not None:
            forgotten = self._warehouse.read(self._spark, FORGOTTEN).select(*key)
            known = forgotten if known is None else known.unionByName(forgotten)
        return steps.fresh_documents(read.heads, known, read.documents)

    def _take(self, read: Read, new: NewFiles, only: RowFilter) -> Taken:
        """Of whole snapshots: most nights all of them are new, and then nothing has to be looked for."""
        documents = self._documents(read)
        fresh = self._fresh(read, documents)
        gone, changed = self._replaced(read, only.filter(fresh), documents, new)
        told = Observation()
        kept = only.filter(fresh.observe(told, fn.count(fn.lit(1)).alias("fresh")))
        written = self._writing.add(DOCUMENTS, kept, gone)
        if written:
            refuse_rivals(only.filter(fresh), documents, read.documents)
        number = told.get["fresh"]
        if written == read.documents and read.all_rows_count:
            rows, empty = read.rows, frozenset(table.name for table in ROWS if not read.counts[table.name])
        else:
            rows = aside(self._writing, "_chosen", steps.semi(read.rows, only.filter(fresh), "doc"))
            empty = frozenset() if written else _ALL_EMPTY
        left_out = fresh.join(only.filter(fresh).select("doc"), "doc", "left_anti") if number > written else None
        return Taken(
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

    def _take_with_pieces(self, read: Read, new: NewFiles, only: RowFilter) -> Taken:
        """Of pieces too, which are put together with those of before."""
        documents = self._documents(read)
        told = Observation()
        found = self._fresh(read, documents).observe(told, fn.count(fn.lit(1)).alias("fresh"))
        fresh = aside(self._writing, "_fresh", found)
        number = told.get["fresh"]
        pieces = read.rows.filter("piece IS NOT NULL")
        if number < read.documents:
            pieces = steps.semi(pieces, fresh, "doc")
        added = pieces.select("snapshot", "piece.*").select(*PIECES.columns)
        there, old = self._pieces_of_before(read, added)
        together = self._together(old.unionByName(added))
        snapshots = only.filter(fresh.filter("kind = 'snapshot'"))
        refuse_rivals(snapshots, documents)
        gone, changed = self._replaced(read, snapshots, documents, new)
        all_is_taken = number == read.documents and only == RowFilter() and read.all_rows_count
        if all_is_taken and not together.counts["failed"]:
            of_pieces = fn.col("piece").isNotNull() | fn.coalesce(fn.col("head.kind") == "pieces", fn.lit(False))  # noqa: FBT003
            choice = _Choice(read.rows.filter(~of_pieces).unionByName(together.rows), old.unionByName(added))
            made = {name: (read.counts[name] or 0) + (together.counts[name] or 0) for name in MADE}
        else:
            choice, made = self._choose(read, fresh, snapshots, together.rows, added, old, only), None
        again = tuple(sorted(_values(there.join(choice.pieces.select("snapshot"), "snapshot", "left_semi"))))
        if again:
            changed |= self._clusters_of(again, choice.rows, documents)
        kept = old.filter(fn.col("snapshot").isin(list(again))).count() if again else 0
        written = self._writing.add(DOCUMENTS, steps.read_heads(choice.rows), (*gone, *again))
        self._writing.add(PIECES, choice.pieces, again)
        return Taken(
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

    def _pieces_of_before(self, read: Read, added: DataFrame) -> tuple[DataFrame, DataFrame]:
        """The pieces of the same snapshots that are there, and those of them in whose place no other is added."""
        if self._warehouse.stored(PIECES.name) is None:
            nothing = no_rows(self._spark, PIECES)
            return nothing, nothing
        there = steps.semi(self._warehouse.read(self._spark, PIECES, read.dates), added, "snapshot")
        return there, there.join(added.select(*_PLACE), list(_PLACE), "left_anti").select(*PIECES.columns)

    def _together(self, pieces: DataFrame) -> Read:
        """`PIECES` → `READ`, of the snapshots that they make."""
        ordered = pieces.repartition("snapshot").sortWithinPartitions("snapshot", "file", "position")
        failed = fn.count_if(fn.col("made.reason").isNotNull()).alias("failed")
        rows = in_workers(ordered, arrow_udf.merge_pieces, ddl(READ))
        return counted(self._writing, "_together", rows, None, failed)

    def _choose(
        self,
        read: Read,
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
            aside(self._writing, "_chosen", rows),
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
        self, read: Read, fresh: DataFrame, documents: DataFrame | None, new: NewFiles
    ) -> tuple[tuple[str, ...], frozenset[str]]:
        """The snapshots in whose place a file has another one of the same cluster and time, and these clusters."""
        if documents is None or not new.changed:
            return (), frozenset()
        elsewhere = documents.join(read.heads.select("hash", "snapshot"), ["hash", "snapshot"], "left_anti")
        replaced = steps.replaced_documents(fresh.filter("kind = 'snapshot'"), elsewhere)
        rows = replaced.collect()
        return tuple(sorted({row["before"] for row in rows})), frozenset(row["cluster"] for row in rows)


def refuse_rivals(snapshots: DataFrame, documents: DataFrame | None, rows: int = 0) -> None:
    """Raise DataError where two files have different snapshots of one cluster and time: one would win by chance."""
    for row in steps.rivals(snapshots, documents, rows).take(1):
        raise DataError(
            f"cluster {row['cluster']} at {row['at']} is in two files that differ: {row['file']} and {row['other']}",
            hint="if they are two clusters of one name, put each in a folder cluster=NAME, or name it with --cluster",
            code="two-of-one-time",
        )


def _values(frame: DataFrame) -> list[str]:
    """The distinct values of the first column."""
    return [row[0] for row in frame.select(frame.columns[0]).distinct().collect()]
