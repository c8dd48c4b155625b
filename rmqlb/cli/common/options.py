"""Options that commands share: each group is a frozen value, spread into a command's signature.

A command declares a parameter of such a type; `command` replaces it by the group's options, which Typer then sees as if
they had been written there, and hands the command the filled-in group.
"""

from collections.abc import Callable, Collection
from copy import copy
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from msgspec import Struct
from typer import Option

from rmqlb.cli.click import get_current_context
from rmqlb.cli.settings import MOST_RETRIES, resolve_options
from rmqlb.errors import UsageError
from rmqlb.model.configuration import ActiveContext


def panel(title: str | None) -> Callable[..., Any]:
    """What declares an option that the help shows under this title, as `typer.Option` does."""
    return partial(Option, rich_help_panel=title)


def of_value(title: str | None) -> Callable[..., Any]:
    """What declares an option under this title by its metavar, its help and perhaps its names; None is no title."""
    declare = panel(title)
    return lambda metavar, text, *names, **more: declare(*names, metavar=metavar, help=text, **more)


about_option = panel("What to look at")
shown_option = panel("What to show")
strategies_option = panel("Strategy")
output_option = panel("Output")
_own, _about, _output = of_value(None), of_value("What to look at"), of_value("Output")
_source, _native = of_value("Source"), of_value("Source: NameServers")


class SourceOptions(Struct, frozen=True):
    """Where the snapshot comes from; `active_context` names `source`, or `ignored_context_note` says why none does.

    Each option has an environment variable of its name, `RMQLB_SOURCE_TIMEOUT`.
    """

    source: Annotated[
        str | None,
        _source(
            "URL|FILE|-",
            "rocketmq://HOST:9876,… for NameServers, http(s)://… for a Dashboard, a file, or - for stdin.",
            *("-s", "--source"),
        ),
    ] = None
    context: Annotated[
        str | None, _source("NAME", "The context whose source is read, instead of the active one; see rmqlb context.")
    ] = None
    user: Annotated[
        str | None,
        _source(None, "Log in as this user; the password comes from RMQLB_PASSWORD, --password-file or a prompt."),
    ] = None
    password_file: Annotated[str | None, _source("FILE", "Its first line is the password; mode 0600.")] = None
    ca_file: Annotated[str | None, _source("FILE", "Trust only the CA certificates in this PEM file.")] = None
    source_timeout: Annotated[str, _source("TIME", "Timeout of one request: 5s, 800ms, 1m.")] = "5s"
    deadline: Annotated[
        str, _source("TIME", "Time for all requests of one reading; what is unread by then is unknown.")
    ] = "1m"
    source_retries: Annotated[int, _source(None, "Retries of a read on transient errors.", min=0, max=MOST_RETRIES)] = 2
    max_size: Annotated[str, _source("SIZE", "Largest file or answer that is read: 64MB.")] = "64MB"
    proxy: Annotated[
        list[str] | None,
        _source("HOST[:8080]", "A Proxy's remoting port, which tells its consumers, as those of gRPC; repeatable."),
    ] = None
    map_address: Annotated[
        list[str] | None,
        _native(
            "FROM=TO", "Reach this address at another, as through a tunnel; * is allowed on both sides; repeatable."
        ),
    ] = None
    access_key: Annotated[
        str | None,
        _native(None, "Account of a cluster with ACL; its secret comes from RMQLB_SECRET_KEY or --secret-key-file."),
    ] = None
    secret_key_file: Annotated[str | None, _native("FILE", "The first line is the secret key.")] = None
    client_cert: Annotated[str | None, _native("FILE", "PEM certificate to show to rocketmqs:// servers.")] = None
    client_key: Annotated[str | None, _native("FILE", "Its PEM key, when that is another file.")] = None
    tls_name: Annotated[
        str | None, _native("NAME", "The name that in every server's certificate, when it is not the host's.")
    ] = None
    active_context: ActiveContext | None = None
    ignored_context_note: str | None = None


Topics = Annotated[list[str] | None, _own("TOPIC", "Repeatable; default: the group's topics.", "-t", "--topic")]
Consumers = Annotated[str | None, _about("IDS|@FILE|N", "The consumers now, instead of those of the source.")]
Sdk = Annotated[
    list[str] | None,
    _about(
        "[ID=]java|go|cpp",
        "Client library of all consumers or of one; default: as their connections say, or java; repeatable.",
    ),
]
PopShare = Annotated[
    int | None,
    _about(
        "N",
        "As if topics were consumed by POP with this popShareQueueNum: who may read what.",
        min=-(2**31),
        max=2**31 - 1,
    ),
]
IncludeRetry = Annotated[bool, about_option("--include-retry", help="The group's %RETRY% topic too.")]
Explain = Annotated[bool, shown_option("--explain", help="Say why each queue goes where it goes.")]


