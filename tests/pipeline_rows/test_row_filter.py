"""`--only`, without Spark: what it takes; what it leaves is in `tests/pipeline/test_row_filter.py`."""

from __future__ import annotations

from datetime import date

import pytest

from rmqlb.errors import UsageError
from rmqlb.pipeline.row_filter import RowFilter, parse_row_filter
from tests.support.mismatches import every_case


def test_values_of_one_key_stand_beside_one_another() -> None:
    texts = ["cluster=a*", "group=g=1", "cluster=b", "topic=[ab]?", "date=2026-11-21"]
    assert parse_row_filter(texts) == RowFilter(("a*", "b"), ("g=1",), ("[ab]?",), (date(2026, 11, 21),))
    assert parse_row_filter([]) == RowFilter()


@every_case("text", ["", "cluster", "cluster=", "broker=a", "Cluster=a", "date=", "date=2026-02-30", "date=20261121"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"expected cluster=GLOB, group=GLOB, topic=GLOB or date=YYYY-MM-DD"):
        parse_row_filter([text])
