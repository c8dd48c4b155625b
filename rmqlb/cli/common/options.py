from typing import Any

from rmqlb.cli.common.declare import Options, Panel, Text, Texts, about, own, written
from rmqlb.cli.settings import MOST_RETRIES
from rmqlb.errors import UsageError
from rmqlb.model.configuration import ActiveContext
from rmqlb.model.diagnosis import MAX_LAG

_source, _login, _tls = (Panel(title, has_variables=True) for title in ("Connection", "Login", "TLS"))
_name_servers = Panel("Connection")


class SourceOptions(Options):
    """Where the snapshot comes from; `active_context` names `source`, or `ignored_context_note` says why none does."""

    source: Text = _source(
        "-s URL|FILE|-",
        "HOST:9876 or rocketmq://HOST:9876,… for NameServers, http(s)://… for a Dashboard, a file, or - for stdin.",
        stdin="-",
    )
    namesrv_addr: Text = _name_servers(
        "-n HOST:9876;…", "The NameServers, as mqadmin takes them.", envvar="NAMESRV_ADDR"
    )
    context: Text = _source("NAME", "The context whose source is read, instead of the active one; see rmqlb context.")
    user: Text = _login(
        "USER", "Log in as this user; the password comes from RMQLB_PASSWORD, --password-file or a prompt."
    )
    password_file: Text = _login("FILE", "Its first line is the password; mode 0600.")
    ca_file: Text = _tls("FILE", "Trust only the CA certificates in this PEM file.")
    source_timeout: str = _source("TIME", "Timeout of one request: 5s, 800ms, 1m.", "5s")
    deadline: str = _source("TIME", "Time for all requests of one reading; what is unread by then is unknown.", "1m")
    source_retries: int = _source("N", "Retries of a read on transient errors.", 2, min=0, max=MOST_RETRIES)
    max_size: str = _source("SIZE", "Largest file or answer that is read: 64MB.", "64MB")
    proxy: Texts = _source(
        "HOST[:8080]", "A Proxy's remoting port, which tells its consumers, as those of gRPC; repeatable."
    )
    map_address: Texts = _source(
        "FROM=TO", "Reach this address at another, as through a tunnel; * is allowed on both sides; repeatable."
    )
    access_key: Text = _login(
        "KEY", "Account of a cluster with ACL; its secret comes from RMQLB_SECRET_KEY or --secret-key-file."
    )
    secret_key_file: Text = _login("FILE", "The first line is the secret key.")
    client_cert: Text = _tls("FILE", "PEM certificate to show to rocketmqs:// servers.")
    client_key: Text = _tls("FILE", "Its PEM key, when that is another file.")
    tls_name: Text = _tls("NAME", "The name that in every server's certificate, when it is not the host's.")
    active_context: ActiveContext | None = None
    ignored_context_note: str | None = None


RATE_HELP = "Messages per second of the topic, or of each, spread evenly over its queues; repeatable."
RATES_SINCE_HELP = "An earlier snapshot, for rates: what came since in each queue."


class StrategyOptions(Options):
    strategy_options: Texts = own(
        "--strategy-option KEY=VALUE", "A strategy's setting, as virtual-nodes=20; repeatable."
    )


class PolicyOptions(StrategyOptions):
    policy: Text = own(
        "-p FILE|-", "Rules and waivers in YAML or JSON, or - for stdin; default: a built-in policy.", stdin="-"
    )
    today: Text = own("YYYY-MM-DD", "The day on which waivers are looked at; default: today.")
    print_policy: bool = own.flag("Print the built-in policy as YAML with comments, to edit, and end.", for_verb=False)

    def printed_policy(self, *name: str) -> str | None:
        """The text that is asked for instead of an answer, if any (raises UsageError)."""
        if self.print_policy and self.policy is not None:
            raise UsageError("--print-policy prints the built-in policy, and --policy names another one")
        if not self.print_policy:
            return None
        from rmqlb.sources.user_files.policy_file import built_in_text

        return built_in_text(*name)


class LagOptions(Options):
    max_lag: int = own("N", "Unread messages above which a group is lagging.", MAX_LAG, min=0)


class SomeGroups(StrategyOptions):
    group: Texts = own(
        "-g GROUP",
        "Consumer groups, by name or as 'pay-*'; repeatable; may be left out when there is one.",
        positional="GROUP",
    )


class SomeGroupsOnTopics(SomeGroups):
    topics: Texts = own("-t --topic TOPIC", "Topics; repeatable; default: the group's topics.")
    include_retry: bool = about.flag("The group's %RETRY% topic too.")


class GroupOptions(SomeGroupsOnTopics):
    consumers: Text = about("IDS|@FILE|N", "Consumers now, instead of the source's.", stdin="@-")
    sdk: Texts = about(
        "[ID=]java|go|cpp",
        "Client library of the consumers or of one; default: as their connections say, or java; repeatable.",
    )

    def arguments(self) -> dict[str, Any]:
        from rmqlb.verbs.parse import members

        given = super().arguments()
        return given if self.consumers is None else given | {"consumers": members(self.consumers)}


class OneGroupOptions(GroupOptions):
    group: Text = own(  # type: ignore[assignment]
        "-g GROUP", "Consumer group; may be left out when there is one.", positional="GROUP"
    )


class GroupsOptions(GroupOptions):
    explain: bool = written.flag("Say why each queue goes where it goes.")


class PopOptions(Options):
    pop_share: int | None = about(
        "N",
        "Who may read what under POP with this popShareQueueNum.",
        min=-(2**31),
        max=2**31 - 1,
    )


class OutputOptions(Options):
    output: Text = written(
        "-o FORMAT",
        "Output format: table, wide, plain, json, yaml, csv, markdown; some jsonl, prometheus; piped: plain.",
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
