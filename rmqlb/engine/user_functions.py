"""User functions where RocketMQ's applications have their own class: a strategy, a selector."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from functools import cached_property, lru_cache
from itertools import count
from traceback import walk_tb
from types import ModuleType, SimpleNamespace
from typing import Any

from msgspec import Struct

from rmqlb.errors import UsageError
from rmqlb.model.snapshot import suggestion

_LONGEST = 300


class Kind(Struct, frozen=True):
    noun: str  # in errors
    arguments: tuple[str, ...]
    method: str  # of RocketMQ's interface, for classes and objects


STRATEGY = Kind("a strategy", ("group", "client_id", "queues", "client_ids"), "allocate")
SELECTOR = Kind("a selector", ("queues", "key"), "select")  # `MessageQueueSelector.select` without the message


class FromFile(Struct, frozen=True, dict=True):
    """A function in the text of a file, pickled as the text for processes without the file (raises UsageError)."""

    source: str  # the text, which is executed
    file: str  # its path
    name: str
    kind: Kind

    def __post_init__(self) -> None:
        _ = self._function

    @cached_property
    def _function(self) -> Callable[..., Any]:
        found = _named(_namespace(self.source, self.file), self.name, self.file)
        return as_function(found, self.kind, f"{self.file}:{self.name}")

    @property
    def title(self) -> str:
        return f"{self.name} ({os.path.basename(self.file)})"

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)


def _mistake(problem: str, hint: str | None = None) -> UsageError:
    return UsageError(problem, hint=hint, code="custom-code")


@lru_cache(maxsize=16)
def _namespace(source: str, path: str) -> Mapping[str, object]:
    import hashlib  # with OpenSSL, which takes 2 ms

    digest = hashlib.sha256(path.encode() + bytes(1) + source.encode()).hexdigest()
    module = ModuleType(f"rmqlb_user_code_{digest[:16]}")
    module.__file__ = path
    try:
        code = compile(source, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        text = f"{path}:{error.lineno}: {error.msg}" if error.lineno else f"{path}: {error.msg}"
        hint = f"the line is: {shortened(error.text.strip(), 80)}" if error.text and error.text.strip() else None
        raise _mistake(text, hint=hint) from error
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise _mistake(f"{path}: not Python: {error or type(error).__name__}") from error
    sys.modules[module.__name__] = module  # where dataclasses and pickle look for it
    try:
        quietly(exec, code, module.__dict__)
    except (Exception, SystemExit) as error:
        hint = f"python {path} shows the same; what it imports must be installed alongside rmqlb"
        raise _mistake(f"{path} raised {thrown(error, SimpleNamespace(file=path))}", hint=hint) from error
    return module.__dict__


def _named(namespace: Mapping[str, object], name: str, path: str) -> object:
    if name in namespace:
        return namespace[name]
    names = [key for key, value in namespace.items() if callable(value) and not key.startswith("_")]
    hint = suggestion("functions", name, names) if names else "it has none"
    raise _mistake(f"{path} has no function {name}", hint=hint)


def as_function(written: Any, kind: Kind, where: str | None = None) -> Callable[..., Any]:
    """The user's function, or the method of an object or of a class without arguments (raises UsageError)."""
    what, wanted = where or kind.noun, f"def {own_name(written)}({', '.join(kind.arguments)})"
    if inspect.isclass(written) and hasattr(written, kind.method):
        try:
            written = quietly(written)
        except (Exception, SystemExit) as error:
            text = f"{what}: {own_name(written)}() raised {thrown(error, written)}"
            raise _mistake(text, hint="it is made without arguments") from error
    function = written if inspect.isroutine(written) else getattr(written, kind.method, written)
    if not callable(function) or inspect.isclass(function):
        raise _mistake(f"{what}: {kind_of(written)} cannot be called as one", hint=f"write {wanted}")
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise _mistake(f"{what}: {own_name(written)} is a generator or async", hint=f"write {wanted}")
    try:
        inspect.signature(function).bind(*kind.arguments)
    except TypeError as error:
        text = f"{what}: {own_name(written)} does not take {len(kind.arguments)} arguments ({error})"
        raise _mistake(text, hint=f"write {wanted}") from None
    except ValueError:
        pass  # some that are written in C do not tell
    return function


def quietly(function: Callable[..., Any], *arguments: object) -> Any:
    """Call the function with its output redirected to stderr, because stdout has the result."""
    with redirect_stdout(sys.stderr):
        return function(*arguments)


def thrown(error: BaseException, function: object) -> str:
    """The exception in one line, with the line in the function's file."""
    lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    own = [line for file, line in lines if file == file_of(function)]
    where = f" ({os.path.basename(file_of(function))}:{own[-1]})" if own else ""
    text = " ".join(str(error).split())
    return shortened(f"{type(error).__name__}{': ' if text else ''}{text}", _LONGEST) + where


def shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def name_for(written: object, taken: Mapping[str, object], function: object) -> str:
    """The function's name in results: its own, its file in brackets, and a number if that is taken."""
    title = getattr(written, "title", None)
    file = os.path.basename(file_of(function)) or "Python"
    first = title if isinstance(title, str) else f"{own_name(written)} ({file})"
    names = (f"{first} {number}" if number > 1 else first for number in count(1))
    return next(name for name in names if taken.get(name, function) == function)


def file_of(function: object) -> str:
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    file = getattr(function, "file", getattr(code, "co_filename", ""))
    return file if isinstance(file, str) else ""


def own_name(written: object) -> str:
    return str(getattr(written, "__name__", None) or type(written).__name__)


def kind_of(value: object) -> str:
    if inspect.isclass(value):
        return f"the class {own_name(value)}"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
