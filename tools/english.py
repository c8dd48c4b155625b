"""Words per 1,000 in each text that people read: `python -m tools.english [--check]`.

The texts are the README, CONTRIBUTING, each page of docs/, the help of all commands, and the explanations. With
`--check`, the program ends with 1 when a word is too frequent, a sentence begins with a refused word, or a line of
Markdown is longer than 100 characters.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tabulate import tabulate

from rmqlb.views.explanations import explanations
from tools.manual.tree import command_tree

ROOT = Path(__file__).parent.parent
WIDTH = 100
AT_MOST = {
    "what": (("what",), 4.0),
    "that": (("that",), 11.0),
    "says, tells, knows": (("says", "say", "tells", "tell", "told", "knows", "know"), 1.5),
}
"""Column → its words, and the most of them per 1,000 words."""
LEAST_YOU = 4.0
REFUSED = re.compile(r"(?:\A|(?<=[.!?:] )|(?<=\n\n))(?:Of|Whose|In which|What is|By which)\b[^.]{0,60}")


def texts() -> Iterator[tuple[str, str]]:
    """Name and prose of each text, without code, tables and link targets."""
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if "reference" not in page.parts:
            yield str(page.relative_to(ROOT)), prose(page.read_text(encoding="utf-8"))
    yield "help", "\n\n".join(dict.fromkeys(help_texts()))
    yield "explanations", "\n\n".join(f"{one.means} {one.why} {one.todo}" for one in explanations().values())


def prose(markdown: str) -> str:
    """Markdown without what is no sentence."""
    plain = re.sub(r"```.*?```", "", markdown, flags=re.DOTALL)
    plain = re.sub(r"^\|.*$", "", plain, flags=re.MULTILINE)
    plain = re.sub(r"`[^`\n]*`", "x", plain)
    return re.sub(r"\]\([^)]*\)", "]", plain)


def help_texts() -> Iterator[str]:
    """Summary, paragraphs and option texts of every command, without examples and exit codes."""
    for command in command_tree().all():
        yield command.help.summary
        yield from (text for text in command.help.details if isinstance(text, str))
        yield from (each.help for each in (*command.arguments, *command.options))


def per_thousand(text: str, words: tuple[str, ...]) -> float:
    found = [word.lower() for word in re.findall(r"[A-Za-z']+", text)]
    return 1000 * sum(found.count(word) for word in words) / max(len(found), 1)


def complaints(named: Mapping[str, str]) -> Iterator[str]:
    """What is beyond the limits, one line each."""
    whole = "\n\n".join(named.values())
    for column, (words, most) in AT_MOST.items():
        if (found := per_thousand(whole, words)) > most:
            yield f"{column}: {found:.1f} per 1,000 words, at most {most}"
    if (found := per_thousand(whole, ("you", "your"))) < LEAST_YOU:
        yield f"you: {found:.1f} per 1,000 words, at least {LEAST_YOU}"
    for name, text in named.items():
        yield from (f"{name}: a sentence begins {match[0].strip()!r}" for match in REFUSED.finditer(text))
    for page in (ROOT / "docs").rglob("*.md"):
        if "reference" not in page.parts:
            yield from (f"{page.relative_to(ROOT)}:{number}: longer than {WIDTH}" for number in long_lines(page))


def long_lines(page: Path) -> Iterator[int]:
    """The numbers of prose lines that are too long."""
    in_code = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        in_code ^= line.lstrip().startswith("```")
        if len(line) > WIDTH and not in_code and not line.startswith(("|", "!", "<", "```")) and " " in line.strip():
            yield number


def main() -> int:
    named = dict(texts())
    every = {**named, "all together": "\n\n".join(named.values())}
    rows = [
        (
            name,
            len(re.findall(r"[A-Za-z']+", text)),
            *(per_thousand(text, words) for words, _ in AT_MOST.values()),
            per_thousand(text, ("you", "your")),
        )
        for name, text in every.items()
    ]
    sys.stdout.write(tabulate(rows, ("text", "words", *AT_MOST, "you"), floatfmt=".1f") + "\n")
    found = list(complaints(named))
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
