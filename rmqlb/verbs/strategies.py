"""Strategies as options name them, by RocketMQ's names or as FILE.py:NAME, and --strategy-option, their settings."""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate import full_name, names_inside
from rmqlb.engine.allocate.rules import JAVA_CLASSES, NAMES, PINNED, WITHOUT_SETTINGS, WRAPPERS
from rmqlb.engine.allocate.strategy import DEFAULT_VIRTUAL_NODES, Settings, with_function
from rmqlb.errors import UsageError, typed
from rmqlb.model.limits import MOST_VIRTUAL_NODES
from rmqlb.model.snapshot import suggestion
from rmqlb.verbs.amounts import count
from rmqlb.verbs.parse import must_differ, texts_of

if TYPE_CHECKING:
    from rmqlb.engine.arguments import FromFile, Kind


OPTION = "--strategy-option"
ALL = "all"
"""Stands for all strategies that need no settings, where strategies are compared."""
_FILE = r"(?s)(?P<path>.+\.py)(?::(?P<name>.*))?"
_LONGEST_FILE = 1024 * 1024


class OptionKey(Struct, frozen=True):
    metavar: str
    strategies: tuple[str, ...]  # those that use it
    repeatable: bool = False


KEYS: Mapping[str, OptionKey] = {
    "virtual-nodes": OptionKey("N", ("CONSISTENT_HASH",)),
    "idc": OptionKey("ROOM", ("MACHINE_ROOM",), repeatable=True),
    "queues": OptionKey("FILE", ("CONFIG",)),
    "inner": OptionKey("STRATEGY", tuple(WRAPPERS)),
    "broker-zone": OptionKey("GLOB=ZONE|REGEX", ("MACHINE_ROOM_NEARBY",), repeatable=True),
    "client-zone": OptionKey("GLOB=ZONE|REGEX", ("MACHINE_ROOM_NEARBY",), repeatable=True),
    "host": OptionKey("IP", PINNED, repeatable=True),
    "pin": OptionKey("TOPIC=IP,…", PINNED, repeatable=True),
}


class Strategies:
    """The strategies that a command's options name, and what is known of them before any cluster is."""

    def __init__(self, options: str | Sequence[str] | None = None) -> None:
        """Parse the values of `--strategy-option`; refuse (UsageError) all that can be wrong without a cluster."""
        self.named: list[str] = []
        self._given = _by_key(texts_of(options or ()))
        given = self._given
        (nodes,) = given.get("virtual-nodes", (str(DEFAULT_VIRTUAL_NODES),))
        self.settings = Settings(
            virtual_nodes=count(nodes, f"{OPTION} virtual-nodes=", MOST_VIRTUAL_NODES, 0),
            consumer_idcs=frozenset(given["idc"]) if "idc" in given else None,
            broker_zones=zones(given.get("broker-zone", ()), "broker-zone"),
            client_zones=zones(given.get("client-zone", ()), "client-zone"),
            hosts=frozenset(given["host"]) if "host" in given else None,
            pins=_pins(given.get("pin", ())),
        )
        (inner,) = given.get("inner", ("AVG",))
        innermost = self._name(inner, f"{OPTION} inner=")  # adds a strategy from a file to the settings
        self.settings = replace(self.settings, inner=innermost)

    def name(self, text: str, option: str = "--strategy") -> str:
        name = self._name(text, option)
        self.named.append(name)
        return name

    def optional(self, text: str | None, option: str = "--strategy") -> str | None:
        return None if text is None else self.name(text, option)

    def compared(self, texts: str | Sequence[str] | None) -> tuple[list[str], bool]:
        """The strategies of an option that may be given several times, each once; and whether `all` is among them."""
        given = texts_of(texts)
        has_all = any(text.lower() == ALL for text in given)
        found = [self.name(text) for text in given if text.lower() != ALL]
        return list(dict.fromkeys([*found, *(map(self.name, WITHOUT_SETTINGS) if has_all else ())])), has_all

    def _name(self, text: str, option: str) -> str:
        outer, dash, rest = text.partition("-")
        if dash and outer.upper() in WRAPPERS and is_file(text):
            return f"{outer.upper()}-{self._name(rest, option)}"
        if is_file(text):
            from rmqlb.engine.arguments import STRATEGY

            name, self.settings = with_function(from_file(text, option, STRATEGY), self.settings)
            return name
        if text.lower() == ALL:
            hint = "run the command once for each; show-owners, plan-rebalance and size-group accept --strategy all"
            raise UsageError(f"{option} {text}: expected exactly one strategy", hint=hint)
        name = _known_spelling(text)
        full_name(name, self.settings)
        return name

    @property
    def sources(self) -> tuple[str, ...]:
        """The texts of all files that were named, which are run."""
        files = (getattr(function, "source", None) for function in self.settings.custom.values())
        return tuple(text for text in files if isinstance(text, str))

    def must_apply(self, *, reported: bool) -> None:
        """Refuse options that no strategy uses; `reported`: consumers may run others than those named."""
        chosen = [each for name in self.named for each in names_inside(name, self.settings)] if self._given else []
        for key, texts in self._given.items():
            own = KEYS[key].strategies
            if any(name in chosen for name in own) or (reported and not set(own) <= set(PINNED)):
                continue
            names = " and ".join(own) if len(own) < 3 else ", ".join(own[:-1]) + f" and {own[-1]}"
            named = f"you named {', '.join(dict.fromkeys(chosen))}" if chosen else "you named no strategy"
            only = f"only {names} {'uses' if len(own) == 1 else 'use'} it"
            hint = f"leave it out, or name {own[0]} as the strategy"
            text = f"{OPTION} {key}={texts[0]}: {only}, but {named}"
            raise UsageError(text, hint=hint, code="strategy-option-unused")

    def settings_for(self, topics: Sequence[str], group: str | None = None) -> Settings:
        """The settings; `topics` are those that a CONFIG entry without a topic stands for."""
        config = None
        for path in self._given.get("queues", ()):
            from rmqlb.sources.user_files.config_file import read_config_lists

            config = read_config_lists(path, topics, f"{OPTION} queues=")
        unknown = [topic for topic in self.settings.pins if topic not in topics]
        if unknown and "*" not in topics:  # which is every topic, of a fleet
            hint = suggestion("topics", unknown[0], topics)
            raise UsageError(f"{OPTION} pin={unknown[0]}=…: no selected topic is named {unknown[0]}", hint=hint)
        return replace(self.settings, config=config, group=group or "")


