"""Makes `examples/faults.json` and `examples/faults-before.json`: `python -m tests.support.faults_and_evidence`.

Two looks, ten seconds apart, at groups of which one is in order; the others have a fault each, which shows in what their
consumers report. The consumers are made up; who owns which queue is what each computes.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from rmqlb.model.group import Seen
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.snapshot import ClusterSnapshot
from tests.engine.diagnose.cases import BLOCKED, HEAD
from tests.engine.diagnose.running import Doing, Process, owned, running, watched
from tests.support.builders import route
from tests.support.make_examples import EXAMPLES, snapshot_json

NAMES = ("faults-before", "faults")
ENDPOINT = "rocketmq://192.0.2.10:9876"
ROUTE = route("Parcels", **{"broker-a": 3, "broker-b": 3})  # type: ignore[arg-type]


def process(client_id: str, **more: object) -> Process:
    return Process(client_id, **{"topics": ("Parcels",), "asks": "broker-a", **more})  # type: ignore[arg-type]


def group(
    name: str, *processes: Process, does: Doing | None = None, number: int | None = None
) -> list[ClusterSnapshot]:
    """Two looks at a group, whose last consumer does that with so many of its queues, otherwise with all."""
    seen = running(*processes, routes=(ROUTE,), lag=2)
    last = processes[-1].client_id
    doing: Mapping[tuple[str, MessageQueue], Doing] = (
        {} if does is None else {(last, queue): does for queue in owned(seen, last)[:number]}
    )
    looks = []
    for look in watched(seen, doing, looks=(-10, 0)):
        its = look.groups["g"]
        at = Seen(ENDPOINT, look.taken_at)
        views = tuple(replace(view, seen=at) for view in its.views or ())
        looks.append(replace(look, groups={name: replace(its, group=name, seen=at, views=views)}))
    return looks


def snapshots() -> dict[str, ClusterSnapshot]:
    groups = (
        group("label-svc", process("192.0.2.61@7"), process("192.0.2.62@7")),
        group("mail-svc", process("192.0.2.63@app"), process("192.0.2.63@app"), process("192.0.2.64@app")),
        group("scan-svc", process("192.0.2.65@7"), process("192.0.2.66@7", cut=("broker-b",))),
        group("ship-svc", process("192.0.2.67@7"), process("192.0.2.68@7"), does=BLOCKED),
        group("stock-svc", process("192.0.2.69@7"), process("192.0.2.70@7"), does=HEAD, number=1),
    )
    return {
        name: replace(
            looks[0],
            kind="nameserver",
            endpoint=ENDPOINT,
            routes={t: replace(s, seen=Seen(ENDPOINT, looks[0].taken_at)) for t, s in looks[0].routes.items()},
            groups={name: its for look in looks for name, its in look.groups.items()},
        )
        for name, looks in zip(NAMES, zip(*groups, strict=True), strict=True)
    }


def faults_json(name: str) -> str:
    return snapshot_json(snapshots()[name])


if __name__ == "__main__":
    for each in NAMES:
        (EXAMPLES / f"{each}.json").write_text(faults_json(each))
