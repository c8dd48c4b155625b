from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, pairwise, product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb import BrokerData, MessageQueue, QueueData, TopicRouteData
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.conditions import parse_condition
from rmqlb.engine.record.compare import FIGURES, Expected, compared, judged, placed, planned, simulated
from rmqlb.engine.record.follow import Follower, lines_of, sample_of
from rmqlb.model.group import ConsumerGroup, QueueState
from rmqlb.model.plan import Move, TopicPlan
from rmqlb.model.recording import ConvergedBy, Ended, GroupSample, QueueRecording, Recording, RecordingComparison
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Unread
from tests.support.builders import HERE, group, queues
from tests.support.group_builders import timeline
from tests.support.mismatches import every_case

T0 = 1_800_000_000_000
"""When the first look is answered, in milliseconds since 1970."""


def look(
    seconds: float,
    owners: str,
    *,
    took_ms: int = 100,
    silent: str = "",
    lists: bool = True,
    predicted: str | None = None,
    queues_there: int | None = None,
) -> GroupSample:
    """A look whose last answer came so many seconds after the first look's.

    `owners` are "a:01 b:2 c:" of queues 0, 1, 2 of broker-a; `silent` are consumers that are listed and do not answer.
    """
    held = _held(owners)
    given = None if predicted is None else _held(predicted)
    there = tuple(queues(4 if queues_there is None else queues_there))
    return GroupSample(
        T0 + round(seconds * 1000) - took_ms, T0 + round(seconds * 1000), owned=held,
        unanswered=dict.fromkeys(silent.split(), "timed out"),
        listed=frozenset(held.keys() | set(silent.split())) if lists else None, routes={"T": there},
        predicted=None if given is None else {q: tuple(sorted(i for i in given if q in given[i])) for q in there},
        strategy=None if given is None else "AVG",
    )  # fmt: skip


def failed(seconds: float, reason: str = "it does not answer") -> GroupSample:
    return GroupSample(T0 + round(seconds * 1000) - 100, T0 + round(seconds * 1000), failed=reason)


def _held(text: str) -> Mapping[str, frozenset[MessageQueue]]:
    parts = [part.partition(":") for part in text.split()]
    return {client_id: frozenset(MessageQueue("T", "broker-a", int(q)) for q in its) for client_id, _, its in parts}


def followed(*looks: GroupSample) -> Follower:
    follower = Follower("g", 1000)
    for each in looks:
        follower.add(each)
    return follower


def recorded(looks: Iterable[GroupSample], *, event_at_ms: int | None = None) -> Recording:
    return followed(*looks).recording("time", event_at_ms)


CLIENTS = ("a", "b", "c")


def looked(text: str) -> tuple[GroupSample, ...]:
    """Looks a second apart: `a:01 b:2; a:0 ?b`, where b does not answer; `!` is a look that fails.

    `~`: a broker did not say whom it lists; `/3`: 3 queues are there and not 4, `/0`: the topic is not subscribed to.
    """
    found = []
    for at, words in enumerate(part.split() for part in text.split(";")):
        there = next((int(word[1:]) for word in words if word[0] == "/"), 4)
        silent = " ".join(word[1:] for word in words if word[0] == "?")
        owners = " ".join(word for word in words if ":" in word)
        one = look(at, owners, silent=silent, lists="~" not in words, queues_there=there)
        found.append(failed(at) if "!" in words else one if there else replace(one, routes={}))
    return tuple(found)


def news_of(looks: Iterable[GroupSample]) -> Iterator[str]:
    """The news of each look: `a gained 1: one b, …`."""
    follower = Follower("g", 1000)
    for each in looks:
        news = []
        for line in follower.add(each):
            text = " ".join(str(x) for x in (line.client_id, line.change, line.queue_id) if x is not None)
            news.append(text + (f": {line.state} {','.join(line.owners or ())}".rstrip() if line.state else ""))
        yield ", ".join(news)


MOVES = "a:01 b:23; a:01 b:23; a:0 b:123"
SILENT = "a:01 b:23; b:23 ?a; b:23 ?a; a:0 b:123"
LEAVES = "a:01 b:23; b:23 ?a; b:23; b:0123"
UNLISTED = "a:01 b:23; b:23 ~; a:01 b:23"
FAILS = "a:01 b:23; !; !; a:0 b:123; a:0 b:123"
ONE_MOVED = "a lost 1: one b, b gained 1: one b"


