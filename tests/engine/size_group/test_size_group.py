import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb import DataError, MessageQueue, SizeLimits, SizeQuestion, TopicRouteData, UsageError, allocate, size_group
from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.plan.changes import Changes, change_members
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.engine.size_group.sizes import HashSizes, IdSizes, future_ids, heirs_on_rings, layout_of
from rmqlb.model.size_group import GroupSize
from tests.support import builders
from tests.support.mismatches import every_case

Topics = Sequence[Sequence[MessageQueue]]
Work = Mapping[MessageQueue, float]


class Own(NamedTuple):
    queues: Counter[str]
    busiest: float
    unassigned: int
    duplicate_owners: int

    @property
    def imbalance(self) -> float | None:
        total = self.queues.total()
        return max(self.queues.values()) * len(self.queues) / total if total else None

    @property
    def idle(self) -> int:
        return list(self.queues.values()).count(0)


def own(strategy: str, topics: Topics, client_ids: Sequence[str], work: Work | None = None, **settings: Any) -> Own:
    numbers, busy = Counter(dict.fromkeys(client_ids, 0)), dict.fromkeys(client_ids, 0.0)
    owners = Counter({queue: 0 for queues in topics for queue in queues})
    for queues in filter(None, topics):
        for client_id, share in allocate(strategy, queues, client_ids, **settings).items():
            numbers[client_id] += len(share)
            owners.update(share)
            busy[client_id] += sum((work or {}).get(queue, 0) for queue in share)
    of_queues = list(owners.values())
    return Own(numbers, max(busy.values()), of_queues.count(0), sum(number > 1 for number in of_queues))


def fails(strategy: str, topics: Topics, client_ids: Sequence[str], limits: SizeLimits) -> set[str]:
    if not client_ids or not any(topics):
        return {"nothing left"}
    found, uneven = own(strategy, topics, client_ids), set[str]()
    if limits.max_imbalance is not None and (found.imbalance is None or found.imbalance > limits.max_imbalance):
        uneven.add("max-imbalance")
    return uneven | ({"no-idle"} if limits.no_idle and found.idle else set())


def all_fails(strategy: str, topics: Topics, client_ids: Sequence[str], limits: SizeLimits) -> set[str]:
    """What does not hold, after losses too; of each loss of consumers and each of a broker."""
    found = fails(strategy, topics, client_ids, limits)
    lost = [each for number in range(1, limits.survive + 1) for each in combinations(client_ids, number)]
    if limits.survive >= len(client_ids):
        lost.append(tuple(client_ids))
    if any(fails(strategy, topics, [i for i in client_ids if i not in gone], limits) for gone in lost):
        found.add("survive")
    brokers = {queue.broker_name for queues in topics for queue in queues} if limits.survive_broker else set()
    left = [[[q for q in queues if q.broker_name != broker] for queues in topics] for broker in brokers]
    if any(fails(strategy, each, client_ids, limits) for each in left):
        found.add("survive-broker")
    return found


def queues_of(routes: Sequence[TopicRouteData]) -> list[list[MessageQueue]]:
    return [route.subscribe_queues() for route in routes]


EVEN = SizeLimits(max_imbalance=1.1, no_idle=True)


def route(topic: str, **brokers: int) -> TopicRouteData:
    return builders.route(topic, **brokers)  # type: ignore[arg-type]


def sized(*routes: TopicRouteData, limits: SizeLimits = EVEN, most: int = 12, **more: Any) -> GroupSize:
    question = SizeQuestion(limits=limits, consumers=more.pop("consumers", (1, most)), **more)
    return size_group("g", routes, question)


def ids(number: int, seed: int = 0) -> list[str]:
    drawn = random.Random(seed)
    return [f"10.0.{drawn.randrange(256)}.{place}@{drawn.randrange(10**5)}" for place in range(number)]


topics = st.lists(
    st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(1, 9), min_size=1), min_size=1, max_size=4
)
limits_of = st.builds(
    SizeLimits,
    max_imbalance=st.none() | st.sampled_from([1.0, 1.1, 1.25, 1.5, 2.0]),
    no_idle=st.booleans(),
    survive=st.integers(0, 2),
    survive_broker=st.booleans(),
)


def id_sets(strategy: str, settings: Settings, **asked: Any) -> list[list[str]]:
    by_id = strategy == "CONSISTENT_HASH"
    return future_ids(strategy, settings, SizeQuestion(**asked), 6) if by_id else [ids(6)]


