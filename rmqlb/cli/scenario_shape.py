"""The shape of the file of `--scenario`, made of the options of the commands that take it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType
from typer.core import TyperOption
from typer.main import get_command

from rmqlb.cli import click
from rmqlb.cli.common.scenario import SCENARIO_COMMANDS, kept_options
from rmqlb.cli.main import app

_Value = str | float


def scenario_shape() -> type[Struct]:
    """A scenario: a part per command, a key per option."""
    parts = {name: _part(name) for name in SCENARIO_COMMANDS}
    return msgspec.defstruct(
        "Scenario",
        [
            ("description", str | UnsetType, UNSET),
            *((name.replace("-", "_"), part | UnsetType, UNSET) for name, part in parts.items()),
        ],
        namespace={"__doc__": _documented("What is planned or simulated, kept to be replayed.", _top())},
        rename="kebab",
        frozen=True,
        forbid_unknown_fields=True,
        module=__name__,
    )


def _top() -> Iterator[tuple[str, str]]:
    yield "description", "what it is about, for people."
    for name in SCENARIO_COMMANDS:
        yield name.replace("-", "_"), f"options of rmqlb {name}."


def _part(name: str) -> type[Struct]:
    root: Any = get_command(app)
    options = kept_options(root.get_command(click.Context(root), name))
    helps = {_identifier(key): _sentence(option.help or "") for key, option in options.items()}
    return msgspec.defstruct(
        "".join(word.capitalize() for word in name.split("-")) + "Options",
        [(_identifier(key), _type(option), msgspec.field(name=key, default=UNSET)) for key, option in options.items()],
        namespace={"__doc__": _documented(f"Options of rmqlb {name}, by their long names.", helps.items())},
        frozen=True,
        forbid_unknown_fields=True,
        module=__name__,
    )


def _identifier(key: str) -> str:
    return key.replace("-", "_") + "_"


def _type(option: TyperOption) -> Any:
    if option.is_flag:
        return bool | UnsetType
    if option.type.name.startswith("int"):
        return int | UnsetType
    return tuple[_Value, ...] | _Value | UnsetType if option.multiple else _Value | UnsetType


def _sentence(text: str) -> str:
    """The help in a line, without what escapes brackets from markup."""
    line = " ".join(text.split())
    return line if line.endswith(".") else f"{line}."


def _documented(summary: str, keys: Any) -> str:
    return "\n".join([summary, "", "Attributes:", *(f"    {key}: {text}" for key, text in keys)])
