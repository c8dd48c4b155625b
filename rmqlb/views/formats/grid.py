"""Tables without frames, for pipes and for markdown: tabulate draws them.

At import, tabulate looks its own version up in the metadata of the installed packages, which takes as long as a
quarter of a plan, and it knows wide letters only where wcwidth happens to be installed. Neither is wanted: it is loaded
with stand-ins for both, and measures with our `width`, so that a table is the same wherever it is drawn.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from types import ModuleType

from rmqlb.views.formats.text import width


def plain_table(titles: Sequence[str], rows: Sequence[Sequence[str]], rights: Sequence[bool]) -> str:
    """Columns two blanks apart below a line of dashes; `rights` are those whose cells stand to the right."""
    return _drawn("simple", titles, rows, rights)


def markdown_table(titles: Sequence[str], rows: Sequence[Sequence[str]], rights: Sequence[bool]) -> str:
    """A table of GitHub-flavoured markdown."""
    return _drawn("github", titles, rows, rights)


def _drawn(form: str, titles: Sequence[str], rows: Sequence[Sequence[str]], rights: Sequence[bool]) -> str:
    align = ["right" if right else "left" for right in rights] if rows else None
    drawn: str = _tabulate().tabulate(rows, headers=titles, tablefmt=form, disable_numparse=True, colalign=align)
    return drawn


@cache
def _tabulate() -> ModuleType:
    metadata, letters = ModuleType("importlib.metadata"), ModuleType("wcwidth")
    vars(metadata).update(version=lambda _: "", PackageNotFoundError=ModuleNotFoundError)
    vars(letters).update(wcswidth=width)
    with _instead({each.__name__: each for each in (metadata, letters)}):
        import tabulate
    vars(tabulate).update(wcwidth=letters, WIDE_CHARS_MODE=True)  # where somebody else had loaded it before
    return tabulate


@contextmanager
def _instead(modules: Mapping[str, ModuleType]) -> Iterator[None]:
    """These modules are loaded, and no others of their names, until the end."""
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
