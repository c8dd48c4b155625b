"""The one place where errors end: a line or two on stderr, or a JSON object, and the documented exit code."""

import _thread
import errno
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from typer import Abort
from typer.core import TyperGroup

from rmqlb.cli import click
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.errors import RmqlbError, UsageError
from rmqlb.views.formats.text import safe_json, visible

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
            _end(error.message, error.hint, error.code, ExitCode(error.exit_code), arguments)
        case click.NoArgsIsHelpError():
            error.show()
            sys.exit(ExitCode.USAGE)
        case click.ClickException():
            message, hint = _of_click(error)
            _end(message[:1].lower() + message[1:], hint, UsageError.code, ExitCode.USAGE, arguments)
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
    """Where an unexpected error comes from; of one of ours, the error of the user's own code that is its cause."""
    expected = (click.ClickException, Abort, BrokenPipeError, KeyboardInterrupt, SystemExit)
    shown = error.__cause__ if isinstance(error, RmqlbError) else error
    if shown is None or isinstance(shown, expected):
        return
    from traceback import format_exception

    lines = "".join(format_exception(shown)).rstrip("\n").split("\n")
    _say("".join(f"{visible(line)}\n" for line in lines))


def _prepare(arguments: list[str]) -> None:
    """Have streams that take any letters, and arguments that are text."""
    if sys.stderr is None:  # messages are lost then; a lost result is an error
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

        from rmqlb.model.result import FORMAT_VERSION
        from rmqlb.views.envelope import Error, ErrorDocument

        value = ErrorDocument("rmqlb/error", FORMAT_VERSION, Error(code, message, hint, int(ends_with)))
        _say(safe_json(json.dumps(to_builtins(value), ensure_ascii=False)) + "\n")
    else:
        _say(f"error: {visible(message)} [{code}]\n" + (f"hint: {visible(hint)}\n" if hint else ""))
    sys.exit(ends_with)


def _say(text: str) -> None:
    try:
        sys.stderr.write(text)
    except OSError:
        pass  # nobody reads stderr; the exit code is still there


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
    return wanted is not None and wanted.lower() == "json"


def _of_click(error: click.ClickException) -> tuple[str, str]:
    """The problem and the hint: names that may have been meant are in the hint, as in every other error."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "rmqlb"
    hint = f"see {path} --help"
    if isinstance(error, click.NoSuchOption):
        from rmqlb.cli.meant import option_hint

        names = [name for parameter in context.command.params for name in parameter.opts] if context else []
        if context and isinstance(context.command, TyperGroup):
            hint = f"put the options of a command after the command, as in {path} COMMAND {error.option_name}; {hint}"
        return error.message, option_hint(error.option_name, names) or hint
    message = " ".join(error.format_message().split()).removesuffix(".")
    if extra := re.fullmatch(r"Got unexpected extra arguments? \((.*)\)", message):
        from rmqlb.sources.source_text import shown_source

        text = shown_source(extra[1])
        message = f"unexpected value: {text}"
        hint = f"name a source with -s: -s {text}" if "/" in text or os.path.exists(text) else hint
    if message.startswith("Missing argument") and context:
        names = [str(each.metavar) for each in context.command.params if not str(each.opts[0]).startswith("-")]
        hint = f"write {path} {' '.join(names)}; {hint}"
    return message, hint


def _drop_stdout() -> None:
    """Discard what is still buffered, so that the interpreter does not try to write it at its end."""
    if sys.stdout is None:
        return
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        pass


@contextmanager
def heard_interrupts() -> Iterator[None]:
    """Raise Ctrl-C again where Python drops it: in a generator that is being closed, or in an object's `__del__`.

    Another thread sends the signal again, when this thread is out of there, or waits for something already.
    """
    before = sys.unraisablehook
    here = _thread.get_ident()

    def again(dropped: "sys.UnraisableHookArgs") -> None:
        if isinstance(dropped.exc_value, KeyboardInterrupt):
            _thread.start_new_thread(signal.pthread_kill, (here, signal.SIGINT))  # a Thread's start would wait for it
        else:
            before(dropped)

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = before
