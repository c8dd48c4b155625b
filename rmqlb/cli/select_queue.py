from typing import get_args

from rmqlb.cli.common.declare import Options, Panel, Text, Texts, about, command, own
from rmqlb.cli.common.options import OutputOptions, SourceOptions
from rmqlb.cli.common.reading import Reading, keys_in
from rmqlb.cli.common.terminal import Terminal
from rmqlb.errors import UsageError
from rmqlb.model.snapshot import Wanted

_change = Panel("Changes")


class KeyOptions(Options):
    topic: Text = own("-t TOPIC", "Topic of the messages.", positional="TOPIC")
    key: Texts = own("-k KEY", "Message group or sharding key; repeatable.")
    keys: Text = own("FILE|-", "Message keys, one per line, in addition to --key.", stdin="-")
    sdk: Texts = about(
        "SDK[@VERSION]",
        "Client library of the producers, such as go; default: all; repeatable. Versions are written as go-grpc@5.1.4.",
    )
    proxy_mode: str = about(
        "local|cluster",
        "Proxy mode of gRPC producers: local or cluster. A local Proxy runs in each broker, a cluster Proxy "
        "separately.",
        "local",
    )
    add_broker: Texts = _change(
        "NAME[:READ[:WRITE]]",
        "Broker to add at the end of the route. Queue counts default to those of the other brokers.",
    )
    remove_broker: Texts = _change("NAME", "Broker to remove from the route.")
    write_queues: Texts = _change("[BROKER=]N", "Write queues per broker, or of BROKER only.")


@command(without=("proxy",))
def select_queue(source: SourceOptions, chosen: KeyOptions, output: OutputOptions) -> None:
    """Show the queue of each message group or sharding key, for each SDK.

    Examples:
      rmqlb select-queue -s examples/cluster.json --topic Skewed --key order-1 --key order-2
      rmqlb select-queue -s examples/cluster.json --topic Skewed --keys examples/keys.txt --sdk java --sdk go
      rmqlb select-queue -s examples/cluster.json --topic Skewed --keys examples/keys.txt --write-queues 16

    Exit codes: 0 done, 2 usage, 4 the topic does not exist or has no writable queue, 5 endpoint unreachable.
    """
    from rmqlb.engine.plan.changes import Edits, change_routes, describe
    from rmqlb.engine.send.findings import keyed_findings
    from rmqlb.engine.send.profile import sdks_of
    from rmqlb.engine.send.select_queue import key_queues
    from rmqlb.engine.source_findings import sighting_findings, source_findings
    from rmqlb.model.send_scenario import ProxyMode
    from rmqlb.verbs import parse as values
    from rmqlb.verbs.amounts import one_of
    from rmqlb.views.select_queue import key_queues_report

    terminal = Terminal("select-queue", output, more_formats=("jsonl",))
    topic = values.named_topic(chosen.topic)
    mode: ProxyMode = one_of(chosen.proxy_mode, "--proxy-mode", get_args(ProxyMode))
    sdks, texts = sdks_of(chosen.sdk or ()), _keys(chosen, source.max_size)
    added = tuple(values.new_broker(text, f"--add-broker {text}") for text in chosen.add_broker or ())
    counts = values.queue_counts(chosen.write_queues or (), "--write-queues")
    changes = Edits(add_brokers=added, remove_brokers=tuple(chosen.remove_broker or ()), write_queues=counts)
    snapshot = Reading(source, terminal).fetch(Wanted((topic,), groups=False))
    route = snapshot.route(topic)
    after = change_routes([route], changes)[0] if changes.touches_route else None
    found = key_queues(route, texts, sdks, mode, after=after, changes=describe(changes))
    of_route, of_sdks = sighting_findings(snapshot.routes[topic]), keyed_findings(found.sdks)
    findings = (*of_route, *source_findings(snapshot), *of_sdks)
    terminal.show(key_queues_report(found), snapshot, findings)


def _keys(chosen: KeyOptions, max_size: str) -> list[str]:
    found = list(chosen.key or ())
    if any(not key.strip() for key in found):
        raise UsageError("--key: the key is empty", hint="messages without a key go to all queues in turn")
    if chosen.keys is not None:
        found += keys_in(chosen.keys, max_size)
    if not found:
        raise UsageError("you gave no key", hint="pass keys with --key, or a file with one key per line with --keys")
    return list(dict.fromkeys(found))
