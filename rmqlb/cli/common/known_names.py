"""Names of topics and groups that completion offers: those of the sources that commands have read, kept in a file.

Rules of this file:
- `$XDG_CACHE_HOME/rmqlb/names`, else `~/.cache/rmqlb/names`: a line a name, kind TAB source TAB name, the source read
  last first. Lines, and not JSON, so that a shell reads them itself and starts no program.
- Completion never asks the network; it may offer what is no longer there.
- Folder and file are the user's alone (700, 600). What cannot be written is not written, in silence: it is a cache.
  With RMQLB_NO_CACHE set nothing is.
- A name that cannot be typed (a blank, a control or direction mark, absurd length) is left out.
"""

from __future__ import annotations

import os
from collections.abc import Set

from rmqlb.model.snapshot import ClusterSnapshot, Everything
from rmqlb.model.system_names import is_system_group, is_system_topic
from rmqlb.views.formats.text import visible

CACHE_IN_SHELL = """\
local cache=${HOME-}/.cache
    [[ ${XDG_CACHE_HOME-} == /* ]] && cache=$XDG_CACHE_HOME
    cache+=/rmqlb/names"""
"""`cache_file`, for bash and zsh."""
MOST_NAMES = 10_000
_LONGEST_NAME = 255
_LONGEST_FILE = 16 * 1024 * 1024
_STDIN = "-"

Line = tuple[str, str, str]
"""Kind (topic or group), source, name."""


def remember(snapshot: ClusterSnapshot, source: str, everything: Everything | None = None) -> None:
    """Keep the snapshot's names for completion.

    Args:
        source: as the user named it; what comes from stdin is not kept.
        everything: set when the snapshot is of a whole cluster: then names of before that are not in it are gone.
    """
    path = cache_file()
    where = snapshot.endpoint
    if path is None or source == _STDIN or not where.isprintable() or os.environ.get("RMQLB_NO_CACHE"):
        return
    text = _text(path)
    is_whole = everything is not None and not (everything.topics or everything.groups or everything.of_groups)
    seen = [
        *(("topic", where, name) for name in snapshot.routes if not is_system_topic(name) and _can_be_typed(name)),
        *(("group", where, name) for name in snapshot.groups if not is_system_group(name) and _can_be_typed(name)),
    ]
    if _has(text, where, {"\t".join(line) for line in seen}, is_whole=is_whole):
        return
    known = _lines(text)
    older = [] if is_whole else [line for line in known if line[1] == where]
    own = sorted(dict.fromkeys((*seen, *older)))
    lines = [*own, *(line for line in known if line[1] != where)][:MOST_NAMES]
    if lines != known:
        _write(path, lines)


def cache_file() -> str | None:
    """Where the names are, or would be; None when nothing says where."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        home = os.environ.get("HOME", "")
        if not os.path.isabs(home):
            return None
        base = os.path.join(home, ".cache")
    return os.path.join(base, "rmqlb", "names")


def _can_be_typed(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME and _is_clean(name)


def _is_clean(text: str) -> bool:
    return " " not in text and text.isprintable() and visible(text) == text


def _text(path: str) -> str:
    """What is there; nothing when it cannot be read."""
    if not os.path.isfile(path):  # a pipe would keep whoever opens it waiting
        return ""
    try:
        with open(path, encoding="utf-8", newline="\n") as file:
            return file.read(_LONGEST_FILE)
    except (OSError, ValueError):
        return ""


def _has(text: str, where: str, seen: Set[str], *, is_whole: bool) -> bool:
    """The file is already what it would become: found without a look at each of 10,000 names, which takes 10 ms."""
    mark = f"\t{where}\t"
    number, last = text.count(mark), text.rfind(mark)
    own = "\n" + text[: text.find("\n", last) + 1] if number else "\n"
    if own.count("\n") != number + 1 or (is_whole and len(seen) != number):
        return False
    return all(f"\n{line}\n" in own for line in seen) and _is_clean(own.replace("\t", "").replace("\n", ""))


def _lines(text: str) -> list[Line]:
    """The lines that are as they were written."""
    lines = [tuple(line.split("\t")) for line in text.split("\n")]
    return [
        line for line in lines if len(line) == 3 and all(line) and line[1].isprintable() and _can_be_typed(line[2])
    ][:MOST_NAMES]


def _write(path: str, lines: list[Line]) -> None:
    """A shell that reads meanwhile has the file of before or of after; where it cannot be written there is none."""
    from rmqlb.sources.atomic_file import make_private_folder, replace_file

    folder = os.path.dirname(path)
    text = "".join("\t".join(line) + "\n" for line in lines)
    try:
        make_private_folder(folder)
        replace_file(path, text, mode=0o600, durable=False)
    except OSError:
        return
