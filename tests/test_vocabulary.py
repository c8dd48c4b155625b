"""One word for one thing: no text that a person sees has a word that rmqlb does not use.

Seen are help, man pages and completions, README and docs, messages and headings, explanations, keys and values of JSON,
the starter policy, examples and the pages. Comments and the names of code are not looked at here.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from rmqlb.cli.results import RESULTS
from rmqlb.views.json_schema import json_schema
from tests.cli.run import ROOT
from tests.support.mismatches import every_case

NOT_WORDS = dict(
    line.split(" => ")
    for line in (ROOT / "tests" / "data" / "not_words.txt").read_text(encoding="utf-8").splitlines()
    if " => " in line
)
"""What rmqlb does not say, as a pattern, and what it says."""

RIGHT: Mapping[str, str] = {
    r"\bMembers\b|\bmembers\b(?= =|, \[route\])": "the class of the Python API, and a variable that holds one",
    r"\bdump\b(?=[\"'|,}]|$| +(ConsumerGroup|or dashboard))|kind[\"']?: dump": "the kind of a source in JSON",
    r"\bdump\.py": "a file of the code",
    r"\bthread dump\b": "what Java calls it",
}
"""Pattern of what is right although a word of `NOT_WORDS` is in it, and why."""

_GLOBS = (
    *("man/**/*", "completions/*", "README.md", "docs/**/*.md", "docs/**/*.svg", "examples/*"),
    *("tests/golden/**/*.txt", "rmqlb/**/*.toml", "rmqlb/**/*.yaml", "rmqlb/**/*.html"),
)
_WORDS = {word: re.compile(rf"(?<![\w-])(?:{word})(?![\w])", re.IGNORECASE) for word in NOT_WORDS}
_RIGHT = re.compile("|".join(RIGHT))
_NAME = re.compile(r"[\w.:-]*")


def wrong_words(text: str) -> list[str]:
    rest = _RIGHT.sub("", text)
    return [f"{found[0]} (say: {NOT_WORDS[word]})" for word, one in _WORDS.items() if (found := one.search(rest))]


def sentences(source: str) -> Iterator[tuple[int, str]]:
    """The texts of a module, by their lines: not its docstrings, and no single names, which are keys and kinds."""
    tree = ast.parse(source)
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield from [] if _NAME.fullmatch(node.value) else [(node.lineno, node.value)]


def key_words(key: str) -> str:
    """A key of JSON as words.

    >>> key_words("maxQueuesPerConsumer")
    'max queues per consumer'
    """
    return re.sub("([A-Z])", r" \1", key).lower()


def _keys(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", ())
        for value in schema.values():
            yield from _keys(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _keys(item)


def _found(place: str, lines: Iterable[tuple[int, str]]) -> Iterator[str]:
    for number, line in lines:
        for word in wrong_words(line):
            yield f"{place}:{number}: {word}: {line.strip()[:100]}"


@every_case("glob", (*_GLOBS, "rmqlb/**/*.py"))
def test_what_is_written_for_people_has_only_our_words(glob: str) -> None:
    paths = sorted(path for path in ROOT.glob(glob) if path.is_file())
    assert paths
    found: list[str] = []
    for path in paths:
        text = path.read_text("utf-8")
        lines = (
            sentences(text)
            if path.suffix == ".py" and path.is_relative_to(ROOT / "rmqlb")
            else enumerate(text.splitlines(), 1)
        )
        found += _found(path.relative_to(ROOT).as_posix(), lines)
    assert not found, "\n".join(found)


def test_keys_of_json_are_our_words() -> None:
    keys = {key for result in RESULTS for key in _keys(json_schema(result))}
    assert "duplicateOwners" in keys
    assert {key: words for key in keys if (words := wrong_words(key_words(key)))} == {}


PLANTED = """
3 members own a queue|owner seen|4 queues (nobody)|the queues are dealt out|likewise afterwards|it names itself anew
settled after 2 s|the group is lopsided|else the owner; else none|1 limit violated|a dump of the cluster|read by nobody
2 documents put aside|a made-up ID|matches or else|producers see 4 queues|not told by brokers|no group fits nothing
"""


@every_case("planted", PLANTED.strip().replace("\n", "|").split("|"))
def test_a_planted_word_is_found(planted: str) -> None:
    assert wrong_words(f"  in a line, {planted}.")
    module = f'"""nobody"""\nraise ValueError(f"{{x}}: {planted}")\nkind = "members"\n'
    assert [number for number, text in sentences(module) if wrong_words(text)] == [2]


def test_each_exception_is_needed() -> None:
    texts = [path.read_text("utf-8") for glob in _GLOBS for path in sorted(ROOT.glob(glob)) if path.is_file()]
    assert [right for right in RIGHT if not any(re.search(right, text, re.MULTILINE) for text in texts)] == []
