import json
from pathlib import Path
from typing import Any

import pytest

from .run import EXAMPLE, changed_example, envelope_of, run

IDS = "10.0.0.1@1,10.0.0.2@1,10.0.0.3@1"


def test_only_the_pinned_topic_goes_to_its_machines() -> None:
    named = ("--strategy", "PIN", "--strategy", "AVG", "--strategy-option", "pin=Skewed=10.0.0.2,10.0.0.3")
    found = envelope_of("show-owners", "-s", EXAMPLE, "-g", "order-svc", "--consumers", IDS, *named)
    for queue in found["data"]["queues"]:
        pinned, free = queue["owners"]["PIN-AVG"], queue["owners"]["AVG"]
        assert (pinned == free) if queue["topic"] == "OrderEvents" else pinned[0] in ("10.0.0.2@1", "10.0.0.3@1")
    assert not {"pin-over-all", "pin-no-consumer"} & {each["code"] for each in found["findings"]}


def with_go(document: Any) -> None:
    for group in document["data"]["groups"]:
        for connection in (each for view in group["views"] or () for each in view["connections"]):
            if connection["clientId"] == "192.0.2.2@inst0":
                connection |= {"language": "GO", "version": "V4_5_2"}


@pytest.mark.parametrize("redact", [(), ("--redact",)])
def test_a_snapshot_of_a_snapshot_keeps_client_libraries(tmp_path: Path, redact: tuple[str, ...]) -> None:
    def numbers(*more: str) -> list[list[int]]:
        named = ("-g", group, "--strategy", "CONSISTENT_HASH", *more)
        data = envelope_of("show-owners", "-s", again, *named)["data"]
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
