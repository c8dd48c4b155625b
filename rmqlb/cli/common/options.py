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


def panel(title: str) -> Callable[..., Any]:
    """What declares an option that the help shows under this title, as `typer.Option` does."""
    return partial(Option, rich_help_panel=title)


about_option = panel("What to look at")
shown_option = panel("What to show")
source_option = panel("Source")
native_option = panel("Source: NameServers")
strategies_option = panel("Strategy")
output_option = panel("Output")


class SourceOptions(Struct, frozen=True):
    """Where the snapshot comes from; `active_context` names `source`, or `ignored_context_note` says why none does.

    Each option has an environment variable of its name, `RMQLB_SOURCE_TIMEOUT`.
    """

    source: Annotated[
        str | None,
        source_option(
            "-s",
            "--source",
            metavar="URL|FILE|-",
            help="rocketmq://HOST:9876,… for NameServers, http(s)://… for a Dashboard, a file, or - for stdin.",
        ),
    ] = None
    context: Annotated[
        str | None,
        source_option(
            metavar="NAME", help="The context whose source is read, instead of the active one; see rmqlb context."
        ),
    ] = None
    user: Annotated[
        str | None,
        source_option(help="Log in as this user; the password comes from RMQLB_PASSWORD, --password-file or a prompt."),
    ] = None
    password_file: Annotated[
        str | None, source_option(metavar="FILE", help="Its first line is the password; mode 0600.")
    ] = None
    ca_file: Annotated[
        str | None, source_option(metavar="FILE", help="Trust only the CA certificates in this PEM file.")
    ] = None
    source_timeout: Annotated[str, source_option(metavar="TIME", help="Timeout of one request: 5s, 800ms, 1m.")] = "5s"
    deadline: Annotated[
        str,
        source_option(metavar="TIME", help="Time for all requests of one reading; what is unread by then is unknown."),
    ] = "1m"
    source_retries: Annotated[
        int, source_option(min=0, max=MOST_RETRIES, help="Retries of a read on transient errors.")
    ] = 2
    max_size: Annotated[str, source_option(metavar="SIZE", help="Largest file or answer that is read: 64MB.")] = "64MB"
    proxy: Annotated[
        list[str] | None,
        source_option(
            metavar="HOST[:8080]",
            help="A Proxy's remoting port, which tells its consumers, as those of gRPC; repeatable.",
        ),
    ] = None
    map_address: Annotated[
        list[str] | None,
        native_option(
            metavar="FROM=TO",
            help="Reach this address at another, as through a tunnel; * is allowed on both sides; repeatable.",
        ),
    ] = None
    access_key: Annotated[
        str | None,
        native_option(
            help="Account of a cluster with ACL; its secret comes from RMQLB_SECRET_KEY or --secret-key-file."
        ),
    ] = None
    secret_key_file: Annotated[str | None, native_option(metavar="FILE", help="The first line is the secret key.")] = (
        None
    )
    client_cert: Annotated[
        str | None, native_option(metavar="FILE", help="PEM certificate to show to rocketmqs:// servers.")
    ] = None
    client_key: Annotated[str | None, native_option(metavar="FILE", help="Its PEM key, when that is another file.")] = (
        None
    )
    tls_name: Annotated[
        str | None,
        native_option(metavar="NAME", help="The name that in every server's certificate, when it is not the host's."),
    ] = None
    active_context: ActiveContext | None = None
    ignored_context_note: str | None = None


Topics = Annotated[
    list[str] | None, Option("-t", "--topic", metavar="TOPIC", help="Repeatable; default: the group's topics.")
]
Consumers = Annotated[
    str | None, about_option(metavar="IDS|@FILE|N", help="The consumers now, instead of those of the source.")
]
Sdk = Annotated[
    list[str] | None,
    about_option(
        metavar="[ID=]java|go|cpp",
        help="Client library of all consumers or of one; default: as their connections say, or java; repeatable.",
    ),
]
PopShare = Annotated[
    int | None,
    about_option(
        metavar="N",
        min=-(2**31),
        max=2**31 - 1,
        help="As if topics were consumed by POP with this popShareQueueNum: who may read what.",
    ),
]
IncludeRetry = Annotated[bool, about_option("--include-retry", help="The group's %RETRY% topic too.")]
Explain = Annotated[bool, shown_option("--explain", help="Say why each queue goes where it goes.")]


