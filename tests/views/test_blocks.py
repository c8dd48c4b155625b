"""Commands in blocks are broken as a shell reads them."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from rmqlb.views.formats.blocks import command_lines

COMMAND = shlex.join(
    [
        *("rmqlb", "simulate-rebalance", "-s", "a file.json", "-g", "order-svc", "--orderly"),
        *("--event", "crash it's#1@0s", "--event", "broker-down broker-a@0s, with slaves", "--remove=-x", "-t", "注文"),
    ]
)


@pytest.mark.parametrize("width", [1, 30, 80, 110, 500])
def test_a_command_of_several_lines_is_the_same_to_a_shell(width: int) -> None:
    lines = list(command_lines(COMMAND, width))
    text = "\n".join(f"      {line}" for line in lines)
    told = subprocess.run(["sh", "-c", f"printf '%s\\n' {text}"], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines() == shlex.split(COMMAND)
    assert all(line.endswith(" \\") for line in lines[:-1])


def test_lines_are_as_wide_as_the_screen_and_begin_with_options() -> None:
    lines = list(command_lines(COMMAND, 60))
    assert max(map(len, lines)) <= 60
    assert all(line.startswith("  -") for line in lines[1:])
    assert list(command_lines(COMMAND, 500)) == [COMMAND]
