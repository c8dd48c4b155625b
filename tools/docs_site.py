"""What mkdocs is told beyond `mkdocs.yml`: the reference's pages, and links that leave the site.

A hook of mkdocs (https://www.mkdocs.org/user-guide/configuration/#hooks), loaded by its path.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"\[([^]]+)\]\((?!https?:)([^)#\s]+)[^)]*\)")
_FIRST = ("index.md", "rmqlb.md")
_REFERENCE = "reference"


def on_config(config: Any) -> Any:
    """List the reference's pages, which change with the commands, where `nav` has its folder."""
    for entry in config["nav"]:
        for title, place in entry.items():
            if place == f"{_REFERENCE}/":
                entry[title] = _pages(Path(config["docs_dir"]) / _REFERENCE, _REFERENCE)
    return config


def _pages(folder: Path, prefix: str) -> list[Any]:
    found = sorted(folder.glob("*.md"), key=lambda path: (path.name not in _FIRST, path.name))
    below = sorted(path for path in folder.iterdir() if path.is_dir())
    return [
        *(f"{prefix}/{path.name}" for path in found),
        *({path.name.upper(): _pages(path, f"{prefix}/{path.name}")} for path in below),
    ]


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Name a file of the repository that is no page, instead of a link that leads nowhere."""

    def shown(link: re.Match[str]) -> str:
        place = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), link[2]))
        return f"{link[1]} (`{place.removeprefix('../')}`)" if place.startswith("../") else link[0]

    return _LINK.sub(shown, markdown)
