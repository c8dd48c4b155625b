"""The Go client and a broker still answer as the vectors say.

The C++ client is in no registry: run `python -m tests.oracle.make_allocations` where its repository can be cloned.
"""

import json
import shutil
from collections.abc import Sequence
from typing import Any

import pytest

from tests.oracle.make_allocations import broker_lines, go_lines
from tests.oracle.producers.make import SDKS, Sdk, answered, document
from tests.oracle.producers.questions import questions
from tests.support.mismatches import vectors

pytestmark = [pytest.mark.live, pytest.mark.slow]


def kept(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [json.loads(json.dumps(line)) for line in lines]


def test_the_go_client_and_the_broker_answer_as_written_down() -> None:
    assert kept(go_lines()) == list(vectors("go-allocate"))
    pops, asked = broker_lines()
    assert kept(pops) == list(vectors("pop-allocate"))
    assert kept(asked) == list(vectors("query-assignment"))


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
