from rmqlb.cli.common.declare import Options, Texts, command, own
from rmqlb.cli.common.options import OutputOptions, SourceOptions
from rmqlb.cli.common.reading import Reader
from rmqlb.cli.common.show_or_watch import WatchOptions, show
from rmqlb.cli.common.terminal import SnapshotView, Terminal
from rmqlb.engine.source_findings import source_findings
from rmqlb.errors import DataError
from rmqlb.model.snapshot import Wanted


class RouteOptions(Options):
    topics: Texts = own("-t --topic TOPIC", "Repeatable; default: all topics of the source.")


@command(without=("proxy",))
def show_route(source: SourceOptions, output: OutputOptions, watching: WatchOptions, chosen: RouteOptions) -> None:
    """Show a topic's brokers, and the queue lists that producers and consumers make of its route.

    Examples:
      rmqlb show-route -s examples/cluster.json --topic Skewed
      rmqlb show-route -s examples/cluster.json -o json --section brokers

    Exit codes: 0 done, 2 usage, 4 the topic is not there, 5 endpoint unreachable.
    """
    from rmqlb.engine.source_findings import route_findings, sighting_findings
    from rmqlb.views.route_view import route_report

    terminal = Terminal("show-route", output, more_formats=("jsonl",))
    wanted = Wanted(tuple(dict.fromkeys(chosen.topics)) if chosen.topics else None, groups=False)
    read = Reader(source, terminal)

    def look() -> SnapshotView:
        snapshot = read.fetch(wanted)
        for name in wanted.topics or ():
            snapshot.route(name)
        names = wanted.topics or sorted(snapshot.routes)
        if not names:
            raise DataError(f"no route is in {snapshot.endpoint}", code="topic-not-found")
        findings = [finding for name in names for finding in route_findings(snapshot.route(name))]
        findings += (finding for name in names for finding in sighting_findings(snapshot.routes[name]))
        report = route_report([snapshot.routes[name] for name in names])
        return SnapshotView(report, snapshot, (*findings, *source_findings(snapshot)))

    show(look, watching, terminal)
