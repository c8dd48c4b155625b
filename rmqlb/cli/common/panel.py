"""The panels of a command's help."""

from collections.abc import Callable
from functools import partial
from typing import Any

from typer import Option


def panel(title: str) -> Callable[..., Any]:
    """What declares an option that the help shows under this title, as `typer.Option` does."""
    return partial(Option, rich_help_panel=title)
