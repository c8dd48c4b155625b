"""The pipeline's tables, stage by stage, from the file that defines them: a table's docstring stands below it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from rmqlb.pipeline import schemas
from tools.manual.markdown import row


def tables_page() -> str:
    """The page."""
    meanings = dict(_meanings())
    lines = [
        "# Tables of the pipeline",
        "",
        "Parquet in a folder, Delta Lake's at a URI; columns are named as in the other results. Tables of `report` are",
        "Parquet beside its page.",
    ]
    for stage, tables in {**schemas.WRITTEN_BY, "report": schemas.DERIVED}.items():
        lines += ["", f"## {stage}"]
        for table in tables:
            lines += ["", f"### {table.name}", ""]
            if table.name in meanings:
                lines += [meanings[table.name], ""]
            if table.partitions:
                lines += [_folders(table), ""]
            lines += [row(("column", "type")), row(("---", "---"))]
            lines += [row((f"`{name}`", f"`{kind}`")) for name, kind in table.columns.items()]
    return "\n".join(lines) + "\n"


def _folders(table: schemas.Table) -> str:
    """By which columns its rows are in folders; at a URI by date alone, or in one."""
    at_uri = " (at a URI by `date` alone)" if "date" in table.partitions else " (at a URI in one)"
    return "In folders by " + " and ".join(f"`{name}`" for name in table.partitions) + f"{at_uri}."


def _meanings() -> Iterator[tuple[str, str]]:
    """Table → its docstring."""
    body = ast.parse(Path(schemas.__file__).read_text(encoding="utf-8")).body
    for made, said in pairwise(body):
        match made, said:
            case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(text))):
                table = getattr(schemas, name)
                if isinstance(table, schemas.Table):
                    yield table.name, " ".join(text.split())
