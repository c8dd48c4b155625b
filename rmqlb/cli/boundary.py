"""The one place where errors end: a line or two on stderr, or a JSON object, and the documented exit code."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from typer import Abort
from typer import _click as click
from typer.core import TyperGroup

from rmqlb.cli.exit_codes import ExitCode, exit_code_of
from rmqlb.errors import RmqlbError, UsageError
from rmqlb.views.text import safe_json, visible


class BoundedGroup(TyperGroup):
    """A command group whose every way out goes through the boundary, installed or under a test runner."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        """Run the command line and end the process with its exit code."""
        arguments = list(sys.argv[1:] if args is None else args)
        extra["standalone_mode"] = False
        if sys.stderr is None:
            sys.stderr = open(os.devnull, "w", encoding="utf-8")
        try:
            _must_be_text(arguments)
            if sys.stdout is None:
                raise OSError(errno.EBADF, "stdout is closed")
            code = super().main(arguments, *rest, **extra)
            sys.stdout.flush()
        except RmqlbError as error:
            _end(error.message, error.hint, exit_code_of(error), arguments)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(ExitCode.USAGE)
        except click.exceptions.ClickException as error:
            _end(_sentence(error.format_message()), _help_hint(error), ExitCode.USAGE, arguments)
        except (KeyboardInterrupt, Abort):
            sys.exit(ExitCode.INTERRUPTED)
        except BrokenPipeError:
            _end_quietly()
        except SystemExit as leaving:
            if leaving.code == 1:  # so Typer and rich end when the pipe is closed; everything else is an exception
                _end_quietly()
            raise
        except OSError as error:
            if "--debug" in arguments:
                raise
            text = "the output's disk is full" if error.errno == errno.ENOSPC else f"{error.strerror or error}"
            _drop_stdout()
            _end(text, None, ExitCode.UNEXPECTED, arguments)
        except Exception as error:
            if "--debug" in arguments:
                raise
            hint = "this is a bug in rmqlb; --debug shows where it comes from"
            _end(f"unexpected {type(error).__name__}: {error}", hint, ExitCode.UNEXPECTED, arguments)
        sys.exit(code if isinstance(code, int) else ExitCode.OK)


def _must_be_text(arguments: list[str]) -> None:
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise UsageError(f"an argument is not UTF-8 text: {visible(argument)}") from None


def _end(message: str, hint: str | None, code: ExitCode, arguments: list[str]) -> NoReturn:
    message = " ".join(message.split("\n"))
    if _wants_json(arguments):
        value = {"schema": "rmqlb/error", "error": {"message": message, "hint": hint, "exitCode": int(code)}}
        text = safe_json(json.dumps(value, ensure_ascii=False)) + "\n"
    else:
        text = f"error: {visible(message)}\n" + (f"hint: {visible(hint)}\n" if hint else "")
    try:
        sys.stderr.write(text)
    except OSError:
        pass  # nobody listens; the exit code still tells
    sys.exit(code)


def _wants_json(arguments: list[str]) -> bool:
    """Even when the command line could not be parsed."""
    wanted = os.environ.get("RMQLB_OUTPUT", "")
    for option, value in zip(arguments, [*arguments[1:], ""], strict=True):
        if option in ("-o", "--output"):
            wanted = value
        elif option.startswith("--output=") or (option.startswith("-o") and not option.startswith("--")):
            wanted = option.removeprefix("--output=").removeprefix("-o")
    return wanted == "json"


def _sentence(text: str) -> str:
    text = " ".join(text.split()).removesuffix(".")
    return text[:1].lower() + text[1:]


def _help_hint(error: click.exceptions.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f"see {context.command_path if context else 'rmqlb'} --help"


def _end_quietly() -> NoReturn:
    """The reader of the pipe has seen enough."""
    _drop_stdout()
    sys.exit(ExitCode.OK)


def _drop_stdout() -> None:
    """Whatever is still buffered goes nowhere, so that the interpreter does not try to write it at its end."""
    if sys.stdout is None:
        return
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        pass
