"""Tables without frames: each column is as wide as its widest cell."""

from __future__ import annotations

from rmqlb.views.formats.grid import markdown_table, plain_table

TITLES, RIGHTS = ("topic", "queues"), (False, True)
ROWS = [("订单", "12"), ("orders", "7")]


def test_a_plain_table_counts_wide_letters_as_two_columns() -> None:
    assert plain_table(TITLES, ROWS, RIGHTS).splitlines() == [
        "topic      queues",
        "-------  --------",
        "订单           12",
        "orders          7",
    ]


def test_a_table_of_markdown_has_bars_between_its_cells() -> None:
    assert markdown_table(TITLES, ROWS, RIGHTS).splitlines() == [
        "| topic   |   queues |",
        "|---------|----------|",
        "| 订单    |       12 |",
        "| orders  |        7 |",
    ]


def test_a_table_without_rows_has_its_titles() -> None:
    assert plain_table(TITLES, [], RIGHTS) == "topic    queues\n-------  --------"
