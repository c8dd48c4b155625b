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
    assert problem(BOMB) == "dump.yaml, line 2: YAML aliases are not read"
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
