"""What can stand as the value of an option: what completion offers after it.

A metavar says it: one in small letters (`on|off`) is its own list, the tables below say what the others stand for, and
nothing is offered for what only the user knows (a number, a time, a name that is not there yet). A test refuses a
metavar that none of them knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from rmqlb.cli.common.sections import sections_of
from rmqlb.cli.help_text import figures_of
from rmqlb.cli.results import known_names
from rmqlb.engine.allocate.rules import NAMES
from rmqlb.engine.send.profile import PROFILES
from rmqlb.engine.send.sdks.profile import CLIENTS
from rmqlb.model.finding import SEVERITIES
from rmqlb.model.group_scenario import TIMER_NAMES
from rmqlb.verbs.plan_topic import MESSAGE_TYPES
from rmqlb.verbs.rebalance_events import VERBS
from rmqlb.verbs.strategy_options import KEYS
from rmqlb.verbs.strategy_options import OPTION as STRATEGY_OPTION
from rmqlb.views.explanations import explanations
from rmqlb.views.report import FORMATS
from tools.manual.tree import CommandPage, OptionPage


class Value(Struct, frozen=True):
    """What is offered."""

    # words (one of them is all), beginnings (more follows without a blank), files, folders, nothing, or the names of
    # contexts, which the shell looks up
    kind: Literal["words", "beginnings", "files", "folders", "contexts", "nothing"]
    words: tuple[str, ...] = ()  # of words and beginnings


NOTHING = Value("nothing")
_FORMATS: Mapping[str, tuple[str, ...]] = {
    "fetch-routes": ("json", "yaml", "jsonl"),
    **dict.fromkeys(
        (
            *("show-consumers", "show-route", "diagnose", "diff", "plan-rebalance", "simulate-send", "record"),
            "select-queue",
        ),
        (*FORMATS, "jsonl"),
    ),
    **dict.fromkeys(("show-groups", "show-owners", "diagnose"), (*FORMATS, "jsonl", "prometheus")),
    "check": (*FORMATS, "junit", "sarif", "prometheus"),
    **dict.fromkeys((f"pipeline {name}" for name in ("run", "ingest", "judge", "report")), (*FORMATS, "prometheus")),
}
"""Those that are not the common ones."""
_BY_METAVAR: Mapping[str, Value] = {
    "STRATEGY": Value("words", NAMES),
    "SEVERITY": Value("words", SEVERITIES),
    "COMMAND": Value("words", tuple(name for name in known_names() if " " not in name)),
    "SDK[@VERSION]": Value("words", CLIENTS),
    "CODE": Value("words", tuple(explanations())),
    "STRATEGY|all": Value("words", (*NAMES, "all")),
    "VERSION": Value("words", tuple(".".join(map(str, profile.since)) for profile in PROFILES)),
    "'VERB WHO@TIME'": Value("beginnings", tuple(f"{verb} " for verb in VERBS)),
    "NAME=TIME": Value("beginnings", tuple(f"{name}=" for name in TIMER_NAMES)),
    "URL": Value("words", ("local[*]", "spark://", "yarn", "k8s://")),
    "TYPE": Value("words", MESSAGE_TYPES),
    "DIR": Value("folders"),
    "DIR|URI": Value("folders"),
    **dict.fromkeys(("A", "B", "FILE", "FILE|-", "URL|FILE", "URL|FILE|-", "PATH", "PATH…"), Value("files")),
}
_BY_NAME: Mapping[str, Value] = {
    "--context": Value("contexts"),
    "--cluster": NOTHING,
    "--tls-name": NOTHING,
    "--remove-broker": NOTHING,
    "--remove-master": NOTHING,
    "--drain-broker": NOTHING,
    "--topic": NOTHING,
    "--group": NOTHING,
    "--orderly": NOTHING,
}
"""Of options whose metavar stands for several things."""
_CONTEXT_COMMANDS = ("context use", "context show", "context remove")
ONLY_THE_USER_KNOWS = frozenset(
    {
        *(
            "N",
            "X",
            "K",
            "P",
            "R",
            "TIME",
            "TIME,…",
            "N,…",
            "MS,MS,…",
            "SIZE",
            "YYYY-MM-DD",
            "DAYS",
            "USER",
            "KEY",
            "SHARE",
            "N..M",
            "CLUSTER",
            "GROUP",
            "TOPIC",
        ),
        *(
            "ID,ID,…",
            "IDS|@FILE|N",
            "N|ID",
            "OLD=NEW",
            "FROM=TO",
            "HOST[:8080]",
            "KEY=VALUE",
            "[BROKER=]N",
            "GLOB=ZONE",
            "BROKER",
        ),
        *("[BROKER=]SPEC", "[TOPIC=]R", "BROKER:QUEUE", "BROKER[@FROM-TO][:KIND]", "NAME[:READ[:WRITE]]"),
        *("NAME:QUEUES", "[BROKER[:QUEUE]=]R", "N@TIME"),
    }
)


def value_of(command: CommandPage, option: OptionPage) -> Value:
    """What is offered as the value of an option, or as an argument, of a command."""
    known = known_value(command, option)
    return NOTHING if known is None else known


def known_value(command: CommandPage, option: OptionPage) -> Value | None:
    """As `value_of`; None when nothing says what the metavar stands for."""
    path, metavar = " ".join(command.path), option.metavar or ""
    long = option.names[-1] if option.names else ""
    if long == "--output":
        return Value("words", _FORMATS.get(path, FORMATS))
    if long == "--section":
        return Value("words", sections_of(path))
    if long == STRATEGY_OPTION:
        return Value("beginnings", tuple(f"{key}=" for key in KEYS))
    if metavar == "CONDITION":
        return Value("beginnings", figures_of(path))
    if long in _BY_NAME:
        return _BY_NAME[long]
    if metavar == "NAME":
        return Value("contexts") if path in _CONTEXT_COMMANDS else NOTHING if command.path[:1] == ("context",) else None
    if metavar in _BY_METAVAR:
        return _BY_METAVAR[metavar]
    return NOTHING if metavar in ONLY_THE_USER_KNOWS else _alternatives(metavar)


def _alternatives(metavar: str) -> Value | None:
    """What is in small letters stands for itself, up to where capitals say that something follows."""
    parts = [re.match(r"[a-z0-9.:-]*", part) for part in metavar.split("|")]
    words = [match[0] for match in parts if match and match[0]]
    if not words:
        return None
    return Value("beginnings" if any(word.endswith(":") for word in words) else "words", tuple(words))
