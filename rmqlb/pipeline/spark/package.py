"""The code of rmqlb as a file that can be sent to Spark's executors."""

from __future__ import annotations

import os
from pathlib import Path
from zipfile import ZipFile

import rmqlb


def package_zip(folder: str) -> str | None:
    """Write a file that Python can import from; None when rmqlb is itself in one: whoever made that sends it too."""
    package = Path(rmqlb.__file__).parent
    if not package.is_dir():
        return None
    path = os.path.join(folder, "rmqlb.zip")
    with ZipFile(path, "w") as archive:
        for source in sorted(package.rglob("*.py")):
            archive.write(source, source.relative_to(package.parent))
    return path
