from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from rmqlb.model.result import FORMAT_VERSION, Finding, side_of
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.columns import Cell
from rmqlb.views.envelope import Envelope
from rmqlb.views.formats.text import safe_cell, safe_json, safe_yaml, visible
from rmqlb.views.report import Report, Section


def envelope(report: Report, command: str, snapshot: ClusterSnapshot, findings: Iterable[Finding]) -> Envelope:
    return Envelope(report.schema, FORMAT_VERSION, command, side_of(snapshot), report.data, tuple(findings))


Value = Struct | Mapping[str, Any]


def as_json(value: Value) -> str:
    try:
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    except UnicodeEncodeError:
        text = _with_half_pairs(value, indent=2)
    return safe_json(text) + "\n"


def json_line(value: Value) -> str:
    try:
        text = msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        text = _with_half_pairs(value, separators=(",", ":"))
    return safe_json(text) + "\n"


def as_json_lines(values: Iterable[Value]) -> str:
    return "".join(map(json_line, values))


def _with_half_pairs(value: Value, **form: Any) -> str:
    """JSON of half a surrogate pair, which the environment may contain and msgspec does not encode."""
    import json

    return json.dumps(msgspec.to_builtins(value), allow_nan=False, **form)


def as_yaml(value: Value) -> str:
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the base class asks for each value
            return True

    def text(dumper: Any, value: str) -> Any:
        style = '"' if visible(value) != value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    content = msgspec.to_builtins(value)
    dumped: str = yaml.dump(content, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)
    return safe_yaml(dumped)


def as_csv(section: Section) -> str:
    """One section after RFC 4180, without bars; owners are separated by spaces, and an unknown cell is empty."""
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out)
    places = [at for at, column in enumerate(section.columns) if column.kind != "bar"]
    writer.writerow(section.columns[at].key for at in places)
    writer.writerows([_plain(row[at]) for at in places] for row in section.rows)
    return out.getvalue()


def _plain(cell: Cell) -> str | int | float:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, tuple):
        cell = " ".join(cell)
    return safe_cell(visible(cell)) if isinstance(cell, str) else cell
