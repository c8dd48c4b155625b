"""No command is left out of the tests that walk all of them."""

from __future__ import annotations

from tests.hardening import walk


def test_every_command_is_walked_or_said_to_read_no_snapshot() -> None:
    assert set(walk.commands()) == {*walk.READING, *walk.ON_TWO_SNAPSHOTS, *walk.WITHOUT_A_SNAPSHOT}, (
        "give it a line in tests/hardening/walk.py"
    )
