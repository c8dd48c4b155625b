"""What a warehouse at a URI does with small tables, said as JSON: `on_a_storage.py SPARK_SETTINGS URI`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import date
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from rmqlb.errors import RmqlbError
from rmqlb.pipeline.schemas import Table, table
from rmqlb.pipeline.spark.session import spark_session
from rmqlb.pipeline.spark.settings import SessionSettings
from rmqlb.pipeline.storage.files import spark_files
from rmqlb.pipeline.warehouse import Warehouse, Writing

THINGS = table("things", "thing string")
OTHERS = Table("others", {"number": "int"})
NAMES = ["a/b", "1", "01", "café", "x=y", "a%2Fb", "..", "A", " a ", 'q"\\{}[]*?:#', "\U0001f600", "a,b", "true"]
DAYS = [date(2026, 11, 21), None, date(1, 1, 1)]


class Story:
    """The steps, one after the other, on one warehouse; each says something."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self.spark = spark
        self.uri = uri

    def warehouse(self) -> Warehouse:
        """As another process would open it."""
        return Warehouse(self.uri, self.spark)

    def numbers(self, *values: int) -> DataFrame:
        return self.spark.createDataFrame([(value,) for value in values], OTHERS.ddl)

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
        return [said, *while_shown, self.shown(), self.rows_of_things(), self.files("_aside")]

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
                spark_files(self.spark).remove_all(f"{self.uri}/_writers")

        return [refused(write), self.shown()]

    def two_that_publish_one_run(self) -> Any:
        """Neither knows of the other: as when a storage gave both the claim."""
        first, second = self.warehouse(), self.warehouse()

        def write() -> None:
            with second.writing() as late:
                late.replace(OTHERS, self.numbers(9))
                spark_files(self.spark).remove_all(f"{self.uri}/_writers")
                with first.writing() as early:
                    early.replace(THINGS, self.things(("c", None, "s6", "h")))
                    (name,) = self.files("_writers")
                second._storage._claim.name = name  # type: ignore[attr-defined]
                spark_files(self.spark).folder(f"{self.uri}/_writers").write(name, "")

        said = refused(write)
        spark_files(self.spark).remove_all(f"{self.uri}/_writers")
        return [said, self.shown(), self.rows_of_things()]

    def odd_names(self) -> Any:
        rows = [(name, day, "s", f"{name} {day}") for name in NAMES for day in DAYS]
        with self.warehouse().writing() as writing:
            written = writing.replace(THINGS, self.things(*rows))
        found = {tuple(row) for row in self.warehouse().read(self.spark, THINGS).collect()}
        return [written == len(rows), found == set(rows)]

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
        return [file.name for file in spark_files(self.spark).folder(f"{self.uri}/{folder}").all()]


def enter(warehouse: Warehouse) -> None:
    with warehouse.held():
        pass


def refused(act: Callable[[], object]) -> str:
    try:
        act()
    except RmqlbError as error:
        return f"{error.code}: {error.message}"
    return "done"


STEPS = (
    *("empty", "replaced_and_added", "in_place_of_a_snapshot", "ends_badly", "read_in_between", "two_writers"),
    *("one_that_was_taken_over", "two_that_publish_one_run", "odd_names", "compacted"),
)


def main() -> None:
    """Tell the whole story."""
    settings = SessionSettings("local[2]", json.loads(sys.argv[1]), "spark.log", delta=True)
    with spark_session(settings) as spark:
        story = Story(spark, sys.argv[2])
        said = {}
        for name in STEPS:
            said[name] = getattr(story, name)()
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