@every_case(("looks", "news"), [
    (MOVES, ["", ONE_MOVED]),
    (SILENT, ["a silent", "", f"a answers, {ONE_MOVED}"]),
    (LEAVES, ["a silent", "a left, a lost 0: unassigned, a lost 1: unassigned", "b gained 0: one b, b gained 1: one b"]),
    (UNLISTED, ["a silent", "a answers"]),
    (FAILS, ["failed", "", f"seen, {ONE_MOVED}", ""]),
])  # fmt: skip
def test_only_what_is_new_is_said(looks: str, news: list[str]) -> None:
    owners = "owners 0: one a, owners 1: one a, owners 2: one b, owners 3: one b"
    assert [*news_of(looked(looks))] == [owners, *news]
    assert recorded(looked(looks)).figures.failed_samples == looks.count("!")


NEVER, NEW, GONE = "a:123 ?b; a:123 ?b", "a:012 /3; a:012; a:0123; a:0123", "a:0123; a:012 /3; a:012 /3"


def queue_of(number: int, looks: str) -> QueueRecording:
    return next(queue for queue in recorded(looked(looks)).queues if queue.queue_id == number)


@every_case(("looks", "number", "changes", "spans", "gap"), [
    (MOVES, 1, "a lost 900-2000, b gained 900-2000", "0-0.9 one a, 0.9-1.9 unknown", (0, 1000)),
    # a consumer that does not answer has lost nothing, and the interval widens
    (SILENT, 1, "a lost -100-3000, b gained 1900-3000", "0-2.9 unknown", (0, 2900)),
    (SILENT, 2, "", "0-2.9 one b", (0, 0)),
    # its queues are unknown until no broker lists it
    (LEAVES, 0, "a lost -100-2000, b gained 1900-3000", "0-2.9 unknown", (0, 2900)),
    # one that is not listed is not gone when a broker did not say whom it lists
    (UNLISTED, 0, "", "0-1.9 unknown", (0, 1900)),
    # a look that fails is a gap in knowledge
    (FAILS, 1, "a lost -100-3000, b gained -100-3000", "0-3 unknown, 3-3.9 one b", (0, 3000)),
    (FAILS, 0, "", "0-3 unknown, 3-3.9 one a", (0, 3000)),
    # a consumer that never answered may own anything
    (NEVER, 0, "", "0-0.9 unknown", (0, 900)),
    (NEW, 3, "a gained 900-2000", "0-2 unknown, 2-2.9 one a", (0, 2000)),
    (GONE, 3, "a lost -100-1000", "0-1 unknown, 1-1.9 gone", (0, 1000)),
    # a topic that comes into the subscription has queues that may be new
    ("a:012 /0; a:012; a:012", 3, "", "0-1 unknown, 1-1.9 unassigned", (900, 1900)),
    # the longest gap lies between the certain and the possible: lost from -0.1 to 1, gained from 1.9 to 3
    ("a:01 b:23; a:0 b:23; a:0 b:23; a:0 b:123; a:0 b:123", 1, "a lost -100-1000, b gained 1900-3000", "0-1 unknown, 1-1.9 unassigned, 1.9-3 unknown, 3-3.9 one b", (900, 3000)),
])  # fmt: skip
def test_what_is_known_of_a_queue(looks: str, number: int, changes: str, spans: str, gap: tuple[int, int]) -> None:
    queue = queue_of(number, looks)
    assert ", ".join(f"{c.client_id} {c.change} {c.from_ms:g}-{c.to_ms:g}" for c in queue.changes) == changes
    states = ((each.from_ms / 1000, each.to_ms / 1000, each.state, ",".join(each.owners)) for each in queue.intervals)
    assert ", ".join(f"{start:g}-{end:g} {state} {owners}".strip() for start, end, state, owners in states) == spans
    assert (queue.longest_gap_at_least_ms, queue.longest_gap_at_most_ms) == gap


def test_consumers_join_between_two_lists_and_owners_at_both_ends_are_unknown_new_or_none() -> None:
    recording = recorded((look(0, "a:0123"), look(1, "a:0123", silent="b"), look(2, "a:01 b:23")))
    (joined,) = recording.consumer_changes
    assert (joined.change, joined.client_id, joined.from_ms, joined.to_ms) == ("joined", "b", -100, 1000)
    (gained,) = (each for each in recording.queues[2].changes if each.change == "gained")
    assert (gained.from_ms, gained.to_ms) == (-100, 2000)
    never, came = queue_of(0, NEVER), queue_of(3, NEW)
    assert (never.owners_before, never.owners_after, came.owners_before, came.owners_after) == (None, None, (), ("a",))
    assert recorded(looked(GONE)).figures.unassigned == 0


