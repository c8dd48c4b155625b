"""A group of several client libraries: as grave as what their shares make of the queues."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rmqlb.model.group import Connection
from rmqlb.model.snapshot import ClusterSnapshot
from tests.engine.diagnose.running import Process, changed, diagnosed, finding, grave, running
from tests.engine.diagnose.test_diagnose import HASH
from tests.support.builders import route, short
from tests.support.mismatches import every_case


@every_case(
    ("strategy", "language"),
    [("AVG", "GO"), ("AVG", "CPP"), ("AVG", "PYTHON"), ("AVG", "RUST"), ("AVG_BY_CIRCLE", "GO")],
)
def test_libraries_that_compute_the_same_shares_are_no_fault(strategy: str, language: str) -> None:
    found = diagnosed(
        running(Process("x", strategy), Process("y", strategy, language=language), Process("z", strategy))
    )
    assert grave(found) == []
    assert "mixed-sdks" not in found.checked
    cause = finding(found, "mixed-sdks")
    assert (cause.severity, cause.consumers, cause.queues) == ("info", ("y",), ())
    assert [(each.fact, each.value) for each in cause.evidence] == [
        ("language of x, z", "JAVA"),
        ("language of y", language),
    ]
    assert cause.consequence == "Client libraries compute the same shares; with another strategy they may not."


def test_two_rings_are_why_queues_are_unassigned_or_have_two_owners() -> None:
    hashing = (Process("x", HASH), Process("y", HASH, language="GO"), Process("z", HASH))
    snapshot = running(*hashing, routes=(route(a=8, b=8),))
    found = diagnosed(snapshot)
    assert grave(found) == ["mixed-sdks"]
    cause = found.findings[0]
    states = snapshot.groups["g"].queues
    unassigned = [queue for queue, state in states.items() if not state.owners]
    several = [queue for queue, state in states.items() if len(state.owners or ()) > 1]
    assert unassigned
    assert several
    assert (cause.severity, cause.consumers, sorted(cause.queues)) == ("error", ("y",), sorted(unassigned + several))
    assert cause.consequence.startswith("Client libraries compute different shares: ")
    assert cause.remedy == "Use one client library in a group; most consumers use JAVA."
    owned_alike = len(states) - len(unassigned) - len(several)
    assert cause.explains is not None
    assert (cause.explains.reproduces, cause.explains.fixes_all, cause.explains.queues_explained) == (True, True, 16)
    assert (cause.explains.queues_explained_without or 0) <= owned_alike
    came = {each.code: each.causes for each in found.consequences}
    assert came == dict.fromkeys(("unassigned-queues", "duplicate-owners"), ("mixed-sdks",))


def test_a_cpp_consumer_runs_avg_whatever_the_others_run() -> None:
    found = diagnosed(running(Process("x", HASH), Process("y", HASH), Process("z", HASH, language="CPP")))
    assert grave(found) == ["mixed-sdks"]
    assert found.findings[0].severity == "error"
    mostly = diagnosed(running(Process("x", HASH), *(Process(each, HASH, language="CPP") for each in "yz")))
    assert grave(mostly) == ["mixed-sdks"]
    assert mostly.findings[0].consumers == ("x",)


def test_without_observed_owners_the_prediction_says_how_grave_it_is() -> None:
    def found(strategy: str) -> tuple[str, int]:
        snapshot = running(Process("x", strategy), Process("y", strategy, language="GO"), Process("z", strategy))
        cause = finding(diagnosed(changed(snapshot, queues={})), "mixed-sdks")
        return cause.severity, len(cause.queues)

    assert found("AVG") == ("info", 0)
    severity, queues = found(HASH)
    assert severity == "error"
    assert queues > 0


def test_what_cannot_be_predicted_may_not_add_up() -> None:
    snapshot = running(Process("x"), Process("y", language="GO"))
    reports = snapshot.groups["g"].reports
    own = changed(
        snapshot, reports={**reports, "x": replace(reports["x"], strategy_class="com.example.Own")}, queues={}
    )
    cause = finding(diagnosed(own), "mixed-sdks")
    assert (cause.severity, cause.consequence) == (
        "warning",
        "Client libraries have different rules; shares may not add up.",
    )
    unread = changed(running(Process("x"), Process("y", language="RUST")), queues={})
    cause = finding(diagnosed(unread), "mixed-sdks")
    assert (cause.severity, cause.consequence) == ("warning", "The rules of RUST are unknown; shares may not add up.")


def test_a_library_with_another_fault_is_not_blamed_for_it() -> None:
    """Consumer x has its ID twice; its Go neighbour computes what a Java one would."""
    found = diagnosed(running(Process("x"), Process("x"), Process("y", language="GO")))
    assert grave(found) == ["duplicate-client-id"]
    assert finding(found, "mixed-sdks").severity == "info"
    twice = diagnosed(running(Process("x", HASH, language="GO"), Process("x", HASH, language="GO"), Process("y", HASH)))
    assert grave(twice)[:2] == ["mixed-sdks", "duplicate-client-id"]
    assert twice.findings[0].explains is not None
    assert twice.findings[0].explains.reproduces


def by_circle(language: str) -> ClusterSnapshot:
    """Consumer z runs AVG_BY_CIRCLE among consumers that run AVG, and reports no strategy, as Go's clients do."""
    snapshot = running(Process("x"), Process("y"), Process("z", "AVG_BY_CIRCLE", language="GO"))
    group = snapshot.groups["g"]
    views = tuple(
        replace(view, connections=tuple(_in(language, each) for each in view.connections)) for view in group.views or ()
    )
    return changed(snapshot, views=views)


def _in(language: str, connection: Connection) -> Connection:
    return replace(connection, language=language) if connection.client_id == "z" else connection


def test_a_go_consumer_of_another_strategy_which_it_does_not_report_is_why_queues_have_no_owner() -> None:
    found = diagnosed(by_circle("GO"))
    assert grave(found) == ["mixed-sdks"]
    cause = found.findings[0]
    bad = [queue for queue, state in by_circle("GO").groups["g"].queues.items() if len(state.owners or ()) != 1]
    assert (cause.severity, cause.consumers, cause.topic) == ("error", ("z",), "T")
    assert (len(bad), short(list(cause.queues))) == (4, short(sorted(bad)))
    assert cause.consequence == (
        "Client libraries compute different shares: 2 queues unassigned, 2 queues with duplicate owners; "
        "20 messages unread in unassigned queues."
    )
    came = {each.code: each.causes for each in found.consequences}
    assert came == dict.fromkeys(("unassigned-queues", "duplicate-owners", "mismatch"), ("mixed-sdks",))
    assert "unassigned-queues" in grave(diagnosed(by_circle("JAVA")))


@pytest.mark.parametrize("processes", [(Process("x"),), (Process("x"), Process("w"))])
def test_other_shares_of_consumers_of_the_usual_language_are_no_matter_of_languages(
    processes: tuple[Process, ...],
) -> None:
    snapshot = running(*processes, Process("y", language="GO"))
    queues = snapshot.groups["g"].queues
    lost = {
        q: replace(state, owners=frozenset()) if "x" in (state.owners or ()) else state for q, state in queues.items()
    }
    found = diagnosed(changed(snapshot, queues=lost))
    assert [(each.code, each.severity) for each in found.findings] == [
        ("unassigned-queues", "error"),
        ("mixed-sdks", "info"),
    ]
