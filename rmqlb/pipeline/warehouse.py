"""The warehouse: plain Parquet at any URI that Hadoop reads, a folder `TABLE/date=YYYY-MM-DD/` for each night.

    groups/date=2026-11-21/part-….parquet    a table's rows of one night
    _nights/date=2026-11-21/TOKEN            the night is whole: removed before its tables change, written after
    _ingested/date=2026-11-21/TOKEN.DIGEST   the same for tables of ingest; the digest is of the night's input files
    _staging/                                new rows; the next run removes the remains of a killed run
    _writer                                  the process that writes now

- A night is replaced as a whole: its new rows are complete in `_staging` before the old ones go.
- Tokens are names of empty files, so one listing of `_nights` and `_ingested` shows the state of all nights.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import socket
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import astuple

from rmqlb.errors import DataError, UsageError
from rmqlb.pipeline.tables import TABLES, ReadFile, Row, Snapshots, columns, ddl, name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NIGHTS, INGESTED = "_nights", "_ingested"
_STAGING, _WRITER = "_staging", "_writer"
_DATE = re.compile(r"date=(\d{4}-\d{2}-\d{2})")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_OVERWRITE = _RECURSIVE = True  # Java's arguments have no names
_MOST_ROWS = 10_000_000  # keeps a Parquet file below 128 MB


class Night(Struct, frozen=True):
    ingested: str | None = None  # changes whenever the night's snapshots do; None while they are being written
    inputs: str | None = None  # the digest of the night's input files
    judged: str | None = None  # a digest of the input of its figures; None while they are not whole


def location(place: str | None) -> str:
    """The warehouse's URI, or its absolute path (raises UsageError)."""
    if not place:
        hint = "name its folder or URI with --warehouse, or set RMQLB_WAREHOUSE"
        raise UsageError("no warehouse is named", hint=hint, code="no-warehouse")
    if re.search(r"[*?{}\[\]\\]", place):
        problem = f"--warehouse {place}: Spark reads * ? [ ] {{ }} and \\ as patterns"
        raise UsageError(problem, hint="rename the folder")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:(?!/)", place):
        hint = "write, for example, hdfs://namenode:8020/rmqlb, or ./ and a folder"
        raise UsageError(f"--warehouse {place}: not a URI", hint=hint)
    path = "/" + place.removeprefix("file:").lstrip("/") if place.startswith("file:/") else place
    return path.rstrip("/") if is_uri(path) else os.path.abspath(path)


def is_uri(path: str) -> bool:
    return _SCHEME.match(path) is not None


