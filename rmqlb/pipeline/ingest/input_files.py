"""Which files ingest reads, and what their paths tell.

Files of this machine are listed with Python: a name with a colon or a bracket in it is one that Spark's own listing
cannot say. What has a scheme (`s3a://…`) is left to Spark. Names that begin with `.` or `_` are skipped in folders,
as Spark does; a file that is named itself is read. A folder `cluster=NAME`, `date=YYYY-MM-DD`, `topic=NAME` or
`group=NAME` (percent-encoded, as Spark writes it) tells what a document does not; of two of one key, the one nearest to
the file.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from urllib.parse import unquote

from rmqlb.errors import DataError
from rmqlb.pipeline.row_filter import iso_day

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_LABEL = re.compile(r"(cluster|date|topic|group)=(.+)", re.DOTALL)
_NAMES = ("topic", "group")
_NO_TEXT = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class PathLabels:
    """What a file's path tells.

    `folder` is without those that name a topic or group, so that all pieces in it belong together; `topic` and `group`
    are for a route or an answer that does not name its own.
    """

    folder: str
    cluster: str | None = None
    date: date | None = None
    topic: str | None = None
    group: str | None = None

    @property
    def names(self) -> str:
        """What distinguishes equal bytes that are about two topics or groups; empty when the path names none."""
        return "".join(f"{key}={value}\0" for key in _NAMES if (value := getattr(self, key)) is not None)


def path_labels(path: str) -> PathLabels:
    """What a path tells.

    >>> path_labels("/dumps/cluster=pay%2Feu/date=2026-11-21/topic=Orders/route.json")
    PathLabels(folder='/dumps/cluster=pay%2Feu/date=2026-11-21', cluster='pay/eu', \
date=datetime.date(2026, 11, 21), topic='Orders', group=None)
    """
    *folders, _ = path.split("/")
    found: dict[str, str] = {}
    kept: list[str] = []
    for folder in folders:
        match = _LABEL.fullmatch(folder)
        if match:
            found[match[1]] = unquote(match[2])
        if not match or match[1] not in _NAMES:
            kept.append(folder)
    date = iso_day(found.get("date", ""))
    return PathLabels("/".join(kept), found.get("cluster"), date, found.get("topic"), found.get("group"))


@dataclass(frozen=True)
class Found:
    """Files of this machine, sorted, their sizes in bytes; how many are `hidden`; inputs with a scheme.

    `modified`: when each file was changed, in µs since 1970.
    """

    files: tuple[str, ...]
    sizes: tuple[int, ...]
    hidden: int
    urls: tuple[str, ...]
    modified: tuple[int, ...] = ()


def find(inputs: Iterable[str]) -> Found:
    """The files that the inputs stand for: files, folders with all below them, globs (`**` too), URLs.

    Raises:
        DataError: an input stands for no file, or a file's name is no text.
    """
    files: set[str] = set()
    hidden: set[str] = set()
    urls: list[str] = []
    for given in inputs:
        path = "/" + given.removeprefix("file:").lstrip("/") if given.startswith("file:/") else given
        if _SCHEME.match(path):
            urls.append(given)
            continue
        taken, skipped = _local(path)
        if not taken:
            raise nothing_at(given, len(skipped))
        files |= taken
        hidden |= skipped
    ordered = sorted(files)
    for path in ordered:
        if _NO_TEXT.search(path):
            raise DataError(f"{path!r}: the file's name is not UTF-8 text", hint="rename it")
    states = [_size_and_time(path) for path in ordered]
    sizes, times = tuple(size for size, _ in states), tuple(at for _, at in states)
    return Found(tuple(ordered), sizes, len(hidden - files), tuple(urls), times)


def nothing_at(given: str, hidden: int = 0) -> DataError:
    """The error for an input that stands for no file, or for so many hidden ones."""
    reason = "there is no file to read"
    if hidden:
        reason += f" but {hidden} whose names begin with . or _"
    return DataError(f"{given}: {reason}", hint="name files, folders, globs or URLs that Spark can read")


def _local(path: str) -> tuple[set[str], set[str]]:
    """The files that a path of this machine stands for, and the hidden ones."""
    roots = [path] if os.path.lexists(path) else glob.glob(path, recursive=True)
    taken: set[str] = set()
    hidden: set[str] = set()
    for root in map(os.path.abspath, roots):
        if not os.path.isdir(root):
            taken.add(root)
        for folder, _, names in os.walk(root):
            for file in (os.path.join(folder, name) for name in names):
                parts = file[len(root) :].split("/")
                is_hidden = any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts)
                (hidden if is_hidden else taken).add(file)
    return taken, hidden


def _size_and_time(path: str) -> tuple[int, int]:
    try:
        state = os.stat(path)
    except OSError:
        return 0, 0
    return state.st_size, state.st_mtime_ns // 1000
