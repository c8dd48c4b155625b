"""Which planted faults the pipeline's page lists: `python -m benchmarks.signals`, with DuckDB.

A synthetic fleet gets faults, `rmqlb pipeline run` judges its nights, and the page's queries run without their limit.
A listed group is right if it has a planted fault of the signal's kinds. Groups in two languages, of which only some are
at fault, are left out.
"""

from __future__ import annotations

import gzip
import re
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence
from html import unescape
from pathlib import Path
from subprocess import DEVNULL, run
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from benchmarks.measuring import clean_environment, machine, markdown
from rmqlb.engine.allocate import allocate
from rmqlb.engine.allocate.rules import JAVA_CLASSES
from rmqlb.model.group import ConsumerGroup, QueueState
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import PERM_READ, PERM_WRITE, QueueData, TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting
from rmqlb.sources.dump import DumpSource
from tests.support.synthetic.fleet import WHOLE, Clients, Fault, FleetShape, document, generate, planted

FAULTS, TOP = 60, 20  # two thirds of the faults are the generator's, of its kinds in turn
NEW, LAG, IMBALANCE = "new", "lag", "imbalance"
OF_QUEUES = (Fault.UNASSIGNED, Fault.DUPLICATE_OWNERS, Fault.MISMATCHES, NEW)
SIGNALS: Mapping[str, tuple[str, tuple[str, ...]]] = {  # → the start of a table's title, and kinds of faults
    "worst groups": ("Groups with errors first", OF_QUEUES),
    "new findings": ("New since", (NEW,)),
    "lag": ("Lag of", (LAG,)),
    "imbalance": ("Imbalance of", (IMBALANCE,)),
    "unstable groups": ("Unstable groups", (Fault.FLAPPING,)),
    "owners": ("Unassigned queues, duplicate", OF_QUEUES),
}
Named = tuple[str, str]  # cluster and group


def unassigned(group: ConsumerGroup) -> ConsumerGroup:
    """Leave every third queue without an owner."""
    without = {queue: replace(state, owners=frozenset()) for queue, state in list(group.queues.items())[::3]}
    return replace(group, queues={**group.queues, **without})


def behind(group: ConsumerGroup) -> ConsumerGroup:
    """Let one consumer have 20,000 unread messages in each of its queues."""
    slow = min(owner for state in group.queues.values() for owner in state.owners or ())
    late = {queue: state for queue, state in group.queues.items() if slow in (state.owners or ())}
    late = {queue: replace(state, broker_offset=(state.consumer_offset or 0) + 20_000) for queue, state in late.items()}
    return replace(group, queues={**group.queues, **late})


def with_small_topics(snapshot: ClusterSnapshot, name: str) -> ClusterSnapshot:
    """Let a group read further topics of one queue: the first consumer gets all of them."""
    group, routes = snapshot.groups[name], dict(snapshot.routes)
    seen = next(iter(routes.values()))
    broker = seen.route.broker_datas[0]
    queues, topics = dict(group.queues), [f"Small-{name}-{number}" for number in range(3 * len(group.queues))]
    for topic in topics:
        data = QueueData(broker.broker_name, 1, 1, PERM_READ | PERM_WRITE)
        routes[topic] = RouteSighting(TopicRouteData(topic, (data,), (broker,)), seen.seen)
        queue = MessageQueue(topic, broker.broker_name, 0)
        owner = next(each for each, own in allocate("AVG", [queue], sorted(group.reports)).items() if own)
        queues[queue] = QueueState(frozenset({owner}), 100, 100, 1)
    every = frozenset((*(group.topics or ()), *topics))
    reports = {each: replace(report, topics=every) for each, report in group.reports.items()}
    changed = replace(group, queues=queues, topics=tuple(sorted(every)), reports=reports)
    return replace(snapshot, routes=routes, groups={**snapshot.groups, name: changed})