@every_case(("ended", "by", "change", "reason"), [
    ("converged", "prediction", "converged", "as the strategy predicts"),
    ("converged", "unchanged", "converged", "unchanged for 25 s"),
    ("time", "prediction", "ended", "the time is over"),
    ("interrupted", None, "ended", "interrupted"),
])  # fmt: skip
def test_the_last_line_says_why_it_ended(ended: Ended, by: ConvergedBy | None, change: str, reason: str) -> None:
    line = followed(look(0, "a:0123")).ended(ended, by)
    assert (line.change, line.reason, line.sample, line.topic) == (change, reason, 1, None)


def test_a_recording_is_told_again_in_lines() -> None:
    follower = Follower("g", 1000)
    news = []
    for each in (look(0, "a:0123"), look(1, "a:01 b:23"), look(2, "a:01 b:23", silent="c")):
        news += [line for line in follower.add(each) if line.not_after is not None]
    again = lines_of(follower.recording("time"))
    assert [line.at for line in again] == sorted(line.at for line in news)
    assert {*again} == {replace(line, sample=None, state=None, owners=None) for line in news}
    assert len(again) == len(news) == 6
    assert (follower.recording("time").started_at, again[0].at) == (
        "2027-01-15T08:00:00.000Z",
        "2027-01-15T08:00:01.000Z",
    )


SETTLED = look(0, "a:01 b:23"), look(1, "a:01 b:23")


@every_case(("looks", "converged"), [
    # one owner each, in two samples, as predicted
    ((look(0, "a:0123", predicted="a:0123"), look(1, "a:0123", predicted="a:0123")), "prediction"),
    ((look(1, "a:0123", predicted="a:0123"), look(2, "a:01 b:23", predicted="a:01 b:23")), None),
    (tuple(look(at, "a:01 b:23", predicted="a:01 b:23") for at in (2, 3)), "prediction"),
    (tuple(look(at, "a:01 b:23", predicted="a:0 b:123") for at in (2, 3)), None),
    # without a prediction, what is unchanged for longer than a rebalance interval
    ((look(0, "a:01 b:23"), look(25, "a:01 b:23")), None),
    ((look(0, "a:01 b:23"), look(25, "a:01 b:23"), look(25.1, "a:01 b:23")), "unchanged"),
    # c does not say what it owns
    ((look(0, "a:01 b:23"), look(25, "a:01 b:23"), *(look(at, "a:01 b:23", silent="c") for at in (26, 27, 60))), None),
    # unassigned, duplicate and unknown owners
    *(((*SETTLED, last), None) for last in (look(2, "a:01 b:2"), look(2, "a:012 b:23"), failed(2), look(2, "a:01 b:23", lists=False))),
])  # fmt: skip
def test_converged_is_as_predicted_twice_or_unchanged(looks: tuple[GroupSample, ...], converged: str | None) -> None:
    assert followed(*looks).converged() == converged


def test_convergence_counts_from_the_event_or_from_the_first_change() -> None:
    looks = ((0, "a:0123"), (1, "a:0123 b:"), (2, "a:01 b:2"), (3, "a:01 b:23"), (4, "a:01 b:23"))
    seen = [look(at, owners, predicted="a:01 b:23" if at else "a:0123") for at, owners in looks]
    # the first change is b in the lists, between -0.1 and 1; the last is queue 3, between 1.9 and 3
    figures = recorded(seen).figures
    assert (figures.convergence_at_least_ms, figures.convergence_at_most_ms) == (900, 3100)
    figures = recorded(seen, event_at_ms=T0 + 500).figures
    assert (figures.convergence_at_least_ms, figures.convergence_at_most_ms) == (1400, 2500)
    assert (figures.changed, figures.moved) == (2, 2)
    assert [(each.gained, each.lost) for each in recorded(seen).consumers] == [(0, 2), (2, 0)]


Toggles = Mapping[tuple[str, MessageQueue], tuple[int, ...]]
"""When each consumer really took or lost a queue, in milliseconds."""


