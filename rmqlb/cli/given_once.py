"""An option that takes one value is given once: click itself keeps the last value and says nothing.

Rules of this file:
- Spellings are one option: `-g a`, `-ga`, `--group a` and `--group=a`.
- A flag may be given again; with its own contrary (`--no-…`) it may not.
- What the environment and files say is no second value: the line goes before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand, TyperOption

from rmqlb.cli import click
from rmqlb.cli.help_text import RichHelp
from rmqlb.errors import UsageError


class SingleCommand(RichHelp, TyperCommand):
    """A command that refuses a second value where one is meant."""

    def make_parser(self, ctx: click.Context) -> click.OptionParser:
        parser = _OnceParser(ctx)
        for parameter in self.get_params(ctx):
            parameter.add_to_parser(parser, ctx)
        return parser


class _OnceParser(click.OptionParser):
    """Collects all values of each option, and hands on the only one of those that take one."""

    def __init__(self, ctx: click.Context) -> None:
        super().__init__(ctx)
        self._single: dict[str, TyperOption] = {}

    def add_option(
        self,
        obj: TyperOption,
        opts: Sequence[str],
        dest: str | None,
        action: str = "store",
        nargs: int = 1,
        const: Any | None = None,
    ) -> None:
        """As of click; an option that would keep its last value keeps all of them until they are counted."""
        if action in ("store", "store_const") and dest is not None:
            self._single[dest] = obj
            action = action.replace("store", "append")
        super().add_option(obj, opts, dest, action, nargs, const)

    def parse_args(self, args: list[str]) -> tuple[dict[str, Any], list[str], list[Any]]:
        found, left, order = super().parse_args(args)
        for dest, option in self._single.items():
            if dest in found:
                if self.ctx is None or not self.ctx.resilient_parsing:
                    _must_be_one(option, found[dest])
                found[dest] = found[dest][-1]
        return found, left, order


def _must_be_one(option: TyperOption, values: list[Any]) -> None:
    if len(values) == 1:
        return
    name = max(option.opts, key=len)
    if option.is_flag:
        if len(set(values)) > 1:
            contrary = max(option.secondary_opts, key=len)
            raise UsageError(
                f"{name} and {contrary} contradict each other", hint="give one of them", code="given-twice"
            )
        return
    from rmqlb.sources.source_text import shown_source

    shown = " and ".join(shown_source(str(value)) for value in values)
    hint = "run the command once for each" if name in ("--group", "--topic") else f"give {name} once"
    raise UsageError(f"{name} takes one value, and is given {len(values)}: {shown}", hint=hint, code="given-twice")
