"""Small files beside the tables, by the file systems that Spark has: no job is run for them.

Under Spark Connect nobody but the server reaches these file systems, and there they are read and written by small jobs.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_ALL_BELOW = _OVERWRITE = True  # of Java's methods, whose arguments have no names


class SmallFile(Struct, frozen=True):
    """A file's name, its text, and when it was written, in milliseconds since 1970, by the storage's clock."""

    name: str
    text: str
    written_ms: int


class SmallFiles(Protocol):
    """The files of one folder of a storage."""

    def write(self, name: str, text: str) -> None:
        """A new file, or another text in one that is there all the time."""

    def all(self) -> tuple[SmallFile, ...]:
        """Every file; none where there is no folder."""

    def has(self, name: str) -> bool:
        """Whether there is such a file."""

    def remove(self, name: str) -> None:
        """Remove one that may be there."""


class SparkFiles(Protocol):
    """What can be done with the files of a storage."""

    def folder(self, uri: str) -> SmallFiles:
        """The small files of a folder."""

    def remove_all(self, uri: str) -> None:
        """Remove a folder with all that is in it, as far as that can be done."""


def spark_files(spark: SparkSession) -> SparkFiles:
    """By the session's own Java, or by jobs of a Spark Connect server."""
    return _JavaFiles(spark) if hasattr(spark, "_jvm") and not _is_connect(spark) else _JobFiles(spark)


def _is_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


class _JavaFiles:
    def __init__(self, spark: SparkSession) -> None:
        self._java: Any = spark._jvm  # noqa: SLF001 - pyspark has no other way to Hadoop's file systems
        self._conf: Any = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001

    def folder(self, uri: str) -> SmallFiles:
        return _JavaFolder(self, uri)

    def remove_all(self, uri: str) -> None:
        path = self.path(uri)
        self.system(path).delete(path, _ALL_BELOW)

    def path(self, *parts: str) -> Any:
        return self._java.org.apache.hadoop.fs.Path(posixpath.join(*parts))

    def system(self, path: Any) -> Any:
        return path.getFileSystem(self._conf)

    def text(self, path: Any) -> str:
        stream = self.system(path).open(path)
        try:
            return str(self._java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def exists(self, path: Any) -> bool:
        return bool(self.system(path).exists(path))


class _JavaFolder:
    def __init__(self, files: _JavaFiles, uri: str) -> None:
        self._files = files
        self._uri = uri

    def write(self, name: str, text: str) -> None:
        path = self._files.path(self._uri, name)
        stream = self._files.system(path).create(path, _OVERWRITE)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def all(self) -> tuple[SmallFile, ...]:
        folder = self._files.path(self._uri)
        if not self._files.exists(folder):
            return ()
        found = []
        for status in self._files.system(folder).listStatus(folder):
            text = self._text(status.getPath())
            if text is not None:
                found.append(SmallFile(status.getPath().getName(), text, status.getModificationTime()))
        return tuple(found)

    def _text(self, path: Any) -> str | None:
        """None when it was removed since it was listed; what is just being written is read again."""
        from py4j.protocol import Py4JJavaError

        for tries_left in (2, 1, 0):
            try:
                return self._files.text(path)
            except Py4JJavaError:
                if not self._files.exists(path):
                    return None
                if not tries_left:
                    raise
        return None

    def has(self, name: str) -> bool:
        return self._files.exists(self._files.path(self._uri, name))

    def remove(self, name: str) -> None:
        path = self._files.path(self._uri, name)
        self._files.system(path).delete(path, not _ALL_BELOW)


class _JobFiles:
    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def folder(self, uri: str) -> SmallFiles:
        return _JobFolder(self.spark, uri)

    def remove_all(self, uri: str) -> None:
        """A server removes no file for us. What is left is removed by the next writer that has a Java of its own."""


class _JobFolder:
    """A file is a folder of Spark's, of whose texts the newest counts; an empty one is a file that was removed.

    Spark replaces what is in a folder by removing it first, and for the time of a job nobody would see the file. So
    another text is one more.
    """

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self._spark = spark
        self._uri = uri

    def write(self, name: str, text: str) -> None:
        self._save([(text,)], name, "append")

    def all(self) -> tuple[SmallFile, ...]:
        from pyspark.errors import AnalysisException
        from pyspark.sql import functions as fn

        where, when = fn.col("_metadata.file_path"), fn.col("_metadata.file_modification_time")
        reader = self._spark.read.option("recursiveFileLookup", "true").option("ignoreMissingFiles", "true")
        try:
            rows = reader.text(self._uri).select("value", where, fn.unix_millis(when)).collect()
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            return ()
        files = [SmallFile(path.split("/")[-2], text, written) for text, path, written in rows]
        return tuple({file.name: file for file in sorted(files, key=lambda file: file.written_ms)}.values())

    def has(self, name: str) -> bool:
        return any(file.name == name for file in self.all())

    def remove(self, name: str) -> None:
        self._save([], name, "overwrite")

    def _save(self, lines: list[tuple[str]], name: str, mode: str) -> None:
        frame = self._spark.createDataFrame(lines, "value string").coalesce(1)
        frame.write.mode(mode).text(posixpath.join(self._uri, name))
