"""The Go client and a broker still answer as the vectors say.

The C++ client is in no registry: run `python -m tests.oracle.make_allocations` where its repository can be cloned.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.oracle.make_allocations import broker_lines, go_lines
from tests.support.vectors import vectors

pytestmark = [pytest.mark.live, pytest.mark.slow]


def kept(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [json.loads(json.dumps(line)) for line in lines]


def test_the_go_client_allocates_as_written_down() -> None:
    assert kept(go_lines()) == list(vectors("go-allocate"))


def test_the_broker_allocates_and_answers_as_written_down() -> None:
    pops, asked = broker_lines()
    assert kept(pops) == list(vectors("pop-allocate"))
    assert kept(asked) == list(vectors("query-assignment"))
