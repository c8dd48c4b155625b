from hypothesis import given
from hypothesis import strategies as st

from rmqlb.engine.conditions import parse_condition
from rmqlb.engine.record.compare import FIGURES, Expected, compared, judged, placed, planned, simulated
from rmqlb.model.plan import Move, TopicPlan
from rmqlb.model.recording import Look, RecordingComparison
from tests.engine.record.looks import T0, look, recorded
from tests.support.builders import queues
from tests.support.group_builders import timeline
from tests.support.mismatches import every_case

LOOKS = (look(0, "a:0123"), look(1, "a:0123 b:"), look(2, "a:01 b:23"), look(3, "a:01 b:23"))
"""b joins, and takes 2 and 3 between 0.9 s and 2 s."""


def plan(after: str) -> Expected:
    """A plan of four queues of a: `aabb` is what each has afterwards, `-` nobody."""
    moves = [
        Move("broker-a", number, ("a",), () if owner == "-" else (owner,), "same") for number, owner in enumerate(after)
    ]
    return planned([TopicPlan("T", tuple(moves))])


def simulation(*trials: tuple[str, ...], event: tuple[str, str, float] | None = ("join", "b", 2000)) -> Expected:
    """Trials, each the strips of four queues, a character per second."""
    lines = [[timeline(strip, queue) for strip, queue in zip(trial, queues(4), strict=True)] for trial in trials]
    return simulated(lines, event)


SOON = simulation(("aaaaaa", "aaaaaa", "aaabbb", "aaabbb"))
"""1 s after the event at 2 s."""


def outcomes(comparison: RecordingComparison) -> list[str]:
    return [queue.outcome for queue in comparison.queues]


def against(expected: Expected, *looks: Look, tolerance_ms: int = 0, event_at_ms: int | None = None) -> list[str]:
    return outcomes(compared(recorded(looks or LOOKS, event_at_ms=event_at_ms), expected, "f", tolerance_ms))


@every_case(("after", "found"), [
    ("aabb", ["as-predicted"] * 4),
    ("abbb", ["as-predicted", "not-yet", "as-predicted", "as-predicted"]),
    ("aaab", ["as-predicted", "as-predicted", "other-owner", "as-predicted"]),
    ("aacc", ["as-predicted", "as-predicted", "other-owner", "other-owner"]),
    ("aa-b", ["as-predicted", "as-predicted", "other-owner", "as-predicted"]),
])  # fmt: skip
def test_a_plan_is_compared_by_the_owners_of_the_end(after: str, found: list[str]) -> None:
    assert against(plan(after)) == found


def test_a_queue_on_its_way_has_not_moved_yet_and_an_unknown_one_is_unknown() -> None:
    assert against(plan("aabb"), look(0, "a:0123"), look(1, "a:01 b:"))[2:] == ["not-yet"] * 2
    assert against(plan("aabb"), look(0, "a:0123"), look(1, "a:0123 b:23"))[2:] == ["not-yet"] * 2
    assert against(plan("aaaa"), look(0, "a:012"), look(1, "a:012"))[3] == "not-yet"  # it was unassigned and still is
    # The owners of before are unknown here, and planned there.
    assert against(plan("bbbb"), look(0, "b:", silent="a"), look(1, "a:0123 b:")) == ["not-yet"] * 4
    found = compared(recorded((look(0, "a:0123"), look(1, "b:23", silent="a"))), plan("aabb"), "f", 0)
    assert (outcomes(found), found.differences) == (["unknown"] * 4, 0)
    one = Expected("plan", {}, {queues(1)[0]: ("a",)})  # a queue that the prediction does not name is left out
    assert against(one) == ["as-predicted"]


def test_a_placeholder_is_the_consumer_that_came_instead() -> None:
    moves = [Move("broker-a", n, ("a",), ("a" if n < 2 else "placeholder-01",), "same") for n in range(4)]
    found = compared(recorded(LOOKS), planned([TopicPlan("T", tuple(moves))]), "f", 0)
    assert found.placeholders == {"placeholder-01": "b"}
    assert outcomes(found) == ["as-predicted"] * 4
    assert found.queues[2].owners_predicted == ("b",)


def test_a_simulation_is_aligned_by_the_first_change_of_an_owner() -> None:
    found = compared(recorded(LOOKS), SOON, "f", 0)
    aligned = found.kind, found.aligned_by, found.aligned_from_ms, found.aligned_to_ms
    assert aligned == ("simulation", "first-change", 900, 2000)
    assert outcomes(found) == ["as-predicted"] * 4
    assert (found.queues[2].predicted_from_ms, found.queues[2].predicted_to_ms) == (900, 2000)
    assert (found.queues[2].seen_from_ms, found.queues[2].seen_to_ms) == (900, 2000)


