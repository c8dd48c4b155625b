"""`python -m tools.manual [DIR]`: write man/ and completions/ below the current folder."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.manual.files import all_files


def write(root: Path) -> None:
    """Write all files, and remove pages of commands that are gone; what is not rmqlb's is left alone."""
    wanted = {root / path: text for path, text in all_files().items()}
    for folder in ("man", "completions"):
        for path in (root / folder).rglob("rmqlb*"):
            if path.is_file() and path not in wanted:
                path.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
