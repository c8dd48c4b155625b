"""Makes `strategy.jsonl.gz` and `producer-defaults.json` in `tests/data/vectors`: `python -m tests.oracle.make_picks`.

Needs Java 17 or newer and Maven, and takes a few minutes. The questions follow from the answers, step by step; every
finished sequence is then asked again from its start, and all answers have to be the same.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from .client import Client, client
from .questions import Question
from .vector import Answers, Layout, Pick, Step

FOLDER = Path(__file__).parent.parent / "data" / "vectors"
VERSIONS = (
    "4.7.1", "4.8.0", "4.9.0", "4.9.3", "4.9.4", "4.9.7", "4.9.8",
    "5.0.0", "5.1.0", "5.1.1", "5.1.3", "5.1.4", "5.2.0", "5.3.0", "5.3.1", "5.3.2", "5.3.3", "5.4.0", "5.5.0",
)  # fmt: skip
# These shuffle the fault items before a stable sort, with a random source of their own: no two items may be equal.
SHUFFLING = ("4.7.1", "4.8.0", "4.9.0", "4.9.3")
QUESTIONS = ((True, 98), (False, 28))
REPLAYS = 5


def main() -> None:
    lines: dict[tuple[bool, int], list[dict[str, Any]]] = {}
    defaults = {}
    for version in VERSIONS:
        with tempfile.TemporaryDirectory() as scratch, client(version, Path(scratch)) as asked:
            defaults[version] = asked.defaults()
            for latency_fault, count in QUESTIONS:
                for number in range(count):
                    line = vector(asked, version, Question(number, latency_fault))
                    lines.setdefault((latency_fault, number), []).append(line)
        sys.stdout.write(f"{version} has answered\n")
        sys.stdout.flush()
    # The answers to one question stand together: versions that agree cost next to nothing then.
    write(line for same in lines.values() for line in same)
    rows = ",\n".join(f' "{version}": {json.dumps(values)}' for version, values in defaults.items())
    (FOLDER / "producer-defaults.json").write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")


def vector(asked: Client, version: str, question: Question) -> dict[str, Any]:
    steps, answers = ask(asked, question, ties=version not in SHUFFLING)
    for _ in range(REPLAYS):
        again = replay(asked, question.layout, steps)
        assert again == answers, f"{version} does not always answer alike: {answers}, then {again}"
    return {"version": version, **to_builtins(question.layout), "steps": to_builtins(steps), **to_builtins(answers)}


def ask(asked: Client, question: Question, *, ties: bool) -> tuple[list[Step], Answers]:
    asked.start(question.layout)
    steps: list[Step] = []
    picks: list[Pick] = []
    for _ in range(question.length):
        faults = asked.faults()
        wanted = question.next_pick(faults, can_reset=asked.can_reset)
        picks.append(asked.pick(*wanted))
        # A pick may drop a fault item.
        faults = asked.faults()
        said = question.next_update(picks[-1], faults, tells_reachable=asked.can_tell_reachable, ties=ties)
        steps.append(Step(at=wanted[0], last=wanted[1], reset=wanted[2], update=said))
        asked.update(said)
    return steps, asked.answers(picks)


def replay(asked: Client, layout: Layout, steps: list[Step]) -> Answers:
    asked.start(layout)
    picks = []
    for step in steps:
        picks.append(asked.pick(step.at, step.last, step.reset))
        asked.update(step.update)
    return asked.answers(picks)


def write(lines: Iterable[dict[str, Any]]) -> None:
    text = "".join(f"{json.dumps(line, ensure_ascii=False, separators=(',', ':'))}\n" for line in lines)
    (FOLDER / "strategy.jsonl.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