def test_a_queue_whose_interval_is_clear_of_the_predicted_one_is_earlier_or_later() -> None:
    slow = simulation(("aaaaaaaaa", "aaaaaaaaa", "aaabbbbbb", "aaaaaaabb"))
    found = compared(recorded(LOOKS), slow, "f", 0)  # 3 comes 4 s after 2 there, with 2 here: from 4.9 s on
    assert outcomes(found)[2:] == ["as-predicted", "earlier"]
    assert found.queues[3].beside_ms == 2900
    assert against(slow, tolerance_ms=2899)[3] == "earlier"
    assert against(slow, tolerance_ms=2900)[3] == "as-predicted"
    looks = (*LOOKS[:2], look(2, "a:013 b:2"), look(3, "a:013 b:2"), look(9, "a:01 b:23"))
    found = compared(recorded(looks), simulation(("aaaa", "aaaa", "aabb", "aabb")), "f", 0)
    assert outcomes(found)[2:] == ["as-predicted", "later"]
    assert found.queues[3].beside_ms == 900  # not before 2.9 s, predicted until 2 s


def test_a_simulation_is_aligned_by_the_time_of_its_event() -> None:
    found = compared(recorded(LOOKS, event_at_ms=T0 + 500), SOON, "f", 0)
    assert (found.aligned_by, found.aligned_from_ms, found.aligned_to_ms) == ("event-at", 500, 500)
    assert outcomes(found) == ["as-predicted"] * 4
    assert against(SOON, event_at_ms=T0 - 1000)[2:] == ["later"] * 2
    assert against(SOON, event_at_ms=T0 + 1500)[2:] == ["earlier"] * 2


def test_a_simulation_is_aligned_by_the_consumer_that_leaves() -> None:
    looks = (look(0, "a:01 b:23"), look(1, "a:01"), look(5, "a:0123"))
    expected = simulation(("aaaa", "aaaa", "b aa", "b aa"), event=("crash", "b", 1000))
    found = compared(recorded(looks), expected, "f", 0)
    assert (found.aligned_by, found.aligned_from_ms, found.aligned_to_ms) == ("left", -100, 1000)
    assert outcomes(found)[2:] == ["as-predicted"] * 2
    late = simulation(("aaaa", "aaaa", "b      aa", "b      aa"), event=("crash", "b", 1000))
    assert against(late, *looks)[2:] == ["earlier"] * 2


def test_times_are_not_aligned_without_a_change_of_an_owner_here_or_there() -> None:
    still, moving = simulation(("aaaa",) * 4), simulation(("aaaa", "aaaa", "aabb", "aabb"))
    for looks, expected in ((LOOKS, still), (LOOKS[:2], moving)):
        assert compared(recorded(looks), expected, "f", 0).aligned_by is None


def test_several_trials_give_a_range() -> None:
    early = ("aaaaaaaaa", "aaaaaaaaa", "aabbbbbbb", "aabbbbbbb")
    late = (*early[:3], "aaaaaaabb")
    assert against(simulation(late))[3] == "earlier"
    assert against(simulation(early, late))[3] == "as-predicted"


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50), st.integers(0, 50), st.integers(0, 10))
def test_what_may_be_the_same_moment_is_as_predicted(a: int, b: int, c: int, d: int, tolerance: int) -> None:
    seen, predicted = tuple(sorted((a, b))), tuple(sorted((c, d)))
    near = any(
        abs(x - y) <= tolerance for x in range(seen[0], seen[1] + 1) for y in range(predicted[0], predicted[1] + 1)
    )
    found = placed((seen[0], seen[1]), (predicted[0], predicted[1]), tolerance)
    assert (found == "as-predicted") == near
    if not near:
        assert (found == "earlier") == (seen[1] < predicted[0])


def test_a_group_that_has_not_converged_takes_longer_than_any_limit() -> None:
    condition = parse_condition("convergence-at-most>1s", FIGURES)
    still = [look(at, "a:0123", predicted="a:0123") for at in (0, 1)]
    tried = [judged([condition], recorded(looks))[0] for looks in (LOOKS, still)]
    assert [(each.value, each.met) for each in tried] == [(None, True), (0, False)]
