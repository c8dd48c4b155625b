"""Spark's errors as one line: an `RmqlbError`, or rmqlb's own error from a Python process of Spark."""

from __future__ import annotations

import os
import re
import tomllib
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files

from msgspec import Struct, convert

import rmqlb.errors
from rmqlb.errors import RmqlbError

_OURS = re.compile(
    r"^(?:.*: )?rmqlb\.errors\.(?P<name>\w+): (?P<message>.+)$(?:\ncode: (?P<code>[\w-]+)$)?(?:\nhint: (?P<hint>.+)$)?",
    re.MULTILINE,
)  # the end of a traceback, with the notes of `spark.in_workers`
_JAVA_NAME = r"(?:[a-z_][\w$]*\.)+[A-Z][\w$]*"
_STATEMENT = re.compile(rf"^(?:Caused by: )?(?:{_JAVA_NAME}(?:: |$))+")
_RAISED = re.compile(r"^(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt)\b.*$", re.MULTILINE)
_NOISE = re.compile(r"\s*(?:SQLSTATE: \w+;?|Driver stacktrace:)\s*$")
_GONE = re.compile(r"SparkContext was shut down|a stopped SparkContext|^py4j\.\S+ does not exist in the JVM$")
_LONGEST = 400  # characters of Spark's own sentence
_LAST_WORDS = 200_000  # bytes


@contextmanager
def plain_errors(log_file: str | None) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        plain = plain_error(error, log_file)
        if plain is None:
            raise
        raise plain from error


def plain_error(error: BaseException, log_file: str | None) -> RmqlbError | None:
    """One line for an error of pyspark, of Java or of a Python process of Spark; None for other errors and ours.

    The session must still run: pyspark asks Java for parts of the text. `log_file` is None when another program has
    Spark's log.
    """
    if not _is_of_spark(error):
        return None
    where = f"the whole story is in {log_file}" if log_file else "the whole story is in Spark's log"
    text = _text(error)
    if text is None or _GONE.search(text):
        gone = RmqlbError("Spark has stopped before its work was done", hint=f"often memory ran out; {where}")
        return _known(text or "", where) or _known(_end_of(log_file), where) or gone
    return _ours(text) or _known(text, where) or RmqlbError(f"Spark failed: {_cause(text)}", hint=where)


def _is_of_spark(error: BaseException) -> bool:
    if isinstance(error, ConnectionError):
        steps = traceback.walk_tb(error.__traceback__)
        return any(frame.f_globals.get("__name__", "").startswith("py4j.") for frame, _ in steps)
    return type(error).__module__.partition(".")[0] in {"pyspark", "py4j"}


def _text(error: BaseException) -> str | None:
    """The whole text of the error, or None when Java has ended."""
    if type(error).__name__ == "Py4JNetworkError" or isinstance(error, ConnectionError):
        return None
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - it shows Java's end, not the failure
        return None


def _end_of(log_file: str | None) -> str:
    try:
        with open(log_file or os.devnull, "rb") as file:
            file.seek(-min(_LAST_WORDS, os.fstat(file.fileno()).st_size), os.SEEK_END)
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def _ours(text: str) -> RmqlbError | None:
    found = [*_OURS.finditer(text)]
    kind = getattr(rmqlb.errors, found[-1]["name"], None) if found else None
    if not isinstance(kind, type) or not issubclass(kind, RmqlbError):
        return None
    hint = found[-1]["hint"]
    return kind(found[-1]["message"].strip(), hint=hint and hint.strip(), code=found[-1]["code"])


def _known(text: str, where: str) -> RmqlbError | None:
    for each in _signs():
        if found := re.search(each.sign, text):
            groups = [group or "no reason given" for group in found.groups()]
            kind: type[RmqlbError] = getattr(rmqlb.errors, each.error)
            return kind(each.message.format(*groups), hint=f"{each.hint}; {where}")
    return None


class _Sign(Struct, frozen=True):
    """A pattern in Spark's text, and the message for it."""

    sign: str
    message: str
    hint: str
    error: str = "RmqlbError"


@cache
def _signs() -> list[_Sign]:
    text = files(__package__).joinpath("spark_errors.toml").read_text("utf-8")
    return convert(tomllib.loads(text)["known"], list[_Sign])


def _cause(text: str) -> str:
    """The first line of the last cause without Java's names, or the exception of a Python process."""
    raised = _RAISED.findall(text.partition("Traceback (most recent call last):")[2].partition("\n\tat ")[0])
    if raised:
        return _short(raised[-1])
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    line = (causes or lines or ["no reason given"])[-1 if causes else 0]
    return _short(_STATEMENT.sub("", line) or line)


def _short(line: str) -> str:
    line = _NOISE.sub("", line)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
