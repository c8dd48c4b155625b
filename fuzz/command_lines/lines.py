"""A random command line about a random cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from random import Random

from msgspec import Struct

from fuzz.command_lines.options import NEEDS, PLACEHOLDER, Setting, maker_of
from fuzz.command_lines.snapshots import Made, make_cluster
from rmqlb.cli.help_text import known_values
from tools.manual.tree import CommandPage, OptionPage, command_tree

Piece = tuple[str, ...]
"""Words of the command line that belong together."""

ASIDE = frozenset({"pipeline", "completion"})
"""Commands that are not run here: they start Spark and have tests of their own."""
_OFTEN = {
    "plan-rebalance": 6,
    "simulate-rebalance": 5,
    "simulate-send": 5,
    "simulate-receive": 2,
    "select-queue": 2,
    "size-group": 3,
    "plan-topic": 2,
    "show-owners": 3,
    "check": 3,
    "show-groups": 2,
    "show-consumers": 2,
    "show-route": 2,
    "fetch-routes": 2,
    "diagnose": 2,
    "diff": 2,
    "plan-rollout": 1,
}
"""Command → how often; the others once."""
PAGES = ("--help", "--print-policy")
"""Options that print a page, whatever else there is on the line."""
_SELDOM = (*PAGES, "--debug", "--watch", "--rounds", "--to", "--redact-map")


_CONFIGURED = "context: two\ncontexts:\n  one: {source: 'rocketmq://127.0.0.1:1'}\n  two: {source: /nowhere.json}\n"


class Case(Struct, frozen=True):
    """A command line and all that it depends on.

    Attributes:
        name: SEED/NUMBER, from which it can be made anew.
        command: its command, as typed without rmqlb.
        pieces: what follows the command.
        made: the cluster, and files.
        columns: how wide the terminal is.
        group: the group that it is about, or None.
        topic: the topic that it is about, or None.
    """

    name: str
    command: str
    pieces: tuple[Piece, ...]
    made: Made
    columns: int
    group: str | None
    topic: str | None

    @property
    def words(self) -> tuple[str, ...]:
        """The command line without the program."""
        return (*self.command.split(), *(word for piece in self.pieces for word in piece))

    @property
    def stdin(self) -> bytes:
        """What comes through the pipe, for `-s -`."""
        return self.made.files[self.made.cluster] if "-" in self.words else b""

    def has(self, *options: str) -> bool:
        """One of the options is on the line."""
        return any(piece[0].partition("=")[0] in options for piece in self.pieces)

    @property
    def is_page(self) -> bool:
        """What is printed is no result."""
        return self.has(*PAGES)

    def value(self, option: str) -> str | None:
        """Its value, the last where there are several."""
        found = None
        for piece in self.pieces:
            name, given, value = piece[0].partition("=")
            if name == option:
                found = value if given else piece[-1]
        return found

    def without(self, *options: str) -> tuple[Piece, ...]:
        """The pieces but for these options."""
        return tuple(piece for piece in self.pieces if piece[0].partition("=")[0] not in options)

    @property
    def format(self) -> str:
        """What stdout is in."""
        if self.has("--watch"):
            return "jsonl"
        # Without a name there is a list of schemas, and no schema.
        is_json = self.command == "fetch-routes" or (
            self.command == "schema" and any(not piece[0].startswith("-") for piece in self.pieces)
        )
        return self.value("--output") or ("json" if is_json else "plain")


def make_case(seed: int, number: int) -> Case:
    """The case of this number; equal numbers give equal cases."""
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
    return [each for each in command_tree().all() if not each.commands and each.path[0] not in ASIDE]


def covered_options() -> Iterator[tuple[str, OptionPage, bool]]:
    """Each option and argument of each command that is run, and whether something makes values of it."""
    for command in _commands():
        for option in (*command.arguments, *command.options):
            yield command.typed, option, option.metavar is None or maker_of(command, option) is not None


def _needed(at: Setting, command: CommandPage) -> Iterator[Piece]:
    """What makes the line mean something."""
    names = {option.names[-1]: option for option in command.options}
    for option in (*command.arguments, *command.options):
        is_needed = option.required or (option.names[-1:] == ("--topic",) and "--fail" in names)
        often = 1.0 if is_needed else 0.97 if option.names[-1:] == ("--source",) else 0.0
        if (not option.names and at.dice.random() < 0.9) or at.dice.random() < often:
            if option.names[-1:] == ("--topic",) and at.topic:
                yield "--topic", at.topic
            else:
                yield from _given(at, command, option)
    if names.get("--group") and names["--group"].metavar in ("GROUP", "GROUP|GLOB"):
        yield from _about_a_group(at)
    elif not at.made.is_snapshot and "--topic" in names and not names["--topic"].required:
        yield "--topic", at.topic or "Topic"
    if "--event" in names:
        for _ in range(at.dice.choice((1, 1, 1, 2, 3))):
            yield from _given(at, command, names["--event"])
    if "--trials" in names and at.command == "plan-rollout":
        yield "--trials", "2"
    if at.dice.random() < 0.85:
        forms = known_values(at.command, "--output", "FORMAT", names["--output"].help)
        shown = at.one(*("json", "json", "table") * ("table" in forms), *forms)
        yield "--output", at.seldom("odd", shown)


def _about_a_group(at: Setting) -> Iterator[Piece]:
    if at.group is not None:
        yield "--group", at.group
    elif at.topic is not None:
        yield "--topic", at.topic
        yield "--consumers", at.one("a,b,c", "3", PLACEHOLDER)


def _one_more(at: Setting, command: CommandPage, pieces: Sequence[Piece]) -> Iterator[Piece]:
    """An option more, with what it needs to mean something."""
    there = {piece[0].partition("=")[0] for piece in pieces}
    option = at.dice.choices(command.options, [_weight(option) for option in command.options])[0]
    name = option.names[-1]
    once = name in ("--source", "--output", "--policy") or (not option.repeatable and name in there)
    if once and at.dice.random() > 0.02:
        return
    yield from _given(at, command, option)
    has = {each.names[-1] for each in command.options}
    for needed in NEEDS.get(name, ()):
        if needed[0] in has and needed[0] not in there and at.dice.random() < 0.95:
            yield needed


def _weight(option: OptionPage) -> float:
    return 0.1 if option.panel.startswith("Source") or option.names[-1] in _SELDOM else 1.0


def _given(at: Setting, command: CommandPage, option: OptionPage) -> Iterator[Piece]:
    """The option with a value, if it takes one; what only goes with another brings that along."""
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
    elif option.names[-1] == "--watch":
        yield ("--watch", value, "--rounds", at.one("1", "2"))
    else:
        yield (option.names[-1], value)
