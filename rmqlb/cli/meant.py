"""What to type instead of commands and options that people know from other tools: mqadmin, kubectl, Kafka's, gh."""

import os
from collections.abc import Mapping
from difflib import get_close_matches

_COMMANDS: Mapping[str, str] = {
    **dict.fromkeys(("plan", "scale", "replicas"), "plan-rebalance GROUP --scale-to N"),
    **dict.fromkeys(("restart", "rollout", "deploy", "rolling-restart"), "plan-rollout GROUP"),
    **dict.fromkeys(
        ("lag", "group", "groups", "list", "ls", "get", "top", "status", "consumerProgress"), "show-groups"
    ),
    **dict.fromkeys(("describe", "why", "explain-group", "analyze", "analyse"), "diagnose GROUP"),
    **dict.fromkeys(("consumer", "consumers", "members", "clients", "consumerConnection"), "show-consumers GROUP"),
    **dict.fromkeys(("owner", "owners", "assignment", "allocateMQ", "allocate"), "show-owners GROUP"),
    **dict.fromkeys(("route", "routes", "topic", "topics", "brokers", "topicRoute", "topicList"), "show-route TOPIC"),
    **dict.fromkeys(("dump", "export", "fetch", "backup"), "fetch-routes --to FILE"),
    **dict.fromkeys(("updateTopic", "alter", "queues"), "plan-topic TOPIC --queues N"),
    **dict.fromkeys(("rebalance", "reassign"), "plan-rebalance or rmqlb simulate-rebalance"),
    "simulate": "simulate-rebalance, rmqlb simulate-send or rmqlb simulate-receive",
    **dict.fromkeys(("send", "produce", "producer"), "simulate-send TOPIC"),
    **dict.fromkeys(("receive", "consume", "pop"), "simulate-receive TOPIC"),
    **dict.fromkeys(("size", "howmany", "how-many", "capacity"), "size-group GROUP"),
    **dict.fromkeys(("failures", "sweep", "chaos"), "sweep-failures"),
    **dict.fromkeys(("watch", "monitor", "tail"), "show-groups --watch"),
    **dict.fromkeys(("contexts", "use", "login", "ctx"), "context list"),
    **dict.fromkeys(("lint", "validate", "policy"), "check"),
    **dict.fromkeys(("compare", "drift"), "diff A B"),
    "show": "show-groups, rmqlb show-consumers, rmqlb show-owners or rmqlb show-route",
    "help": "--help",
    "version": "--version",
}
_OPTIONS: Mapping[str, str] = {
    **dict.fromkeys(
        ("sort", "order-by", "sort-by"), "rows are sorted worst first; for another order, use -o json with jq"
    ),
    **dict.fromkeys(("json", "yaml", "csv", "markdown"), "write -o {}"),
    **dict.fromkeys(("format", "out", "output-format"), "write -o FORMAT, such as -o json"),
    **dict.fromkeys(("namespace", "ns"), "put the namespace into the name, as in -g 'NAMESPACE%GROUP'"),
    **dict.fromkeys(("timeout", "request-timeout"), "write --source-timeout 5s for one request, --deadline 1m for all"),
    **dict.fromkeys(("verbose", "v", "vv", "trace"), "--all lists every row; some commands also have --explain"),
    **dict.fromkeys(("limit", "head", "max-rows"), "write rmqlb … -o plain | head"),
    **dict.fromkeys(
        ("replicas", "scale", "consumer-count", "instances"), "write rmqlb plan-rebalance GROUP --scale-to N"
    ),
    **dict.fromkeys(("server", "url", "host", "bootstrap-server", "file", "f", "input"), "name the source with -s"),
    **dict.fromkeys(("password", "pass"), "set RMQLB_PASSWORD, or pass --password-file FILE"),
    **dict.fromkeys(("secret-key", "sk"), "set RMQLB_SECRET_KEY, or pass --secret-key-file FILE"),
    **dict.fromkeys(("ak", "username", "login"), "write --user for a Dashboard, --access-key for NameServers"),
    **dict.fromkeys(("profile", "env", "cluster", "c"), "write --context NAME; rmqlb context list shows all contexts"),
    **dict.fromkeys(("no-color", "no-colour", "colour"), "write --color never, or set NO_COLOR=1"),
    **dict.fromkeys(("dry-run", "apply", "yes", "force", "execute"), "leave it out: rmqlb never changes the cluster"),
    **dict.fromkeys(("queues", "partitions"), "write --read-queues N --write-queues N, or plan-topic --queues N"),
    **dict.fromkeys(("silent", "s"), "write -q"),
}


def command_hint(typed: str, known: list[str], *, first: bool) -> str | None:
    """What to type instead of an unknown command, the first word or one behind it; None where nothing is like it."""
    meant = {name.lower(): command for name, command in _COMMANDS.items()} if first else {}
    if typed.lower() in meant:
        return f"did you mean rmqlb {meant[typed.lower()]}?"
    close = get_close_matches(typed.lower(), known, n=3)
    if close:
        return f"did you mean {' or '.join(close)}?"
    if "://" in typed or os.path.exists(typed):
        return f"put a command first: rmqlb show-groups -s {typed}"
    if near := get_close_matches(typed.lower(), meant, n=1):
        return f"did you mean rmqlb {meant[near[0]]}?"
    return f"put a command first, as in rmqlb diagnose {typed}" if first and set("-_%") & set(typed) else None


def option_hint(typed: str, known: list[str]) -> str | None:
    """What to type instead of an option that a command does not have; None where nothing is like it."""
    name = typed.lstrip("-").lower()
    own = {each.lstrip("-"): each for each in known}  # the dashes are no likeness
    if name in _OPTIONS and name not in own:
        return _OPTIONS[name].format(name)
    parts = [each for each in own if each.startswith(f"{name}-") or each.endswith(f"-{name}")]
    close = [own[each] for each in parts or get_close_matches(name, own)]
    return f"did you mean {' or '.join(close)}?" if close else None
