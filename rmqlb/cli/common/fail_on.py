"""`--fail-on` of every command: parsed before any work, judged before anything is on stdout, told by the exit code."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.errors import DataError
from rmqlb.model.condition import TriedCondition


def require_known(tried: Sequence[TriedCondition], hint: str) -> None:
    """Refuse an unknown figure, where possible before anything is on stdout; a condition that is met decides alone."""
    unknown = next((condition.text for condition in tried if condition.met is None), None)
    if unknown and not any(condition.met for condition in tried):
        raise DataError(f"--fail-on {unknown}: the figure is unknown", hint=hint, code="figure-not-seen")


def judge(tried: Sequence[TriedCondition], terminal: Terminal) -> None:
    met = [condition for condition in tried if condition.met]
    for condition in met:
        terminal.say(f"condition met: {condition.text} (it is {_figure(condition.value)})")
    if met:
        raise typer.Exit(ExitCode.CONDITION)


def _figure(value: float | None) -> str:
    """A figure with all the digits that the comparison saw; a met condition without one has no end."""
    if value is None:
        return "without end"
    return f"{value:.12g}" if isinstance(value, float) else str(value)
