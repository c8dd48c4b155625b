"""The rows of all tables of a warehouse, read without Spark and without rmqlb, as the documentation says it.

They are the same on every storage, but for where the documents were and when their files were written: of a path only
what follows the folder of a night's dumps stays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable

Rows = dict[str, list[str]]
"""Table → its rows, each as JSON, sorted."""
_FOLDERS = {"cluster": "VARCHAR", "date": "DATE", "isOpen": "BOOLEAN"}
_OF_THE_PLACE = {"modified"}
_PATH = re.compile(r"\S*/(night-\d+/)")


def rows_in_folder(folder: Path) -> Rows:
    """By `tables.json`."""
    named = json.loads((folder / "tables.json").read_text())["tables"]
    return {name: _sorted(_of_table(folder / name, stored)) for name, stored in named.items()}


def rows_at(uri: str, options: Mapping[str, str] | None = None) -> Rows:
    """By `_published`."""
    versions = shown(uri, options)
    return {
        name: _sorted(DeltaTable(f"{uri}/{name}", version, dict(options or {})).to_pyarrow_table().to_pylist())
        for name, version in versions.items()
    }


def shown(uri: str, options: Mapping[str, str] | None = None) -> dict[str, int]:
    """Table → the version that counts."""
    published = DeltaTable(f"{uri}/_published", storage_options=dict(options or {})).to_pyarrow_table()
    with duckdb.connect() as connection:
        connection.register("published", published)
        found = connection.execute("SELECT name, max_by(tableVersion, run) FROM published GROUP BY name").fetchall()
    return dict(found)


def newest(uri: str, tables: Collection[str], options: Mapping[str, str] | None = None) -> dict[str, int]:
    """Table → the version that was committed last, shown or not."""
    known = dict(options or {})
    return {name: DeltaTable(f"{uri}/{name}", storage_options=known).version() for name in tables}


def _of_table(folder: Path, stored: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = []
    for run in stored["folders"]:
        files = sorted(map(str, (folder / run).glob("**/*.parquet")))
        if not files:
            continue
        types = [f"{name}: {kind}" for name, kind in _FOLDERS.items() if f"/{name}=" in files[0]]
        known = f", hive_types = {{{', '.join(types)}}}" if types else ""
        query = f"SELECT * FROM read_parquet($files, hive_partitioning = true{known})"
        with duckdb.connect() as connection:
            told = connection.sql(query, params={"files": files}).to_arrow_table()
        gone = stored["leftOut"].get(run, ())
        found += [row for row in told.to_pylist() if row.pop("run") is not None and row.get("snapshot") not in gone]
    return [{name: row[name] for name in stored["columns"]} for row in found]


def _sorted(rows: list[dict[str, Any]]) -> list[str]:
    kept = ({name: value for name, value in row.items() if name not in _OF_THE_PLACE} for row in rows)
    return sorted(_PATH.sub(r"\1", json.dumps(row, default=_text, sort_keys=True)) for row in kept)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    return str(value)
