"""What the installed command and `python -m rmqlb` start."""

import gc

_INTERRUPTED = 130  # as in `cli/exit_codes.py`, which may not be imported yet


def run() -> None:
    """Run the command line and end the process.

    Imports make tens of thousands of objects that live to the end: looking through them for garbage every 700 new ones
    is a twentieth of the start-up, and a fifth of a short command is the look at the end, which `freeze` spares.
    """
    gc.set_threshold(50_000)
    try:
        from rmqlb.cli.main import app

        app(prog_name="rmqlb")
    except KeyboardInterrupt:  # while the program is still being imported, or is already ending
        raise SystemExit(_INTERRUPTED) from None
    finally:
        gc.freeze()


if __name__ == "__main__":
    run()
