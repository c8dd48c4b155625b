"""Facts of answers: `tests/data/answers.txt`.

`.path HOW value` is of the data of `-o json`, where `[]` is each of a list, `.a,b` several fields of one thing, and HOW is
`=`, `>`, `<`, `has` (so many), `each` (all are it), `distinct` or `contains`. `first` is the first line of stdout (… goes on),
`shows` and `hides` are of stdout, `says` and `omits` of stderr, `finds` and `lacks` of the codes of findings.

`tests/data/answers/` has all tables of these answers too, each with its first rows and a checksum of the others. Such a
record proves no rule: it shows which answers a change alters. `--update-golden` writes it anew.
"""

import json
import re
from collections.abc import Callable
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from tests.support.schemas import must_fit
from tests.test_golden import must_be_recorded

from .recorded_lines import Line, lines_of, steps_of, write_files
from .run import ROOT, Ran

LINES = lines_of("answers.txt")
HOW: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda found, value: bool(found == (pytest.approx(value) if isinstance(value, float) else value)),
    ">": lambda found, value: bool(found > value),
    "<": lambda found, value: bool(found < value),
    "has": lambda found, value: len(found) == value,
    "each": lambda found, value: bool(found) and all(each == value for each in found),
    "distinct": lambda found, value: [each for each, _ in groupby(sorted(found))] == value,
    "contains": lambda found, value: value in found,
}


SPOKEN = {"shows": ("stdout", True), "hides": ("stdout", False), "says": ("stderr", True), "omits": ("stderr", False)}


def at(value: Any, steps: list[str]) -> Any:
    if not steps:
        return value
    first, *rest = steps
    if first == "[]":
        return [at(each, rest) for each in value]
    if first[0] == "[":
        return at(value[int(first[1:-1])], rest)
    names = first[1:].split(",")
    return at(value[names[0]], rest) if len(names) == 1 else [value[name] for name in names]


def is_so(fact: str, shown: Callable[..., Ran]) -> bool:
    word, _, text = fact.partition(" ")
    if word.startswith(".") or word in ("finds", "lacks"):
        document = json.loads(shown("-o", "json").stdout)
        must_fit(document)
        if not word.startswith("."):
            codes, named = {each["code"] for each in document["findings"]}, {*text.split()}
            return codes >= named if word == "finds" else codes.isdisjoint(named)
        how, _, expected = text.partition(" ")
        return HOW[how](at(document["data"], steps_of(word)), json.loads(expected))
    ran = shown()
    if word in ("code", "first"):
        found = str(ran.code) if word == "code" else ran.stdout.partition("\n")[0]
        return found == text or (text.endswith("…") and found.startswith(text[:-1]))
    stream, is_there = SPOKEN[word]
    return (text in getattr(ran, stream)) == is_there


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answers")
    write_files("answers.txt", folder)
    return folder


MOST_LINES = 4


def shortened(block: str) -> str:
    first, rest = block.splitlines()[:MOST_LINES], block.splitlines()[MOST_LINES:]
    return "\n".join([*first, f"… {len(rest)} more {crc32(repr(rest).encode()):08x}"] if len(rest) > 1 else [block])


def not_so(line: Line, shown: Callable[..., Ran]) -> list[str]:
    usual = () if any(fact.startswith("code ") for fact in line.expected) else ("code 0",)
    return [fact for fact in (*line.expected, *usual) if not is_so(fact, shown)]


def record_of(line: Line, folder: Path, shown: Callable[..., Ran]) -> str:
    """All that it prints; last the checksum of what a script gets."""

    def printed(*more: str) -> str:
        ran = shown("-o", *more)
        text = f"{ran.stdout}\n{ran.stderr}= {ran.code}".replace(str(folder), "{}").replace(f"{ROOT}/", "")
        return re.sub(r"([ -])\1\1+", r"\1\1", text)  # the folder's length decides how wide a column is

    texts = [f"$ {line.text}".replace(f"{ROOT}/", ""), *re.split(r"\n\n+", printed("markdown", "--all"))]
    return "\n".join([*map(shortened, texts), f"json {crc32(printed('json').encode()):08x}\n"])


@pytest.mark.parametrize("command", sorted({line.command for line in LINES}))
def test_answers_have_their_facts_and_are_as_recorded(
    command: str, folder: Path, request: pytest.FixtureRequest
) -> None:
    wrong, records = {}, {}
    for line in LINES:
        if line.command == command:
            shown = cache(partial(line.run, folder))
            wrong[line.text], records[line.text] = not_so(line, shown), record_of(line, folder, shown)
    assert {text: facts for text, facts in wrong.items() if facts} == {}
    must_be_recorded("\n".join(records.values()), ROOT / "tests" / "data" / "answers" / f"{command}.txt", request)