@given(topics, limits_of, st.sampled_from(WITHOUT_SETTINGS), st.integers(0, 5), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_random_groups_equal_brute_force(
    brokers: list[dict[str, int]], limits: SizeLimits, strategy: str, seed: int, drawn: random.Random
) -> None:
    routes = [route(f"T{place}", **counts) for place, counts in enumerate(brokers)]
    work = {queue: drawn.choice([0.0, 0.25, 3.5, 7.0]) for queues in queues_of(routes) for queue in queues}
    asked: dict[str, Any] = {"strategies": (strategy,), "trials": 4, "seed": seed}
    found = sized(*routes, limits=limits, most=6, work=work, threads=4, **asked)
    trials = id_sets(strategy, Settings(), trials=4, seed=seed)
    assert len(trials) == (found.trials or 1)
    for point in found.curve:
        joined = [each[: point.consumers] for each in trials]
        of_trials = [all_fails(strategy, queues_of(routes), each, limits) for each in joined]
        assert point.share == of_trials.count(set()) / len(trials)
        assert point.satisfied == (not any(of_trials))
        owned = [own(strategy, queues_of(routes), each, work) for each in joined]
        assert point.imbalance == max(each.imbalance or 0 for each in owned)
        assert point.idle == max(each.idle for each in owned)
        assert (point.unassigned, point.duplicate_owners) == (0, 0)
        assert point.utilisation == pytest.approx(max(each.busiest for each in owned) / 4)
        # Losses are not looked at where it holds with no IDs even without one.
        is_seen = found.every_order or point.share
        missed = set() if is_seen else {"survive", "survive-broker"}
        assert set(point.fails) >= set().union(*of_trials) - missed
    allowed = tuple(point.consumers for point in found.curve if point.satisfied)
    assert found.replica_counts.allowed == allowed
    assert found.consumers == (min(allowed) if allowed else None)


def test_a_utilisation_is_held_to_nine_digits() -> None:
    topic = route("T", a=3)
    work = dict.fromkeys(topic.subscribe_queues(), 0.1)
    found = sized(topic, limits=SizeLimits(max_utilisation=0.3), work=work, threads=1, consumers=(1, 2))
    assert [(point.utilisation, point.satisfied) for point in found.curve] == [(0.3, True), (0.2, True)]


def test_queues_that_a_topic_would_have_carry_its_work_evenly() -> None:
    topic = route("T", a=2, b=2)
    work = dict.fromkeys(topic.subscribe_queues(), 5.0) | {topic.subscribe_queues()[0]: 25.0}
    found = sized(topic, limits=SizeLimits(max_utilisation=1), work=work, queues_per_broker=(2, 5), threads=10)
    # 40 s of work per second, of which one of the present queues alone has 25: with as many queues as now it stays so.
    found_for = [(each.queues_per_broker, each.consumers) for each in found.candidates]
    assert found_for == [(2, None), (3, 6), (4, 4), (5, 5)]
    assert (found.consumers, found.queues_per_broker) == (4, 4)


def test_a_lost_broker_leaves_its_work_to_the_others() -> None:
    topic = route("T", a=4, b=4)
    work = dict.fromkeys(topic.subscribe_queues(), 1.0)
    limits = SizeLimits(max_utilisation=0.5, survive_broker=True)
    found = sized(topic, limits=limits, work=work, threads=4)
    points = [found.at(number) for number in (3, 4)]
    after = [point and point.after_broker_loss for point in points]
    assert [point and point.utilisation for point in points] == [0.75, 0.5]
    assert [(loss.utilisation, loss.lost_broker) for loss in after if loss] == [(1.0, "a"), (0.5, "a")]
    assert (found.consumers, points[0] and points[0].fails) == (4, ("max-utilisation", "survive-broker"))
    only = sized(route("T", a=4), limits=SizeLimits(no_idle=True, survive_broker=True)).best
    assert only.fails == ("survive-broker",)
    assert only.after_broker_loss is not None
    assert (only.after_broker_loss.lost_broker, only.after_broker_loss.imbalance) == ("a", None)


def test_of_equal_sizes_the_fewest_queues_and_the_first_strategy_are_the_answer() -> None:
    found = sized(route("T", a=1, b=1), consumers=(4, 9), queues_per_broker=(2, 9), strategies=("AVG_BY_CIRCLE", "AVG"))
    assert (found.consumers, found.queues_per_broker, found.strategy) == (4, 2, "AVG_BY_CIRCLE")
    assert len(found.candidates) == 16
    assert [(each.topic, each.queues, each.queues_now) for each in found.topics] == [("T", 4, 2)]


def test_after_a_loss_the_worst_of_all_losses_is_told() -> None:
    routes = [route("T", a=7, b=4), route("U", b=3)]
    limits = SizeLimits(max_imbalance=1.5, survive=1, share=0.5)
    question = SizeQuestion(limits=limits, strategies=("CONSISTENT_HASH",), consumers=(2, 6), trials=8, seed=4)
    trials = future_ids("CONSISTENT_HASH", Settings(), question, 6)
    found, topics_ = size_group("g", routes, question), queues_of(routes)
    for point in found.curve:
        joined = [each[: point.consumers] for each in trials]
        left = [[[i for i in each if i != lost] for lost in each] for each in joined]
        worst = [max(own("CONSISTENT_HASH", topics_, some).imbalance or 0 for some in each) for each in left]
        if not point.share and point.after_loss is None:
            assert point.fails == ("max-imbalance",)
            continue
        assert point.after_loss is not None
        assert point.after_loss.imbalance == sorted(worst)[3]  # half of them are not above it
        together = [all_fails("CONSISTENT_HASH", topics_, each, limits) for each in joined]
        assert (point.share, point.satisfied) == (together.count(set()) / 8, together.count(set()) >= 4)


@given(topics, st.integers(1, 3), st.integers(0, 9), st.sampled_from([1, 10]))
@settings(max_examples=40, deadline=None)
def test_heirs_on_rings_equal_allocate(
    brokers: list[dict[str, int]], losses: int, seed: int, virtual_nodes: int
) -> None:
    routes = [route(f"T{place}", **counts) for place, counts in enumerate(brokers)]
    work = {queue: 1.0 + queue.queue_id for queues in queues_of(routes) for queue in queues}
    nodes = Settings(virtual_nodes=virtual_nodes)
    sets = id_sets("CONSISTENT_HASH", nodes, trials=3, seed=seed)
    layout = layout_of(routes, work, 20, orderly=False)
    sizes = HashSizes(layout, heirs_on_rings(sets, len(layout.queues), virtual_nodes, losses), len(sets))
    plain = IdSizes(layout, "CONSISTENT_HASH", nodes, sets)
    for consumers in range(1, 7):
        for number in range(min(losses + 1, consumers)):
            for lost in combinations(range(consumers), number):
                for found, wanted in zip(sizes.figures(consumers, lost), plain.figures(consumers, lost), strict=True):
                    assert found.utilisation == pytest.approx(wanted.utilisation)
                    assert found == replace(wanted, utilisation=found.utilisation)


def test_losses_under_a_function_that_are_too_many_are_drawn_and_it_is_said() -> None:
    def by_circle(_: str, client_id: str, queues: list[Any], client_ids: list[str]) -> list[Any]:
        return queues[client_ids.index(client_id) :: len(client_ids)]

    limits, topic = SizeLimits(max_imbalance=1.3, survive=2), route("T", a=22)
    question = SizeQuestion(limits=limits, strategies=("OWN",), consumers=(21, 22), trials=2)
    by_function = Settings(custom={"OWN": by_circle})
    found = size_group("g", [topic], question, by_function)
    alike = sized(topic, limits=limits, consumers=(21, 22))
    assert (found.losses, alike.losses) == ("drawn", "counted")
    assert [point.satisfied for point in found.curve] == [point.satisfied for point in alike.curve]
    assert found.curve[1].fails == alike.curve[1].fails == ("survive",)
    assert [point.after_loss and point.after_loss.exact for point in found.curve] == [None, False]
    assert size_group("g", [topic], replace(question, consumers=(18, 20)), by_function).losses == "counted"


@every_case(
    ("strategy", "given_"),
    [("AVG", Settings()), ("CONSISTENT_HASH", Settings()), ("MACHINE_ROOM", Settings(consumer_idcs=frozenset({"r"})))],
)
def test_consumers_of_another_library_are_sized_by_its_rules(strategy: str, given_: Settings) -> None:
    topic = route("T", **{"q@b": 5, "r@a": 8})
    question = SizeQuestion(limits=EVEN, strategies=(strategy,), consumers=(1, 6), trials=3, sdk="go")
    found = size_group("g", [topic], question, given_)
    assert found.sdk == "go"
    trials = [ids(6)] if found.every_order else future_ids(strategy, given_, question, 6)
    of_go: dict[str, Any] = {"sdk": "go", "consumer_idcs": given_.consumer_idcs}
    for point in found.curve:
        each = [own(strategy, queues_of([topic]), one[: point.consumers], **of_go) for one in trials]
        assert point.imbalance == max(one.imbalance or 0 for one in each)
        for figure in ("idle", "unassigned", "duplicate_owners"):
            assert getattr(point, figure) == max(getattr(one, figure) for one in each)
        assert ("unassigned" in point.fails) == (point.unassigned > 0)


def test_strategies_that_look_at_machines_take_those_of_the_present_consumers() -> None:
    topic = route("T", a=6)
    question = SizeQuestion(
        limits=SizeLimits(no_idle=True), strategies=("PIN",), consumers=(1, 4), present=("10.0.0.1@1",), trials=5
    )
    found = size_group("g", [topic], question, Settings(hosts=frozenset({"10.0.0.1"})))
    assert found.replica_counts.allowed == (1, 2, 3, 4)
    other = size_group("g", [topic], question, Settings(hosts=frozenset({"10.0.0.2"})))
    assert other.replica_counts.allowed == ()
    with pytest.raises(DataError, match="PIN looks at the machines of consumers"):
        size_group("g", [topic], SizeQuestion(strategies=("PIN",)), Settings(hosts=frozenset({"10.0.0.2"})))


@every_case("strategy", WITHOUT_SETTINGS)
def test_a_number_of_queues_gives_what_topics_with_so_many_give(strategy: str) -> None:
    routes = [route("T", a=1, b=7), route("U", a=3)]
    more: dict[str, Any] = {"strategies": (strategy,), "trials": 5, "limits": SizeLimits(max_imbalance=1.3)}
    found = sized(*routes, queues_per_broker=(1, 12), **more)
    assert [each.queues_per_broker for each in found.candidates] == list(range(1, 13))
    for number, each in enumerate(found.candidates, start=1):
        alone = sized(route("T", a=number, b=number), route("U", a=number), **more)
        assert (each.consumers, each.best) == (alone.consumers, alone.best)
        assert each.allowed == len(alone.replica_counts.allowed)


def test_config_lists_are_taken_by_consumers_of_their_ids() -> None:
    queues = route("T", a=4).subscribe_queues()
    lists = {"x": queues[:2], "y": queues[2:]}
    question = SizeQuestion(limits=SizeLimits(no_idle=True), strategies=("CONFIG",), consumers=(1, 3), trials=4)
    found = size_group("g", [route("T", a=4)], question, Settings(config=lists))
    of_sizes = [(point.unassigned, point.fails) for point in found.curve]
    assert of_sizes == [(2, ("unassigned",)), (0, ()), (0, ("no-idle",))]
    lost = size_group("g", [route("T", a=4)], replace(question, limits=SizeLimits(survive=1)), Settings(config=lists))
    two = lost.curve[1]
    assert (two.fails, two.after_loss and (two.after_loss.unassigned, two.after_loss.fails)) == (
        *(("survive",), (2, ("unassigned",))),
    )


def test_machine_room_counts_the_queues_of_listed_rooms() -> None:
    question = SizeQuestion(limits=EVEN, strategies=("MACHINE_ROOM",), consumers=(1, 9))
    own = Settings(consumer_idcs=frozenset({"r"}))
    found = size_group("g", [route("T", **{"r@a": 6})], question, own)
    assert found.every_order
    assert found.replica_counts.allowed == (1, 2, 3, 6)
    elsewhere = size_group("g", [route("T", **{"r@a": 6, "plain": 5})], question, own)
    assert (elsewhere.consumers, elsewhere.best.consumers) == (None, 1)
    assert (elsewhere.best.unassigned, elsewhere.best.fails) == (5, ("unassigned",))


def test_a_topic_outside_the_listed_rooms_brings_no_work() -> None:
    routes = [route("T", **{"r@a": 4}), route("U", plain=3)]
    work = dict.fromkeys((queue for queues in queues_of(routes) for queue in queues), 1.0)
    question = SizeQuestion(strategies=("MACHINE_ROOM",), consumers=(1, 3), work=work, threads=4)
    found = size_group("g", routes, question, Settings(consumer_idcs=frozenset({"r"})))
    assert [(point.utilisation, point.unassigned) for point in found.curve] == [(1.0, 3), (0.5, 3), (0.5, 3)]


@every_case("strategy", WITHOUT_SETTINGS)
def test_an_orderly_group_has_a_thread_for_each_queue(strategy: str) -> None:
    topic = route("T", a=4)
    work = dict(zip(topic.subscribe_queues(), (0.1, 0.1, 0.1, 0.9), strict=True))
    limits = SizeLimits(max_utilisation=0.8)
    question = SizeQuestion(limits=limits, strategies=(strategy,), consumers=(1, 3), work=work, threads=20, trials=3)
    assert size_group("g", [topic], question).consumers == 1
    orderly = size_group("g", [topic], replace(question, orderly=True))
    assert [point.utilisation for point in orderly.curve] == [0.9, 0.9, 0.9]
    few = size_group("g", [topic], replace(question, orderly=True, threads=1))
    assert (few.curve[0].utilisation, few.curve[2].fails) == (1.2, ("max-utilisation",))


def test_a_size_that_leaves_nothing_after_a_loss_does_not_come_nearest() -> None:
    found = sized(route("T", a=7), limits=SizeLimits(max_imbalance=1, survive=1), consumers=(1, 5))
    assert (found.consumers, found.best.consumers) == (None, 2)
    limits = SizeLimits(max_imbalance=1, survive=2)
    found = sized(route("T", a=64), limits=limits, strategies=("CONSISTENT_HASH",), most=5, trials=5)
    assert (found.consumers, found.best.consumers) == (None, 3)


@every_case(("question", "text"), [
    (SizeQuestion(consumers=(5, 2)), "consumers from 5 to 2"),
    (SizeQuestion(limits=SizeLimits(survive=9), consumers=(1, 9)), "no consumer would be left"),
    (SizeQuestion(queues_per_broker=(5, 2)), "queues per broker from 5 to 2"),
    (SizeQuestion(limits=SizeLimits(max_utilisation=0.8)), "max_utilisation needs work"),
    (SizeQuestion(consumers=(1, 1000), queues_per_broker=(1, 1000)), "1000000 sizes to look at"),
    (SizeQuestion(strategies=()), "no strategy is named"),
    (SizeQuestion(strategies=("CONSISTENT_HASH",), sdk="cpp"), "no other strategy can be set"),
    (SizeQuestion(strategies=("CONSISTENT_HASH",), consumers=(1, 50)), "too many to look at; with --trials 40"),
])  # fmt: skip
def test_contradictions_are_refused(question: SizeQuestion, text: str) -> None:
    with pytest.raises(UsageError) as raised:
        size_group("g", [route("T", a=4)], question, Settings(virtual_nodes=10_000))
    assert text in f"{raised.value.problem}; {raised.value.hint}"


def test_a_group_without_queues_has_no_size() -> None:
    with pytest.raises(DataError, match="no readable queue"):
        size_group("g", [builders.route("T", perm=2, a=4)], SizeQuestion())


@every_case("strategy", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
def test_differing_subscriptions_leave_the_queues_unassigned_that_the_plan_leaves(strategy: str) -> None:
    """The others count a consumer in that does not read a topic, and its share has no owner (`rebalanceByTopic`)."""
    topics = (route("T", a=4, b=2), route("U", a=6))
    present = ("10.0.0.1@1", "10.0.0.2@1", "10.0.0.3@1")
    subscribed = {present[0]: frozenset("T"), present[2]: frozenset("U")}
    found = sized(*topics, most=6, strategies=(strategy,), present=present, subscribed=subscribed, trials=5)
    members = Members(present, strategy, subscribed=subscribed)
    before = Side(members, topics)
    for number in range(1, 4):
        after = replace(members, client_ids=change_members(present, Changes(scale_to=number)))
        plan = plan_rebalance("g", before, Side(after, topics))
        point = found.curve[number - 1]
        assert (point.unassigned, point.imbalance) == (plan.summary.unassigned, plan.summary.after.imbalance)
        assert ("unassigned" in point.fails) is (plan.summary.unassigned > 0)
    assert (found.mixed_subscriptions, found.curve[2].unassigned > 0) == (True, True)
    one_more = [*present, "10.9.9.9@1"]
    for ids_ in future_ids(strategy, Settings(), SizeQuestion(present=present, subscribed=subscribed, trials=3), 4):
        assert ids_[:3] == one_more[:3], "further consumers come to the present ones"
