"""What rmqlb takes from within Typer is there, and does what is made of it; a new Typer that changes it makes these red."""

from __future__ import annotations

import ast
import re
from inspect import signature
from pathlib import Path

import pytest
import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

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


def test_a_context_knows_the_origin_of_each_value(command: click.Command, monkeypatch: pytest.MonkeyPatch) -> None:
    origin = click.ParameterSource
    with command.make_context("copy", []) as line:
        assert click.get_current_context() is line
        assert (line.params, line.get_parameter_source("name")) == ({"name": "x", "deep": False}, origin.DEFAULT)
    assert command.make_context("copy", ["--name", "y"]).get_parameter_source("name") is origin.COMMANDLINE
    monkeypatch.setenv("RMQLB_NAME", "z")
    assert command.make_context("copy", []).get_parameter_source("name") is origin.ENVIRONMENT


def test_a_parameter_knows_its_names_variable_and_default(command: click.Command) -> None:
    line = command.make_context("copy", ["--name", "y"])
    (name,) = (each for each in command.params if each.name == "name")
    assert isinstance(name, TyperOption)
    assert (name.opts, name.secondary_opts, name.envvar, name.get_default(line)) == (["--name"], [], "RMQLB_NAME", "x")


def test_a_parser_is_told_each_option_and_collects_what_it_is_told_to(command: click.Command) -> None:
    line = command.make_context("copy", [])
    assert [*signature(click.OptionParser.add_option).parameters] == [
        "self",
        "obj",
        "opts",
        "dest",
        "action",
        "nargs",
        "const",
    ]
    parser = click.OptionParser(line)
    name = command.params[0]
    assert isinstance(name, TyperOption)
    parser.add_option(name, ["--name"], "name", "append")
    found, left, _ = parser.parse_args(["--name", "a", "--name", "b", "c"])
    assert (found, left) == ({"name": ["a", "b"]}, ["c"])


def test_an_option_that_is_not_there_comes_with_those_that_are(command: click.Command) -> None:
    with pytest.raises(click.NoSuchOption) as raised:
        command.make_context("copy", ["--nome"])
    assert isinstance(raised.value, click.ClickException)
    assert raised.value.option_name == "--nome"
    assert "--name" in (raised.value.possibilities or ())
    assert raised.value.ctx is not None
    assert issubclass(click.NoArgsIsHelpError, click.ClickException)
