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
        Argument(metavar="[CODE]", help="Code of a finding or an error, or an exit code; default: list all."),
    ] = None,
    output: OutputOptions,
) -> None:
    """Explain a finding, an error or an exit code: meaning, cause and remedy.

    A line with a finding or an error ends with its code in brackets. The command contacts no server.

    Examples:
      rmqlb explain duplicate-client-id
      rmqlb explain 4 -o json

    Exit codes: 0 done, 2 the code does not exist.
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
