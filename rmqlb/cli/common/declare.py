"""How commands declare their options: groups of fields, which `command` spreads into a command's signature.

Typer then sees them as if they had been written there; the command gets the filled-in groups.
"""

import os
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from typing import Any, ClassVar, Self, dataclass_transform, get_type_hints

from typer import Argument, Option

from rmqlb.cli.click import get_current_context
from rmqlb.cli.settings import resolve_options
from rmqlb.errors import UsageError
from rmqlb.views.report import format_of

Text = str | None
Texts = list[str] | None
_WORDS: Mapping[str, Callable[[str], str]] = {"output": format_of, "color": str.lower}


class Declared:
    """An option as its field declares it.

    Args:
        spelling: names besides the one that the field's name gives, and the metavar: `-g GROUP`; a long name replaces
            that of the field.
        has_variable: `RMQLB_` and its name is an environment variable that sets it.
        stdin: the value that reads stdin, which one option of a command line may do.
        for_verb: False keeps the option from the verb's arguments.
        is_setting: `--set NAME=VALUE` sets the field, which is no option of its own.
        positional: the option's value may also be given alone, as an argument of this metavar.
    """

    def __init__(
        self,
        spelling: str,
        default: Any,
        *,
        has_variable: bool,
        stdin: str | None = None,
        for_verb: bool = True,
        is_setting: bool = False,
        positional: str | None = None,
        **settings: Any,
    ) -> None:
        metavar = "" if is_setting else re.sub(r"^(-\S+ ?)+", "", spelling)
        self.names = [spelling] if is_setting else spelling.removesuffix(metavar).split()
        self.default, self.has_variable, self.stdin, self.for_verb = default, has_variable, stdin, for_verb
        self.is_setting, self.positional = is_setting, positional
        self.settings = settings | {"metavar": metavar or None}

    def spellings(self, name: str) -> list[str]:
        is_complete = any(each.startswith("--") for each in self.names)
        return self.names if is_complete else [*self.names, f"--{name.strip('_').replace('_', '-')}"]

    def parameter(self, name: str, kind: Any, more: dict[str, Any]) -> Parameter:
        """The option as a parameter that Typer reads; a flag has no `--no-` form."""
        if self.has_variable:
            more["envvar"] = f"RMQLB_{name.upper()}"
        option = Option(self.default, *self.spellings(name), **(self.settings | more))
        return Parameter(name, Parameter.KEYWORD_ONLY, default=option, annotation=kind)

    def argument(self, name: str, kind: Any) -> Parameter:
        """The option's value as an argument, which may be left out."""
        option = self.spellings(name)[-1]
        text = f"Same as {option}."
        argument = Argument(None, metavar=f"{self.positional}{'…' if kind == Texts else ''}", help=text)
        return Parameter(_argument(name), Parameter.KEYWORD_ONLY, default=argument, annotation=kind)

    def merged(self, name: str, typed: Any, value: Any) -> Any:
        """The option's value and the argument's as one (raises UsageError)."""
        for each in [typed] if isinstance(typed, str) else typed:
            if "://" in each or os.path.isfile(each):
                what = (self.positional or "").lower()
                raise UsageError(f"{each} is a source, not a {what}", hint=f"name the source with -s: -s {each}")
        if isinstance(typed, str) and value is not None and value != typed:
            option = self.spellings(name)[-1]
            problem = f"{typed} and {option} {value}: expected one {(self.positional or '').lower()}"
            raise UsageError(problem, hint="leave one of them out", code="given-twice")
        return typed if isinstance(typed, str) else [*typed, *(value or ())]


def _argument(name: str) -> str:
    return f"{name}_argument"


class Panel:
    """Declares options that the help shows under one title; None is no title."""

    def __init__(self, title: str | None, *, has_variables: bool = False) -> None:
        self._title, self._has_variables = title, has_variables

    def __call__(self, spelling: str, text: str, default: Any = None, **more: Any) -> Any:
        """Declare an option with a value by its metavar, perhaps with names before it, and its help."""
        more |= {"help": text, "rich_help_panel": self._title, "has_variable": self._has_variables}
        return Declared(spelling, default, **more)

    def flag(self, text: str, spelling: str = "", **more: Any) -> Any:
        return self(spelling, text, default=False, **more)