def owners_at(toggles: Toggles, queue: MessageQueue, at: int) -> set[str]:
    return {i for (i, of), times in toggles.items() if of == queue and sum(t <= at for t in times) % 2}


@st.composite
def truths(draw: st.DrawFn) -> tuple[Toggles, tuple[GroupSample, ...]]:
    """Consumers that answer at some time of each look, or do not.

    Between two answers that follow each other a consumer changes each queue once at the most: what is changed and
    changed back is not seen.
    """
    some = queues(2)
    number = draw(st.integers(2, 6))
    asked, spans, at = [], [], 0
    for _ in range(number):
        begin = at + draw(st.integers(1, 2000))
        end = begin + draw(st.integers(1, 900))
        spans.append((begin, end))
        asked.append({c: draw(st.integers(begin, end)) if draw(st.integers(0, 4)) else None for c in CLIENTS})
        at = end
    asked[0] = {c: asked[0][c] or spans[0][0] for c in CLIENTS}
    toggles: dict[tuple[str, MessageQueue], tuple[int, ...]] = {}
    for client_id in CLIENTS:
        for queue in some:
            times = [-1] if draw(st.booleans()) else []
            for before, after in pairwise(asked):
                low, high = before[client_id], after[client_id]
                if low is not None and high is not None and high > low and draw(st.integers(0, 2)) == 0:
                    times.append(draw(st.integers(low + 1, high)))
            # while it does not answer anything may happen
            for place, each in enumerate(asked):
                if each[client_id] is None and draw(st.booleans()):
                    known = [then for a in asked[:place] if (then := a[client_id]) is not None]
                    times += draw(st.lists(st.integers(max(known) + 1, spans[place][1]), max_size=3))
            toggles[client_id, queue] = tuple(sorted(times))
    looks = tuple(
        GroupSample(
            T0 + begin,
            T0 + end,
            owned={
                c: frozenset(q for q in some if c in owners_at(toggles, q, t)) for c, t in each.items() if t is not None
            },
            unanswered={c: "timed out" for c, t in each.items() if t is None},
            listed=frozenset(CLIENTS),
            routes={"T": tuple(some)},
        )
        for (begin, end), each in zip(spans, asked, strict=True)
    )
    return toggles, looks


def longest(flags: list[bool]) -> int:
    return max((len(list(run)) for flag, run in groupby(flags) if flag), default=0)


@given(truths())
def test_true_changes_and_gaps_are_within_their_bounds(truth: tuple[Toggles, tuple[GroupSample, ...]]) -> None:
    toggles, looks = truth
    recording, follower = recorded(looks), Follower("g", 1000)
    lines = [line for each in looks for line in follower.add(each) if line.change in ("gained", "lost")]
    assert len(lines) == len(recording.changes)
    origin = looks[0].answered_at - T0
    for queue in recording.queues:
        for change in queue.changes:
            times = toggles[change.client_id, queue.queue]
            assert any(change.from_ms + origin <= time <= change.to_ms + origin for time in times), change
        moments = [owners_at(toggles, queue.queue, origin + ms) for ms in range(1, recording.end_ms)]
        gap, overlap = longest([not each for each in moments]), longest([len(each) > 1 for each in moments])
        assert queue.longest_gap_at_least_ms - 1 <= gap <= queue.longest_gap_at_most_ms
        assert queue.longest_overlap_at_least_ms - 1 <= overlap <= queue.longest_overlap_at_most_ms
        for each in queue.intervals:
            for ms in range(int(each.from_ms) + 1, int(each.to_ms)):
                true = owners_at(toggles, queue.queue, origin + ms)
                assert set(each.owners) <= true
                if each.state == "unassigned":
                    assert not true
        edges = [0, *(each.to_ms for each in queue.intervals)]
        assert [each.from_ms for each in queue.intervals] == edges[:-1]
        assert edges[-1] == recording.end_ms or not queue.intervals


AVG, HASH = "AllocateMessageQueueAveragely", "AllocateMessageQueueConsistentHash"
RETRY = MessageQueue("%RETRY%g", "broker-a", 0)

FOUR = TopicRouteData("T", (QueueData("broker-a", 4, 4, 6),), (BrokerData("c", "broker-a", {0: "x:10911"}),))