class _OfGroups(Struct, frozen=True):
    group: Any
    topic: Topics = None
    consumers: Consumers = None
    include_retry: IncludeRetry = False
    explain: Explain = False
    sdk: Sdk = None

    def arguments(self, source: str | None) -> dict[str, Any]:
        """The arguments of a verb on groups (raises UsageError)."""
        from rmqlb.verbs.parse import members

        if source == "-" and self.consumers == "@-":
            raise UsageError("-s - and --consumers @- both read stdin")
        return {
            "group": self.group,
            "topics": self.topic or (),
            "consumers": None if self.consumers is None else members(self.consumers),
            "include_retry": self.include_retry,
            "sdk": self.sdk,
        }


class GroupOptions(_OfGroups, frozen=True):
    group: Annotated[
        str | None, _own("GROUP", "Consumer group; may be left out when there is one.", "-g", "--group")
    ] = None


class GroupsOptions(_OfGroups, frozen=True):
    group: Annotated[
        list[str] | None,
        _own(
            "GROUP",
            "Consumer groups, by name or as 'pay-*'; repeatable; may be left out when there is one.",
            *("-g", "--group"),
        ),
    ] = None


class StrategyOptions(Struct, frozen=True):
    strategy_option: Annotated[
        list[str] | None,
        strategies_option(metavar="KEY=VALUE", help="A setting of a strategy, as virtual-nodes=20; repeatable."),
    ] = None

    @property
    def texts(self) -> list[str]:
        return self.strategy_option or []


class OutputOptions(Struct, frozen=True):
    output: Annotated[
        str | None,
        _output(
            "FORMAT",
            "table, plain, json, yaml, csv, markdown; some jsonl, prometheus; default: table, piped plain.",
            *("-o", "--output"),
            envvar="RMQLB_OUTPUT",
        ),
    ] = None
    section: Annotated[
        list[str] | None,
        _output("NAME", "Only this table of the result; repeatable. csv shows one, by default the first."),
    ] = None
    all: Annotated[bool, output_option("--all", help="Every table and every row, on a screen too.")] = False
    color: Annotated[
        str,
        _output(
            "auto|always|never",
            "Whether in colour: auto is on a terminal, or as NO_COLOR and FORCE_COLOR say.",
            envvar="RMQLB_COLOR",
        ),
    ] = "auto"
    no_pager: Annotated[
        bool, output_option("--no-pager", help="Long tables on a terminal at once, without a pager.")
    ] = False
    quiet: Annotated[bool, output_option("-q", "--quiet", help="No findings and no progress.")] = False
    debug: Annotated[bool, output_option("--debug", help="Show where an unexpected error comes from.")] = False


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
    groups = {name: hint for name, hint in hints.items() if isinstance(hint, type) and issubclass(hint, Struct)}
    parameters: list[Parameter] = []
    for name, parameter in signature(function).parameters.items():
        if name in groups:
            own = {field: option for field, option in _options(groups[name]).items() if field not in without}
            if formats is not None and groups[name] is OutputOptions:
                own["output"] = _helped(own["output"], f"{', '.join(formats)}; default {formats[0]}.")
            parameters += own.values()
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @wraps(function)
    def spread(**values: Any) -> None:
        settled = resolve_options(get_current_context(), formats)
        context = {"active_context": settled.active_context, "ignored_context_note": settled.ignored_context_note}
        values |= settled.values()
        for name, group in groups.items():
            given = values | context
            values[name] = group(**{field: given[field] for field in group.__struct_fields__ if field in given})
        function(**{name: values[name] for name in hints if name != "return"})

    spread.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    spread.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del spread.__wrapped__
    return spread


def _helped(option: Parameter, text: str) -> Parameter:
    kind, info = get_args(option.annotation)
    info = copy(info)
    info.help = text
    return option.replace(annotation=Annotated[kind, info])


def _options(group: type[Struct]) -> dict[str, Parameter]:
    """The group's fields that are options, as parameters; each has a default."""
    hints = get_type_hints(group, include_extras=True)
    if group is SourceOptions:
        for field, hint in hints.items():
            for option in getattr(hint, "__metadata__", ()):
                option.envvar = f"RMQLB_{field.upper()}"
    fields = zip(group.__struct_fields__, group.__struct_defaults__, strict=True)
    return {
        field: Parameter(field, Parameter.KEYWORD_ONLY, default=default, annotation=hints[field])
        for field, default in fields
        if get_origin(hints[field]) is Annotated
    }
