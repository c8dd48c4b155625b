"""`--set NAME=VALUE`: settings of the simulators for rare cases. docs/settings.md says what they mean."""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, get_type_hints

from rmqlb.cli.common.declare import Declared, Options, Texts, about
from rmqlb.errors import UsageError
from rmqlb.model.snapshot import suggestion

_ON_OFF = "on|off"


def setting(spelling: str, default: Any = None, **more: Any) -> Any:
    """Declare the field of a setting, `NAME=METAVAR`; a name alone is on or off, and `most` bounds a number from 1."""
    name, is_value, metavar = spelling.partition("=")
    default = default if is_value else False
    return Declared(f"--set {name}", default, has_variable=False, is_setting=True, form=metavar or _ON_OFF, **more)


def timers() -> Any:
    """Declare the field that collects the clocks of consumers, brokers and NameServers."""
    return Declared("--set TIMER", None, has_variable=False, is_setting=True)


class SettingsOptions(Options):
    set_: Texts = about("--set NAME=VALUE", "Rare setting; see docs/settings.md; repeatable.", for_verb=False)

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        vars(self).update(_read(type(self), self.set_ or ()))


def settings_in(fields: Mapping[str, Declared | None]) -> dict[str, tuple[str, Declared]]:
    """Setting → its field and the declaration, sorted; the field of the timers is none."""
    own = ((each.names[-1], field, each) for field, each in fields.items() if each is not None and each.is_setting)
    return {name.removeprefix("--set "): (field, each) for name, field, each in sorted(own) if field != "timers"}


def names_in(groups: Iterable[type[Options]]) -> tuple[str, ...]:
    """The names of settings, timers last."""
    from rmqlb.model.group_scenario import TIMER_NAMES

    fields = {field: declared for group in groups for field, declared in group.fields.items()}
    return (*settings_in(fields), *(TIMER_NAMES if "timers" in fields else ()))


def as_settings(groups: Iterable[type[Options]], words: Sequence[str], options: Container[str]) -> list[str]:
    """The command line with settings that were typed as options, `--seed 7`, as `--set seed=7`."""
    (group,) = (each for each in groups if issubclass(each, SettingsOptions))
    names, declared, found, left = names_in([group]), settings_in(group.fields), list[str](), [*words]
    while left:
        word = left.pop(0)
        option, equals, value = word.partition("=")
        name = option.removeprefix("--")
        if word == "--":
            return [*found, word, *left]
        if option == name or name not in names or option in options:
            found.append(word)
        elif equals or not left or (name in declared and declared[name][1].settings["form"] == _ON_OFF):
            found += ["--set", f"{name}{equals}{value}"]
        else:
            found += ["--set", f"{name}={left.pop(0)}"]
    return found


def _read(group: type[Options], texts: Sequence[str]) -> dict[str, Any]:
    """Field → its value, from `--set NAME=VALUE` as typed (raises UsageError)."""
    if not texts:
        return {}
    declared, known = settings_in(group.fields), names_in([group])
    hints, found, given = get_type_hints(group), dict[str, Any](), set[str]()
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().lower().replace("_", "-")
        if name not in known:
            raise UsageError(f"--set {text}: there is no setting {name}", hint=suggestion("settings", name, known))
        if name not in declared:
            found.setdefault("timers", []).append(text)
            continue
        field, own = declared[name]
        kind = hints[field]
        if not equals and kind is not bool:
            raise UsageError(f"--set {text}: which value?", hint=f"write {name}={own.settings['form']}")
        if kind == Texts:
            found.setdefault(field, []).append(value)
            continue
        if name in given:
            raise UsageError(f"--set {text}: {name} is given twice", code="given-twice")
        given.add(name)
        found[field] = _value(f"--set {name}=", value if equals else "on", kind, own.settings.get("most"))
    return found


def _value(option: str, text: str, kind: Any, most: int | None) -> Any:
    from rmqlb.verbs.amounts import count, on_or_off

    if kind is bool:
        return on_or_off(text, option)
    if most is not None:
        return count(text, option, most)
    if kind is not int:
        return text
    if not re.fullmatch(r"-?\d{1,18}", text):
        raise UsageError(f"{option}{text}: not a whole number")
    return int(text)
