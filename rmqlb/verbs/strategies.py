"""Strategies and selectors as options name them: by RocketMQ's names, or as FILE.py:NAME, whose code is run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rmqlb.engine.allocate import full_name, names_inside
from rmqlb.engine.allocate.rules import WRAPPERS
from rmqlb.engine.allocate.strategy import DEFAULT_VIRTUAL_NODES, Settings, with_function
from rmqlb.errors import UsageError
from rmqlb.model.snapshot import suggestion
from rmqlb.verbs.parse import texts_of
from rmqlb.verbs.strategy_options import OPTION, must_apply, parse_strategy_options, pins, virtual_nodes, zones

if TYPE_CHECKING:
    from rmqlb.engine.user_functions import FromFile, Kind

_FILE = r"(?s)(?P<path>.+\.py)(?::(?P<name>.*))?"
_LONGEST_FILE = 1024 * 1024


class Strategies:
    """The strategies that a command's options name, and what is known of them before any cluster is."""

    def __init__(self, options: str | Sequence[str] | None = None) -> None:
        """`options` are those of `--strategy-option`."""
        self.settings = Settings()
        self.named: list[str] = []
        self.given = parse_strategy_options(texts_of(options or ()))
        (inner,) = self.given.get("inner", ("AVG",))
        innermost = self._name(inner, f"{OPTION} inner=")
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
            from rmqlb.engine.user_functions import STRATEGY

            name, self.settings = with_function(from_file(text, option, STRATEGY), self.settings)
            return name
        full_name(text.upper(), self.settings)
        return text.upper()

    @property
    def sources(self) -> tuple[str, ...]:
        """The texts of all files that were named, which are run."""
        files = (getattr(function, "source", None) for function in self.settings.custom.values())
        return tuple(text for text in files if isinstance(text, str))

    def must_apply(self, *, reported: bool) -> None:
        """Refuse options at which no strategy looks; `reported`: consumers may run others than those named."""
        if self.given:
            inside = [each for name in self.named for each in names_inside(name, self.settings)]
            must_apply(self.given, inside, reported=reported)

    def settings_for(self, topics: Sequence[str], group: str | None = None) -> Settings:
        """The settings; `topics` are those that a CONFIG entry without a topic stands for."""
        given, config = self.given, None
        for path in given.get("queues", ()):
            from rmqlb.sources.user_files.config_file import read_config_lists

            config = read_config_lists(path, topics, f"{OPTION} queues={path}")
        ring = virtual_nodes(given)
        return replace(
            self.settings,
            virtual_nodes=DEFAULT_VIRTUAL_NODES if ring is None else ring,
            consumer_idcs=frozenset(given["idc"]) if "idc" in given else None,
            config=config,
            broker_zones=zones(given, "broker-zone"),
            client_zones=zones(given, "client-zone"),
            hosts=frozenset(given["host"]) if "host" in given else None,
            pins=self._pins(topics),
            group=group or "",
        )

    def _pins(self, topics: Sequence[str]) -> dict[str, frozenset[str]]:
        found = pins(self.given)
        unknown = [topic for topic in found if topic not in topics]
        if unknown and "*" not in topics:  # which is every topic, of a fleet
            hint = suggestion("topics", unknown[0], topics)
            raise UsageError(f"{OPTION} pin={unknown[0]}=…: none of the topics looked at is {unknown[0]}", hint=hint)
        return found

    def optional(self, text: str | None, option: str = "--strategy") -> str | None:
        return None if text is None else self.name(text, option)


def reported_strategies(options: str | Sequence[str]) -> Strategies:
    """The settings of whatever strategies consumers report (raises UsageError)."""
    strategies = Strategies(options)
    strategies.must_apply(reported=True)
    return strategies


def is_file(text: str) -> bool:
    """It is meant as FILE.py:NAME."""
    return ".py" in text and re.fullmatch(_FILE, text) is not None


def from_file(text: str, option: str, kind: Kind) -> FromFile:
    """FILE.py:NAME: the function of the file, whose code is run."""
    from rmqlb.engine.user_functions import FromFile
    from rmqlb.sources.user_files.send_inputs import read_text

    match = re.fullmatch(_FILE, text)
    if match is None or not match["name"]:
        typed = option if option.endswith("=") else f"{option} "
        raise UsageError(f"{text}: which function of it?", prefix=typed, hint=f"write {typed}FILE.py:NAME")
    source = read_text(match["path"], option, _LONGEST_FILE, "a file with a function is at most 1 MB long")
    return FromFile(source, match["path"], match["name"], kind)
