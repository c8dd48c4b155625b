"""Options that commands share: each group is a frozen value, spread into a command's signature.

A command declares a parameter of such a type; `command` replaces it by the group's options, which Typer then sees as if
they had been written there, and hands the command the filled-in group.
"""

from collections.abc import Callable, Collection
from dataclasses import Field, dataclass, field, fields, replace
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from typing import Any, Self, dataclass_transform, get_type_hints

from typer import Option

from rmqlb.cli.click import get_current_context
from rmqlb.cli.settings import MOST_RETRIES, resolve_options
from rmqlb.errors import UsageError
from rmqlb.model.configuration import ActiveContext

Text = str | None
Texts = list[str] | None


class _Declared:
    """An option: its default, its spellings but that of its field's name, Typer's settings, and what means stdin."""

    def __init__(self, default: Any, names: Collection[str], stdin: str | None, settings: dict[str, Any]) -> None:
        self.default, self.names, self.stdin, self.settings = default, names, stdin, settings

    def parameter(self, name: str, kind: Any, more: dict[str, Any]) -> Parameter:
        """The option as a parameter that Typer reads; a flag has no `--no-` form."""
        option = Option(self.default, *self.spellings(name), **(self.settings | more))
        return Parameter(name, Parameter.KEYWORD_ONLY, default=option, annotation=kind)

    def spellings(self, name: str) -> tuple[str, ...]:
        own = () if any(each.startswith("--") for each in self.names) else (f"--{name.strip('_').replace('_', '-')}",)
        return (*self.names, *own)


class Panel:
    """Declares options that the help shows under one title; None is no title."""

    def __init__(self, title: str | None) -> None:
        self._title = title

    def __call__(
        self,
        metavar: str | None,
        text: str,
        default: Any = None,
        *names: str,
        stdin: str | None = None,
        **settings: Any,
    ) -> Any:
        """Declare an option with a value; without a long name it is spelled as its field.

        Args:
            stdin: the value that reads stdin, which one option of a command line may do.
        """
        settings |= {"metavar": metavar, "help": text, "rich_help_panel": self._title}
        return _Declared(default, names, stdin, settings)

    def flag(self, text: str, *names: str) -> Any:
        return _Declared(
            default=False, names=names, stdin=None, settings={"help": text, "rich_help_panel": self._title}
        )


@dataclass_transform(frozen_default=True)
class Options:
    """A group of options, a field each; fields without a declaration are no options."""

    def __init_subclass__(cls) -> None:
        for name, declared in [*vars(cls).items()]:
            if isinstance(declared, _Declared):
                setattr(cls, name, field(default=declared.default, metadata={"option": declared}))
        dataclass(frozen=True)(cls)

    @classmethod
    def fields(cls) -> tuple[Field[Any], ...]:
        return fields(cls)  # type: ignore[arg-type]

    def but(self, **changes: Any) -> Self:
        return replace(self, **changes)  # type: ignore[type-var]

    def arguments(self) -> dict[str, Any]:
        """The options as a verb's arguments, without those that are not given and have no default."""
        values = {each.name: getattr(self, each.name) for each in self.fields()}
        return {name: value for name, value in values.items() if value is not None}


def arguments_of(*groups: Options) -> dict[str, Any]:
    return {name: value for group in groups for name, value in group.arguments().items()}


own, about, shown, written = Panel(None), Panel("What to look at"), Panel("What to show"), Panel("Output")
_source, _native = Panel("Source"), Panel("Source: NameServers")


class SourceOptions(Options):
    """Where the snapshot comes from; `active_context` names `source`, or `ignored_context_note` says why none does.

    Each option has an environment variable of its name, `RMQLB_SOURCE_TIMEOUT`.
    """

    source: Text = _source(
        "URL|FILE|-",
        "rocketmq://HOST:9876,… for NameServers, http(s)://… for a Dashboard, a file, or - for stdin.",
        None,
        "-s",
        stdin="-",
    )
    context: Text = _source("NAME", "The context whose source is read, instead of the active one; see rmqlb context.")
    user: Text = _source(
        None, "Log in as this user; the password comes from RMQLB_PASSWORD, --password-file or a prompt."
    )
    password_file: Text = _source("FILE", "Its first line is the password; mode 0600.")
    ca_file: Text = _source("FILE", "Trust only the CA certificates in this PEM file.")
    source_timeout: str = _source("TIME", "Timeout of one request: 5s, 800ms, 1m.", "5s")
    deadline: str = _source("TIME", "Time for all requests of one reading; what is unread by then is unknown.", "1m")
    source_retries: int = _source(None, "Retries of a read on transient errors.", 2, min=0, max=MOST_RETRIES)
    max_size: str = _source("SIZE", "Largest file or answer that is read: 64MB.", "64MB")
    proxy: Texts = _source(
        "HOST[:8080]", "A Proxy's remoting port, which tells its consumers, as those of gRPC; repeatable."
    )
    map_address: Texts = _native(
        "FROM=TO", "Reach this address at another, as through a tunnel; * is allowed on both sides; repeatable."
    )
    access_key: Text = _native(
        None, "Account of a cluster with ACL; its secret comes from RMQLB_SECRET_KEY or --secret-key-file."
    )
    secret_key_file: Text = _native("FILE", "The first line is the secret key.")
    client_cert: Text = _native("FILE", "PEM certificate to show to rocketmqs:// servers.")
    client_key: Text = _native("FILE", "Its PEM key, when that is another file.")
    tls_name: Text = _native("NAME", "The name that in every server's certificate, when it is not the host's.")
    active_context: ActiveContext | None = None
    ignored_context_note: str | None = None


