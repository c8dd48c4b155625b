"""One file's bytes into documents, and a document's bytes into what it says. No Spark here.

Rules of this file:
- rmqlb.sources reads; here is only decided where one document ends and the next begins, and what it is called.
- A file that is not one strict JSON document is taken apart at lines: a document begins at a line whose first character
  is `{` or `[`, or after a line that holds a whole one. So a line that is cut short loses itself and no other.
- A document is known again by the SHA-256 of its own bytes, unpacked, without what stands around it; where the path
  has to name its topic or group, the name is part of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from urllib.parse import quote

import msgspec

from rmqlb.decoding import decode
from rmqlb.errors import DataError, RmqlbError
from rmqlb.model.snapshot import ClusterSnapshot, Wanted
from rmqlb.pipeline.ingest.files import Told
from rmqlb.sources.dump.pieces import Pieces
from rmqlb.sources.dump.recognise import read_pieces
from rmqlb.sources.formats import snapshot_file
from rmqlb.sources.formats.limits import DEFAULT_LIMIT, inflate, require_few_values, too_large
from rmqlb.sources.formats.mqadmin_text import without_noise

LARGEST_FILE = 4 * DEFAULT_LIMIT
"""Bytes, packed and unpacked, of a file with several documents."""
UNKNOWN = "unknown"
_GZIP = b"\x1f\x8b"
_OPENS, _CLOSES = (b"{", b"["), (b"}", b"]")
_NOT_NAMED = {
    "topic-not-named": "name it in the path: …/topic=NAME/…",
    "group-not-named": "name it in the path: …/group=NAME/…",
}


@dataclass(frozen=True)
class Read:
    """What a document says.

    Attributes:
        kind: snapshot or pieces.
        snapshot: of pieces, what they say by themselves.
        pieces: to be put together with those of the same folder; None for a snapshot.
        taken_at: UTC, or None when the document does not tell.
    """

    kind: str
    snapshot: ClusterSnapshot
    pieces: Pieces | None = None
    taken_at: datetime | None = None


def unpacked(body: bytes, where: str) -> bytes:
    """A file's content, out of its gzip if it is in one.

    Raises:
        DocumentError: the gzip is damaged or cut short, or the content larger than `LARGEST_FILE`.
    """
    if len(body) > LARGEST_FILE:
        raise too_large(where, LARGEST_FILE)
    return inflate(body, LARGEST_FILE, where) if body.startswith(_GZIP) else body


def split(body: bytes) -> list[bytes]:
    r"""The documents of a file, in order; at least one, which may be empty.

    >>> split(b'{"a": 1}\n{"b": \n{"c": 3}\n')
    [b'{"a": 1}', b'{"b":', b'{"c": 3}']
    """
    if _is_one(body):
        return [body.strip()]
    lines = _lines(body)
    if not any(_is_whole(line) or line[:1] in _OPENS for line in lines):
        return [body.strip()]
    return list(_documents(lines))


def _is_one(body: bytes) -> bool:
    try:
        decode(body, msgspec.Raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return True


def _lines(body: bytes) -> list[bytes]:
    """Lines without the noise that a JVM writes before a command's own output; bytes that are no text stay whole."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        return body.split(b"\n")
    # An earlier line that is noise is blanked only before the first document, so nothing of a document is lost.
    return without_noise(text).encode().split(b"\n")


def _documents(lines: list[bytes]) -> Iterator[bytes]:
    open_lines: list[bytes] = []
    for line in lines:
        if open_lines and (line[:1] in _OPENS or _is_whole(open_lines[0])):
            yield b"\n".join(open_lines).strip()
            open_lines = []
        if open_lines or line.strip():
            open_lines.append(line.rstrip(b"\r"))
    if open_lines:
        yield b"\n".join(open_lines).strip()


def _is_whole(line: bytes) -> bool:
    line = line.strip()
    return len(line) > 1 and line[:1] in _OPENS and line[-1:] in _CLOSES


