from rmqlb.cli.common.declare import Text, Texts, command, own, shown
from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions
from rmqlb.cli.common.reading import Reader, ask
from rmqlb.cli.common.show_or_watch import WatchOptions, show_verb
from rmqlb.cli.common.terminal import Terminal


class ShowGroupsOptions(StrategyOptions):
    groups: Texts = own("-g --group GLOB", "Only these groups; repeatable.")
    severity: Text = shown("SEVERITY", "Only groups with a finding at least so grave: error, warning or info.")
    fail_on: Texts = own("CONDITION", "Exit 3 when it is met: 'groups-with-errors>0', 'lag[G]>1000'; repeatable.")


@command
def show_groups(
    source: SourceOptions, options: ShowGroupsOptions, output: OutputOptions, watching: WatchOptions
) -> None:
    """Show every consumer group in a line, the worst first.

    Examples:
      rmqlb show-groups -s examples/cluster.json
      rmqlb show-groups -s examples/cluster.json -g 'order-*' -g bill-svc -o json
      rmqlb show-groups -s examples/cluster.json --severity warning --fail-on 'groups-with-errors>0'
      rmqlb show-groups -s examples/cluster.json -o prometheus

    A group is in order when each queue has one owner, as observed or as its consumers' strategy gives it, and when its
    consumers are visible clients of a Proxy (--proxy), which own none. It is unknown when that cannot be known, as for
    consumption by POP. --section findings lists all findings.

    A running cluster's brokers are asked for each group's consumers and offsets, and each consumer for its queues.

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 a name or pattern matches no group, a figure of
    --fail-on is unknown, or a server did not answer, 5 endpoint unreachable.
    """
    from rmqlb.verbs import show_groups as verb
    from rmqlb.views.show_groups import groups_report

    terminal = Terminal("show-groups", output, more_formats=("jsonl", "prometheus"))
    found = ask(verb.show_groups, Reader(source, terminal), options)
    hint = "leave the condition out to see the groups"
    show_verb(found, groups_report, terminal, watching, verb="judging", unknown_hint=hint)