# A dataclass would do the same, and takes half a millisecond of each start to create.
@dataclass_transform(frozen_default=True)
class Options:
    """A group of options, a field each; fields without a declaration are no options."""

    fields: ClassVar[Mapping[str, Declared | None]] = {}

    def __init_subclass__(cls) -> None:
        fields: dict[str, Declared | None] = {}
        for base in reversed(cls.__mro__[1:]):
            fields |= vars(base).get("fields", {})
        for name in cls.__annotations__:
            declared = vars(cls)[name]
            fields[name] = declared if isinstance(declared, Declared) else None
            if isinstance(declared, Declared):
                setattr(cls, name, declared.default)
        cls.fields = fields

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    def but(self, **changes: Any) -> Self:
        return type(self)(**(vars(self) | changes))

    def option(self, field: str) -> str:
        """The option as errors begin with it; a value follows a blank, or the equals sign of a setting."""
        declared = self.fields[field]
        if declared is None:
            raise KeyError(field)
        return f"{declared.names[-1]}=" if declared.is_setting else declared.spellings(field)[-1]

    def arguments(self) -> dict[str, Any]:
        """The options as a verb's arguments, without those that are not given and have no default."""
        names = (name for name, declared in self.fields.items() if declared is not None and declared.for_verb)
        values = ((name, getattr(self, name)) for name in names)
        return {name: value for name, value in values if value is not None}


own, about, shown, written = map(Panel, (None, "Input", "Filters", "Output"))


def command(
    function: Callable[..., None] | None = None,
    *,
    formats: tuple[str, ...] | None = None,
    without: Collection[str] = (),
) -> Callable[..., Any]:
    """The function with each option group among its parameters spread into single options.

    What neither the line nor the environment sets comes from the context and the user's file (`settings.py`).

    Args:
        formats: the only ones that the command can write, the default first, where it cannot write all of them.
        without: options of a group that this command does not have; they keep their defaults.
    """
    if function is None:
        return partial(command, formats=formats, without=without)
    hints = get_type_hints(function, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if isinstance(hint, type) and issubclass(hint, Options)}
    parameters: list[Parameter] = []
    fields = (field for group in groups.values() for field in group.fields.items())
    positional = {name: declared for name, declared in fields if declared is not None and declared.positional}
    for name, parameter in signature(function).parameters.items():
        if name in groups:
            parameters += _parameters(groups[name], without, formats)
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @wraps(function)
    def spread(**values: Any) -> None:
        for name, declared in positional.items():
            if typed := values.pop(_argument(name), None):
                values[name] = declared.merged(name, typed, values[name])
        settled = resolve_options(get_current_context(), formats)
        context = {"active_context": settled.active_context, "ignored_context_note": settled.ignored_context_note}
        given = values | settled.values() | context
        given |= {name: read(str(given[name])) for name, read in _WORDS.items() if given.get(name) is not None}
        filled = {
            name: group(**{field: given[field] for field in group.fields if field in given})
            for name, group in groups.items()
        }
        _check_stdin(filled.values(), watched=bool(values.get("watch")))
        arguments = given | filled
        function(**{name: arguments[name] for name in hints if name != "return"})

    spread.groups = tuple(groups.values())  # type: ignore[attr-defined]
    spread.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    spread.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del spread.__wrapped__
    return spread


def _check_stdin(groups: Collection[Options], *, watched: bool) -> None:
    reading = []
    for options, name, declared in ((each, *field) for each in groups for field in each.fields.items()):
        value = getattr(options, name)
        if declared is not None and declared.stdin in (value if isinstance(value, list) else [value or ""]):
            option = "-s" if name == "source" else declared.spellings(name)[-1]
            reading.append(f"{option} {declared.stdin}")
    if len(reading) > 1:
        raise UsageError(f"{reading[0]} and {reading[1]} both read stdin")
    if reading and watched:
        raise UsageError("--watch reads its source repeatedly, but stdin can be read only once", hint="name a file")


def _parameters(group: type[Options], without: Collection[str], formats: tuple[str, ...] | None) -> list[Parameter]:
    hints, found = get_type_hints(group), []
    for name, declared in group.fields.items():
        only = formats if name == "output" else None
        more = {} if only is None else {"help": f"Output format: {', '.join(only)}; default: {only[0]}."}
        if declared is not None and not declared.is_setting and name not in without:
            found.append(declared.parameter(name, hints[name], more))
            if declared.positional:
                found.append(declared.argument(name, hints[name]))
    return found
