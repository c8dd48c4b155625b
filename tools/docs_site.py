"""What mkdocs does beyond `mkdocs.yml`: it makes the reference's pages, and adapts links that leave the site.

A hook of mkdocs (https://www.mkdocs.org/user-guide/configuration/#hooks), loaded by its path.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

# mkdocs does not look for modules in the folder of its configuration; what is installed may be another checkout.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.manual.files import reference_pages
from tools.manual.markdown import file_of
from tools.manual.reference import FOLDER

_LINK = re.compile(r"\[([^]]+)\]\((?!https?:)([^)#\s]+)[^)]*\)")
_MAN_PAGE = re.compile(r"\.\./man/man\d/([\w-]+)\.(\d)")
_FIRST = ("index.md", "rmqlb.md")


def on_files(files: Any, *, config: Any) -> Any:
    """Add the reference's pages, and list them where `nav` has their folder."""
    from mkdocs.structure.files import File

    pages = reference_pages()
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    for entry in config["nav"]:
        for title, place in entry.items():
            if place == f"{FOLDER}/":
                entry[title] = contents(pages, FOLDER)
    return files


def contents(pages: Collection[str], folder: str) -> list[Any]:
    """A folder of the site for `nav`: its pages in order, then each folder below it with its own."""
    here = sorted(
        (page for page in pages if posixpath.dirname(page) == folder),
        key=lambda page: (posixpath.basename(page) not in _FIRST, page),
    )
    below = {posixpath.dirname(page) for page in pages if posixpath.dirname(posixpath.dirname(page)) == folder}
    return [*here, *({posixpath.basename(each).upper(): contents(pages, each)} for each in sorted(below))]


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Link a manual page to its page of the reference, and name any other file that is not on the site."""
    folder = posixpath.dirname(page.file.src_uri)

    def shown(link: re.Match[str]) -> str:
        place = posixpath.normpath(posixpath.join(folder, link[2]))
        if manual := _MAN_PAGE.fullmatch(place):
            there = f"{FOLDER}/{file_of(manual[1], int(manual[2]))}"
            return f"[{link[1]}]({posixpath.relpath(there, folder or '.')})"
        return f"{link[1]} (`{place.removeprefix('../')}`)" if place.startswith("../") else link[0]

    return _LINK.sub(shown, markdown)
