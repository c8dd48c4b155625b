from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rmqlb.errors import DataError
from rmqlb.verbs import diagnose as verb
from tests.engine.check.clusters import cluster, members
from tests.support.schemas import must_fit

from .run import EXAMPLE, ROOT, Ran, run
from .terminals import CTRL_C, OnTerminal

FAULTS = str(ROOT / "examples" / "four-groups.yaml")
LATER = str(ROOT / "examples" / "cluster-later.json")


def diagnose(*arguments: str, source: str = FAULTS, **more: Any) -> Ran:
    return run("diagnose", "-s", source, *arguments, **more)


def data(*arguments: str, source: str = FAULTS) -> Any:
    ran = diagnose(*arguments, "-o", "json", source=source)
    assert (ran.code, ran.stderr) == (0, "")
    document = json.loads(ran.stdout)
    must_fit(document)
    return document["data"]


def test_several_groups_stand_in_one_result_the_worst_first() -> None:
    found = data("--all-groups")
    assert [each["group"] for each in found["groups"]] == ["dup-svc", "mix-svc", "slow-svc", "calm-svc"]
    assert found["summary"] == {"groups": 4, "withErrors": 2, "withWarnings": 0, "unknown": 2, "inOrder": 0}
    assert found["groups"][0] == data("-g", "dup-svc")
    assert data("-g", "*-svc") == found
    assert [each["group"] for each in data("-g", "mix-svc", "-g", "calm-svc")["groups"]] == ["mix-svc", "calm-svc"]
    assert len(data("-g", "dup-*")["groups"]) == 1


def test_fail_on_ends_with_3_when_a_finding_is_so_grave() -> None:
    for lowest, told in (("error", "errors>0"), ("warning", "errors and warnings>0")):
        ran = diagnose("-g", "mix-svc", "--fail-on", lowest)
        assert (ran.code, ran.stderr) == (3, f"condition met: {told} (it is 1)\n")
        assert ran.stdout == diagnose("-g", "mix-svc").stdout


def test_fail_on_ends_with_4_when_something_is_unknown() -> None:
    ran = diagnose("-g", "calm-svc", "--fail-on", "error")
    assert (ran.code, ran.stdout) == (4, diagnose("-g", "calm-svc").stdout)
    assert ran.stderr.startswith("incomplete: ")
    assert diagnose("-g", "calm-svc").code == 0


def test_an_earlier_snapshot_shows_what_changes() -> None:
    alone = {each["code"] for each in data("-g", "order-svc", source=LATER)["unknown"]}
    found = data("-g", "order-svc", "--earlier", EXAMPLE, source=LATER)
    assert "offset-rewound" in alone
    assert "offset-rewound" in found["checked"]
    assert [each["at"] for each in found["looks"]] == ["2026-11-21T02:02:07Z", "2026-11-22T02:02:07Z"]


def test_earlier_snapshots_may_come_from_stdin_and_in_any_order(tmp_path: Path) -> None:
    document = json.loads(Path(EXAMPLE).read_text(encoding="utf-8"))
    document["source"]["takenAt"] = "2026-11-20T02:02:07Z"
    for group in document["data"]["groups"]:
        group.pop("seen", None)
    before = tmp_path / "before.json"
    before.write_text(json.dumps(document), encoding="utf-8")
    ran = run(
        *("diagnose", "-s", LATER, "-g", "order-svc", "--earlier", "-", "--earlier", str(before), "-o", "json"),
        stdin=Path(EXAMPLE).read_text(encoding="utf-8"),
    )
    looks = [each["at"] for each in json.loads(ran.stdout)["data"]["looks"]]
    assert looks == sorted(looks)
    assert len(looks) == 3


def first(terminal: OnTerminal) -> str:
    return "".join(terminal.lines[1:2])


def test_a_watched_first_line_changes_as_soon_as_the_looks_show_why(tmp_path: Path) -> None:
    """The look before is an earlier one: what one look leaves open, the next one decides."""
    source = tmp_path / "now.json"
    examples = ROOT / "examples"
    source.write_bytes((examples / "faults-before.json").read_bytes())
    with OnTerminal("diagnose", "-s", str(source), "-g", "ship-svc", "--watch", "100ms", lines=50) as terminal:
        terminal.until(lambda: first(terminal).startswith("ship-svc: no problem found, but "))
        later = tmp_path / "later.json"
        later.write_bytes((examples / "faults.json").read_bytes())
        later.replace(source)
        terminal.until(lambda: first(terminal).startswith("ship-svc: the listener of 192.0.2.68@7 is blocked; "))
        terminal.press(CTRL_C)
        assert terminal.end() == 130


def test_a_cluster_without_groups_of_users_has_none_to_diagnose() -> None:
    with pytest.raises(DataError, match="no consumer group is in a test"):
        verb.diagnose(cluster(members("x", name="CID_RMQ_SYS_TRANS")), all_groups=True)
