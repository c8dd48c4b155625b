"""A bounded reader of the JSON dialect that RocketMQ's servers and tools print (fastjson's).

- Strict JSON is read to equal values; of two equal keys the last one counts.
- Extensions: a key may be a number, a bare word or an object (`{0:"a"}`, `{{"queueId":0}:1}`), strings may have single
  quotes, a trailing comma is allowed, numbers may end in L, D, F, B or S, `Set[…]` is a list.
- Each extension in use is named in `notes`. Nothing is guessed: other text is an error with its line and column.
- A number or bare word as a key becomes its text, an object becomes an `ObjectKey`. `@type` is only data.
- Depth and size are bounded before any recursion.
"""

import re
from collections.abc import Iterator
from typing import NoReturn

from rmqlb.errors import DocumentError
from rmqlb.sources.formats.limits import MAX_DEPTH

_SPACE = re.compile(r"[ \t\r\n]*")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|[\"'\\/bfnrt])")
_PART = r"[^Q\\\x00-\x1f]++|\\(?:u[0-9A-Fa-f]{4}|[\"'\\/bfnrt])"  # of a string in the quotes Q
_STRINGS = {quote: re.compile(f"Q(?P<text>(?:{_PART})*+)(?P<end>Q)?".replace("Q", quote)) for quote in ('"', "'")}
_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][+-]?[0-9]+)?([LDFBS])?")
_WORD = re.compile(r"[A-Za-z_$@][\w$@.-]*")
_ESCAPES = {'"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_ENDS = ("}", "]", '"', "'")
_CONSTANTS = {"true": True, "false": False, "null": None}
_MOST_DOCUMENTS = 100_000
_MOST_ESCAPES = 2_000_000
_MOST_VALUES = 500_000
"""Commas and opening brackets; a value takes five microseconds here, and a route of eight brokers has a hundred."""
MAX_DIGITS = 4300  # Python's own limit for integers in text


class ObjectKey(tuple[tuple[str, object], ...]):
    """An object as a key, by its (name, value) pairs."""

    __slots__ = ()


class LooseReader:
    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._where = where
        self._at = 0
        self.notes: list[str] = []  # the extensions in use

    def documents(self) -> list[object]:
        found: list[object] = []
        if self._text.count("\\") > _MOST_ESCAPES:
            raise DocumentError(f"{self._where}: more than {_MOST_ESCAPES} escapes in the dialect's strings")
        if sum(map(self._text.count, ",[{")) > _MOST_VALUES:
            problem = f"{self._where}: more than {_MOST_VALUES} values in text that is not strict JSON"
            hint = "write large snapshots in strict JSON: rmqlb fetch-routes -o json"
            raise DocumentError(problem, hint=hint)
        while self._peek():
            if len(found) == _MOST_DOCUMENTS:
                self._fail(f"more than {_MOST_DOCUMENTS} documents")
            found.append(self._value(0))
            end = self._at
            if self._peek() and end == self._at and self._text[end - 1] not in _ENDS:
                self._fail("expected a space or the end")
        return found

    def _fail(self, problem: str, at: int | None = None) -> NoReturn:
        at = self._at if at is None else at
        line = self._text.count("\n", 0, at) + 1
        column = at - self._text.rfind("\n", 0, at)
        if at >= len(self._text):
            problem = "the text ends too early"
        raise DocumentError(f"{self._where}, line {line}, column {column}: {problem}")

    def _note(self, leniency: str) -> None:
        if leniency not in self.notes:
            self.notes.append(leniency)

    def _peek(self) -> str:
        """The next character except space; empty at the end."""
        match = _SPACE.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return self._text[self._at : self._at + 1]

    def _take(self, expected: str) -> None:
        if self._peek() != expected:
            self._fail(f"expected {expected!r}")
        self._at += 1

    def _value(self, depth: int) -> object:
        char = self._peek()
        if char == "{":
            return self._object(depth)
        if char == "[":
            return self._array(depth)
        if char in ('"', "'"):
            return self._string(char)
        if char and char in "-0123456789":
            return self._number()
        match = _WORD.match(self._text, self._at)
        if not match:
            self._fail("expected a value")
        if match[0] in _CONSTANTS:
            self._at = match.end()
            return _CONSTANTS[match[0]]
        if match[0] in ("Set", "TreeSet") and self._text[match.end() : match.end() + 1] == "[":
            self._at = match.end()
            self._note("a list written Set[…]")
            return self._array(depth)
        return self._fail(f"{match[0][:40]!r} is not a value")

    def _items(self, brackets: str, depth: int) -> Iterator[None]:
        """Step over brackets and commas; the caller reads an item at each turn."""
        if depth >= MAX_DEPTH:
            self._fail(f"nested deeper than {MAX_DEPTH} levels")
        self._take(brackets[0])
        while self._peek() != brackets[1]:
            yield
            if self._peek() == brackets[1]:
                break
            self._take(",")
            if self._peek() == brackets[1]:
                self._note("a trailing comma")
        self._take(brackets[1])

    def _object(self, depth: int) -> dict[object, object]:
        members: dict[object, object] = {}
        for _ in self._items("{}", depth):
            key = self._key(depth)
            self._take(":")
            members[key] = self._value(depth + 1)
        return members

    def _array(self, depth: int) -> list[object]:
        items: list[object] = []
        for _ in self._items("[]", depth):  # a comprehension would need one more frame per level
            items.append(self._value(depth + 1))  # noqa: PERF401
        return items

    def _key(self, depth: int) -> object:
        char = self._peek()
        if char in ('"', "'"):
            return self._string(char)
        if char == "{":
            self._note("an object as a key")
            start, members = self._at, self._object(depth + 1)
            pairs: list[tuple[str, object]] = []
            for name, value in members.items():
                if not isinstance(name, str) or not isinstance(value, str | int | float | bool | None):
                    self._fail("an object as a key may only hold plain values", start)
                pairs.append((name, value))
            return ObjectKey(pairs)
        number = _NUMBER.match(self._text, self._at)
        match = number or _WORD.match(self._text, self._at)
        if not match:
            self._fail("expected a key")
        self._at = match.end()
        self._note("a key without quotes")
        return number[0].removesuffix(number[4] or "") if number else match[0]

    def _string(self, quote: str) -> str:
        if quote == "'":
            self._note("a string in single quotes")
        start, match = self._at, _STRINGS[quote].match(self._text, self._at)
        if match is None or not match["end"]:
            self._at = match.end() if match else start
            bad = self._text.startswith("\\", self._at)
            self._fail("a bad escape in a string" if bad else "a control character in a string")
        self._at = match.end()
        text = _ESCAPE.sub(self._unescaped, match["text"])
        if not _SURROGATE.search(text):
            return text
        try:  # join surrogate pairs; a lone surrogate is no character
            return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
        except UnicodeDecodeError:
            self._fail("half of a surrogate pair in a string", start)

    def _unescaped(self, escape: re.Match[str]) -> str:
        if escape[0] == "\\'":
            self._note("an escaped single quote")
        return chr(int(escape[1], 16)) if escape[1] else _ESCAPES[escape[0][1]]

    def _number(self) -> int | float:
        match = _NUMBER.match(self._text, self._at)
        if not match:
            self._fail("a malformed number")
        start, self._at = self._at, match.end()
        whole, fraction, exponent, suffix = match.groups()
        if suffix:
            self._note("a number with a type suffix")
        if len(whole) > MAX_DIGITS:
            self._fail(f"a number of more than {MAX_DIGITS} digits", start)
        if not (fraction or exponent or suffix in ("D", "F")):
            return int(whole)
        value = float(whole + (fraction or "") + (exponent or ""))
        if value in (float("inf"), float("-inf")):
            self._fail("a number too large", start)
        return value


def read_loose(text: str, where: str) -> tuple[list[object], list[str]]:
    reader = LooseReader(text, where)
    return reader.documents(), reader.notes
