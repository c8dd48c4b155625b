"""What rmqlb takes from within Typer is there, and does what is made of it; a new Typer that changes it makes these red."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

import rmqlb
from rmqlb.cli import click

PACKAGE = Path(rmqlb.__file__).parent


def private_imports(path: Path) -> set[str]:
    """Names of others' modules and from them that begin with an underscore."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name for name in found if re.search(r"\._(?!_)", name) and not name.startswith("rmqlb.")}


def test_no_other_file_imports_what_is_private() -> None:
    roots = (PACKAGE, *(PACKAGE.parent / name for name in ("tests", "tools", "fuzz", "benchmarks")))
    files = [path for root in roots for path in root.rglob("*.py")]
    assert len(files) > 500
    found = {path.relative_to(PACKAGE.parent).as_posix() for path in files if private_imports(path)}
    assert found == {"rmqlb/cli/click.py"}


@pytest.fixture
def command() -> click.Command:
    app = typer.Typer(add_completion=False)

    @app.command()
    def copy(name: str = typer.Option("x", "--name", envvar="RMQLB_NAME"), deep: bool = False) -> None:
        """Copy."""

    found = typer.main.get_command(app)
    assert isinstance(found, TyperCommand)
    assert issubclass(TyperGroup, click.Command)
    return found
