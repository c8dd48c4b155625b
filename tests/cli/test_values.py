"""What stands in the files and on the stdin that options name."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from rmqlb.verbs.parse import members


@pytest.mark.parametrize("from_stdin", [False, True])
def test_a_list_of_members_may_begin_with_a_byte_order_mark(
    from_stdin: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As part of the first id the mark would sort it behind all others, and give it other queues."""
    text = "\ufeffc1\r\n# a comment\r\n\r\n c2 \nd\u2028e"
    path = tmp_path / "ids"
    path.write_bytes(text.encode())
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert members("@-" if from_stdin else f"@{path}") == ("c1", "c2", "d\u2028e")
