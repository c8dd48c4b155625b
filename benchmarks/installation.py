"""rmqlb as its users have it: installed with its dependencies, byte code included, apart from this checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Installation:
    """A virtual environment with rmqlb in it."""

    folder: Path

    @property
    def python(self) -> str:
        """The interpreter that rmqlb and its peers run in."""
        return str(self.folder / "bin" / "python")

    @property
    def rmqlb(self) -> str:
        """The installed command."""
        return str(self.folder / "bin" / "rmqlb")


@contextmanager
def installation(existing: Path | None) -> Iterator[Installation]:
    """The environment that was given, or a fresh one with this checkout installed for the length of a `with` block."""
    if existing is not None:
        yield _compiled(Installation(existing.resolve()))
        return
    with tempfile.TemporaryDirectory() as scratch:
        fresh = Installation(Path(scratch, "venv"))
        _run([sys.executable, "-m", "venv", str(fresh.folder)])
        _run([fresh.python, "-m", "pip", "install", "-q", "--disable-pip-version-check", str(ROOT)])
        yield _compiled(fresh)


def _compiled(installed: Installation) -> Installation:
    """Both sides of a comparison load byte code; without it each start would compile whatever it imports."""
    site = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = _run([installed.python, "-c", site]).strip()
    _run([installed.python, "-m", "compileall", "-q", packages])
    return installed


def _run(command: list[str]) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    return done.stdout
