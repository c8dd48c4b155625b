"""Writing the manual anew into a folder that others use too."""

from __future__ import annotations

from pathlib import Path

from tools.manual.__main__ import write
from tools.manual.files import all_files


def test_pages_of_commands_that_are_gone_go_and_pages_of_others_stay(tmp_path: Path) -> None:
    gone, other = tmp_path / "man/man1/rmqlb-gone.1", tmp_path / "man/man1/other.1"
    gone.parent.mkdir(parents=True)
    gone.write_text("")
    other.write_text("")
    write(tmp_path)
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == {
        *all_files(),
        "man/man1/other.1",
    }
