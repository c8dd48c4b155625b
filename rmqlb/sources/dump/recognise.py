"""What a dump is, its content tells, never its name."""

from __future__ import annotations

import re

from rmqlb.errors import DataError, DocumentError
from rmqlb.model.snapshot import Wanted
from rmqlb.sources.dump.pieces import Pieces
from rmqlb.sources.formats.documents import parse_documents
from rmqlb.sources.formats.limits import text_of
from rmqlb.sources.formats.mqadmin_text import TABLE_START, failed_command, is_noise, read_table, without_noise

_FIRST_LINE = re.compile(rb"[ \t\r\n]*([{\[][^\n]{,80})")

_OTHER_TABLE = re.compile(r"#[A-Z][A-Za-z]{1,20}(?: [A-Z][a-z]{1,20})? {2,200}#[A-Z]")
"""Two columns, as consumerConnection, consumerProgress and clusterList begin; a YAML file may begin with a comment."""


def read_pieces(body: bytes, where: str, wanted: Wanted, topic: str | None = None, group: str | None = None) -> Pieces:
    """A dump of any kind; the arguments are those of `read_document` (raises DocumentError)."""
    pieces = Pieces(where, wanted, topic, group)
    first = _FIRST_LINE.match(body)
    if first and not is_noise(first[1].decode("latin-1")):
        _add_json(body, where, pieces)
        return pieces
    text = without_noise(text_of(body, where))
    start = text.lstrip()
    reason = failed_command(start) if start[:1] not in ("{", "[") else None
    if reason is not None:
        raise DataError(f"{where} holds a failed mqadmin command: {reason}")
    if start.startswith(TABLE_START):
        pieces.add_anonymous_route(read_table(text, where), where)
    elif _OTHER_TABLE.match(start):
        raise DocumentError(
            f"{where}: a table of another mqadmin command than topicRoute",
            hint="name the consumers that consumerConnection lists with --consumers ID,ID,…, beside a route",
            hint_names_options=True,
            code="not-recognised",
        )
    elif start[:1] in ("{", "["):
        _add_json(text.encode(), where, pieces)
    else:
        _add_yaml(text, where, pieces)
    return pieces


def _add_json(body: bytes, where: str, pieces: Pieces) -> None:
    documents, notes = parse_documents(body, where)
    if notes:
        pieces.notes.append(f"read as RocketMQ's JSON dialect: {', '.join(notes)}")
    for number, document in enumerate(documents, 1):
        pieces.add(document, where if len(documents) == 1 else f"{where}, document {number}")


def _add_yaml(text: str, where: str, pieces: Pieces) -> None:
    from rmqlb.sources.formats.yaml_text import read_yaml

    value = read_yaml(text, where)
    if not isinstance(value, dict):
        raise DocumentError(
            f"{where}: neither JSON nor a YAML mapping, but {_kind(value)}",
            hint="expected a snapshot, a route or a Dashboard response",
            code="not-recognised",
        )
    pieces.add(value, where)


def _kind(value: object) -> str:
    return {str: "plain text", list: "a YAML list", type(None): "nothing"}.get(type(value), type(value).__name__)
