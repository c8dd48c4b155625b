from msgspec.structs import replace

from rmqlb import GroupScenario, Members, simulate_group
from tests.support.group_builders import us
from tests.support.mismatches import every_case
from tests.support.rebalance_comparison import TOLERANCE_US, alone, compared, disagreements, quantile
from tests.support.recorded_groups import saved

NAMES = ("5.5.0-stale-after-crash", "5.5.0-stale-after-leave", "5.5.0-orderly", "5.5.0-new-broker", "4.9.7")
LITE_PULL = "5.5.0-lite-pull"
FREEZES = ("5.5.0-freeze", "5.5.0-freeze-quiet", "5.5.0-freeze-short", "4.9.7-freeze")
TRIALS = 200
FEW = 100
"""Where measured times are to lie within those of the trials: the fewer, the narrower."""


@every_case("name", [*NAMES, *FREEZES, LITE_PULL])
def test_what_java_clients_went_through_is_what_the_simulation_foretells(name: str) -> None:
    recording = saved(name)
    comparisons = compared(recording, FEW)
    assert sum(len(each.changing) for each in comparisons) >= 20
    assert disagreements(comparisons) == []


@every_case(("name", "changed"), [
    ("5.5.0-stale-after-crash", {"version": "5.1.4"}),
    ("5.5.0-stale-after-leave", {"version": "4.9.7"}),
    ("5.5.0-orderly", {"orderly": False}),
    ("5.5.0-new-broker", {"version": "5.1.4"}),
    ("4.9.7", {"version": "5.5.0"}),
    ("5.5.0-freeze", {"version": "5.1.4"}),
    ("5.5.0-freeze-quiet", {"version": "4.9.7"}),
    ("4.9.7-freeze", {"version": "5.5.0"}),
    (LITE_PULL, {"lite_pull": False, "starts_us": (20_000,)}),
])  # fmt: skip
def test_other_rules_foretell_something_else(name: str, changed: dict[str, object]) -> None:
    recording = saved(name)
    told_otherwise = replace(recording, lived=replace(recording.lived, **changed))
    assert disagreements(compared(told_otherwise, FEW))


@every_case("name", NAMES)
def test_the_first_pull_comes_as_long_after_the_take_as_in_the_recording(name: str) -> None:
    recording = saved(name)
    lived = recording.lived
    orderly = lived.orderly
    scenario = GroupScenario(recording.events, client_version=lived.version, orderly=orderly, until_us=lived.end_us)
    report = simulate_group(lived.group, Members((), "AVG"), [lived.route, lived.retry_route], scenario)
    taken = [each for queue in report.queues if queue.queue.topic == lived.topic for each in queue.takeovers]
    foretold = sorted(us(each.reads_from_ms) - us(each.at_ms) for each in taken if each.reads_from_ms is not None)
    measured = sorted(recording.first_pulls_us)
    assert len(measured) >= 20
    assert foretold[0] - 50_000 < quantile(measured, 50) < foretold[-1] + 50_000
    assert foretold[0] - TOLERANCE_US < measured[0] <= measured[-1] < foretold[-1] + TOLERANCE_US


def test_a_member_that_asks_the_new_broker_first_is_told_that_it_is_alone() -> None:
    new_broker = compared(saved("5.5.0-new-broker"), TRIALS)[-1]
    assert (new_broker.event.kind, new_broker.event.subject) == ("broker-up", "broker-b")
    assert alone(new_broker.measured) == ["127.0.0.1@c1"]
    took_all = [alone(trial) for trial in new_broker.foretold]
    assert 0.35 * TRIALS < took_all.count(["127.0.0.1@c1"]) < 0.65 * TRIALS
    assert took_all.count([]) + took_all.count(["127.0.0.1@c1"]) == TRIALS
