"""`--help` and `--help-all` of every command, which show the pages of `help_pages/`."""

from __future__ import annotations

import typer
from typer.core import TyperOption

from rmqlb.cli import click
from rmqlb.cli.help_pages import help_page


class WithHelpPage(click.Command):
    """A command, or a group of them, whose help is a page made ahead of time."""

    def get_help(self, ctx: click.Context) -> str:
        page = help_page(_path(ctx))
        return super().get_help(ctx) if page is None else page.rstrip("\n")

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), _HELP_ALL]


def _path(context: click.Context) -> list[str]:
    """The words of the command as typed, without the program's name."""
    words: list[str] = []
    while context.parent is not None:
        words.insert(0, context.info_name or "")
        context = context.parent
    return words


def _show_everything(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        typer.echo(help_page(_path(context), everything=True) or context.get_help(), nl=False)
        context.exit()


_HELP_ALL = TyperOption(
    param_decls=["--help-all"],
    is_flag=True,
    default=False,
    expose_value=False,
    is_eager=True,
    callback=_show_everything,
    help="Show all options and exit.",
)
