"""Each SDK that a package registry has answers as `tests/data/vectors/producers.jsonl.gz` says, question by question.

The C++ clients are in no registry: run `python -m tests.oracle.producers.make` where their repositories can be cloned.
"""

from __future__ import annotations

import shutil

import pytest

from tests.oracle.producers.make import SDKS, Sdk, answered, document
from tests.oracle.producers.questions import questions
from tests.support.vectors import vectors

pytestmark = [pytest.mark.live, pytest.mark.slow]


@pytest.mark.parametrize(
    "sdk", [sdk for sdk in SDKS if not sdk.needs_clone], ids=lambda sdk: f"{sdk.name}@{sdk.version}"
)
def test_an_sdk_still_answers_as_it_is_written_down(sdk: Sdk) -> None:
    missing = [program for program in sdk.needs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{sdk.name} needs {', '.join(missing)}")
    asked = list(questions())
    name = f"{sdk.name}@{sdk.version}"
    written = [line["expected"].get(name, "not asked") for line in vectors("producers")]
    assert len(written) == len(asked)
    answers: dict[int, object] = dict(answered(sdk, asked))
    assert [answers.get(number, "not asked") for number in range(len(asked))] == written


def test_the_questions_are_those_of_the_file() -> None:
    kept = [{**line, "expected": {}} for line in vectors("producers")]
    assert kept == [document(question) for question in questions()]
