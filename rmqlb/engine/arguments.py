"""Arguments of the Python API, checked against the annotations of our types; users' own strategies and selectors.

`msgspec.convert` does not check an instance of a Struct, unions with functions, patterns or fractions, or bounds beyond
64 bits, and raises other errors for text that is not UTF-8.
"""

import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import redirect_stdout
from functools import cache, cached_property, lru_cache
from itertools import count, islice
from traceback import walk_tb
from types import ModuleType, NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct

from rmqlb.errors import CustomCodeError, DataError, UsageError
from rmqlb.model.limits import MOST_QUEUES
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import close_names, suggestion

_SHOWN = 60
_PLAIN = (NoneType, str, int, bool)  # of which every value is right
_Item = TypeVar("_Item")
_WORDS: Mapping[Any, str] = {
    str: "text", int: "a whole number", float: "a number", bool: "True or False", re.Pattern: "a pattern",
    Callable: "a function",
}  # fmt: skip


_Wrong = tuple[str, object, str, str | None]  # where, the wrong value, what is needed there, and a hint


def require(value: object, hint: Any, name: str) -> None:
    """Refuse a value that does not match an annotation, or a Struct's field annotations (raises UsageError)."""
    if (wrong := _wrong(value, hint, name)) is not None:
        path, found, expected, remedy = wrong
        raise UsageError(f"{path} is {shown(found)}: {expected} is needed", hint=remedy)


def items(values: object, kind: type[_Item], name: str, most: int) -> list[_Item]:
    """The elements of any iterable except text (raises UsageError)."""
    if isinstance(values, str | bytes | bytearray | Mapping) or not isinstance(values, Iterable):
        raise UsageError(f"{name} is {shown(values)}: a list of {_word(kind)} is needed")
    found = list(islice(values, most + 1))
    if len(found) > most:
        raise UsageError(f"{name} has more than {most} elements")
    require(found, tuple[kind, ...], name)  # type: ignore[valid-type]
    return found


