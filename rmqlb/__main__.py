"""What the installed command and `python -m rmqlb` start."""

from __future__ import annotations

import gc
import sys

_INTERRUPTED = 130  # as in `cli/exit_codes.py`, which may not be imported yet


def run() -> None:
    """Run the command line and end the process.

    Imports make tens of thousands of objects that live to the end: looking through them for garbage every 700 new ones
    is a twentieth of the start-up, and a fifth of a short command is the look at the end, which `freeze` spares.
    """
    gc.set_threshold(50_000)
    try:
        if _is_answered(sys.argv[1:]):
            return
        from rmqlb.cli.main import app

        app(prog_name="rmqlb")
    except KeyboardInterrupt:  # while the program is still being imported, or is already ending
        raise SystemExit(_INTERRUPTED) from None
    finally:
        gc.freeze()


def _is_answered(arguments: list[str]) -> bool:
    """Show help or the version where nothing else is asked; what cannot be written is for the command line to tell."""
    from rmqlb.cli.help_pages import quick_answer

    if sys.stdout is None:
        return False
    text = quick_answer(arguments)
    if text is None:
        return False
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (OSError, ValueError):
        return False
    return True


if __name__ == "__main__":
    run()
