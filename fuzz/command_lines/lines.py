"""A random command line about a random cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from random import Random

from msgspec import Struct

from fuzz.command_lines.clusters import Cluster, make_cluster
from fuzz.command_lines.values import NEEDS, PLACEHOLDER, Setting, maker_of
from rmqlb.cli.help_text import known_values
from tools.manual.tree import CommandPage, OptionPage, command_tree

Piece = tuple[str, ...]
"""Words of the command line that belong together."""

NOT_RUN = frozenset({"pipeline", "completion", "options"})
"""Commands that start Spark, or only print a script, and have tests of their own."""
_OFTEN = {
    **dict.fromkeys(("plan-rebalance",), 6),
    **dict.fromkeys(("simulate-rebalance", "simulate-send"), 5),
    **dict.fromkeys(("size-group", "show-owners", "check"), 3),
    **dict.fromkeys(("simulate-receive", "select-queue", "plan-topic", "show-groups", "show-consumers"), 2),
    **dict.fromkeys(("show-route", "fetch-routes", "diagnose", "diff"), 2),
    "plan-rollout": 1,
}
"""Command → how often; the others seldom."""
PAGES = ("--help", "--print-policy")
"""Options that print a page, whatever else there is on the line."""
_SELDOM = (*PAGES, "--debug", "--watch", "--every", "--samples", "--to", "--redact-map")
_CONFIGURED = "context: two\ncontexts:\n  one: {source: 'rocketmq://127.0.0.1:1'}\n  two: {source: /nowhere.json}\n"


class Case(Struct, frozen=True):
    """A command line and all that it depends on; equal names make equal cases."""

    name: str  # SEED/NUMBER
    command: str  # as typed without rmqlb
    pieces: tuple[Piece, ...]  # the words behind the command
    made: Cluster
    columns: int  # of the terminal
    group: str | None  # the group that the line is about
    topic: str | None

    @property
    def words(self) -> tuple[str, ...]:
        """The command line without the program."""
        return (*self.command.split(), *flat(self.pieces))

    @property
    def stdin(self) -> bytes:
        """The content of the pipe, for `-s -`."""
        return self.made.files[self.made.file] if "-" in self.words else b""

    def has(self, *options: str) -> bool:
        return any(piece[0].partition("=")[0] in options for piece in self.pieces)

    def value(self, option: str) -> str | None:
        """The value of an option, the last where there are several."""
        found = None
        for piece in self.pieces:
            name, given, value = piece[0].partition("=")
            if name == option:
                found = value if given else piece[-1]
        return found

    def without(self, *options: str) -> tuple[Piece, ...]:
        return tuple(piece for piece in self.pieces if piece[0].partition("=")[0] not in options)

    @property
    def format(self) -> str:
        """The format of stdout."""
        if self.has("--watch"):
            return "jsonl"
        # Without a name `schema` prints a list, and no schema.
        is_json = self.command == "fetch-routes" or (
            self.command == "schema" and any(not piece[0].startswith("-") for piece in self.pieces)
        )
        return self.value("--output") or ("json" if is_json else "plain")

    @property
    def shows_no_result(self) -> bool:
        """Stdout has a page or a picture instead."""
        return self.has(*PAGES) or "-" in (self.value("--svg"), self.value("--html"))


def flat(pieces: Sequence[Piece]) -> tuple[str, ...]:
    return tuple(word for piece in pieces for word in piece)


def make_case(seed: int, number: int) -> Case:
    dice = Random(f"{seed}/{number}")
    made = make_cluster(dice)
    command = dice.choices(_commands(), [_OFTEN.get(each.path[0], 0.3) for each in _commands()])[0]
    group = dice.choice(list(made.groups)) if made.groups and dice.random() < 0.95 else None
    topic = dice.choice(made.topics) if made.topics and dice.random() < 0.95 else None
    at = Setting(dice, made, group, topic, " ".join(command.path))
    if command.path[0] in ("context", "config") and dice.random() < 0.8:
        at.file("config/rmqlb/config.yaml", _CONFIGURED)
    pieces = [*_needed(at, command)]
    for _ in range(dice.choice((0, 1, 1, 2, 2, 3, 4, 6))):
        pieces += _one_more(at, command, pieces)
    columns = dice.choice((20, 24, 30, 40, 60, 80, 80, 100, 120, 132, 160, 220, dice.randrange(20, 221)))
    return Case(f"{seed}/{number}", at.command, tuple(pieces), made, columns, group, topic)


@cache
def _commands() -> Sequence[CommandPage]:
    return [each for each in command_tree().all() if not each.commands and each.path[0] not in NOT_RUN]


def covered_options() -> Iterator[tuple[str, OptionPage, bool]]:
    """Each option and argument of each command that is run, and whether something makes values of it."""
    for command in _commands():
        for option in (*command.arguments, *command.options):
            yield command.typed, option, option.metavar is None or maker_of(command, option) is not None


def _needed(at: Setting, command: CommandPage) -> Iterator[Piece]:
    """The options without which the line means nothing."""
    names = {option.names[-1]: option for option in command.options}
    for option in (*command.arguments, *command.options):
        long = option.names[-1] if option.names else ""
        is_needed = option.required or (long == "--topic" and "--fail" in names)
        often = 1.0 if is_needed else 0.97 if long == "--source" else 0.0
        if (not long and at.dice.random() < 0.9) or at.dice.random() < often:
            if long == "--topic" and at.about_topic:
                yield "--topic", at.about_topic
            else:
                yield from _given(at, command, option)
    if "--group" in names and names["--group"].metavar in ("GROUP", "GROUP|GLOB"):
        yield from _about_a_group(at)
    elif not at.made.is_snapshot and "--topic" in names and not names["--topic"].required:
        yield "--topic", at.about_topic or "Topic"
    if "--event" in names:
        for _ in range(at.dice.choice((1, 1, 1, 2, 3))):
            yield from _given(at, command, names["--event"])
    if "--trials" in names and at.command == "plan-rollout":
        yield "--trials", "2"
    if at.dice.random() < 0.85:
        forms = known_values(at.command, "--output", "FORMAT", names["--output"].help)
        yield "--output", at.mostly((*("json", "json", "table") * ("table" in forms), *forms), "odd")


def _about_a_group(at: Setting) -> Iterator[Piece]:
    if at.about_group is not None:
        yield "--group", at.about_group
    elif at.about_topic is not None:
        yield "--topic", at.about_topic
        yield "--consumers", at.one("a,b,c", "3", PLACEHOLDER)


def _one_more(at: Setting, command: CommandPage, pieces: Sequence[Piece]) -> Iterator[Piece]:
    """An option more, with the options that it needs to mean something."""
    there = {piece[0].partition("=")[0] for piece in pieces}
    seldom = ("Connection", "Login", "TLS")
    weights = [0.1 if each.panel in seldom or each.names[-1] in _SELDOM else 1.0 for each in command.options]
    option = at.dice.choices(command.options, weights)[0]
    name = option.names[-1]
    once = name in ("--source", "--output", "--policy") or (not option.repeatable and name in there)
    if once and at.dice.random() > 0.02:
        return
    yield from _given(at, command, option)
    has = {each.names[-1] for each in command.options}
    for needed in NEEDS.get(name, ()):
        if needed[0] in has and needed[0] not in there and at.dice.random() < 0.95:
            yield needed


def _given(at: Setting, command: CommandPage, option: OptionPage) -> Iterator[Piece]:
    """The option with a value, if it takes one."""
    if option.names[-1:] == ("--watch",):
        yield ("--watch", "--every", "1s", "--samples", at.one("1", "2"))
        return
    if option.metavar is None:
        yield (at.one(*option.negations, option.names[-1]),)
        return
    maker = maker_of(command, option)
    if maker is None:  # a test asks for one
        return
    value = maker(at)
    if not option.names:
        yield ("--", value) if value.startswith("-") else (value,)
    elif value.startswith("-") and value != "-":
        yield (f"{option.names[-1]}={value}",)
    else:
        yield (option.names[-1], value)