def look_at(seen: ConsumerGroup, *unread: Unread, topics: tuple[str, ...] = (), **settings: Any) -> GroupSample:
    routes, groups = {"T": RouteSighting(FOUR, HERE)}, {"g": replace(seen, topics=("T", "%RETRY%g"))}
    snapshot = ClusterSnapshot("nameserver", "x", routes=routes, groups=groups, unread=unread)
    return sample_of(snapshot, "g", 1, 2, topics, Settings(**settings))


def owning(ids: str, owners: str, java_class: str | None = AVG, reporting: str = "") -> ConsumerGroup:
    """A group whose four queues have these owners, a letter each and `-` for nobody."""
    owned = {queue: owner.strip("-") for queue, owner in zip(queues(4), owners, strict=True)}
    reported = {} if java_class is None else dict.fromkeys(reporting or ids.split(), java_class)
    return group(ids, owners=owned, reports=reported)


def test_who_answers_owns_what_it_says_of_the_topics_that_are_asked_for() -> None:
    seen = owning("a b", "aab-")
    found = look_at(replace(seen, queues={**seen.queues, RETRY: QueueState(frozenset("a"))}))
    some = queues(4)
    assert found.owned == {"a": frozenset(some[:2]), "b": frozenset(some[2:3])}
    assert (found.listed, found.unanswered, found.failed) == (frozenset("ab"), {}, None)
    assert (found.routes, found.asked_at, found.answered_at) == ({"T": tuple(some)}, 1, 2)
    nobody = look_at(replace(group(), views=(), queues={queue: QueueState() for queue in some}))
    assert (nobody.owned, nobody.listed, nobody.unanswered) == ({}, frozenset(), {})
    other, seen = MessageQueue("U", "broker-a", 0), owning("a", "aaaa")
    seen = replace(seen, queues={**seen.queues, other: QueueState(frozenset("a"))})
    assert look_at(seen).owned["a"] == {*queues(4), other}
    assert look_at(seen, topics=("T",)).owned["a"] == {*queues(4)}
    assert look_at(seen, topics=("U",)).routes == {}  # its route was not read


def test_consumers_that_do_not_answer_and_lists_that_are_missing_are_unknown() -> None:
    seen = owning("a b c", "aaaa", reporting="a")
    found = look_at(seen, Unread("member", "g", "timed out", "b"), Unread("member", "other", "late", "c"))
    assert found.unanswered == {"b": "timed out", "c": "it did not say which queues it owns"}
    assert found.owned.keys() == {"a"}
    seen = owning("a", "aaaa")
    assert look_at(seen, Unread("members", "g", "timed out", "broker-b")).listed is None
    assert look_at(seen, Unread("members", "other", "timed out", "broker-b")).listed == frozenset("a")
    assert look_at(replace(seen, views=None)).listed is None


def test_only_a_strategy_that_consumers_report_is_predicted() -> None:
    """Without the settings that it needs neither."""
    found = look_at(owning("a b", "aaaa"))
    assert (found.strategy, found.predicted) == ("AVG", dict(zip(queues(4), map(tuple, "aabb"), strict=True)))
    for own in (None, "MyOwnStrategy"):
        found = look_at(owning("a b", "aabb", own, reporting="a"))
        assert (found.strategy, found.predicted) == (None, None)
    assert look_at(owning("a b", "aabb", "AllocateMessageQueueByMachineRoom")).predicted is None
    hashed = owning("a b", "aabb", HASH)
    few, many = (look_at(hashed, virtual_nodes=nodes).predicted for nodes in (1, 500))
    assert few is not None
    assert few != many


LOOKS = (look(0, "a:0123"), look(1, "a:0123 b:"), look(2, "a:01 b:23"), look(3, "a:01 b:23"))
"""b joins, and takes 2 and 3 between 0.9 s and 2 s."""


def plan(after: str) -> Expected:
    """A plan of four queues of a: `aabb` is what each has afterwards, `-` nobody."""
    moves = [Move("broker-a", n, ("a",), () if each == "-" else (each,), "same") for n, each in enumerate(after)]
    return planned([TopicPlan("T", tuple(moves))])


def simulation(*trials: tuple[str, ...], event: tuple[str, str, float] | None = ("join", "b", 2000)) -> Expected:
    """Trials, each the strips of four queues, a character per second."""
    lines = [[timeline(strip, queue) for strip, queue in zip(trial, queues(4), strict=True)] for trial in trials]
    return simulated(lines, event)


SOON = simulation(("aaaaaa", "aaaaaa", "aaabbb", "aaabbb"))
"""1 s after the event at 2 s."""


