"""What `pipeline generate` does with its options."""

from __future__ import annotations

from typing import Any

from rmqlb.cli.common import amounts
from rmqlb.cli.common.options import OutputOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.pipeline.synthetic.generate import generate
from rmqlb.pipeline.synthetic.shape import FleetShape
from rmqlb.views.pipeline_view import fleet_report


def run_generate(folder: str, shape: dict[str, Any], output: OutputOptions) -> None:
    """Write the fleet and show its summary.

    Raises:
        UsageError: the numbers contradict each other, or the folder cannot be written.
    """
    terminal = Terminal("pipeline generate", output)
    first = amounts.day(shape["first"], "--first")
    with terminal.progress(verb="writing") as progress:
        summary = generate(FleetShape(**{**shape, "first": first}), folder, progress)
    terminal.show(fleet_report(summary), ClusterSnapshot("generated", folder), ())