def plant(folder: Path, number: int, taken: Mapping[Named, str]) -> dict[Named, str]:
    """Put so many more faults into the last night, of the kinds in turn."""
    own: dict[Named, str] = {}
    paths = {path.parts[-3].removeprefix("cluster="): path for path in sorted(folder.glob("*/*/*.gz"))}
    for place, (cluster, path) in enumerate(paths.items()):
        snapshot = DumpSource(str(path)).fetch(WHOLE)
        fit = [name for name, group in snapshot.groups.items() if (cluster, name) not in taken and fits(group)]
        wanted = len(range(place, number, len(paths)))
        for at, name in enumerate(fit[:: max(1, len(fit) // wanted)][:wanted]):
            kind = own[cluster, name] = (NEW, LAG, IMBALANCE)[at % 3]
            if kind == IMBALANCE:
                snapshot = with_small_topics(snapshot, name)
            else:
                changed = (unassigned if kind == NEW else behind)(snapshot.groups[name])
                snapshot = replace(snapshot, groups={**snapshot.groups, name: changed})
        path.write_bytes(gzip.compress(document(snapshot)))
    return own


def fits(group: ConsumerGroup) -> bool:
    is_avg = {JAVA_CLASSES.get(each.strategy_class or "") for each in group.reports.values()} == {"AVG"}
    return is_avg and all(q.owners for q in group.queues.values()) and len(group.queues) > len(group.reports) > 2


def listed(page: str, title: str) -> list[Named]:
    """The groups of a table, by the query below it, as DuckDB answers without the limit."""
    import duckdb

    texts = [unescape(text) for text in re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)]
    with duckdb.connect() as reader:
        for views in texts[-3], texts[-1]:
            reader.execute(views)
        query = re.search(r"<pre>(.*?)</pre>", page.partition(f"<h3>{title}")[2], re.DOTALL)
        if query is None:  # a table without rows is not on the page
            return []
        answer = reader.sql(unescape(query[1]).rpartition(" LIMIT ")[0])
        return list(dict.fromkeys(answer.project('cluster, "group"').fetchall()))


def rows(page: str, faults: Mapping[Named, str]) -> Iterable[Sequence[object]]:
    for signal, (title, kinds) in SIGNALS.items():
        wanted = {name for name, kind in faults.items() if kind in kinds}
        found = [name for name in listed(page, title) if faults.get(name) != Clients.MIXED]
        right = wanted.intersection(found)
        precision, recall = (f"{len(right) / len(of):.2f}" if of else "-" for of in (found, wanted))
        top = sum(name in wanted for name in found[:TOP])
        yield signal, len(wanted), len(found), precision, recall, f"{top} of {len(found[:TOP])}"


def main() -> None:
    options = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--groups", type=int, default=2000)
    options.add_argument("--nights", type=int, default=7)
    options.add_argument("--keep", type=Path, metavar="FOLDER")
    given = options.parse_args()
    few = {"topics": given.groups // 5, "faults": FAULTS * 2 / 3 / given.groups, "retry_queues": False, "hot": 0}
    shape = FleetShape(seed=3, groups=given.groups, days=given.nights, **few)
    with TemporaryDirectory() as scratch:
        folder = given.keep or Path(scratch)
        snapshots, page = folder / "snapshots", folder / "page"
        generate(shape, str(snapshots))
        taken = planted(shape)
        count = sum(kind != Clients.MIXED for kind in taken.values())
        faults: dict[Named, str] = {**taken, **plant(snapshots, FAULTS - count, taken)}
        line = [sys.executable, "-m", "rmqlb", "pipeline", "run", "-q", str(snapshots), "-w", str(folder / "wh")]
        run([*line, "--to", str(page)], check=True, stdout=DEVNULL, env=clean_environment())  # noqa: S603
        table = list(rows((page / "index.html").read_text("utf-8"), faults))
    headers = ("signal", "planted", "listed", "precision", "recall", f"correct among the first {TOP}")
    sys.stdout.write(f"{machine()}\n\n{markdown(headers, table)}\n")


if __name__ == "__main__":
    main()
