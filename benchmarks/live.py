"""`rmqlb show-owners` beside the mqadmin commands that it replaces, on one live cluster: `python -m benchmarks.live`.

Both ask the same RocketMQ 5.5.0 cluster on loopback, in turns: rmqlb once, mqadmin twice (`topicRoute` and
`allocateMQ`), as an operator would have to. Needs Java 17 and Maven.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

from benchmarks.correctness import GROUP, MEMBERS, MQADMIN, STRATEGY, TOPICS, all_queues
from benchmarks.installation import installation
from benchmarks.measuring import Spread, Usage, in_turns, machine, markdown, ratio
from tests.live.cluster import RocketMQCluster, TopicOnBroker
from tests.live.members import running_members

TOPIC = "OrderEvents"
AIM = 0.1


def together(*runs: Sequence[Usage]) -> list[Usage]:
    """Several commands as one: their times added up, turn by turn.

    >>> together([Usage(1.0, 5, 0.5)], [Usage(2.0, 9, 0.25)])
    [Usage(seconds=3.0, peak_bytes=9, cpu_seconds=0.75)]
    """
    return [
        Usage(sum(u.seconds for u in turn), max(u.peak_bytes for u in turn), sum(u.cpu_seconds for u in turn))
        for turn in zip(*runs, strict=True)
    ]


def ratios(usages: Mapping[str, Sequence[Usage]]) -> dict[str, Spread]:
    """Ours in units of both mqadmin commands together."""
    ours, theirs = usages["rmqlb"], together(usages["topicRoute"], usages["allocateMQ"])
    return {
        "wall": ratio([u.seconds for u in ours], [u.seconds for u in theirs]),
        "CPU": ratio([u.cpu_seconds for u in ours], [u.cpu_seconds for u in theirs]),
    }


def main() -> None:
    """Start the cluster and its members, measure in turns, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="turns that count (default: %(default)s)")
    rounds = parser.parse_args().rounds
    with installation(None) as installed, RocketMQCluster("5.5.0", brokers=["broker-a", "broker-b"]) as cluster:
        cluster.create_topics([TopicOnBroker(t, b, n, n) for t, on in TOPICS.items() for b, n in on.items()])
        with running_members(cluster, GROUP, STRATEGY, tuple(TOPICS), MEMBERS) as members:
            ids = ",".join(members.settled(all_queues()))
            name_server = ("-n", cluster.name_server, "-t", TOPIC)
            source = ("-s", f"rocketmq://{cluster.name_server}", "--group", GROUP, "--topic", TOPIC)
            usages = in_turns(
                {
                    "rmqlb": [installed.rmqlb, "show-owners", *source],
                    "topicRoute": cluster.java.command(MQADMIN, "topicRoute", *name_server),
                    "allocateMQ": cluster.java.command(MQADMIN, "allocateMQ", *name_server, "-i", ids),
                },
                rounds,
            )
    rows = [(name, spread, f"{AIM} (aim)" if name == "wall" else "") for name, spread in ratios(usages).items()]
    sys.stdout.write(f"{machine()}, {rounds} turns\n\n")
    sys.stdout.write(markdown(("time", "rmqlb / (topicRoute + allocateMQ)", ""), rows) + "\n")


if __name__ == "__main__":
    main()
