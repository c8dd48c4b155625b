"""By what names a document and its snapshot go in the warehouse, and why a document is rejected. No Spark here."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from urllib.parse import quote

from rmqlb.errors import DataError, RmqlbError
from rmqlb.pipeline.ingest.input_files import PathLabels
from rmqlb.sources.dump import LARGEST_FILE, Document, read_document

UNKNOWN = "unknown"
_PATH_HINTS = {
    "topic-not-named": "name it in the path: …/topic=NAME/…",
    "group-not-named": "name it in the path: …/group=NAME/…",
}
"""Error code → what helps here in place of an option."""


@dataclass(frozen=True)
class FileDocument:
    """A document in a file: `body` is unpacked, `position` counts from 1 among the file's `documents`."""

    file: str
    position: int
    documents: int
    body: bytes
    labels: PathLabels

    @property
    def hash(self) -> str:
        """By what it is known again."""
        return digest(self.labels.names, self.body)

    def read(self) -> Document:
        """What it says; a DataError when it cannot be understood, or holds several snapshots."""
        where = self.file if self.documents == 1 else f"{self.file}, document {self.position}"
        topic, group = self.labels.topic, self.labels.group
        # A whole large cluster, which no command need hold: a document may be all of its file.
        document = read_document(self.body, where, topic=topic, group=group, limit=LARGEST_FILE)
        if document.snapshots > 1:
            raise DataError(f"{where}: {document.snapshots} snapshots in one document", hint="write one a line")
        return document


def digest(*parts: str | bytes) -> str:
    """SHA-256 of the parts, in hexadecimal."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part)
    return whole.hexdigest()


def cluster_name(labels: PathLabels, document: Document) -> str:
    """The cluster as the path says, otherwise as the brokers do."""
    return check_cluster(labels.cluster or document.cluster or UNKNOWN)


def check_cluster(name: str) -> str:
    """The name, if a folder can bear it; otherwise a DataError."""
    if "\0" in name or len(quote(name, safe="")) > 200 or name == "__HIVE_DEFAULT_PARTITION__":
        raise DataError(f"the cluster's name {name[:40]!r} cannot be that of a folder", hint="call it otherwise")
    return name


def last_day() -> date:
    """The last day that is not in the future anywhere on earth."""
    return (datetime.now(UTC) + timedelta(hours=14)).date()


def check_day(day: date | None, latest: date, file: str) -> date | None:
    """The day, unless it is in the future (raises DataError): that is the clock of the machine that took the snapshot.

    >>> check_day(date(2126, 1, 2), date(2026, 1, 2), "a.json")
    Traceback (most recent call last):
    rmqlb.errors.DataError: a.json: its date 2126-01-02 is in the future
    """
    if day is not None and day > latest:
        raise DataError(f"{file}: its date {day} is in the future", hint="check the clock where it was taken")
    return day


def snapshot_id(document: Document, hash_: str, labels: PathLabels) -> str:
    """By what name the document's snapshot goes in the warehouse.

    The same bytes are the same snapshot. Without a time of their own they may be those of another night or cluster, so
    then what the path tells counts too; and pieces are those of their folder.
    """
    if document.kind == "pieces":
        return pieces_id(labels)
    return hash_[:16] if document.taken_at is not None else timeless_id(hash_, labels)


def timeless_id(hash_: str, labels: PathLabels) -> str:
    """The name of a snapshot that does not say when it was taken."""
    return digest(hash_, *_cluster_and_date(labels))[:16]


def pieces_id(labels: PathLabels) -> str:
    """The name of the snapshot that all pieces of a folder, cluster and date make together."""
    return "pieces-" + digest(labels.folder, *_cluster_and_date(labels))[:12]


def _cluster_and_date(labels: PathLabels) -> tuple[str, ...]:
    return "\0", labels.cluster or "", "\0", "" if labels.date is None else labels.date.isoformat()


def reason_of(error: Exception) -> str:
    """Why a document is rejected, in one line."""
    if not isinstance(error, RmqlbError):
        return " ".join(f"{type(error).__name__}: {error}".split())[:500]
    hint = _PATH_HINTS.get(error.code) if error.hint_names_options else error.hint
    return f"{error.message}; {hint}" if hint else error.message
