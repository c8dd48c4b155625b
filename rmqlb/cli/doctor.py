from functools import partial

import typer

from rmqlb.cli.common.declare import command
from rmqlb.cli.common.options import OutputOptions, SourceOptions
from rmqlb.cli.common.reading import Reading
from rmqlb.cli.common.show_or_watch import show_verb
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.exit_codes import ExitCode


@command
def doctor(source: SourceOptions, output: OutputOptions) -> None:
    """Check a source step by step: name, port, protocol, NameServers, brokers, permissions and clocks.

    Examples:
      rmqlb doctor -s examples/cluster.json
      rmqlb doctor -s examples/cluster.json -o json

    For a cluster, pass the NameServers as for mqadmin: -n HOST:9876. Each step works, fails or is not tried. If an
    option can fix a step, the option is shown.

    Exit codes: 0 all steps work, 2 usage, 4 some servers fail, or the file cannot be read, 5 all NameServers or the
    Dashboard fail.
    """
    from rmqlb.verbs import doctor as verb

    terminal = Terminal("doctor", output)
    reader = Reading(source, terminal)
    found = show_verb(partial(verb.doctor, reader), "doctor.doctor_report", terminal, doing="checking")
    if found.status != "works":
        raise typer.Exit(ExitCode.ENDPOINT if found.status == "fails" and reader.live else ExitCode.DATA)
