"""Makes `tests/data/vectors/producers.jsonl.gz`: `python -m tests.oracle.producers.make`.

Needs Go, Java 17 or newer, Maven, Rust, Node, g++, git, and some minutes the first time, most of them for the Rust crate.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .questions import Question, questions
from .sdks import SDKS, Sdk

FILE = Path(__file__).parent.parent.parent / "data" / "vectors" / "producers.jsonl.gz"


def main() -> None:
    asked = list(questions())
    lines = [document(question) for question in asked]
    for sdk in SDKS:
        for line, answer in answered(sdk, asked):
            lines[line]["expected"][f"{sdk.name}@{sdk.version}"] = answer
        sys.stdout.write(f"{sdk.name} {sdk.version} has answered\n")
        sys.stdout.flush()
    text = "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines)
    FILE.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def answered(sdk: Sdk, asked: Sequence[Question]) -> list[tuple[int, Any]]:
    numbers = [number for number, question in enumerate(asked) if sdk.can_answer(question)]
    answers = sdk.answers([asked[number] for number in numbers])
    return [(number, read(asked[number].kind, answer)) for number, answer in zip(numbers, answers, strict=True)]


def read(kind: str, answer: str) -> Any:
    """A position, lists of positions, [broker, id] of the Proxy, or {"error": the exception's name}."""
    if answer.startswith("!"):
        return {"error": answer[1:]}
    broker, colon, number = answer.partition(":")
    if colon:
        return [broker, int(number)]
    if kind == "hash":
        return int(answer)
    return [[int(position) for position in step.split(",") if position] for step in answer.split(";")]


def document(question: Question) -> dict[str, Any]:
    if question.kind == "hash":
        asked: dict[str, Any] = {"key": question.key}
    else:
        asked = {"start": question.start, "steps": [[step.count, list(step.brokers)] for step in question.steps]}
    return {"kind": question.kind, "queues": [list(queue) for queue in question.queues], **asked, "expected": {}}


if __name__ == "__main__":
    main()