def digest(*parts: str | bytes) -> str:
    """SHA-256 of the parts, in hexadecimal."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part)
    return whole.hexdigest()


def read_document(body: bytes, where: str, told: Told) -> Read:
    """What one document says.

    Args:
        body: its bytes, unpacked.
        where: how errors name it.
        told: names the topic or group of a document that does not name its own.

    Raises:
        DataError: it cannot be read or understood; the message says where in it.
    """
    if len(body) > DEFAULT_LIMIT:
        raise too_large(where, DEFAULT_LIMIT)
    require_few_values(body, where)
    if not body:
        raise DataError(f"{where} is empty", hint="expected a snapshot, a route or a Dashboard response")
    heading = snapshot_file.heading(body)
    if heading is not None:
        return _as_snapshot(snapshot_file.read_body(body, heading, where, Wanted()))
    pieces = _read_pieces(body, where, told)
    if len(pieces.snapshots) > 1:
        raise DataError(f"{where}: {len(pieces.snapshots)} snapshots in one document", hint="write one a line")
    if pieces.snapshots:
        return _as_snapshot(pieces.snapshot())
    return Read("pieces", pieces.snapshot(), pieces)


def _read_pieces(body: bytes, where: str, told: Told) -> Pieces:
    try:
        return read_pieces(body, where, Wanted())
    except DataError as error:
        # Only then: a name that is wanted would leave out what else a snapshot holds.
        if error.code not in _NOT_NAMED or not told.names:
            raise
    return read_pieces(body, where, Wanted(topics=None if told.topic is None else (told.topic,), group=told.group))


def _as_snapshot(snapshot: ClusterSnapshot) -> Read:
    return Read("snapshot", snapshot, None, taken_at(snapshot))


def taken_at(snapshot: ClusterSnapshot) -> datetime | None:
    """When a snapshot was taken, UTC: as it says, else when the last of its parts was seen; None when neither tells."""
    if snapshot.taken_at is not None:
        return _utc(snapshot.taken_at)
    seen = [sighting.seen.at for sighting in snapshot.routes.values()]
    for group in snapshot.groups.values():
        seen += (group.seen.at, *(view.seen.at for view in group.views or ()))
    return max((_utc(at) for at in seen if at is not None), default=None)


def _utc(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def cluster_of(snapshot: ClusterSnapshot) -> str:
    """The names of the RocketMQ clusters that the snapshot's brokers are in, sorted; `unknown` when none is named."""
    names = {
        broker.cluster
        for sighting in snapshot.routes.values()
        for broker in sighting.route.broker_datas
        if broker.cluster
    }
    return ",".join(sorted(names)) or UNKNOWN


def check_cluster(name: str) -> str:
    """The name, if a folder can bear it.

    Raises:
        DataError: it cannot.
    """
    if "\0" in name or len(quote(name, safe="")) > 200 or name == "__HIVE_DEFAULT_PARTITION__":
        raise DataError(f"the cluster's name {name[:40]!r} cannot be that of a folder", hint="call it otherwise")
    return name


def snapshot_id(read: Read, hash_: str, told: Told) -> str:
    """By what name the document's snapshot goes in the warehouse.

    The same bytes are the same snapshot. Without a time of their own they may be those of another night or cluster, so
    then what the path tells counts too; and pieces are those of their folder.
    """
    if read.kind == "pieces":
        return pieces_id(told)
    return hash_[:16] if read.taken_at is not None else timeless_id(hash_, told)


def timeless_id(hash_: str, told: Told) -> str:
    """The name of a snapshot that does not say when it was taken."""
    return digest(hash_, "\0", told.cluster or "", "\0", _text(told.date))[:16]


def pieces_id(told: Told) -> str:
    """The name of the snapshot that all pieces of a folder, cluster and date make together."""
    return "pieces-" + digest(told.folder, "\0", told.cluster or "", "\0", _text(told.date))[:12]


def reason_of(error: Exception) -> str:
    """Why a document is put aside, in one line."""
    if not isinstance(error, RmqlbError):
        return " ".join(f"{type(error).__name__}: {error}".split())[:500]
    hint = _NOT_NAMED.get(error.code) if error.hint_names_options else error.hint
    return f"{error.message}; {hint}" if hint else error.message


def _text(day: date | None) -> str:
    return "" if day is None else day.isoformat()
