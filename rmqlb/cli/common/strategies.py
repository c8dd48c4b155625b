"""Strategies and selectors as options name them: by RocketMQ's names, or as FILE.py:NAME, whose code is run."""

from __future__ import annotations

import re

from rmqlb.engine.allocate import full_name
from rmqlb.engine.allocate.custom import with_function
from rmqlb.engine.allocate.rules import WRAPPERS
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.user_functions import STRATEGY, FromFile, Kind
from rmqlb.errors import UsageError

_FILE = re.compile(r"(?P<path>.+\.py)(?::(?P<name>.*))?", re.DOTALL)
_LONGEST_FILE = 1024 * 1024


class Strategies:
    """The strategies that a command's options name, and what is known of them before any cluster is."""

    def __init__(self, inner: str) -> None:
        self.settings = Settings()
        self.named: list[str] = []
        innermost = self.name(inner, "--inner")
        self.settings = Settings(inner=innermost, custom=self.settings.custom)

    def name(self, text: str, option: str = "--strategy") -> str:
        name = self._name(text, option)
        self.named.append(name)
        return name

    def _name(self, text: str, option: str) -> str:
        outer, dash, rest = text.partition("-")
        if dash and outer.upper() in WRAPPERS and is_file(text):
            return f"{outer.upper()}-{self._name(rest, option)}"
        if is_file(text):
            name, self.settings = with_function(from_file(text, option, STRATEGY), self.settings)
            return name
        full_name(text.upper(), self.settings)
        return text.upper()

    @property
    def sources(self) -> tuple[str, ...]:
        """The texts of all files that were named, which are run."""
        return tuple(function.source for function in self.settings.custom.values() if isinstance(function, FromFile))

    def optional(self, text: str | None, option: str = "--strategy") -> str | None:
        return None if text is None else self.name(text, option)


def is_file(text: str) -> bool:
    """It is meant as FILE.py:NAME."""
    return _FILE.fullmatch(text) is not None


def from_file(text: str, option: str, kind: Kind) -> FromFile:
    """FILE.py:NAME: the function of the file, whose code is run."""
    from rmqlb.sources.user_files.send_inputs import read_text

    match = _FILE.fullmatch(text)
    if match is None or not match["name"]:
        raise UsageError(f"{text}: which function of it?", prefix=f"{option} ", hint=f"write {option} FILE.py:NAME")
    source = read_text(match["path"], option, _LONGEST_FILE, "a file with a function is at most 1 MB long")
    return FromFile(source, match["path"], match["name"], kind)