def short(*texts: object) -> str:
    return hashlib.sha256(repr(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Warehouse:
    def __init__(self, spark: SparkSession, place: str) -> None:
        self.spark = spark
        self.place = place  # as `location` gives it
        jvm: Any = spark._jvm  # noqa: SLF001 - pyspark has no other way to Hadoop's file systems
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        self._conf: Any = spark._jsc.hadoopConfiguration()  # noqa: SLF001 - likewise
        self._files: Any = self._path(place).getFileSystem(self._conf)

    def dates(self, table: type[Row]) -> list[date]:
        return sorted(_days(self._names(name(table))))

    def nights(self) -> dict[date, Night]:
        found: dict[date, dict[str, str]] = {}
        for folder in (NIGHTS, INGESTED):
            for path in self.files_in(f"{self.place}/{folder}"):
                day, _, token = path.path.rpartition(f"/{folder}/")[2].partition("/")
                for each in _days([day]):
                    found.setdefault(each, {})[folder] = token
        return {day: _night(found[day]) for day in sorted(found)}

    def whole_nights(self) -> list[date]:
        return [day for day, night in self.nights().items() if night.judged is not None]

    def read(self, table: type[Row], days: Iterable[date]) -> DataFrame:
        there = set(self.dates(table))
        paths = [f"{self.place}/{name(table)}/date={day}" for day in sorted(set(days)) if day in there]
        if not paths:
            return self.frame(table, ())
        reader = self.spark.read.schema(ddl(table)).option("basePath", f"{self.place}/{name(table)}")
        return reader.parquet(*paths).select(*columns(table))

    def frame(self, table: type[Row], rows: Iterable[Row]) -> DataFrame:
        """Rows that this process made."""
        fields = dict(zip(table.__struct_encode_fields__, table.__struct_fields__, strict=True))
        found = ([getattr(row, fields[column]) for column in columns(table)] for row in rows)
        values = [tuple(astuple(value) if isinstance(value, Struct) else value for value in row) for row in found]
        return self.spark.createDataFrame(values, ddl(table))

    def files_in(self, uri: str) -> list[ReadFile]:
        """All files below a folder, without hidden ones; none where the folder is missing."""
        path = self._path(uri)
        if not path.getFileSystem(self._conf).exists(path):
            return []
        found, each = [], path.getFileSystem(self._conf).listFiles(path, _RECURSIVE)
        while each.hasNext():
            state = each.next()
            text = state.getPath().toString()
            if not state.getPath().getName().startswith((".", "_")):
                found.append(ReadFile(_plain(text), state.getLen(), state.getModificationTime()))
        return sorted(found, key=lambda file: file.path)

    @contextmanager
    def writing(self) -> Iterator[bool]:
        """Lock out other writers; yields whether an interrupted run left rows behind (raises DataError)."""
        with _locked(self.place) if not is_uri(self.place) else self._claimed():
            interrupted = self._delete(_STAGING)
            try:
                yield interrupted
            finally:
                with suppress(Exception):  # the error that ends the block says more
                    self._delete(_STAGING)

    def stage(self, frame: DataFrame, step: str) -> DataFrame:
        path = f"{self.place}/{_STAGING}/{step}"
        frame.write.mode("overwrite").parquet(path)
        return self.spark.read.schema(frame.schema).parquet(path)

    def replace(self, table: type[Row], frame: DataFrame, days: Collection[date]) -> None:
        if not days:
            return
        staged = f"{self.place}/{_STAGING}/{name(table)}"
        order = [column for column in ("cluster", "group", "topic", "brokerName", "queueId") if column in frame.columns]
        whole = frame.coalesce(1) if len(days) == 1 else frame.repartition("date")
        rows = whole.sortWithinPartitions("date", *order).select(*columns(table))
        rows.write.mode("overwrite").option("maxRecordsPerFile", _MOST_ROWS).partitionBy("date").parquet(staged)
        written = set(self._names(f"{_STAGING}/{name(table)}"))
        self._files.mkdirs(self._path(f"{self.place}/{name(table)}"))
        for day in days:
            part = f"date={day}"
            self._delete(f"{name(table)}/{part}")
            if part in written:
                to = f"{self.place}/{name(table)}/{part}"
                if not self._files.rename(self._path(f"{staged}/{part}"), self._path(to)):
                    raise UsageError(f"{to}: cannot be written", code="cannot-write")

    def unmark(self, day: date, *, ingested: bool) -> None:
        """Mark a night as not whole; `ingested`: its snapshots neither."""
        self._delete(f"{NIGHTS}/date={day}")
        if ingested:
            self._delete(f"{INGESTED}/date={day}")

    def mark(self, day: date, folder: str, token: str) -> None:
        self._delete(f"{folder}/date={day}")
        self._files.create(self._path(f"{self.place}/{folder}/date={day}/{token}")).close()

    def drop_before(self, first: date) -> list[date]:
        """Drop nights before this date, except the last night of a cluster; returns the dropped ones."""
        days = self.dates(Snapshots)
        old = [day for day in days if day < first]
        if not old:
            return []
        rows = self.read(Snapshots, days).where("counts").groupBy("cluster").agg({"date": "max"}).collect()
        dropped = sorted(set(old) - {row[1] for row in rows})
        for day in dropped:
            self.unmark(day, ingested=True)
            for table in TABLES:
                self._delete(f"{name(table)}/date={day}")
        return dropped

    def _names(self, folder: str) -> list[str]:
        path = self._path(f"{self.place}/{folder}")
        if not self._files.exists(path):
            return []
        return [state.getPath().getName() for state in self._files.listStatus(path)]

    def _delete(self, name: str) -> bool:
        return bool(self._files.delete(self._path(f"{self.place}/{name}"), _RECURSIVE))

    @contextmanager
    def _claimed(self) -> Iterator[None]:
        """Claim the warehouse by a file that only one process can create."""
        path = self._path(f"{self.place}/{_WRITER}")
        mine = json.dumps({"host": socket.gethostname(), "pid": os.getpid()})
        try:
            self._write_new(path, mine)
        except Exception:  # noqa: BLE001 - Java's; whoever holds it is asked next
            theirs = self._content(path)
            if not _is_dead(theirs):
                raise _taken(self.place, theirs, f"{self.place}/{_WRITER}") from None
            self._files.delete(path, not _RECURSIVE)
            self._write_new(path, mine)
        try:
            yield
        finally:
            self._files.delete(path, not _RECURSIVE)

    def _write_new(self, path: Any, text: str) -> None:
        out = self._files.create(path, not _OVERWRITE)
        out.write(bytearray(text.encode()))
        out.close()

    def _content(self, path: Any) -> Mapping[str, Any]:
        try:
            stream = self._files.open(path)
            text = bytes(stream.readAllBytes())
            stream.close()
            return dict(json.loads(text))
        except Exception:  # noqa: BLE001 - Java's, or a file that is written at this moment
            return {}


def first_kept(nights: Iterable[date], keep_days: int, today: date) -> date:
    """The first night to keep, counted from the last night that is not in the future."""
    past = [day for day in nights if day <= today]
    return max(past, default=today) - timedelta(days=keep_days - 1)


def _night(found: Mapping[str, str]) -> Night:
    ingested, _, inputs = found.get(INGESTED, "").partition(".")
    return Night(ingested or None, inputs or None, found.get(NIGHTS))


def _days(names: Iterable[str]) -> Iterator[date]:
    for each in names:
        if match := _DATE.fullmatch(each):
            with suppress(ValueError):
                yield date.fromisoformat(match[1])


def _plain(uri: str) -> str:
    return "/" + uri.removeprefix("file:").lstrip("/") if uri.startswith("file:") else uri


def make_folder(place: str) -> None:
    try:
        os.makedirs(place, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--warehouse {place}: {error.strerror or error}", code="cannot-write") from None


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Lock a file of the warehouse; the system releases the lock however the process ends."""
    path = os.path.join(folder, _WRITER)
    make_folder(folder)
    try:
        file = open(path, "a+", encoding="utf-8")  # noqa: SIM115 - closed below
    except OSError as error:
        raise UsageError(f"--warehouse {folder}: {error.strerror or error}", code="cannot-write") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            with suppress(ValueError):
                raise _taken(folder, json.loads(file.read()), None) from None
            raise _taken(folder, {}, None) from None
        file.truncate(0)
        file.write(json.dumps({"host": socket.gethostname(), "pid": os.getpid()}))
        file.flush()
        yield


def _is_dead(who: Mapping[str, Any]) -> bool:
    if who.get("host") != socket.gethostname():
        return False
    try:
        os.kill(int(who["pid"]), 0)
    except (OSError, KeyError, ValueError) as error:
        return isinstance(error, ProcessLookupError)
    return False


def _taken(place: str, who: Mapping[str, Any], file: str | None) -> DataError:
    text = f"process {who['pid']} on {who['host']}" if {"pid", "host"} <= who.keys() else "another process"
    hint = "wait until it is done" if file is None else f"wait until it is done; if that process is gone, delete {file}"
    return DataError(f"{place}: {text} is writing to this warehouse", hint=hint, code="warehouse-in-use")
