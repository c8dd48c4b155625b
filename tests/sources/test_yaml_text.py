from __future__ import annotations

import re
from typing import Any, ClassVar

import pytest
import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st

from rmqlb.errors import DocumentError
from rmqlb.sources.formats import yaml_text
from rmqlb.sources.formats.yaml_text import lines_of, read_yaml
from tests.support.mismatches import every_case

BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10))


def problem(text: str) -> str:
    with pytest.raises(DocumentError) as caught:
        read_yaml(text, "dump.yaml")
    return caught.value.message


TAGGED = [
    *("a: !!python/object/apply:os.system ['id']", "a: !!python/name:os.system", "a: !custom 1", "a: !!binary aGk="),
    *("a: !!set {x}", "a: !!timestamp 2026-01-01", "a: !!timestamp nonsense", "a: !!bool maybe", 'a: !!int "010"'),
    *("a: !!float .nan", "a: !!map [1]", "!!merge x: {a: 1}"),
]


@every_case(
    ("text", "message"),
    [
        (BOMB, "line 2: YAML aliases are not read"),
        ("a: &x 1\nb: &x 2", "line 2: the anchor 'x' stands twice"),
        *((text, "line 1: YAML tags are not read") for text in TAGGED),
        ("%TAG ! tag:yaml.org,2002:python/\n---\na: !name:os.system ''", "line 3: YAML tags are not read"),
        *(
            (text, "line 2, column 1: YAML merge keys are not read")
            for text in ("a: 1\n<<: {b: 2}", "a: 1\n<<: [{b: 2}]")
        ),
        ("a: 1\nb: 2\na: 3", "line 3, column 1: the key 'a' stands twice"),
        ("a:\n  b: {c: 1, c: 1}", "line 2, column 13: the key 'c' stands twice"),
        ("1: a\n+1: b", "line 2, column 1: the key '+1' stands twice"),
        ("true: a\nTrue: b", "line 2, column 1: the key 'True' stands twice"),
        ("'a': 1\n\"a\": 2", "line 2, column 1: the key 'a' stands twice"),
        ("a: [1, 2", "line 2, column 1: did not find expected ',' or ']'"),
        ("a: b: c", "line 1, column 5: mapping values are not allowed in this context"),
        ("\ta: 1", "line 1, column 1: found character that cannot start any token"),
        ("? [a]\n: 1", "line 1, column 3: found unhashable key"),
        ("--- 1\n--- 2", "line 2, column 1: but found another document"),
        *((text, "line 1: nested deeper than 256") for text in ("[" * 300, "a: " + "{" * 300, "- " * 300, "? " * 300)),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_what_is_not_one_plain_yaml_document_says_where(text: str, message: str) -> None:
    assert problem(text) == f"dump.yaml, {message}"


@every_case("number", [2**61 - 1, 1 - 2**61, 10**40])
def test_a_number_that_shares_its_hash_with_others_is_no_key(number: int) -> None:
    assert problem(f"{number}: 1") == "dump.yaml, line 1, column 1: a number too large for a key"
    assert read_yaml(f"a: {number}", "dump.yaml") == {"a": number}
    assert read_yaml(f"{2**61 - 2}: 1", "dump.yaml") == {2**61 - 2: 1}


TEXTS = (
    *("no", "Yes", "on", "010", "0x1F", "0o17", "1_000", "1:30", "2026-01-01", "2026-11-21T02:02:07Z", "1e5", ".5"),
    *(".nan", "=", "V5_5_0", "127.0.0.1:10911"),
)


@every_case(
    ("text", "value"),
    [
        *((text, text) for text in TEXTS),
        *[("-7", -7), ("+7", 7), ("0", 0), ("1.5", 1.5), ("1.0e+3", 1000.0)],
        *[("true", True), ("FALSE", False), ("null", None), ("~", None), ("", None), ("''", "")],
    ],
)
def test_only_plain_kinds_of_values_are_recognised(text: str, value: object) -> None:
    read: Any = read_yaml(f"a: {text}", "dump.yaml")
    assert read == {"a": value}
    assert type(read["a"]) is type(value)


def test_more_than_the_memory_should_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert issubclass(yaml_text._BASE, yaml.CSafeLoader)
    size = yaml_text._MAX_CHARACTERS
    assert read_yaml("#" * size, "dump.yaml") is None
    assert problem("#" * (size + 1)) == "dump.yaml: no JSON, and larger than the 12 MB for YAML"
    monkeypatch.setattr(yaml_text, "_MAX_NODES", 9)
    assert problem("[1, 2, 3, 4, 5, 6]") == "dump.yaml, line 1: more than 9 YAML nodes"
    assert read_yaml("[1, 2]", "dump.yaml") == [1, 2]


class _Plain(yaml.CSafeLoader):
    """PyYAML's own loader with the few kinds of values that are recognised."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}  # type: ignore[misc]


for tag, pattern, first in (
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?[0-9]+\.[0-9]*(?:[eE][-+][0-9]+)?", "-+0123456789"),
):
    _Plain.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), [*first, ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers(-(2**60), 2**60), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(VALUES, st.booleans(), st.sampled_from([None, "'", '"', "|"]))
def test_what_the_library_writes_is_read_as_the_library_reads_it(value: object, flow: bool, style: str | None) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, default_style=style, allow_unicode=True)
    assume("!" not in text)
    assert read_yaml(text, "dump.yaml") == yaml.load(text, Loader=_Plain)


@given(st.text(st.sampled_from("ab01:-?,[]{}&*!<>|'\"%#@~ \n\t.eé\x00\ud800")) | st.text())
@example("!!map [1]")
@example("!<tag:yaml.org,2002:int> x")
@example("{" * 2000)
@example("9" * 5000)
def test_any_text_is_read_or_is_a_document_error(text: str) -> None:
    try:
        read_yaml(text, "dump.yaml")
    except DocumentError as error:
        assert error.message.startswith("dump.yaml")
        assert "\n" not in error.message


def test_each_key_and_each_item_of_a_list_has_its_line() -> None:
    items = {("b", 0): 3, ("b", 1): 4, ("b", 1, "d"): 4, ("b", 1, "c"): 5}
    lines = {(): 1, ("a",): 1, ("b",): 2, **items, ("0",): 6}
    assert lines_of("a: 1\nb:\n  - x\n  - d: 1\n    c: 2\n0: []\n") == lines
