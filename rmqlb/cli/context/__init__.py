"""`rmqlb context`: named endpoints, kept in the user's configuration file.

Rules of this folder: only the user's file is changed, and only here; a secret is never taken, only the place of one.
"""

from __future__ import annotations

from rmqlb.cli.command_tree import grouped

COMMANDS = ("add", "list", "use", "show", "remove")

app = grouped("context", "rmqlb.cli.context", COMMANDS)


@app.callback()
def context() -> None:
    """Name endpoints: a source, who logs in, and where the secret is.

    The active context is read by every command that is given no source. Contexts are in
    $XDG_CONFIG_HOME/rmqlb/config.yaml, otherwise ~/.config/rmqlb/config.yaml. A secret is never in it.
    """
