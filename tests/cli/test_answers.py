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
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from tests.support.schemas import must_fit
from tests.test_golden import must_be_recorded

from .recorded_lines import LIVE, Line, lines_of, steps_of, write_files
from .run import ROOT, Ran, with_documents

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


MOST_LINES = 4


def shortened(block: str) -> str:
    first, rest = block.splitlines()[:MOST_LINES], block.splitlines()[MOST_LINES:]
    return "\n".join([*first, f"… {len(rest)} more {crc32(repr(rest).encode()):08x}"] if len(rest) > 1 else [block])


class Answer:
    """What a line prints as Markdown, or in its own format, with its result; on demand, what it prints as it stands."""

    def __init__(self, line: Line, folder: Path) -> None:
        self.line, self._folder = line, folder
        self._form = () if " -o " in line.text else ("-o", "markdown", "--all")
        self.ran, documents = with_documents(lambda: line.run(folder, *self._form))
        is_whole = documents and not LIVE.search(line.text)  # a document has the servers' own addresses
        self.json = documents[0] if is_whole else line.run(folder, "-o", "json").stdout

    @cached_property
    def document(self) -> Any:
        document = json.loads(self.json)
        must_fit(document)
        return document

    @cached_property
    def shown(self) -> Ran:
        return self.line.run(self._folder) if self._form else self.ran

    def has(self, fact: str) -> bool:
        word, _, text = fact.partition(" ")
        if word in ("finds", "lacks"):
            codes, named = {each["code"] for each in self.document["findings"]}, {*text.split()}
            return codes >= named if word == "finds" else codes.isdisjoint(named)
        if word.startswith("."):
            how, _, expected = text.partition(" ")
            return HOW[how](at(self.document["data"], steps_of(word)), json.loads(expected))
        if word == "code":
            return str(self.shown.code) == text
        if word == "first":
            found = self.shown.stdout.partition("\n")[0]
            return found == text or (text.endswith("…") and found.startswith(text[:-1]))
        stream, is_there = SPOKEN[word]
        return (text in getattr(self.shown, stream)) == is_there

    def lacking(self) -> list[str]:
        lacking = [fact for fact in self.line.expected if not self.has(fact)]
        coded = any(fact.startswith("code ") for fact in self.line.expected)
        return lacking if coded or self.ran.code == 0 or self.has("code 0") else [*lacking, "code 0"]

    def record(self) -> str:
        """All that it prints; last the checksum of what a script gets."""
        text = f"{self.ran.stdout}\n{self.ran.stderr}= {self.ran.code}".replace(str(self._folder), "{}")
        # The folder's length decides how wide a column is.
        text = re.sub(r"([ -])\1\1+", r"\1\1", text.replace(f"{ROOT}/", ""))
        texts = [f"$ {self.line.text}".replace(f"{ROOT}/", ""), *re.split(r"\n\n+", text)]
        script = self.json.replace(str(self._folder), "{}").replace(f"{ROOT}/", "")
        return "\n".join([*map(shortened, texts), f"json {crc32(script.encode()):08x}\n"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answers")
    write_files("answers.txt", folder)
    return folder


@pytest.mark.usefixtures("on_a_known_day")
@pytest.mark.parametrize("command", sorted({line.command for line in LINES}))
def test_answers_have_their_facts_and_are_as_recorded(
    command: str, folder: Path, request: pytest.FixtureRequest
) -> None:
    answers = [Answer(line, folder) for line in LINES if line.command == command]
    assert {each.line.text: lacks for each in answers if (lacks := each.lacking())} == {}
    records = "\n".join(each.record() for each in answers)
    must_be_recorded(records, ROOT / "tests" / "data" / "answers" / f"{command}.txt", request)
