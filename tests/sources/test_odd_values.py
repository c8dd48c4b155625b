"""Values at the edge of JSON: strict, loose and YAML readers give the same, or refuse.

Where YAML is the other language, the difference is written down here.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rmqlb.errors import DocumentError
from rmqlb.sources.formats.documents import decode
from rmqlb.sources.formats.loose_json import read_loose
from rmqlb.sources.formats.yaml_text import read_yaml
from tests.support.mismatches import every_case

REFUSED = object()


def strict(text: str) -> object:
    return decode(text.encode("utf-8", "surrogatepass"), object, "x")


def loose(text: str) -> object:
    [document] = read_loose(text, "x")[0]
    return document


def yaml(text: str) -> object:
    return read_yaml(text, "x")


def result(read: Callable[[str], object], text: str) -> object:
    try:
        return read(text)
    except DocumentError as error:
        assert error.message.startswith("x")
        return REFUSED


SAME = {
    "2^63": ("[9223372036854775808]", [2**63]),
    "2^64 and below −2^63": ("[18446744073709551616, -9223372036854775809]", [2**64, -(2**63) - 1]),
    "beyond 2^53": ("[9007199254740993]", [9007199254740993]),
    "an integer of 4,300 digits": (f"[{'7' * 4300}]", [int("7" * 4300)]),
    "an integer of 5,000 digits": (f"[{'7' * 5000}]", REFUSED),
    "minus zero": ("[-0]", [0]),
    "a fraction": ("[0.5]", [0.5]),
    "a tiny fraction": ("[0." + "0" * 400 + "1]", [0.0]),
    "NUL, escaped": (r'["\u0000"]', ["\0"]),
    "NUL, raw": ('["\0"]', REFUSED),
    "half a surrogate pair, escaped": (r'["\ud800"]', REFUSED),
    "half a surrogate pair, other half": (r'["\udc00"]', REFUSED),
    "half a surrogate pair, raw": ('["\ud800"]', REFUSED),
    "a line separator": ('["\u2028"]', ["\u2028"]),
    "an astral character": ('["\U0001f600"]', ["\U0001f600"]),
    "an empty key": ('{"": 1}', {"": 1}),
    "a key that Python shadows": ('{"__class__": "x"}', {"__class__": "x"}),
    "a text that looks like a number": ('["010", "1e5"]', ["010", "1e5"]),
    "nothing closed": ('{"a": [1', REFUSED),
    "an exponent that overflows": ("[1.0e+400]", REFUSED),
    "an exponent that overflows below": ("[-1.0e+400]", REFUSED),
}


@every_case("name", SAME)
@every_case("read", [strict, loose, yaml])
def test_every_reader_gives_the_same(read: Callable[[str], object], name: str) -> None:
    text, expected = SAME[name]
    assert result(read, text) == expected


@every_case(
    ("name", "text", "in_json", "in_yaml"),
    [
        ("NaN is no JSON, and a text in YAML", "[NaN]", REFUSED, ["NaN"]),
        ("so is Infinity", "[-Infinity]", REFUSED, ["-Infinity"]),
        ("a number without a dot or without a sign in its exponent", "[1e5, 1.0e5]", [1e5, 1e5], ["1e5", "1.0e5"]),
        ("and so one that overflows", "[1e400]", REFUSED, ["1e400"]),
        ("a key that stands twice: the last one counts, or none", '{"a": 1, "a": 2}', {"a": 2}, REFUSED),
        ("a surrogate pair is two escapes in JSON only", r'["\ud83d\ude00"]', ["\U0001f600"], REFUSED),
        ("YAML has no raw DEL", '["\x7f"]', ["\x7f"], REFUSED),
        ("a comma too many", "[1, ]", REFUSED, [1]),
    ],
)
def test_yaml_differs_where_it_is_another_language(name: str, text: str, in_json: object, in_yaml: object) -> None:
    assert result(strict, text) == in_json, name
    assert result(yaml, text) == in_yaml, name
    if name != "a comma too many":
        assert result(loose, text) == in_json, name


@every_case("depth", [10, 256])
@every_case("read", [strict, loose, yaml])
def test_every_reader_goes_256_deep(read: Callable[[str], object], depth: int) -> None:
    assert result(read, "[" * depth + "]" * depth) is not REFUSED
    assert result(read, '{"a":' * depth + "1" + "}" * depth) is not REFUSED


@every_case("depth", [257, 900, 100_000, 1_000_000])
@every_case("read", [strict, loose, yaml])
@every_case("kind", ["[]", "{}"])
def test_no_reader_goes_deeper(read: Callable[[str], object], depth: int, kind: str) -> None:
    text = "[" * depth + "]" * depth if kind == "[]" else '{"a":' * depth + "1" + "}" * depth
    with pytest.raises(DocumentError, match=r"nested deeper than 256|more than 500000 values in what"):
        read(text)
