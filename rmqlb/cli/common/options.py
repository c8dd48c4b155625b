from typing import Any

from rmqlb.cli.common.declare import Options, Panel, Text, Texts, about, own, written
from rmqlb.cli.settings import MOST_RETRIES
from rmqlb.errors import UsageError
from rmqlb.model.configuration import Context
from rmqlb.model.diagnosis import MAX_LAG

_source, _login, _tls = (Panel(title, has_variables=True) for title in ("Connection", "Login", "TLS"))
_name_servers, _rates = Panel("Connection"), Panel("Rates")


class SourceOptions(Options):
    """Where the snapshot comes from; `active_context` names `source`, or `ignored_context_note` says why none does."""

    source: Text = _source(
        "-s URL|FILE|-",
        "Source to read: HOST:9876, a Dashboard URL, a file, or -. NameServers are HOST:9876 or "
        "rocketmq://HOST:9876,…; a Dashboard is http(s)://…; - reads stdin.",
        stdin="-",
    )
    namesrv_addr: Text = _name_servers("-n HOST:9876;…", "NameServers, in mqadmin's format.", envvar="NAMESRV_ADDR")
    context: Text = _source("NAME", "Context to use instead of the active one; see rmqlb context.")
    user: Text = _login(
        "USER", "Dashboard user to log in as. The password comes from RMQLB_PASSWORD, --password-file or a prompt."
    )
    password_file: Text = _login("FILE", "Password file, with mode 0600. Only its first line is read.")
    ca_file: Text = _tls("FILE", "Trust only the CA certificates in this PEM file.")
    source_timeout: str = _source("TIME", "Timeout per request, such as 5s, 800ms or 1m.", "5s")
    deadline: str = _source("TIME", "Time limit for reading the source once. Data not read by then is unknown.", "1m")
    source_retries: int = _source("N", "Retries per read after a transient error.", 2, min=0, max=MOST_RETRIES)
    max_size: str = _source("SIZE", "Largest file or response to read.", "64MB")
    proxy: Texts = _source(
        "HOST[:8080]",
        "Remoting port of a Proxy, to list its consumers. Listing gRPC consumers requires it; repeatable.",
    )
    map_address: Texts = _source(
        "FROM=TO", "Reach address FROM at TO, for example through a tunnel. Both sides may contain *; repeatable."
    )
    access_key: Text = _login(
        "KEY", "Access key of a cluster with ACL. The secret key comes from RMQLB_SECRET_KEY or --secret-key-file."
    )
    secret_key_file: Text = _login("FILE", "Secret key file, with mode 0600. Only its first line is read.")
    client_cert: Text = _tls("FILE", "Client certificate (PEM) for rocketmqs:// servers.")
    client_key: Text = _tls("FILE", "Private key (PEM), if not in the certificate file.")
    tls_name: Text = _tls("NAME", "Name expected in server certificates, if not the host name.")
    active_context: Context | None = None
    ignored_context_note: str | None = None


class GivenRates(Options):
    rates: Texts = _rates(
        "--rate [TOPIC=]R",
        "Messages per second of each topic or of TOPIC. The rate is spread evenly over the topic's queues; repeatable.",
    )


class RateFlags(GivenRates):
    rates_since: Text = _rates(
        "--earlier FILE|TIME",
        "Earlier snapshot, to compute each queue's rate. With a running cluster, TIME such as 60s takes two "
        "samples that far apart.",
        stdin="-",
    )


class StrategyOptions(Options):
    strategy_options: Texts = own(
        "--strategy-option KEY=VALUE", "Strategy setting, such as virtual-nodes=20; repeatable."
    )


class PolicyOptions(StrategyOptions):
    policy: Text = own(
        "-p FILE|-",
        "Policy file with rules and waivers, or - for stdin. The file is YAML or JSON; default: a built-in policy.",
        stdin="-",
    )
    today: Text = own("YYYY-MM-DD", "Date on which waivers must be valid; default: today.")
    print_policy: bool = own.flag("Print the built-in policy as commented YAML, and exit.", for_verb=False)

    def printed_policy(self, *name: str) -> str | None:
        """The text that is asked for instead of an answer, if any (raises UsageError)."""
        if self.print_policy and self.policy is not None:
            raise UsageError("--print-policy prints the built-in policy, but --policy names another one")
        if not self.print_policy:
            return None
        from rmqlb.sources.user_files.policy_file import built_in_text

        return built_in_text(*name)


class EarlierOptions(Options):
    earlier: Texts = own("FILE|-", "Earlier snapshot, to detect changes; repeatable.", stdin="-", for_verb=False)


class LagOptions(EarlierOptions):
    max_lag: int = own("N", "Lag above which a group counts as lagging.", MAX_LAG, min=0)


class SomeGroups(StrategyOptions):
    group: Texts = own(
        "-g GROUP",
        "Consumer groups by name or pattern ('pay-*'); repeatable; optional if there is only one.",
        positional="GROUP",
    )


class SomeGroupsOnTopics(SomeGroups):
    topics: Texts = own("-t --topic TOPIC", "Topics by name; default: the group's topics; repeatable.")
    include_retry: bool = about.flag("Include the group's %RETRY% topic.")


class GroupFlags(SomeGroupsOnTopics):
    consumers: Text = about(
        "IDS|@FILE|N", "Consumers of the group, instead of the source's. Give client IDs, @FILE or a count.", stdin="@-"
    )
    sdk: Texts = about(
        "[ID=]java|go|cpp", "Client library of all consumers, or of one; default: as reported, or java; repeatable."
    )

    def arguments(self) -> dict[str, Any]:
        from rmqlb.verbs.parse import members

        given = super().arguments()
        return given if self.consumers is None else given | {"consumers": members(self.consumers)}


class OneGroupOptions(GroupFlags):
    group: Text = own(  # type: ignore[assignment]
        "-g GROUP", "Consumer group; optional if there is only one.", positional="GROUP"
    )


class GroupsOptions(GroupFlags):
    explain: bool = written.flag("Explain the owner of each queue.")


class PopOptions(Options):
    pop_share: int | None = about("N", "Show POP assignment with this popShareQueueNum.", min=-(2**31), max=2**31 - 1)


class OutputOptions(Options):
    output: Text = written(
        "-o FORMAT",
        "Output format: table, wide, plain, json, yaml, csv, markdown. Some commands also write jsonl or prometheus; "
        "piped output is plain.",
        envvar="RMQLB_OUTPUT",
    )
    section: Texts = written(
        "NAME", "Show only this table of the result; repeatable. With -o csv, the first table is the default."
    )
    all: bool = written.flag("Show all tables and rows on a terminal too.")
    color: str = written(
        "auto|always|never",
        "Color mode. With auto, NO_COLOR or FORCE_COLOR decides, otherwise whether output goes to a terminal.",
        "auto",
        envvar="RMQLB_COLOR",
    )
    no_pager: bool = written.flag("Print long tables without a pager.")
    quiet: bool = written.flag("Hide findings and progress.", "-q")
    debug: bool = written.flag("Show where an unexpected error was raised.")
