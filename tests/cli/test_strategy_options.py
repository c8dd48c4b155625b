import json
from pathlib import Path
from typing import Any

import pytest

from rmqlb.verbs.strategies import KEYS
from tests.support.mismatches import every_case

from .run import EXAMPLE, changed_example, envelope_of, error_of, run

GROUP = ("-s", EXAMPLE, "--group", "order-svc")
PLAN = ("plan-rebalance", *GROUP, "--add", "1")
ON = ("--consumers", "10.0.0.1@1,10.0.0.2@1,10.0.0.3@1")


def refused(*line: str) -> tuple[str, str | None, str]:
    ran = run(*line, "-q")
    assert (ran.code, ran.stdout) == (2, "")
    error = error_of(ran.stderr)
    return error.message, error.hint, error.code


def given(*texts: str) -> tuple[str, ...]:
    return tuple(part for text in texts for part in ("--strategy-option", text))


def data_and_findings(*line: str) -> tuple[Any, dict[str, str]]:
    document = envelope_of(*line)
    return document["data"], {each["code"]: each["message"] for each in document["findings"]}


VALUES = {
    "virtual-nodes": "3", "idc": "r", "queues": "none.yaml", "inner": "AVG", "broker-zone": "*=z", "client-zone": "*=z",
    "host": "192.0.2.2", "pin": "T=192.0.2.2",
}  # fmt: skip


@every_case("key", KEYS)
def test_a_key_that_no_strategy_looks_at_is_refused(key: str) -> None:
    own = KEYS[key].strategies
    option = f"--strategy-option {key}={VALUES[key]}"
    look = f"only {own[0]} uses" if len(own) == 1 else None
    for line, named in (
        (("show-owners", *GROUP), "AVG, AVG_BY_CIRCLE, CONSISTENT_HASH"),
        ((*PLAN, "--strategy", "AVG_BY_CIRCLE"), "AVG_BY_CIRCLE"),
        (("simulate-rebalance", *GROUP, "--event", "leave #0@9s", "--strategy", "AVG"), "AVG"),
        (("plan-rollout", *GROUP, "--strategy", "AVG", "--to-strategy", "AVG_BY_CIRCLE"), "AVG, AVG_BY_CIRCLE"),
    ):
        if set(own) & set(named.split(", ")):
            continue
        message, hint, code = refused(*line, *given(f"{key}={VALUES[key]}"))
        assert message.startswith(f"{option}: {look or 'only '}")
        assert message.endswith(f" it, but you named {named}")
        assert (hint, code) == (f"leave it out, or name {own[0]} as the strategy", "strategy-option-unused")


def test_only_the_pinned_topic_goes_to_its_machines() -> None:
    named = ("--strategy", "PIN", "--strategy", "AVG", *given("pin=Skewed=10.0.0.2,10.0.0.3"))
    data, findings = data_and_findings("show-owners", *GROUP, *ON, *named)
    for queue in data["queues"]:
        pinned, free = queue["owners"]["PIN-AVG"], queue["owners"]["AVG"]
        assert (pinned == free) if queue["topic"] == "OrderEvents" else pinned[0] in ("10.0.0.2@1", "10.0.0.3@1")
    assert not {"pin-over-all", "pin-no-consumer"} & findings.keys()


FIRST = "192.0.2.2@inst0"
RING = ("--strategy", "CONSISTENT_HASH")


def with_go(document: Any) -> None:
    for group in document["data"]["groups"]:
        for connection in (each for view in group["views"] or () for each in view["connections"]):
            if connection["clientId"] == FIRST:
                connection |= {"language": "GO", "version": "V4_5_2"}


@pytest.mark.parametrize("redact", [(), ("--redact",)])
def test_a_snapshot_of_a_snapshot_keeps_client_libraries(tmp_path: Path, redact: tuple[str, ...]) -> None:
    def numbers(*more: str) -> list[list[int]]:
        data = json.loads(run("show-owners", "-s", again, "-g", group, *RING, *more, "-o", "json").stdout)["data"]
        return [[each["unassigned"], each["duplicateOwners"]] for each in data["strategies"]]

    again = str(tmp_path / "again.json")
    Path(again).write_text(
        run("fetch-routes", "-s", changed_example(tmp_path, with_go), *redact, "-o", "json", "-q").stdout, "utf-8"
    )
    (group, first), *_ = (
        (each["group"], connection["clientId"])
        for each in json.loads(Path(again).read_text("utf-8"))["data"]["groups"]
        for view in each["views"]
        for connection in view["connections"]
        if connection["language"] == "GO"
    )
    assert numbers() == numbers("--sdk", "java", "--sdk", f"{first}=go")
    assert numbers() != numbers("--sdk", "java") == [[0, 0]]


RULES_FILE = """\
print("loaded")
throws = lambda group, client_id, queues, client_ids: queues[len(queues)]

def circle(group, client_id, queues, client_ids):
    print("asked", group)
    return queues[client_ids.index(client_id) :: len(client_ids)]
"""


def test_stdout_has_the_result_alone_and_debug_shows_where_a_function_fails(tmp_path: Path) -> None:
    file = tmp_path / "my-rules.py"
    file.write_text(RULES_FILE, encoding="utf-8")
    owners = ("show-owners", "-s", EXAMPLE, "-g", "bill-svc", "--strategy")
    ran = run(*owners, f"{file}:circle", "--strategy", "AVG_BY_CIRCLE", "-o", "json")
    assert ran.stderr.startswith("loaded\nasked bill-svc\n")
    ours, javas = json.loads(ran.stdout)["data"]["strategies"]
    assert (ours.pop("strategy"), javas.pop("strategy"), ours) == ("circle (my-rules.py)", "AVG_BY_CIRCLE", javas)
    assert "Traceback" not in run(*owners, f"{file}:throws").stderr
    assert f'File "{file}", line 2, in <lambda>' in run(*owners, f"{file}:throws", "--debug").stderr