class GroupOptions(Struct, frozen=True):
    group: Annotated[
        str | None, Option("-g", "--group", metavar="GROUP", help="Consumer group; may be left out when there is one.")
    ] = None
    topic: Topics = None
    consumers: Consumers = None
    include_retry: IncludeRetry = False
    explain: Explain = False
    sdk: Sdk = None

    def arguments(self, source: str | None) -> dict[str, Any]:
        return _arguments(self, source)


class GroupsOptions(Struct, frozen=True):
    group: Annotated[
        list[str] | None,
        Option(
            "-g",
            "--group",
            metavar="GROUP",
            help="Consumer groups, by name or as 'pay-*'; repeatable; may be left out when there is one.",
        ),
    ] = None
    topic: Topics = None
    consumers: Consumers = None
    include_retry: IncludeRetry = False
    explain: Explain = False
    sdk: Sdk = None

    def arguments(self, source: str | None) -> dict[str, Any]:
        return _arguments(self, source)


def _arguments(options: GroupOptions | GroupsOptions, source: str | None) -> dict[str, Any]:
    from rmqlb.verbs.parse import members

    if source == "-" and options.consumers == "@-":
        raise UsageError("-s - and --consumers @- both read stdin")
    return {
        "group": options.group,
        "topics": options.topic or (),
        "consumers": None if options.consumers is None else members(options.consumers),
        "include_retry": options.include_retry,
        "sdk": options.sdk,
    }


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
        output_option(
            "-o",
            "--output",
            metavar="FORMAT",
            envvar="RMQLB_OUTPUT",
            help="table, plain, json, yaml, csv, markdown; some jsonl, prometheus; default: table, piped plain.",
        ),
    ] = None
    section: Annotated[
        list[str] | None,
        output_option(
            metavar="NAME",
            help="Only this table of the result; repeatable. csv shows one, by default the first.",
        ),
    ] = None
    all: Annotated[bool, output_option("--all", help="Every table and every row, on a screen too.")] = False
    color: Annotated[
        str,
        output_option(
            metavar="auto|always|never",
            envvar="RMQLB_COLOR",
            help="Whether in colour: auto is on a terminal, or as NO_COLOR and FORCE_COLOR say.",
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

    What neither the line nor the environment sets comes from the configuration files (`layers.py`).

    Args:
        formats: the only ones that the command can write, the default first, where it cannot write all of them.
        without: options of a group that this command does not have; they keep their defaults.
    """
    if function is None:
        return partial(command, formats=formats, without=without)
    hints = get_type_hints(function, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if isinstance(hint, type) and issubclass(hint, Struct)}
    fields: dict[str, tuple[str, ...]] = {}
    parameters: list[Parameter] = []
    for name, parameter in signature(function).parameters.items():
        if name in groups:
            group = groups[name]
            own = {field: option for field, option in _options(group).items() if field not in without}
            if formats is not None and group is OutputOptions:
                own["output"] = _helped(own["output"], f"{', '.join(formats)}; default {formats[0]}.")
            fields[name] = tuple(own)
            parameters += own.values()
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @wraps(function)
    def spread(**values: Any) -> None:
        line = get_current_context()
        settled = resolve_options(line, formats)
        values |= settled.values(line)
        for name, group in groups.items():
            more = (
                {"active_context": settled.active_context, "ignored_context_note": settled.ignored_context_note}
                if group is SourceOptions
                else {}
            )
            values[name] = group(**{field: values.pop(field) for field in fields[name]}, **more)
        function(**values)

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
