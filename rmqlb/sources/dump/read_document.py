"""A file's bytes as its documents, and a document's bytes as what it says: whatever reads files asks here.

Rules of this file:
- A file that is not one strict JSON document is taken apart at lines: a document begins at a line whose first character
  is `{` or `[`, or after a line that holds a whole one. So a line that is cut short loses itself and no other.
- Nothing is built before its size and its number of values are known to be bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import msgspec

from rmqlb.decoding import decode
from rmqlb.errors import DocumentError
from rmqlb.model.snapshot import ClusterSnapshot, Wanted
from rmqlb.sources.formats import snapshot_file
from rmqlb.sources.formats.limits import DEFAULT_LIMIT, inflate, require_few_values, too_large

if TYPE_CHECKING:
    from rmqlb.sources.dump.pieces import Pieces

LARGEST_FILE = 4 * DEFAULT_LIMIT  # bytes, packed and unpacked, of a file with several documents
GZIP = b"\x1f\x8b"
_OPENS, _CLOSES = (b"{", b"["), (b"}", b"]")


class Document(msgspec.Struct, frozen=True):
    """What a document says."""

    # `snapshot`, or `pieces` when it holds none, so that what it says may be merged with what others say
    kind: Literal["snapshot", "pieces"]
    snapshot: ClusterSnapshot  # all of it
    snapshots: int  # how many whole snapshots it holds
    cluster: str | None  # the names of the RocketMQ clusters that its brokers are in, sorted; None when none is named
    # of a snapshot, UTC: as it says, else when the last of its parts was seen; None when neither tells
    taken_at: datetime | None
    pieces: Pieces | None  # its routes and answers, for `merge`; None when it is one snapshot in strict JSON


def read_document(
    body: bytes,  # unpacked
    where: str,
    wanted: Wanted | None = None,  # the parts of a snapshot that are read; all but evidence by default
    *,
    topic: str | None = None,  # of a route that does not name its own
    group: str | None = None,  # of an answer that does not name its own
    limit: int = DEFAULT_LIMIT,  # bytes; what is not one snapshot in strict JSON may have half of it
) -> Document:
    """What one document says, whatever its kind: its content tells, never its name (raises DataError)."""
    wanted = wanted or Wanted()
    if len(body) > limit:
        raise too_large(where, limit)
    if not body or body.isspace():
        raise DocumentError(f"{where} is empty", hint="expected a snapshot, a route or a Dashboard response")
    require_few_values(body, where, limit)
    heading = snapshot_file.heading(body)
    if heading is not None:
        return _document(snapshot_file.read_body(body, heading, where, wanted))
    # What may be anything is built whole, keys and all, and takes twice the memory of a snapshot.
    if len(body) > limit // 2:
        raise too_large(where, limit // 2, "and not one whole snapshot in JSON")
    require_few_values(body, where, limit // 2)
    from rmqlb.sources.dump.recognise import read_pieces

    return _of_pieces(read_pieces(body, where, wanted, topic, group))


def merge(documents: Iterable[Document], where: str) -> Document:
    """What several documents say in pieces as one, the later over the earlier."""
    from rmqlb.sources.dump.pieces import Pieces

    whole = Pieces(where)
    for document in documents:
        if document.pieces is not None:
            whole.merge(document.pieces)
    return _of_pieces(whole)


def split_documents(content: bytes, where: str) -> list[bytes]:
    r"""The documents of a file, out of its gzip if it is in one; at least one, which may be empty.

    >>> split_documents(b'{"a": 1}\n{"b": \n{"c": 3}\n', "x")
    [b'{"a": 1}', b'{"b":', b'{"c": 3}']

    DocumentError when the gzip is damaged or cut short, or the content larger than `LARGEST_FILE`.
    """
    if len(content) > LARGEST_FILE:
        raise too_large(where, LARGEST_FILE)
    body = inflate(content, LARGEST_FILE, where) if content.startswith(GZIP) else content
    if not _is_one(body):
        lines = _lines(body)
        if any(_is_whole(line) or line[:1] in _OPENS for line in lines):
            return list(_documents(lines))
    return [body.strip()]


def _of_pieces(pieces: Pieces) -> Document:
    return _document(pieces.snapshot(), len(pieces.snapshots), pieces)


def _document(snapshot: ClusterSnapshot, snapshots: int = 1, pieces: Pieces | None = None) -> Document:
    routes = (sighting.route for sighting in snapshot.routes.values())
    clusters = {broker.cluster for route in routes for broker in route.broker_datas} - {""}
    taken_at = _taken_at(snapshot) if snapshots else None
    kind: Literal["snapshot", "pieces"] = "snapshot" if snapshots else "pieces"
    return Document(kind, snapshot, snapshots, ",".join(sorted(clusters)) or None, taken_at, pieces)


def _taken_at(snapshot: ClusterSnapshot) -> datetime | None:
    if snapshot.taken_at is not None:
        return _utc(snapshot.taken_at)
    seen = [sighting.seen.at for sighting in snapshot.routes.values()]
    for group in snapshot.groups.values():
        seen += (group.seen.at, *(view.seen.at for view in group.views or ()))
    return max((_utc(at) for at in seen if at is not None), default=None)


def _utc(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _is_one(body: bytes) -> bool:
    try:
        decode(body, msgspec.Raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return True


def _lines(body: bytes) -> list[bytes]:
    """Lines without the noise that a JVM writes before a command's own output; bytes that are no text stay whole."""
    from rmqlb.sources.formats.mqadmin_text import without_noise

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