TOPICS = own("TOPIC", "Repeatable; default: the group's topics.", None, "-t", "--topic")
INCLUDE_RETRY = about.flag("The group's %RETRY% topic too.")
ONE_GROUP = own("GROUP", "Consumer group; may be left out when there is one.", None, "-g")


RATE_HELP = "Messages per second of the topic, or of each, spread evenly over its queues; repeatable."
RATES_SINCE_HELP = "An earlier snapshot: each queue's rate is what came since."


class GroupOptions(Options):
    group: Text = ONE_GROUP
    topics: Texts = TOPICS
    consumers: Text = about("IDS|@FILE|N", "The consumers now, instead of those of the source.", stdin="@-")
    include_retry: bool = INCLUDE_RETRY
    sdk: Texts = about(
        "[ID=]java|go|cpp",
        "Client library of all consumers or of one; default: as their connections say, or java; repeatable.",
    )

    def arguments(self) -> dict[str, Any]:
        """The arguments of a verb on groups (raises UsageError)."""
        from rmqlb.verbs.parse import members

        given = super().arguments()
        return given if self.consumers is None else given | {"consumers": members(self.consumers)}


class GroupsOptions(GroupOptions):
    group: Texts = own(  # type: ignore[assignment]
        "GROUP",
        "Consumer groups, by name or as 'pay-*'; repeatable; may be left out when there is one.",
        None,
        "-g",
    )
    explain: bool = shown.flag("Say why each queue goes where it goes.")


class PopOptions(Options):
    pop_share: int | None = about(
        "N",
        "As if topics were consumed by POP with this popShareQueueNum: who may read what.",
        min=-(2**31),
        max=2**31 - 1,
    )


class StrategyOptions(Options):
    strategy_options: Texts = Panel("Strategy")(
        "KEY=VALUE", "A setting of a strategy, as virtual-nodes=20; repeatable.", None, "--strategy-option"
    )


class OutputOptions(Options):
    output: Text = written(
        "FORMAT",
        "table, plain, json, yaml, csv, markdown; some jsonl, prometheus; default: table, piped plain.",
        None,
        "-o",
        envvar="RMQLB_OUTPUT",
    )
    section: Texts = written("NAME", "Only this table of the result; repeatable. csv shows one, by default the first.")
    all: bool = written.flag("Every table and every row, on a screen too.")
    color: str = written(
        "auto|always|never",
        "Whether in colour: auto is on a terminal, or as NO_COLOR and FORCE_COLOR say.",
        "auto",
        envvar="RMQLB_COLOR",
    )
    no_pager: bool = written.flag("Long tables on a terminal at once, without a pager.")
    quiet: bool = written.flag("No findings and no progress.", "-q")
    debug: bool = written.flag("Show where an unexpected error comes from.")


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
    for name, parameter in signature(function).parameters.items():
        if name in groups:
            parameters += _parameters(groups[name], without, formats)
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @wraps(function)
    def spread(**values: Any) -> None:
        settled = resolve_options(get_current_context(), formats)
        context = {"active_context": settled.active_context, "ignored_context_note": settled.ignored_context_note}
        given = values | settled.values() | context
        filled = {
            name: group(**{each.name: given[each.name] for each in group.fields() if each.name in given})
            for name, group in groups.items()
        }
        _check_stdin(filled.values(), watched=values.get("watch") is not None)
        arguments = given | filled
        function(**{name: arguments[name] for name in hints if name != "return"})

    spread.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    spread.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del spread.__wrapped__
    return spread


def _check_stdin(groups: Collection[Options], *, watched: bool) -> None:
    """Refuse to read stdin twice (raises UsageError)."""
    reading = []
    for each, value in ((each, getattr(group, each.name)) for group in groups for each in group.fields()):
        declared = each.metadata.get("option")
        if declared is not None and declared.stdin in (value if isinstance(value, list) else [value or ""]):
            option = "-s" if each.name == "source" else declared.spellings(each.name)[-1]
            reading.append(f"{option} {declared.stdin}")
    if len(reading) > 1:
        raise UsageError(f"{reading[0]} and {reading[1]} both read stdin")
    if reading and watched:
        raise UsageError("--watch reads its source again and again, and stdin can be read once", hint="name a file")


def _parameters(group: type[Options], without: Collection[str], formats: tuple[str, ...] | None) -> list[Parameter]:
    hints, found = get_type_hints(group), []
    for each in group.fields():
        more: dict[str, Any] = {"envvar": f"RMQLB_{each.name.upper()}"} if group is SourceOptions else {}
        if formats is not None and each.name == "output":
            more["help"] = f"{', '.join(formats)}; default {formats[0]}."
        if "option" in each.metadata and each.name not in without:
            found.append(each.metadata["option"].parameter(each.name, hints[each.name], more))
    return found