def outcomes(comparison: RecordingComparison) -> list[str]:
    return [queue.outcome for queue in comparison.queues]


def against(
    expected: Expected, *looks: GroupSample, tolerance_ms: int = 0, event_at_ms: int | None = None
) -> list[str]:
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


LEFT = look(0, "a:01 b:23"), look(1, "a:01"), look(5, "a:0123")
CRASH = ("crash", "b", 1000)
STILL, MOVING = simulation(("aaaa",) * 4), simulation(("aaaa", "aaaa", "aabb", "aabb"))


@every_case(("looks", "expected", "event_at_ms", "aligned"), [
    (LOOKS, SOON, None, ("first-change", 900, 2000)),
    (LOOKS, SOON, T0 + 500, ("event-at", 500, 500)),
    (LEFT, simulation(("aaaa", "aaaa", "b aa", "b aa"), event=CRASH), None, ("left", -100, 1000)),
    # without a change of an owner here or there times are not aligned
    (LOOKS, STILL, None, None),
    (LOOKS[:2], MOVING, None, None),
])  # fmt: skip
def test_a_simulation_is_aligned_by_an_event_or_the_first_change(
    looks: tuple[GroupSample, ...], expected: Expected, event_at_ms: int | None, aligned: tuple[str, int, int] | None
) -> None:
    found = compared(recorded(looks, event_at_ms=event_at_ms), expected, "f", 0)
    assert found.kind == "simulation"
    if aligned is None:
        assert found.aligned_by is None
        return
    assert (found.aligned_by, found.aligned_from_ms, found.aligned_to_ms) == aligned
    assert outcomes(found) == ["as-predicted"] * 4


def test_a_change_clear_of_the_predicted_time_of_all_trials_is_earlier_or_later() -> None:
    early, late = (("aaaaaaaaa", "aaaaaaaaa", strip, strip) for strip in ("aabbbbbbb", "aaaaabbbb"))
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
    for expected, from_ms, to_ms in ((SOON, 900, 2000), (simulation(early, late), 900 - 3000, 2000 + 3000)):
        queue = compared(recorded(LOOKS), expected, "f", 0).queues[2]
        seen = (queue.seen_from_ms, queue.seen_to_ms)
        assert (queue.predicted_from_ms, queue.predicted_to_ms, *seen) == (from_ms, to_ms, 900, 2000)
    strips = ("aaaaaa", "aaaaaa", "aaabbb", "aaabbb")  # of the first trial; its owners count
    assert against(simulation(strips, ("aaaaaa",) * 4))[2:] == ["as-predicted"] * 2
    brief = recorded((*LOOKS, look(5, "a:01 b:23 c:2"), look(7, "a:01 b:23 c:")))  # what c gains does not last
    assert compared(brief, SOON, "f", 0).queues[2].seen_to_ms == 2000
    assert against(SOON, event_at_ms=T0 - 1000)[2:] == ["later"] * 2
    assert against(SOON, event_at_ms=T0 + 1500)[2:] == ["earlier"] * 2
    assert against(simulation(("aaaa", "aaaa", "b      aa", "b      aa"), event=CRASH), *LEFT)[2:] == ["earlier"] * 2
    much_later = (*early[:3], "aaaaaaabb")
    assert against(simulation(much_later))[3] == "earlier"
    assert against(simulation(early, much_later))[3] == "as-predicted"


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50), st.integers(0, 50), st.integers(0, 10))
def test_what_may_be_the_same_moment_is_as_predicted(a: int, b: int, c: int, d: int, tolerance: int) -> None:
    seen, predicted = tuple(sorted((a, b))), tuple(sorted((c, d)))
    moments = (range(low, high + 1) for low, high in (seen, predicted))
    near = any(abs(x - y) <= tolerance for x, y in product(*moments))
    found = placed((seen[0], seen[1]), (predicted[0], predicted[1]), tolerance)
    assert (found == "as-predicted") == near
    if not near:
        assert (found == "earlier") == (seen[1] < predicted[0])


def test_a_group_that_has_not_converged_takes_longer_than_any_limit() -> None:
    condition = parse_condition("convergence-at-most>1s", FIGURES)
    still = [look(at, "a:0123", predicted="a:0123") for at in (0, 1)]
    tried = [judged([condition], recorded(looks))[0] for looks in (LOOKS, still)]
    assert [(each.value, each.met) for each in tried] == [(None, True), (0, False)]
