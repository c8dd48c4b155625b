"""What a warehouse in a folder or at a URI does with small tables, as JSON: `on_a_storage.py SPARK_SETTINGS PLACE`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import date
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession

from rmqlb.errors import RmqlbError
from rmqlb.pipeline.compact import compact_tables
from rmqlb.pipeline.schemas import DOCUMENTS, FORGOTTEN, MIGRATED, Table, by_cluster, table
from rmqlb.pipeline.spark.session import spark_session
from rmqlb.pipeline.spark.settings import SessionSettings
from rmqlb.pipeline.storage import delta_tables, local_folder
from rmqlb.pipeline.storage.contents import Stored
from rmqlb.pipeline.storage.files import spark_files
from rmqlb.pipeline.storage.storage import Where, is_uri
from rmqlb.pipeline.warehouse import Warehouse, Writing

THINGS = table("things", "thing string")
OTHERS = Table("others", {"number": "int"})
HELD = by_cluster("held", "thing string, isOpen boolean", "isOpen")
NAMES = ["a/b", "1", "01", "café", "x=y", "a%2Fb", "..", "A", " a ", 'q"\\{}[]*?:#', "\U0001f600", "a,b", "true"]
DAYS = [date(2026, 11, 21), None, date(1, 1, 1)]


class Story:
    """The steps, one after the other, on one warehouse; each says something."""

    def __init__(self, spark: SparkSession, place: str) -> None:
        self.spark = spark
        self.place = place
        self.is_folder = not is_uri(place)

    def warehouse(self) -> Warehouse:
        """As another process would open it."""
        return Warehouse(self.place, self.spark)

    def numbers(self, *values: int) -> DataFrame:
        return self.spark.createDataFrame([(value,) for value in values], OTHERS.ddl).coalesce(1)

    def things(self, *rows: tuple[str, date | None, str, str]) -> DataFrame:
        return self.spark.createDataFrame(list(rows), THINGS.ddl)

    def shown(self) -> list[int]:
        return sorted(row["number"] for row in self.warehouse().read(self.spark, OTHERS).collect())

    def jobs(self) -> int:
        return int(self.spark.sparkContext._jsc.sc().dagScheduler().nextJobId())

    def empty(self) -> Any:
        return [list(self.warehouse().names()), refused(self.shown)]

    def replaced_and_added(self) -> Any:
        seen: list[Any] = []
        changes: tuple[Callable[[Writing], int], ...] = (
            lambda writing: writing.replace(OTHERS, self.numbers(1, 2), {"things": "run-1"}),
            lambda writing: writing.add(OTHERS, self.numbers(3)),
            lambda writing: writing.replace(OTHERS, self.numbers(4), {"things": "run-2"}),
            lambda writing: writing.add(OTHERS, self.numbers()),
        )
        for change in changes:
            before = self.jobs()
            with self.warehouse().writing() as writing:
                rows = change(writing)
            jobs, now = self.jobs() - before, self.warehouse()
            seen.append([rows, self.shown(), now.rows(OTHERS), now.versions(OTHERS), jobs])
        return [seen, self.warehouse().is_made_from(OTHERS, {"things": "run-2"})]

    def in_place_of_a_snapshot(self) -> Any:
        with self.warehouse().writing() as writing:
            writing.add(THINGS, self.things(("c", None, "s1", "a"), ("c", None, "s1", "b"), ("c", None, "s2", "c")))
        for thing in ("d", "e"):
            with self.warehouse().writing() as writing:
                writing.add(THINGS, self.things(("other", None, "s1", thing)), instead_of=["s1", "it's"])
        return [self.rows_of_things(), self.warehouse().rows(THINGS)]

    def rows_of_things(self) -> list[list[str]]:
        rows = self.warehouse().read(self.spark, THINGS).collect()
        return sorted([row["cluster"], row["snapshot"], row["thing"]] for row in rows)

    def some_values_replaced(self) -> Any:
        """Rows give way to others by the values of columns; a run that fails in between changes nothing."""
        first, second = date(2026, 11, 20), date(2026, 11, 21)
        rows = [("a/b", first, "s1", "1"), ("a/b", None, "s2", "2"), ("c", first, "s3", "3"), ("c", second, "s4", "4")]
        with self.warehouse().writing() as writing:
            writing.replace(THINGS, self.things(*rows), {"c": "1"})
        asked: list[Where] = [
            {"cluster": ["a/b"]},
            {"date": [None, second]},
            {"cluster": ["c"], "date": [first]},
            {"cluster": ["none"]},
            {"cluster": []},
            {"cluster": ["c", "a/b"], "date": [second], "snapshot": ["s4"]},
        ]
        narrowed = [self.things_shown(where) for where in asked]
        seen: list[Any] = []

        def put(where: Where, *more: tuple[str, date | None, str, str], fails: bool = False) -> None:
            now = self.warehouse()
            with now.writing() as writing:
                made = writing.replace(THINGS, self.things(*more), {"c": "2"}, where)
                within = sorted(row["thing"] for row in writing.read(self.spark, THINGS).collect())
                seen.append([made, within, self.things_shown()])
                if fails:
                    raise RmqlbError("no good")

        of_c: Where = {"cluster": ["c"]}
        refused(lambda: put(of_c, ("c", second, "s5", "lost"), fails=True))
        put(of_c, ("c", second, "s5", "5"))
        put({"cluster": ["a/b"], "date": [None]})
        put({"cluster": []}, ("d", None, "s6", "6"))
        stored = self.warehouse().stored(THINGS.name)
        last = [] if stored is None else [stored.rows, stored.made_from]
        return [narrowed, seen, self.things_shown(), last]

    def things_shown(self, where: Where | None = None) -> list[str]:
        return sorted(row["thing"] for row in self.warehouse().read(self.spark, THINGS, where).collect())

    def some_truths_replaced(self) -> Any:
        def held(*rows: tuple[str, str, bool]) -> DataFrame:
            return self.spark.createDataFrame(list(rows), HELD.ddl)

        with self.warehouse().writing() as writing:
            writing.replace(HELD, held(("c", "1", True), ("c", "2", False), ("it's", "3", True)))
        with self.warehouse().writing() as writing:
            writing.replace(HELD, held(("c", "4", True)), where={"cluster": ["c"], "isOpen": [True]})
        open_ones = self.warehouse().read(self.spark, HELD, {"isOpen": [True]})
        return [sorted(row["thing"] for row in open_ones.collect()), self.warehouse().rows(HELD)]

    def another_version(self) -> Any:
        """A column that earlier rows do not have: refused, or known by the schema, and then written with new rows."""
        narrow, wide = Table("wide", {"number": "int"}), Table("wide", {"number": "int", "twice": "int"})
        with self.warehouse().writing() as writing:
            writing.replace(narrow, self.numbers(1))
        said = refused(lambda: self.warehouse().read(self.spark, wide))
        cast("dict[str, dict[str, str]]", MIGRATED)["wide"] = {"twice": "number * 2"}

        def rows() -> list[list[int]]:
            return sorted([*row] for row in self.warehouse().read(self.spark, wide).collect())

        before = rows()
        with self.warehouse().writing() as writing:
            added = writing.add(wide, self.spark.createDataFrame([(5, 11)], wide.ddl))
        return [said, before, added, rows()]

    def old_ones_removed(self) -> Any:
        """`compact --keep`: what is old goes, and is remembered."""
        other = Warehouse(f"{self.place}-old", self.spark)
        rows = [("c", day, f"s{number}", f"h{number}") for number, day in enumerate([DAYS[0], date(2026, 11, 1), None])]
        names = ["cluster", "date", "snapshot", "hash"]
        nothing = {name: "CAST(NULL AS " + kind + ")" for name, kind in DOCUMENTS.columns.items() if name not in names}
        frame = self.spark.createDataFrame(rows, "cluster string, date date, snapshot string, hash string")
        frame = frame.selectExpr(*names, *(f"{value} AS {name}" for name, value in nothing.items()))
        with other.writing() as writing:
            writing.add(DOCUMENTS, frame)
        found = [compact_tables(self.spark, other, 10) for _ in range(2)]
        kept = sorted(row["snapshot"] for row in other.read(self.spark, DOCUMENTS).collect())
        return [found, kept, [row["hash"] for row in other.read(self.spark, FORGOTTEN).collect()]]

    def ends_badly(self) -> Any:
        def write() -> None:
            with self.warehouse().writing() as writing:
                writing.replace(OTHERS, self.numbers(5))
                writing.add(THINGS, self.things(("c", None, "s3", "z")))
                self.numbers(3).write.parquet(writing.aside("work"))
                raise RmqlbError("no good")

        said = refused(write)
        while_shown = [self.shown(), self.rows_of_things()]
        with self.warehouse().writing() as writing:
            writing.add(OTHERS, self.numbers(6))
            writing.add(THINGS, self.things(("c", None, "s4", "f")))
        return [said, *while_shown, self.shown(), self.rows_of_things(), [*self.files("_aside"), *self.files("work")]]

    def read_in_between(self) -> Any:
        """What is read while a run has written one of its two tables, and both."""
        seen = []
        with self.warehouse().writing() as writing:
            writing.replace(OTHERS, self.numbers(7))
            seen.append([self.shown(), self.rows_of_things()])
            writing.replace(THINGS, self.things(("c", None, "s5", "g")))
            seen.append([self.shown(), self.rows_of_things()])
            within = [row["number"] for row in writing.read(self.spark, OTHERS).collect()]
        return [seen, within, [self.shown(), self.rows_of_things()]]

    def two_writers(self) -> Any:
        with self.warehouse().held():
            before = self.jobs()
            said = refused(lambda: enter(self.warehouse()))
            jobs = self.jobs() - before
        enter(self.warehouse())
        return [said, jobs, self.files("_writers")]

    def one_that_was_taken_over(self) -> Any:
        """The claim is gone when the run wants to publish."""

        def write() -> None:
            with self.warehouse().writing() as writing:
                writing.replace(OTHERS, self.numbers(8))
                spark_files(self.spark).remove_all(f"{self.place}/_writers")

        return [refused(write), self.shown()]

    def late_commit_of_one_that_was_killed(self) -> Any:
        """Its Java lives a moment longer than its process, and commits upon what the next run has gone back to."""

        def write() -> None:
            warehouse = self.warehouse()
            storage: Any = warehouse._storage
            go_back = storage._go_back

            def then_late(table: Table, shown: Stored) -> Any:
                base = go_back(table, shown)
                self.numbers(99).write.format("delta").mode("append").save(f"{self.place}/{table.name}")
                return base

            storage._go_back = then_late
            with warehouse.writing() as writing:
                writing.add(OTHERS, self.numbers(8))

        return [refused(write), self.shown()]

    def two_that_publish_one_run(self) -> Any:
        """Neither knows of the other: as when a storage gave both the claim."""
        first, second = self.warehouse(), self.warehouse()

        def write() -> None:
            with second.writing() as late:
                late.replace(OTHERS, self.numbers(9))
                spark_files(self.spark).remove_all(f"{self.place}/_writers")
                with first.writing() as early:
                    early.replace(THINGS, self.things(("c", None, "s6", "h")))
                    (name,) = self.files("_writers")
                second._storage._claim.name = name  # type: ignore[attr-defined]
                spark_files(self.spark).folder(f"{self.place}/_writers").write(name, "")

        said = refused(write)
        spark_files(self.spark).remove_all(f"{self.place}/_writers")
        return [said, self.shown(), self.rows_of_things()]

    def odd_names(self) -> Any:
        rows = [(name, day, "s", f"{name} {day}") for name in NAMES for day in DAYS]
        with self.warehouse().writing() as writing:
            written = writing.replace(THINGS, self.things(*rows))
        found = {tuple(row) for row in self.warehouse().read(self.spark, THINGS).collect()}
        return [written == len(rows), found == set(rows)]

    def added_often(self) -> Any:
        """Files of a table that is read as a whole, and of what says which tables there are, do not pile up."""
        table = Table("often", {"number": "int"})
        usual, delta_tables.MOST_COMMITS, local_folder.MOST_FOLDERS = delta_tables.MOST_COMMITS, 3, 3
        found = []
        for number in range(7):
            with self.warehouse().writing() as writing:
                writing.add(table, self.numbers(number))
            found.append(len(self.warehouse().read(self.spark, table).inputFiles()))
        delta_tables.MOST_COMMITS = local_folder.MOST_FOLDERS = usual
        rows = sorted(row["number"] for row in self.warehouse().read(self.spark, table).collect())
        published = (
            [] if self.is_folder else self.spark.read.format("delta").load(f"{self.place}/_published").inputFiles()
        )
        return [rows, max(found), len(published), self.shown() != []]

    def compacted(self) -> Any:
        for number in range(10, 14):
            with self.warehouse().writing() as writing:
                writing.add(OTHERS, self.numbers(number))
        before = [self.shown(), self.warehouse().versions(OTHERS)]
        read = self.warehouse().read(self.spark, OTHERS)
        files = len(read.inputFiles())
        warehouse = self.warehouse()
        with warehouse.held():
            with warehouse.writing() as writing:
                writing.compact(self.spark, OTHERS)
            warehouse.forget()
        now = self.warehouse().read(self.spark, OTHERS)
        return [before == [self.shown(), self.warehouse().versions(OTHERS)], files, len(now.inputFiles())]

    def files(self, folder: str) -> list[str]:
        return [file.name for file in spark_files(self.spark).folder(f"{self.place}/{folder}").all()]


def enter(warehouse: Warehouse) -> None:
    with warehouse.held():
        pass


def refused(act: Callable[[], object]) -> str:
    try:
        act()
    except RmqlbError as error:
        return f"{error.code}: {error.message}"
    return "done"


BY_CLAIMS = ("one_that_was_taken_over", "late_commit_of_one_that_was_killed", "two_that_publish_one_run")
"""In a folder it is the kernel that keeps others away."""
STEPS = (
    *("empty", "replaced_and_added", "in_place_of_a_snapshot", "ends_badly", "read_in_between", "two_writers"),
    *(*BY_CLAIMS, "added_often"),
    *("odd_names", "some_values_replaced", "some_truths_replaced", "another_version", "old_ones_removed", "compacted"),
)


def main() -> None:
    """Tell the whole story."""
    settings = SessionSettings("local[2]", json.loads(sys.argv[1]), "spark.log", delta=True)
    with spark_session(settings) as spark:
        story = Story(spark, sys.argv[2])
        steps = [name for name in STEPS if not (story.is_folder and name in BY_CLAIMS)]
        said = {name: getattr(story, name)() for name in steps}
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
