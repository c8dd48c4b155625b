from typing import Annotated

from typer import Argument

from rmqlb.cli.common.declare import command
from rmqlb.cli.common.options import OutputOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.errors import UsageError
from rmqlb.model.snapshot import ClusterSnapshot, suggestion
from rmqlb.views.report import FOR_PEOPLE


@command
def explain(
    *,
    code: Annotated[
        str | None,
        Argument(metavar="[CODE]", help="Of a finding or an error, or an exit code; without it all are listed."),
    ] = None,
    output: OutputOptions,
) -> None:
    """Explain a finding, an error or an exit code: what it means, why it is so, and what to do.

    The code of a finding or an error stands in brackets at the end of its line. Nothing is asked of any server.

    Examples:
      rmqlb explain duplicate-client-id
      rmqlb explain 4 -o json

    Exit codes: 0 done, 2 there is no such code.
    """
    from rmqlb.views.explanations import explanation_report, explanations

    terminal = Terminal("explain", output)
    catalogue = explanations()
    wanted = None if code is None else code.strip().removeprefix("[").removesuffix("]").lower()
    if wanted is not None and wanted not in catalogue:
        raise UsageError(f"there is no code {code}", hint=suggestion("codes", wanted, catalogue))
    codes = catalogue if wanted is None else (wanted,)
    report = explanation_report(codes, catalogue, for_people=terminal.format in FOR_PEOPLE)
    terminal.show(report, ClusterSnapshot("built-in", "rmqlb"), ())
