"""Commands in blocks are broken as a shell reads them."""

from __future__ import annotations

import shlex
import subprocess

from rmqlb.views.formats.blocks import command_lines
from rmqlb.views.formats.text import width as columns
from tests.support.mismatches import every_case

COMMAND = shlex.join(
    [
        *("rmqlb", "simulate-rebalance", "-s", "a file.json", "-g", "order-svc", "--orderly"),
        *("--event", "crash it's#1@0s", "--event", "broker-down broker-a@0s, with slaves", "--remove=-x", "-t", "注文"),
    ]
)


@every_case("indent", [0, 9])
@every_case("width", [18, 30, 80, 110, 500])
def test_a_command_of_several_lines_is_the_same_to_a_shell(width: int, indent: int) -> None:
    first, *others = command_lines(COMMAND, width, indent)
    assert width < 80 or max(map(columns, (" " * indent + first, *others))) <= width
    text = "\n".join([first, *others])
    told = subprocess.run(["sh", "-c", f"printf '%s\\n' {text}"], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines() == shlex.split(COMMAND)


def test_lines_begin_with_options_where_there_is_room() -> None:
    _, *others = command_lines(COMMAND, 60, 9)
    assert all(line.startswith(" " * 11 + "-") for line in others)
    assert command_lines(COMMAND, 500) == [COMMAND]