def shown(value: object) -> str:
    """A value in a message, shortened; foreign objects by type."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if value.bit_length() < 128 else f"a number of {value.bit_length()} bits"
    if value is None or isinstance(value, bool | float):
        return str(value)
    if _is_fraction(type(value)):  # type: ignore[arg-type]  # mypy takes the hash of its instances
        return f"{shown(value.numerator)}/{shown(value.denominator)}"  # type: ignore[attr-defined]
    if isinstance(value, str):
        text = ascii(str(value[:_SHOWN]))
        return text if len(value) <= _SHOWN else f"{text[:-1]}…{text[-1]}"
    return f"of type {type(value).__name__}"


def check_route(route: TopicRouteData) -> None:
    """Refuse fields of a wrong type (UsageError), and too many queues (DataError)."""
    require(route, TopicRouteData, "TopicRouteData")
    queues = sum(max(data.read_queue_nums, data.write_queue_nums, 0) for data in route.queue_datas)
    if queues > MOST_QUEUES:
        raise DataError(f"topic {route.topic}: {queues} queues, more than {MOST_QUEUES}")


def check_routes(routes: Sequence[TopicRouteData]) -> None:
    require(routes, list[TopicRouteData], "routes")
    for route in routes:
        check_route(route)


@cache
def _parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    origin, args = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and issubclass(hint, Struct):
        hints = get_type_hints(hint, include_extras=True)
        return Struct, tuple((name, f".{name}", hints[name]) for name in hint.__struct_fields__)
    if isinstance(origin, type) and args and origin is not re.Pattern:
        for kind in (Mapping, AbstractSet, Iterable):
            if issubclass(origin, kind):
                return kind, args
    return (Union if origin is UnionType else origin or hint), args


def _wrong(value: Any, hint: Any, path: str) -> _Wrong | None:
    """The first part of a value that does not match its annotation."""
    kind, parts = _parts(hint)
    if kind is Annotated:
        bounds = (_out_of_bounds(value, meta) for meta in parts[1:] if isinstance(meta, Meta))
        return _wrong(value, parts[0], path) or next(((path, value, bound, None) for bound in bounds if bound), None)
    if kind is Union:
        return None if type(value) in _PLAIN and type(value) in parts else _wrong_in_union(value, parts, path)
    if kind is Literal:
        close = close_names(value[:_SHOWN], parts) if isinstance(value, str) else None
        is_one = isinstance(value, str) and value in parts
        return None if is_one else (path, value, f"one of {', '.join(map(str, parts))}", close)
    found = _parts_of(value, kind, hint, parts)
    if isinstance(found, str):
        return path, value, found, None
    for step, part, inner in found:
        if type(part) is inner and inner in _PLAIN:
            continue
        if (wrong := _wrong(part, inner, path + step)) is not None:
            return wrong
    return None


def _parts_of(value: Any, kind: Any, hint: Any, parts: tuple[Any, ...]) -> str | Iterable[tuple[str, Any, Any]]:
    """The step to each part of the value, the part, and its annotation; or the kind of value that is needed."""
    if kind is Struct:
        fields = ((step, getattr(value, name), inner) for name, step, inner in parts)
        return fields if isinstance(value, hint) else str(hint.__name__)
    if kind is Mapping:
        if not isinstance(value, Mapping):
            return "a mapping"
        keys = ((_at(key), key, parts[0]) for key in value)
        return (*keys, *((_at(key), each, parts[1]) for key, each in value.items()))
    if kind in (AbstractSet, Iterable):
        if isinstance(value, (list, tuple)) or (kind is AbstractSet and isinstance(value, AbstractSet)):
            return ((f"[{place}]", each, parts[0]) for place, each in enumerate(value))
        return f"a {'set' if kind is AbstractSet else 'list'} of {_word(parts[0])}"
    return () if _fits(value, kind) else _word(kind)


def _at(key: object) -> str:
    return f"[{shown(key) if isinstance(key, str) else str(key)[:100]}]"


def _fits(value: Any, kind: Any) -> bool:
    if kind is Callable:  # objects with a method of RocketMQ's interfaces also count
        return callable(value) or any(callable(getattr(value, name, None)) for name in ("allocate", "select"))
    if kind in (Any, object):
        return True
    if isinstance(value, bool):
        return kind is bool
    if kind is float:
        return isinstance(value, int | float) and abs(value) <= sys.float_info.max
    return isinstance(value, (int, kind) if _is_fraction(kind) else kind)


@cache
def _is_fraction(kind: Any) -> bool:
    """Whether the value is a Fraction, without importing `fractions`: a caller with a Fraction has imported it."""
    return any((base.__module__, base.__name__) == ("fractions", "Fraction") for base in getattr(kind, "__mro__", ()))


def _out_of_bounds(value: Any, meta: Meta) -> str:
    least, most = meta.min_length or 0, meta.max_length
    if (least or most is not None) and not least <= len(value) <= (most or len(value)):
        return f"a length from {least}" + (f" to {most}" if most else "")
    if (meta.ge is None or value >= meta.ge) and (meta.le is None or value <= meta.le):
        return ""
    return f"a number at least {meta.ge}" if meta.le is None else f"a number from {meta.ge} to {meta.le}"


def _wrong_in_union(value: object, kinds: tuple[Any, ...], path: str) -> _Wrong | None:
    found = [_wrong(value, kind, path) for kind in kinds]
    wrongs = [wrong for kind, wrong in zip(kinds, found, strict=True) if kind is not NoneType and wrong is not None]
    if None in found:
        return None
    deep = next((wrong for wrong in wrongs if wrong[0] != path), None)
    return deep or (path, value, " or ".join(dict.fromkeys(wrong[2] for wrong in wrongs)), wrongs[0][3])


def _word(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        return _word(get_args(kind)[0])
    return "a Fraction or a whole number" if _is_fraction(kind) else _WORDS.get(kind) or getattr(kind, "__name__", kind)


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
        raise CustomCodeError(text, hint=hint) from error
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise CustomCodeError(f"{path}: not Python: {error or type(error).__name__}") from error
    sys.modules[module.__name__] = module  # where dataclasses and pickle look for it
    try:
        quietly(exec, code, module.__dict__)
    except (Exception, SystemExit) as error:
        hint = f"python {path} shows the same error; install its imports in rmqlb's environment"
        raise CustomCodeError(f"{path} raised {thrown(error, SimpleNamespace(file=path))}", hint=hint) from error
    return module.__dict__


def _named(namespace: Mapping[str, object], name: str, path: str) -> object:
    if name in namespace:
        return namespace[name]
    names = [key for key, value in namespace.items() if callable(value) and not key.startswith("_")]
    hint = suggestion("functions", name, names) if names else "the file has no function"
    raise UsageError(f"{path} has no function {name}", hint=hint)


def as_function(written: Any, kind: Kind, where: str | None = None) -> Callable[..., Any]:
    """The user's function, or the method of an object or of a class without arguments (raises UsageError)."""
    what, wanted = where or kind.noun, f"def {own_name(written)}({', '.join(kind.arguments)})"
    if inspect.isclass(written) and hasattr(written, kind.method):
        try:
            written = quietly(written)
        except (Exception, SystemExit) as error:
            text = f"{what}: {own_name(written)}() raised {thrown(error, written)}"
            raise CustomCodeError(text, hint="rmqlb calls the class without arguments") from error
    function = written if inspect.isroutine(written) else getattr(written, kind.method, written)
    if not callable(function) or inspect.isclass(function):
        raise CustomCodeError(f"{what}: {kind_of(written)} is not callable", hint=f"write {wanted}")
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise CustomCodeError(f"{what}: {own_name(written)} is a generator or async", hint=f"write {wanted}")
    try:
        inspect.signature(function).bind(*kind.arguments)
    except TypeError as error:
        text = f"{what}: {own_name(written)} does not take {len(kind.arguments)} arguments ({error})"
        raise CustomCodeError(text, hint=f"write {wanted}") from None
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
