"""`--set NAME=VALUE`: settings of the simulators for rare cases. docs/settings.md says what they mean."""

import re
from collections.abc import Container, Mapping, Sequence
from typing import Any, get_type_hints

from msgspec import Struct

from rmqlb.cli.common.declare import Declared, Options, Texts, about
from rmqlb.errors import UsageError
from rmqlb.model.limits import MOST_THREADS
from rmqlb.model.snapshot import suggestion

_SEND, _RECEIVE, _REBALANCE, _SIZE = "simulate-send", "simulate-receive", "simulate-rebalance", "size-group"
_CLOCKS = (_REBALANCE, "plan-rollout")
_ON_OFF = "on|off"


class Setting(Struct, frozen=True):
    commands: tuple[str, ...]
    form: str  # of its value; several times where it ends in …
    default: Any = None
    most: int | None = None  # of a number from 1 on


SETTINGS: Mapping[str, Setting] = {
    "all-new": Setting((_REBALANCE,), _ON_OFF, default=False),
    "broadcasting": Setting((_REBALANCE,), _ON_OFF, default=False),
    "broker-version": Setting((_RECEIVE,), "VERSION", "5.5.0"),
    "change-at": Setting((_REBALANCE,), "TIME", "30s"),
    "client-version": Setting(_CLOCKS, "VERSION"),
    "consume-from": Setting(_CLOCKS, "last|first|timestamp"),
    "consume-threads": Setting(("plan-rebalance", _REBALANCE, _SIZE), "N", most=MOST_THREADS),
    "consume-time": Setting(("plan-rebalance", *_CLOCKS), "TIME", "0s"),
    "consumer-type": Setting(_CLOCKS, "[ID=]push|pull|lite-pull|assign…"),
    "detector": Setting((_SEND,), _ON_OFF, "off"),
    "earlier": Setting(("plan-rebalance", *_CLOCKS), "FILE|TIME"),
    "error-pause": Setting((_RECEIVE,), "TIME", "0s"),
    "exclude": Setting((_SEND,), "BROKER…"),
    "first-poll": Setting((_SEND,), "TIME|random"),
    "for": Setting((_REBALANCE,), "TIME"),
    "id-sets": Setting((_SIZE,), "N", "100"),
    "id-share": Setting((_SIZE,), "SHARE", "100%"),
    "key-type": Setting((_SEND,), "string|int|long", "string"),
    "latency-max": Setting((_SEND,), "MS,MS,…"),
    "nameserver-notices": Setting((_SEND, _RECEIVE), "TIME|never"),
    "not-available-duration": Setting((_SEND,), "MS,MS,…"),
    "orderly": Setting((_SIZE,), _ON_OFF, default=False),
    "precision": Setting((_SEND,), "P"),
    "priority": Setting((_SEND,), "N|none…"),
    "priority-factor": Setting((_RECEIVE,), "0..100"),
    "priority-retry": Setting((_RECEIVE,), "0..100", "0"),
    "proxy-mode": Setting((_SEND,), "local|cluster", "local"),
    "rate": Setting(("plan-rebalance",), "[TOPIC=]R…"),
    "remove-master": Setting(("plan-rebalance", _REBALANCE), "BROKER…"),
    "retry-not-store-ok": Setting((_SEND,), _ON_OFF, default=False),
    "round-trip": Setting(_CLOCKS, "TIME", "1ms"),
    "route-poll": Setting((_SEND,), "TIME", "30s"),
    "sdk": Setting((*_CLOCKS, _SIZE), "[ID=]java|go|cpp…"),
    "seed": Setting((_SEND, _RECEIVE, *_CLOCKS, _SIZE), "N", 1),
    "send-timeout-per-request": Setting((_SEND,), "TIME"),
    "start-at": Setting((_SEND,), "BROKER:QUEUE"),
    "threads": Setting((_SEND,), "N", 1, most=MOST_THREADS),
    "trial": Setting((_REBALANCE,), "K", "0"),
}


def setting(name: str, **more: Any) -> Any:
    """Declare the field of a setting of the table."""
    return Declared(f"--set {name}", SETTINGS[name].default, has_variable=False, is_setting=True, **more)


def timers() -> Any:
    """Declare the field that collects the clocks of consumers, brokers and NameServers."""
    return Declared("--set TIMER", None, has_variable=False, is_setting=True)


class SettingsOptions(Options):
    set_: Texts = about("--set NAME=VALUE", "Rare setting; see docs/settings.md; repeatable.", for_verb=False)

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        vars(self).update(_read(type(self), self.set_ or ()))


def names_for(command: str) -> tuple[str, ...]:
    """The settings of a command, timers last."""
    own = tuple(name for name, each in SETTINGS.items() if command in each.commands)
    return (*own, *_timer_names()) if command in _CLOCKS else own


def as_settings(command: str, words: Sequence[str], options: Container[str]) -> list[str]:
    """The command line with settings that were typed as options, `--seed 7`, as `--set seed=7`."""
    names, found, left = names_for(command), list[str](), [*words]
    while left:
        word = left.pop(0)
        option, equals, value = word.partition("=")
        name = option.removeprefix("--")
        if word == "--":
            return [*found, word, *left]
        if option == name or name not in names or option in options:
            found.append(word)
        elif equals or not left or getattr(SETTINGS.get(name), "form", None) == _ON_OFF:
            found += ["--set", f"{name}{equals}{value}"]
        else:
            found += ["--set", f"{name}={left.pop(0)}"]
    return found


def _timer_names() -> tuple[str, ...]:
    from rmqlb.model.group_scenario import TIMER_NAMES

    return tuple(TIMER_NAMES)


def _read(group: type[Options], texts: Sequence[str]) -> dict[str, Any]:
    """Field → its value, from `--set NAME=VALUE` as typed (raises UsageError)."""
    if not texts:
        return {}
    declared = {field: each for field, each in group.fields.items() if each is not None and each.is_setting}
    fields = {each.names[-1].removeprefix("--set "): field for field, each in declared.items()}
    timer_names = _timer_names() if "timers" in declared else ()
    hints, found, given = get_type_hints(group), dict[str, Any](), set[str]()
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().lower().replace("_", "-")
        if name in timer_names:
            found.setdefault("timers", []).append(text)
            continue
        if name not in fields:
            known = (*(each for each in fields if each != "TIMER"), *timer_names)
            raise UsageError(f"--set {text}: there is no setting {name}", hint=suggestion("settings", name, known))
        kind, table = hints[fields[name]], SETTINGS[name]
        if not equals and kind is not bool:
            raise UsageError(f"--set {text}: which value?", hint=f"write {name}={table.form.rstrip('…')}")
        if kind == Texts:
            found.setdefault(fields[name], []).append(value)
            continue
        if name in given:
            raise UsageError(f"--set {text}: {name} is given twice", code="given-twice")
        given.add(name)
        found[fields[name]] = _value(name, value if equals else "on", kind, table)
    return found


def _value(name: str, text: str, kind: Any, table: Setting) -> Any:
    from rmqlb.verbs.amounts import count, on_or_off, read_setting

    if kind is bool:
        return read_setting(name, on_or_off, text)
    if table.most is not None:
        return read_setting(name, count, text, table.most)
    if kind is not int:
        return text
    if not re.fullmatch(r"-?\d{1,18}", text):
        raise UsageError(f"--set {name}={text}: not a whole number")
    return int(text)
