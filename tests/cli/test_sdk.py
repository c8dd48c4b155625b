from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.mismatches import every_case

from .run import error_of, run

GROUP = ("-s", "examples/cluster.json", "--group", "order-svc")
FIRST = "192.0.2.2@inst0"
RING = ("--strategy", "CONSISTENT_HASH")


def owners(*more: str) -> list[dict[str, list[str]]]:
    ran = run("show-owners", *GROUP, *more, "-o", "json")
    assert ran.code == 0, ran.stderr
    return [queue["owners"] for queue in json.loads(ran.stdout)["data"]["queues"]]


def codes(*line: str) -> set[str]:
    return {finding["code"] for finding in json.loads(run(*line, "-o", "json").stdout)["findings"]}


def test_a_consumer_of_another_library_owns_what_its_own_ring_gives_it() -> None:
    java, go = owners(*RING), owners(*RING, "--sdk", "go")
    mixed = owners(*RING, "--sdk", f"{FIRST}=go")
    assert owners(*RING, "--sdk", "JAVA") == java != go
    for queue, of_java, of_go in zip(mixed, java, go, strict=True):
        expected = {*of_java["CONSISTENT_HASH"]} - {FIRST} | {*of_go["CONSISTENT_HASH"]} & {FIRST}
        assert set(queue["CONSISTENT_HASH"]) == expected


def test_a_group_of_several_libraries_is_said_to_be_one() -> None:
    told = {"mixed-sdks", "assumed-sdk"}
    assert told & codes("show-owners", *GROUP, "--sdk", f"{FIRST}=go@9.0") == told
    assert told & codes("show-owners", *GROUP, "--sdk", f"{FIRST}=go") == {"mixed-sdks"}
    assert told & codes("show-owners", *GROUP, "--sdk", "go") == set()


def test_a_plan_says_what_the_two_rings_leave_unassigned() -> None:
    line = ("plan-rebalance", *GROUP, *RING, "--remove", "192.0.2.2@inst2", "--sdk", f"{FIRST}=go", "-o", "json")
    summary = json.loads(run(*line).stdout)["data"]["summary"]
    assert summary["after"]["unassigned"] > 0
    assert summary["after"]["duplicateOwners"] > 0


def test_a_simulation_says_how_well_the_rules_of_its_consumers_are_known() -> None:
    def used(*more: str) -> list[tuple[str, str, int, int]]:
        line = ("simulate-rebalance", *GROUP, "--event", "join new@1@1s", "--event", "join other@1@2s", *more)
        sdks = json.loads(run(*line, "-o", "json").stdout)["data"]["sdks"]
        assert all(each["library"] and each["vectors"] > 0 and each["live"] in (True, False) for each in sdks)
        return [(each["sdk"], each["mirrors"], each["consumers"], each["assumed"]) for each in sdks]

    consumers = len(json.loads(run("show-owners", *GROUP, "-o", "json").stdout)["data"]["sortedConsumers"])
    assert used("--sdk", "go") == [("go", "2.1.2", consumers + 2, 0)]
    java, go = used("--sdk", f"{FIRST}=go", "--sdk", "new@1=go@9.0")
    assert java[:3] == ("java", "5.5.0", consumers)
    assert go == ("go", "2.1.2", 2, 1)
    assert java[3] >= 1  # nothing is known of the other one that joins


def test_a_cpp_group_shows_avg_and_is_refused_another() -> None:
    assert all(queue.keys() == {"AVG"} for queue in owners("--sdk", "cpp"))
    ran = run("plan-rebalance", "--add", "1", *GROUP, "--sdk", "cpp", "--strategy", "AVG_BY_CIRCLE", "-q")
    assert (ran.code, error_of(ran.stderr).code) == (2, "strategy-not-in-sdk")


@every_case(
    ("given", "code"),
    [
        ("rust", "unknown-sdk"),
        ("x=java-grpc", "unknown-sdk"),
        ("x=", "unknown-sdk"),
        ("go@new", "usage"),
        ("go java", "given-twice"),
        ("x=go x=go", "given-twice"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_read(given: str, code: str) -> None:
    for command in ("show-owners", "plan-rebalance", "simulate-rebalance", "plan-rollout"):
        texts = [part for text in given.split() for part in ("--sdk", text)]
        ran = run(command, "-s", "no-such-file", "-g", "g", *texts, "-q")
        error = error_of(ran.stderr)
        assert (ran.code, ran.stdout, error.code) == (2, "", code)
        assert error.message.startswith("--sdk ")
        more = ("--for", "1s") if command == "simulate-rebalance" else ()
        error = error_of(run(command, *GROUP, "--sdk", "nobody@1=go", "-q", *more).stderr)
        assert (error.message, error.code) == ("--sdk nobody@1=…: it is never in the group", "not-in-group")


def with_go(tmp_path: Path) -> str:
    document = json.loads(Path("examples/cluster.json").read_text("utf-8"))
    for group in document["data"]["groups"]:
        for view in group["views"] or ():
            for connection in view["connections"]:
                if connection["clientId"] == FIRST:
                    connection |= {"language": "GO", "version": "V4_5_2"}
    (tmp_path / "go.json").write_text(json.dumps(document), "utf-8")
    return str(tmp_path / "go.json")


@pytest.mark.parametrize("redact", [(), ("--redact",)])
def test_a_snapshot_of_a_snapshot_keeps_client_libraries(tmp_path: Path, redact: tuple[str, ...]) -> None:
    def numbers(*more: str) -> list[list[int]]:
        data = json.loads(run("show-owners", "-s", again, "-g", group, *RING, *more, "-o", "json").stdout)["data"]
        return [[each["unassigned"], each["duplicateOwners"]] for each in data["strategies"]]

    again = str(tmp_path / "again.json")
    Path(again).write_text(run("fetch-routes", "-s", with_go(tmp_path), *redact, "-o", "json", "-q").stdout, "utf-8")
    (group, first), *_ = (
        (each["group"], connection["clientId"])
        for each in json.loads(Path(again).read_text("utf-8"))["data"]["groups"]
        for view in each["views"]
        for connection in view["connections"]
        if connection["language"] == "GO"
    )
    assert numbers() == numbers("--sdk", "java", "--sdk", f"{first}=go")
    assert numbers() != numbers("--sdk", "java") == [[0, 0]]
