"""Every command with arguments that make it say as much as it can: what the tests of this folder walk.

A command that is added is added here; `test_command_lines.py` fails until it is.
"""

from collections.abc import Iterator
from pathlib import Path

from typer.core import TyperGroup
from typer.main import get_command

from rmqlb.cli import click
from rmqlb.cli.main import app
from rmqlb.views.report import FORMATS

ON_A_GROUP = {
    "show-consumers": (),
    "show-owners": ("--explain",),
    "plan-rebalance": ("--add", "2", "--remove", "1", "--explain", "--strategy", "AVG"),
    "simulate-rebalance": ("--event", "join 1@5s", "--explain", "--strategy", "AVG"),
    "size-group": ("--strategy", "all", "--sizes", "1..3", "--survive", "1", "--survive-broker", "--set", "id-sets=3"),
    "plan-rollout": ("--strategy", "AVG", "--to-strategy", "AVG_BY_CIRCLE", "--pause", "30s", "--trials", "2"),
}
ON_A_TOPIC = {
    "show-route": (),
    "select-queue": ("--key", "order-1", "--key", "order-2", "--add-broker", "broker-x"),
    "plan-topic": ("--queues", "16"),
    "simulate-send": ("--fail", "*@#1-#2:SYSTEM_BUSY", "--messages", "5", "--trace"),
    "simulate-receive": ("--fail", "*@1s-2s", "--messages", "5", "--trace"),
}
ON_A_SNAPSHOT = {
    "show-groups": (), "diagnose": ("--group", "*", "--samples", "1"), "fetch-routes": (),
    "sweep-failures": ("--policy", str(Path(__file__).parent / "policy.yaml"), "--today", "2026-11-21"),
    "check": ("--policy", str(Path(__file__).parent / "policy.yaml"), "--today", "2026-11-21"),
}  # fmt: skip
ON_TWO_SNAPSHOTS = {"diff": ("-", str(Path(__file__).parent.parent.parent / "examples" / "cluster.json"))}
"""Commands that take no `-s` but two snapshots, the hostile one from stdin."""
WITHOUT_A_SNAPSHOT = frozenset(
    {"record", "pipeline", "context", "config", "schema", "explain", "completion", "options", "doctor"}
)
"""Commands that read no snapshot, or have their own tests: `tests/cli/test_record.py`, `tests/sources/test_opening.py`, `tests/pipeline`, which starts Spark."""
OWN_FORMATS = {
    "fetch-routes": ("json", "yaml", "jsonl"),
    **dict.fromkeys(
        ("show-consumers", "show-route", "diagnose", "diff", "plan-rebalance", "simulate-send", "select-queue"),
        (*FORMATS, "jsonl"),
    ),
    **dict.fromkeys(("show-groups", "show-owners"), (*FORMATS, "jsonl", "prometheus")),
    "check": (*FORMATS, "junit", "sarif", "prometheus"),
}
CODES = {"fetch-routes": 4, "check": 3, "sweep-failures": 4}
"""How a command ends for a snapshot that is hostile, where not with 0: it is also incomplete, and breaks every rule;
no topic can be judged where NameServers may differ."""
LOOKING = frozenset({"show-groups", "show-route", "fetch-routes", "diagnose", "diff"})
"""Commands that have something to say where NameServers give different routes."""
READING = {**ON_A_SNAPSHOT, **ON_A_TOPIC, **ON_A_GROUP}
PAGES = ("show-groups", "diagnose", "plan-rebalance", "diff", "simulate-rebalance")
"""Commands with `--html`; `record` has a picture's page too, and its own tests."""


def commands() -> tuple[str, ...]:
    tree = get_command(app)
    assert isinstance(tree, TyperGroup)
    return tuple(tree.list_commands(click.Context(tree)))


def runs(topic: str) -> Iterator[tuple[str, ...]]:
    """Each reading command in each of its formats, without its source."""
    for name, more in {**READING, **ON_TWO_SNAPSHOTS}.items():
        of = ("--topic", topic) if name in ON_A_TOPIC else ()
        for output in OWN_FORMATS.get(name, FORMATS):
            yield (name, *of, *more, "-o", output)
    for picture in ("--svg", "--html"):
        yield ("simulate-rebalance", *ON_A_GROUP["simulate-rebalance"], picture, "-")
