"""`rmqlb config`: what the options are when nothing names them."""

from __future__ import annotations

from rmqlb.cli.command_tree import grouped

COMMANDS = ("show",)

app = grouped("config", "rmqlb.cli.config", COMMANDS)


@app.callback()
def config() -> None:
    """Look at the settings, and at the file and variables they come from.

    A setting comes from the first that has it: flag, environment (RMQLB_…), the context in force,
    $XDG_CONFIG_HOME/rmqlb/config.yaml (else ~/.config/rmqlb/config.yaml), default.
    """