def reported_strategies(options: str | Sequence[str]) -> Strategies:
    """The settings of whatever strategies consumers report (raises UsageError)."""
    strategies = Strategies(options)
    strategies.must_apply(reported=True)
    return strategies


def _known_spelling(text: str) -> str:
    """RocketMQ's name of a strategy that is spelled in another way: consistent-hash, averagely, or its Java class."""
    names = {"average": "AVG", "averagely": "AVG", "circle": "AVG_BY_CIRCLE", "averagelybycircle": "AVG_BY_CIRCLE"}
    for name in NAMES:
        letters = name.lower().replace("_", "")
        names |= {letters: name, letters.replace("avg", "average"): name}
    classes = {java.rpartition(".")[2].lower(): name for java, name in JAVA_CLASSES.items()}
    names |= classes | {java.removeprefix("allocatemessagequeue"): name for java, name in classes.items()}
    typed = re.sub(r"[-_ ]", "", text.rpartition(".")[2].lower())
    if typed in names:
        return names[typed]
    for name in sorted(WRAPPERS, key=len, reverse=True):
        inner = typed.removeprefix(name.lower().replace("_", ""))
        if inner != typed and inner in names:
            return f"{name}-{names[inner]}"
    return text.upper()


def is_file(text: str) -> bool:
    return ".py" in text and re.fullmatch(_FILE, text) is not None


def from_file(text: str, option: str, kind: "Kind") -> "FromFile":
    """FILE.py:NAME: the function of the file, whose code is run."""
    from rmqlb.engine.arguments import FromFile
    from rmqlb.sources.user_files.text_file import read_text

    match = re.fullmatch(_FILE, text)
    if match is None or not match["name"]:
        hint = f"write {typed(option, 'FILE.py:NAME')}"
        raise UsageError(f"{text}: which function?", prefix=typed(option, ""), hint=hint)
    source = read_text(match["path"], option, _LONGEST_FILE, "the limit is 1 MB")
    return FromFile(source, match["path"], match["name"], kind)


def _by_key(texts: Sequence[str]) -> dict[str, list[str]]:
    given: dict[str, list[str]] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if key not in KEYS:
            raise UsageError(f"{OPTION} {text}: there is no key {key}", hint=suggestion("keys", key, KEYS))
        if not equals or not value:
            raise UsageError(f"{OPTION} {text}: no value", hint=f"write {OPTION} {key}={KEYS[key].metavar}")
        given.setdefault(key, []).append(value)
        if len(given[key]) > 1 and not KEYS[key].repeatable:
            both = " and ".join(given[key])
            hint = "pass it once"
            raise UsageError(f"{OPTION} {key} takes one value, but got {both}", hint=hint, code="given-twice")
    return given


def _pins(texts: Sequence[str]) -> dict[str, frozenset[str]]:
    found = {}
    for text in texts:
        topic, _, hosts = text.partition("=")
        found[topic] = frozenset(part.strip() for part in hosts.split(","))
        if not topic or not all(found[topic]):
            raise UsageError(f"{OPTION} pin={text}: expected TOPIC=HOST or TOPIC=HOST,HOST")
    must_differ([f"pin={text}" for text in texts], [text.partition("=")[0] for text in texts], OPTION)
    return found


def zones(texts: Sequence[str], key: str) -> Callable[[str], str | None] | re.Pattern[str] | None:
    """`broker-zone` or `client-zone`: GLOB=ZONE rules of which the first that matches counts, or one REGEX."""
    if not texts:
        return None
    if len(texts) == 1 and "=" not in texts[0]:
        return _pattern(texts[0], key)
    rules = [text.rpartition("=") for text in texts]
    for text, (glob, _, zone) in zip(texts, rules, strict=True):
        if not glob or not zone:
            raise UsageError(f"{OPTION} {key}={text}: expected GLOB=ZONE, or a single pattern with one group")
    must_differ([f"{key}={text}" for text in texts], [glob for glob, _, _ in rules], OPTION)
    return lambda name: next((zone for glob, _, zone in rules if fnmatchcase(name, glob)), None)


def _pattern(text: str, key: str) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings():  # Python's own doubts about `[[` are not the user's
            warnings.simplefilter("ignore", FutureWarning)
            pattern = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"{OPTION} {key}={text}: {error}") from None
    if pattern.groups != 1:
        raise UsageError(
            f"{OPTION} {key}={text}: the pattern needs exactly one group, which is the zone, as in '([^-]+)-'"
        )
    return pattern
