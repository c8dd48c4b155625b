"""The one place where errors end: a line or two on stderr, or a JSON object, and the documented exit code."""

from __future__ import annotations

import _thread
import errno
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from typer import Abort
from typer.core import TyperGroup

from rmqlb.cli import click
from rmqlb.cli.exit_codes import ExitCode, exit_code_of
from rmqlb.errors import RmqlbError, UsageError
from rmqlb.views.formats.text import safe_json, visible

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

OUTPUT_LOST = "output-lost"
"""The code of an error of the operating system while the result is written."""


class BoundedGroup(TyperGroup):
    """A command group whose every way out goes through the boundary, installed or under a test runner."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        if "_RMQLB_COMPLETE" in os.environ:
            click.offer_completion()
        arguments = list(sys.argv[1:] if args is None else args)
        extra["standalone_mode"] = False
        try:
            _prepare(arguments)
            with heard_interrupts():
                code = super().main(arguments, *rest, **extra)
                sys.stdout.flush()
        except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 - the last place where it can be
            if "--debug" in arguments:
                _show_trace(error)
            _end_with(error, arguments)
        sys.exit(code if isinstance(code, int) else ExitCode.OK)


def _end_with(error: BaseException, arguments: list[str]) -> NoReturn:
    match error:
        case RmqlbError():
            _end(error.message, error.hint, error.code, exit_code_of(error), arguments)
        case click.NoArgsIsHelpError():
            error.show()
            sys.exit(ExitCode.USAGE)
        case click.ClickException():
            message, close = _without_suggestion(error)
            hint = "did you mean " + " or ".join(close) + "?" if close else _help_hint(error)
            _end(_sentence(message), hint, UsageError.code, ExitCode.USAGE, arguments)
        case KeyboardInterrupt() | Abort():
            sys.exit(ExitCode.INTERRUPTED)
        case SystemExit() if error.code != 1:
            raise error
        case SystemExit() | BrokenPipeError():  # Typer and rich end with 1 when the pipe is closed
            _drop_stdout()
            sys.exit(ExitCode.OK)
        case OSError():
            text = "the output's disk is full" if error.errno == errno.ENOSPC else f"{error.strerror or error}"
            _drop_stdout()
            _end(text, None, OUTPUT_LOST, ExitCode.UNEXPECTED, arguments)
    hint = "this is a bug in rmqlb; --debug shows where it comes from"
    _end(f"unexpected {type(error).__name__}: {error}", hint, RmqlbError.code, ExitCode.UNEXPECTED, arguments)


def _show_trace(error: BaseException) -> None:
    """Where an unexpected error comes from; of one of ours, what a user's own code raised, if that is its cause."""
    expected = (click.ClickException, Abort, BrokenPipeError, KeyboardInterrupt, SystemExit)
    shown = error.__cause__ if isinstance(error, RmqlbError) else error
    if shown is None or isinstance(shown, expected):
        return
    from traceback import format_exception

    lines = "".join(format_exception(shown)).rstrip("\n").split("\n")
    try:
        sys.stderr.write("".join(f"{visible(line)}\n" for line in lines))
    except OSError:
        pass  # as in _end


def _prepare(arguments: list[str]) -> None:
    """Streams that can be written to, with whatever letters; arguments that are text."""
    if sys.stderr is None:  # what is said there is lost; what is lost with a closed stdout is the result
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open to the end of the process
    if sys.stdout is None:
        raise OSError(errno.EBADF, "stdout is closed")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a letter that its encoding does not have becomes an escape
            stream.reconfigure(errors="backslashreplace")
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise UsageError(f"an argument is not UTF-8 text: {visible(argument)}") from None


def _end(message: str, hint: str | None, code: str, ends_with: ExitCode, arguments: list[str]) -> NoReturn:
    message = " ".join(message.split("\n"))
    if _wants_json(arguments):
        import json

        from msgspec import to_builtins

        from rmqlb.model.format_version import FORMAT_VERSION
        from rmqlb.views.envelope import Error, ErrorDocument

        value = ErrorDocument("rmqlb/error", FORMAT_VERSION, Error(code, message, hint, int(ends_with)))
        text = safe_json(json.dumps(to_builtins(value), ensure_ascii=False)) + "\n"
    else:
        text = f"error: {visible(message)} [{code}]\n" + (f"hint: {visible(hint)}\n" if hint else "")
    try:
        sys.stderr.write(text)
    except OSError:
        pass  # nobody listens; the exit code still tells
    sys.exit(ends_with)


def _wants_json(arguments: list[str]) -> bool:
    """Even when the command line could not be parsed."""
    wanted: str | None = os.environ.get("RMQLB_OUTPUT") or None
    for option, value in zip(arguments, [*arguments[1:], ""], strict=True):
        if option in ("-o", "--output"):
            wanted = value
        elif option.startswith("--output=") or (option.startswith("-o") and not option.startswith("--")):
            wanted = option.removeprefix("--output=").removeprefix("-o")
    if wanted is None:
        from rmqlb.cli.settings import configured_output

        wanted = configured_output()
    return wanted == "json"


def _without_suggestion(error: click.ClickException) -> tuple[str, list[str]]:
    """What was wrong, and the names that may have been meant: those are for the hint, as in every other error."""
    if isinstance(error, click.NoSuchOption):
        from difflib import get_close_matches

        # Without the dashes, which all of them have in common.
        names = {name.lstrip("-"): name for name in error.possibilities or ()}
        return error.message, [names[name] for name in get_close_matches(error.option_name.lstrip("-"), names)]
    message, _, close = error.format_message().partition(". Did you mean ")
    return message, [name.strip(" '\"?") for name in close.split(",")] if close else []


def _sentence(text: str) -> str:
    text = " ".join(text.split()).removesuffix(".")
    return text[:1].lower() + text[1:]


def _help_hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "rmqlb"
    if context and isinstance(error, click.NoSuchOption) and isinstance(context.command, TyperGroup):
        return f"a command's options go behind it, as in {path} COMMAND {error.option_name}; see {path} --help"
    return f"see {path} --help"


def _drop_stdout() -> None:
    """Whatever is still buffered goes nowhere, so that the interpreter does not try to write it at its end."""
    if sys.stdout is None:
        return
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        pass


@contextmanager
def heard_interrupts() -> Iterator[None]:
    """Have Ctrl-C raised again where Python drops it: in a generator that is being closed, or an object that goes.

    Another thread sends it once more, when this one is out of there, or waits for something already.
    """
    before = sys.unraisablehook
    here = _thread.get_ident()

    def again(dropped: UnraisableHookArgs) -> None:
        if isinstance(dropped.exc_value, KeyboardInterrupt):
            _thread.start_new_thread(signal.pthread_kill, (here, signal.SIGINT))  # a Thread's start would wait for it
        else:
            before(dropped)

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = before
