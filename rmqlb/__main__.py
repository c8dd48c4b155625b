"""What the installed command and `python -m rmqlb` start."""

from __future__ import annotations

import gc


def run() -> None:
    """Run the command line and end the process.

    Imports make tens of thousands of objects that live to the end: looking through them for garbage every 700 new ones
    is a twentieth of the start-up.
    """
    gc.set_threshold(50_000)
    from rmqlb.cli.main import app

    app(prog_name="rmqlb")


if __name__ == "__main__":
    run()
