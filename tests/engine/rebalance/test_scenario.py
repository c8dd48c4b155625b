from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import astuple, replace

from rmqlb import DataError, Event, Members, MessageQueue, QueueData, TopicRouteData, UsageError
from rmqlb.engine.conditions import parse_condition
from rmqlb.engine.plan.changes import Edits, NewBroker, QueueCount, change_route
from rmqlb.engine.plan.rebalance import Side, plan_rebalance
from rmqlb.engine.rates import observed_rates, spread_evenly
from rmqlb.engine.rebalance.environment import NameServer, Shares
from rmqlb.engine.rebalance.simulate import (
    GROUP_FIGURES,
    ROLLOUT_FIGURES,
    figures,
    in_order,
    renamed_apart,
    restarts,
    summarise,
    try_on_group,
    try_on_rollout,
)
from rmqlb.engine.rebalance.start_offsets import new_queues, start_of, start_questions, timestamps, with_starts
from rmqlb.engine.rebalance.timelines import EventLog, Hold
from rmqlb.model.group import ConsumerGroup, MemberReport, QueueState, States
from rmqlb.model.plan import RebalancePlan, Rollout
from rmqlb.model.route import BrokerData
from rmqlb.model.simulate_rebalance import GroupFigures, GroupTrials, Interval, OwnerState, QueueTimeline
from rmqlb.model.snapshot import OffsetQuestion
from tests.engine.rebalance.groups import QUEUE, again, at, hold, read, simulate, spans
from tests.support.builders import HERE, group, queues, route, side
from tests.support.group_builders import choice, trials
from tests.support.mismatches import every_case, refusal

ROUTES = (route(a=4, b=4),)


@every_case(("events", "complaint"), [
    ([at("leave", "c9")], "leave c9: it is not in the group at that time"),
    ([at("crash", "c1"), at("leave", "c1", 20)], "leave c1: it is no longer in the group at that time"),
    ([at("join", "c1")], "join c1: it is already in the group at that time"),
    ([at("join", "")], "a client ID cannot be empty"),
    ([at("leave", "c1", 30), at("join", "c1", 20)], "join c1: it is already in the group at that time"),
    ([at("pull-stall", "c4")], "pull-stall c4: it is not in the group at that time"),
    ([at("leave", "c1", -1)], "leave c1: the time is before the start"),
    ([at("broker-down", "z")], "broker-down z: there is no such broker"),
    ([at("broker-down", "a"), at("broker-loss", "a", 20)], "broker-loss a: it is already down"),
    ([at("broker-up", "a")], "broker-up a: it is already up"),
    ([at("broker-down", "a"), at("broker-up", "a", 20, read_queues=3)], "returns with its former queues"),
    ([at("route-change", "U", read_queues=3)], "topic U is not simulated"),
    ([at("route-change", "T", broker_name="z", read_queues=3)], "topic T has no broker z"),
    ([at("freeze", "c9")], "freeze c9: it is not in the group at that time"),
    ([at("freeze", "c1"), at("freeze", "c1", 20)], "freeze c1: it is frozen at that time, so it does nothing"),
    ([at("freeze", "c1"), at("leave", "c1", 20)], "leave c1: it is frozen at that time, so it does nothing"),
    ([at("freeze", "c1"), at("pull-stall", "c1", 20)], "pull-stall c1: it is frozen at that time"),
    ([at("unfreeze", "c1", 20)], "unfreeze c1: it is not frozen at that time"),
    ([at("freeze", "c1"), at("crash", "c1", 20), at("unfreeze", "c1", 30)], "unfreeze c1: it is no longer in"),
    ([at("freeze", "c1"), at("crash", "c1", 20), at("join", "c1", 25), at("unfreeze", "c1", 30)], "it is not frozen"),
])  # fmt: skip
def test_what_cannot_happen_is_refused(events: list[Event], complaint: str) -> None:
    with pytest.raises((DataError, UsageError), match=complaint) as caught:
        in_order(events, ["c1", "c2"], ROUTES)
    assert "\n" not in str(caught.value)


@every_case(("queues", "addresses"), [("ab", "ab"), ("ab", ""), ("ab", "b"), ("b", "ab")])
def test_a_lost_broker_leaves_both_lists_of_a_route(queues: str, addresses: str) -> None:
    brokers = tuple(BrokerData("c", name, {0: f"{name}:10911"}) for name in addresses)
    topic = TopicRouteData("T", tuple(QueueData(name, 2, 2, 6) for name in queues), brokers)
    server = NameServer([topic], Shares(Members((), "AVG")).view_of)
    server.drop("a", {0})
    assert [queue.broker_name for queue in server.views["T"].queues] == ["b", "b"]
    assert server.views["T"].brokers == ("b",)


def test_restarts_go_down_together_and_may_come_back_under_other_names() -> None:
    three, more = ["c1", "c2", "c3"], {"becomes": {"c3": "d3"}, "strategy": "AVG", "end": "crash"}
    events = restarts(three, 0, every_us=10, down_us=4, at_once=2, **more)  # type: ignore[arg-type]
    found = [(event.kind, event.subject, event.at_us, event.strategy) for event in events]
    pairs = (("c1", "c1", 0), ("c2", "c2", 0), ("c3", "d3", 10))
    ends = [(("crash", old, us, None), ("join", new, us + 4, "AVG")) for old, new, us in pairs]
    assert found == [each for pair in ends for each in pair]


@every_case(("before", "after"), [
    ("10.0.0.5@1#7000000000999", "10.0.0.5@1#7000000001000"),
    ("10.0.0.5@1#009", "10.0.0.5@1#010"),
    ("10.0.0.5@worker-3", "10.0.0.5@worker-3"),
    ("10.0.0.5@12345", "10.0.0.5@12345"),
    ("c1", "c1"),
])  # fmt: skip
def test_only_ids_with_a_time_in_them_change(before: str, after: str) -> None:
    assert renamed_apart([before], [before]).get(before, before) == after


EARLIER = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = EARLIER + timedelta(minutes=1)
QUEUES = queues(3)


def test_a_topics_rate_is_dealt_evenly() -> None:
    topic = route(a=2, b=1)
    assert spread_evenly({"T": 6.0}, [topic]) == dict.fromkeys(topic.subscribe_queues(), 2.0)
    assert spread_evenly({"T": 0.0}, [route(a=1)]) == {MessageQueue("T", "a", 0): 0.0}
    assert spread_evenly({"U": 6.0}, [topic]) == spread_evenly({"T": 6.0}, [route()]) == {}


@every_case(("event", "more"), [
    (Event("route-change", 1, "T", read_queues=3, write_queues=3), [("a", 2), ("b", 1), ("b", 2)]),
    (Event("route-change", 1, "T", broker_name="b", read_queues=2), [("b", 1)]),
    (Event("route-change", 1, "U", read_queues=9), []),
    (Event("broker-up", 1, "c", read_queues=1), [("c", 0)]),
    (Event("broker-up", 1, "c"), [("c", 0), ("c", 1)]),
    (Event("broker-up", 1, "a"), []),
    (Event("leave", 1, "c"), []),
])  # fmt: skip
def test_a_queue_that_comes_later_has_the_rate_of_the_others(event: Event, more: list[tuple[str, int]]) -> None:
    before = [("a", 0), ("a", 1), ("b", 0)]
    found = spread_evenly({"T": 6.0}, [route(a=2, b=1)], [event])
    assert found == {MessageQueue("T", broker, queue_id): 2.0 for broker, queue_id in (*before, *more)}


def ends(*offsets: int | None) -> ConsumerGroup:
    states = {queue: QueueState(broker_offset=end) for queue, end in zip(QUEUES, offsets, strict=False)}
    return replace(group("x"), queues=states)


def test_what_came_between_two_snapshots_is_the_rate() -> None:
    now, then = ends(100, 60, 7), ends(40, 60)
    for some, rates in ((QUEUES, {QUEUES[0]: 1.0, QUEUES[1]: 0.0}), (QUEUES[1:], {QUEUES[1]: 0.0})):
        assert observed_rates(now, then, (MINUTE, EARLIER), some, "then.json") == (rates, 60)


@every_case(("now", "then", "taken", "error"), [
    (ends(100), ends(40), (MINUTE, None), "then.json does not report when it was taken"),
    (ends(100), ends(40), (None, EARLIER), "the source does not report when it was taken"),
    (ends(100), ends(40), (EARLIER, EARLIER), "then.json is not earlier than the source"),
    (ends(100), ends(40), (EARLIER, MINUTE), "2026-01-01T00:01:00Z"),
    (ends(40), ends(100), (MINUTE, EARLIER), "queue broker-a:0 of T ends at 40, but in then.json at 100"),
    (ends(100), ends(None), (MINUTE, EARLIER), "no queue with both end offsets"),
    (ends(), ends(40), (MINUTE, EARLIER), "no queue with both end offsets"),
])  # fmt: skip
def test_unfit_snapshots_fail(
    now: ConsumerGroup, then: ConsumerGroup, taken: tuple[datetime | None, datetime | None], error: str
) -> None:
    raised = refusal(DataError, observed_rates, now, then, taken, QUEUES, "then.json")
    assert error in raised.message
    assert raised.hint


LAST, FIRST, TIMESTAMP = "CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP"
LASTS = (LAST, "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST", "CONSUME_FROM_MIN_OFFSET")
NORMAL, RETRY = "OrderEvents", "%RETRY%order-svc"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@every_case(("where", "topic", "rule", "offset"), [
    *((where, NORMAL, "end", 70) for where in LASTS),
    *((where, RETRY, "beginning", 0) for where in LASTS),
    (FIRST, NORMAL, "beginning", 0),
    (FIRST, RETRY, "beginning", 0),
    (TIMESTAMP, NORMAL, "timestamp", None),
    (TIMESTAMP, RETRY, "end", 70),
])  # fmt: skip
def test_without_a_stored_offset_consume_from_decides(where: str, topic: str, rule: str, offset: int | None) -> None:
    for stored in (-1, 0, 1, 10**12):
        start = start_of(QueueState(broker_offset=70, stored_offset=stored), where, topic=topic)
        assert (start.rule, start.offset) == ((rule, offset) if stored < 0 else ("stored", stored))


@every_case(("state", "where", "rule", "offset"), [
    # `AdminBrokerProcessor.getConsumeStats` reports 0 where the group has no offset
    (QueueState(broker_offset=9, consumer_offset=0), FIRST, "unknown", None),
    (QueueState(broker_offset=0, consumer_offset=0), FIRST, "stored", 0),
    # `ConsumerManageProcessor.queryConsumerOffset` answers any offset below 0 as it answers none
    *((QueueState(broker_offset=100, consumer_offset=stored), LAST, "end", 100) for stored in (-1, -2, -(2**63))),
    *((QueueState(broker_offset=100, consumer_offset=stored), FIRST, "beginning", 0) for stored in (-1, -2)),
])  # fmt: skip
def test_consume_stats_may_mean_no_stored_offset(state: QueueState, where: str, rule: str, offset: int | None) -> None:
    start = start_of(state, where, topic=NORMAL)
    assert (start.rule, start.offset) == (rule, offset)


@every_case(
    ("end", "stored", "lag"),
    [(100, 60, 40), (100, 0, 100), (100, -1, 100), (100, -2, 100), (5, 9, 0), (-1, -1, 0), (None, 3, None)],
)
def test_unread_messages_are_at_least_0_and_at_most_all_there(end: int | None, stored: int, lag: int | None) -> None:
    assert QueueState(broker_offset=end, consumer_offset=stored).lag == lag


def planned(before: Side, changes: Edits) -> RebalancePlan:
    return plan_rebalance("g", before, side("a b", *(change_route(each, changes) for each in before.routes)))


def queue(queue_id: int, broker: str = "x") -> MessageQueue:
    return MessageQueue("T", broker, queue_id)


def starts_of(before: Side, changes: Edits, states: States, consume_from: str) -> dict[MessageQueue, object]:
    moves = with_starts(planned(before, changes), states, consume_from, before.routes).moves
    return {queue(move.queue_id, move.broker_name): (move.start_offset, move.start_rule) for move in moves}


@every_case(("consume_from", "rule"), [(LAST, "end"), (FIRST, "beginning"), (TIMESTAMP, "timestamp")])
def test_the_queues_of_a_new_broker_start_at_0_by_every_rule(consume_from: str, rule: str) -> None:
    starts = starts_of(side("a b", route(x=2)), Edits(add_brokers=(NewBroker("y", 2),)), {}, consume_from)
    assert [starts[queue(i, "y")] for i in range(2)] == [(0, rule)] * 2


def test_a_queue_that_producers_wrote_to_before_consumers_read_it_is_not_new() -> None:
    wide = TopicRouteData("T", (QueueData("x", 2, 4, 6),), route(x=2).broker_datas)
    states = {queue(0): QueueState(broker_offset=5, consumer_offset=5)}
    starts = starts_of(side("a b", wide), Edits(read_queues=(QueueCount(6),)), states, LAST)
    assert [new_queues([wide])(queue(i)) for i in range(6)] == [False] * 4 + [True] * 2
    assert [starts[queue(i)] for i in (3, 4)] == [(None, "unknown"), (0, "end")]


def test_brokers_are_asked_about_the_queues_that_move_and_no_others() -> None:
    before = side("a", route(x=4))
    plan = planned(before, Edits(add_brokers=(NewBroker("y", 2),)))
    asked = start_questions(plan, ConsumerGroup("g", HERE), LAST, before.routes)
    moved = [queue(move.queue_id) for move in plan.moves if move.change == "moved" and move.broker_name == "x"]
    assert moved
    assert asked == tuple(OffsetQuestion(each, "x:10911") for each in moved)


def test_in_a_simulation_a_new_broker_s_queues_begin_at_0_and_go_on_where_they_were_stored() -> None:
    events = at("broker-up", "y", read_queues=2, write_queues=2), at("leave", "b", 120)
    lines = simulate("a b", *events, routes=[route(x=2)], consume_from=TIMESTAMP).queues
    by_queue = {line.queue: [(one.start_rule, one.start_offset) for one in line.takeovers] for line in lines}
    taken = [by_queue[queue(i, "y")] for i in range(2)]
    assert all(one[0] == ("timestamp", 0) for one in taken)
    assert any(one[-1] == ("stored", None) for one in taken), "what b had goes to a"
    assert all(rule == "unknown" for i in range(2) for rule, _ in by_queue[queue(i)])


# `consumeTimestamp`.


def ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def moments(takers: str, started_at: datetime | None = NOON, **texts: str | None) -> tuple[int, ...]:
    at = None if started_at is None else ms(started_at)
    reports = {each: MemberReport(each, consume_timestamp=text, started_at=at) for each, text in texts.items()}
    return timestamps(reports, takers.split())


def text_of(at: datetime) -> str:
    return at.strftime("%Y%m%d%H%M%S")


HALF_AN_HOUR = timedelta(minutes=30)
NOVEMBER, LATER = "20261101000000", "20261102000000"


@every_case("hours", [-12, -3.5, 0, 5.75, 8, 14])
def test_a_text_that_the_consumer_made_for_itself_tells_its_zone(hours: float) -> None:
    """`DefaultMQPushConsumer.consumeTimestamp`: 30 minutes before the consumer was made, by its own clock."""
    made = NOON + timedelta(milliseconds=1400)
    text = text_of(made - HALF_AN_HOUR + timedelta(hours=hours))
    assert moments("a", made, a=text) == (ms(NOON - HALF_AN_HOUR + timedelta(seconds=1)),)


@every_case(("late_ms", "number"), [(0, 1), (3000, 1), (3001, 2)])
def test_a_text_is_the_consumer_s_own_when_it_was_made_within_three_seconds(late_ms: int, number: int) -> None:
    """Half an hour before the start, or up to three seconds earlier, as the clock of London shows it."""
    assert len(moments("a", NOON + timedelta(milliseconds=late_ms), a=text_of(NOON - HALF_AN_HOUR))) == number


def test_one_that_has_not_come_yet_is_configured_as_all_consumers_are() -> None:
    midnight = datetime(2026, 11, 1, tzinfo=UTC)
    either = ms(midnight - timedelta(hours=14)), ms(midnight + timedelta(hours=12))
    assert moments("a", a=NOVEMBER, b=NOVEMBER) == moments("new", a=NOVEMBER, b=NOVEMBER) == either
    assert moments("new", a=NOVEMBER, b=NOVEMBER, c=LATER) == moments("new") == ()
    assert moments("new", a=text_of(NOON - HALF_AN_HOUR)) == (), "it makes a text for itself"
    assert moments("a b", None, a=NOVEMBER, b=LATER) == (), "takers that begin at different moments"
    for text in (None, "", "yesterday", "20261301000000", "2026110100000", "２０２６１１０１００００００"):
        assert moments("a", a=text) == (), "no time"


@every_case(("holds", "latency_us", "redelivered"), [
    # a handover in good order
    ([hold("c1", -500, 220), hold("c2", 230)], 0, [0]),
    # a killed owner stored at 200 and read until 220
    ([hold("c1", -500, 220, persisted=False), hold("c2", 230)], 0, [20]),
    # two owners at once both deliver: c2 from what was stored at 200, c1 until 270
    ([hold("c1", -500, 270), hold("c2", 230)], 0, [70]),
    # two owners that stay, until the end
    ([hold("c1", -500), hold("c2", 230)], 0, [800]),
    # one that dies before it stored anything starts the next where it started: from 205, killed at 240
    ([hold("c1", -500, 205), hold("c2", 205, 240, persisted=False), hold("c3", 245)], 0, [0, 35]),
    # a stored offset is there after half of a round trip: c1 stores 220, which arrives at 230
    ([hold("c1", -500, 220), hold("c2", 229)], 20, [20]),
    ([hold("c1", -500, 220), hold("c2", 230)], 20, [0]),
    # what is stored after a freeze is old: c1 sets the offset back from 400 to 120, and c2 is killed before it stores
    ([hold("c1", -5, 410, freezes=[(120, 400)]), hold("c2", 300, 420, persisted=False), hold("c3", 430)], 0, [310, 300]),
    # a lite pull consumer reads until 220, stored at 200 what was committed at 180, and gives up what was committed
    *(
        ([hold("c1", -500, 220, persisted=is_last, committed_before=lambda us, at=at: min(us, at)), hold("c2", 230)], 0, [again])
        for at, is_last, again in ((180, False, 40), (210, True, 10), (220, True, 0))
    ),
])  # fmt: skip
def test_unstored_messages_are_redelivered(holds: list[Hold], latency_us: int, redelivered: list[int | None]) -> None:
    assert again(read(*holds, latency_us=latency_us)) == redelivered


def test_a_gap_and_an_overlap_are_times_without_owner_and_with_two_pauses_are_those_of_a_running_owner() -> None:
    gap, overlap = read(hold("c1", -500, 220), hold("c2", 230)), read(hold("c1", -500, 270), hold("c2", 230))
    assert (gap.total_gap_ms, gap.unread_ms, gap.total_overlap_ms) == (0.01, 0.01, 0)
    assert (overlap.total_overlap_ms, overlap.longest_overlap_ms, overlap.total_gap_ms) == (0.04, 0.04, 0)
    changing = read(hold("c1", -500, 300), hold("c2", 200, 400), hold("c3", 250))  # two owners all along
    assert (changing.total_overlap_ms, changing.longest_overlap_ms) == (0.2, 0.2)
    assert figures([changing], EventLog(explain=False), 0, settled=True).queues_with_overlap == 1
    first = read(hold("c1", 130), there=((100, True),))
    assert [(takeover.redelivered, takeover.unread_ms) for takeover in first.takeovers] == [(0, 0.03)]
    assert spans(first) == [("gone", 0, 100), ("unassigned", 100, 130), ("one", 130, 1000)]
    # It is frozen from 30 to 60 and from 90 to 120; its broker is away before, between, behind, and over an edge.
    held = hold("c1", 0, 150, freezes=[(30, 60), (90, 120)])
    held.pauses = [(10, 20), (40, 50), (55, 65), (70, 80), (130, None)]
    turns = [(10, 20), (60, 65), (70, 80), (130, 150)]
    assert list(held.turns()) == [each for on, off in turns for each in ((on, True), (off, False))]


def test_an_outage_lasts_until_a_pull_arrives_again_and_nothing_is_stored_meanwhile() -> None:
    found = read(hold("c1", -5, pauses=[(200, 420)]), served=((200, False), (400, True)))
    assert spans(found) == [("one", 0, 200), ("outage", 200, 420), ("one", 420, 1000)]
    assert (found.total_outage_ms, found.longest_outage_ms, found.unread_ms) == (0.22, 0.22, 0.22)
    assert (found.total_gap_ms, found.unread_at_end) == (0, False)
    # c1 reads until 220 and stores at 200; its timer at 250 meets a broker that is down: c2 starts 20 behind.
    held = hold("c1", -5, 300, pauses=[(220, None)]), hold("c2", 450)
    assert again(read(*held, served=((220, False), (400, True)))) == [20]


def queue_line(state: OwnerState, *lengths: int, redelivered: int | None, unread_at_end: bool = False) -> QueueTimeline:
    """Total and longest gap, overlap and outage, and the longest time unread, in milliseconds."""
    intervals = (Interval(0, 9, "one", ("c1",)), Interval(9, 10, state, ()))
    values: tuple[Any, ...] = (*astuple(QUEUE), *lengths, unread_at_end, redelivered, intervals, ())
    return QueueTimeline(*values)


def test_the_figures_of_a_group_count_queues_and_add_up_or_take_the_longest() -> None:
    lines = [
        queue_line("unassigned", 50, 40, 0, 0, 0, 0, 45, redelivered=3, unread_at_end=True),
        queue_line("duplicate-owners", 0, 0, 70, 60, 0, 0, 5, redelivered=4),
        queue_line("duplicate-owners", 20, 15, 9, 9, 0, 0, 7, redelivered=0),
        queue_line("outage", 0, 0, 8, 8, 120, 100, 90, redelivered=0, unread_at_end=True),
        queue_line("one", 1, 1, 0, 0, 30, 25, 2, redelivered=0),
    ]

    def of(*some: QueueTimeline, **more: bool) -> GroupFigures:
        return figures(some, EventLog(explain=False), 0, settled=True, **more)

    f, none = of(*lines), of()
    assert (f.queues_with_gap, f.longest_gap_ms, f.total_gap_ms) == (3, 40, 71)
    assert (f.queues_with_overlap, f.longest_overlap_ms, f.total_overlap_ms) == (3, 60, 87)
    assert (f.queues_with_outage, f.longest_outage_ms, f.total_outage_ms) == (2, 100, 150)
    assert (f.queues_with_gap_at_end, f.queues_with_overlap_at_end, f.queues_with_outage_at_end) == (1, 2, 1)
    assert (f.unread_ms, f.queues_unread_at_end, f.redelivered) == (90, 2, 7)
    assert of(*lines, broadcasting=True).queues_with_overlap_at_end == 0
    assert of(*lines, replace(lines[0], redelivered=None)).redelivered is None
    assert (none.longest_gap_ms, none.longest_overlap_ms, none.longest_outage_ms, none.unread_ms) == (0, 0, 0, 0)


FIGURES = GroupFigures(2500, 1000, 4000, 500, 1500, 6000, 8000, 750, 7, 4, 3, 5, 0, 0, 0, 0, 9, 20, 11, 900, 0)
"""Every figure is another."""


def tried(text: str, found: GroupFigures | GroupTrials = FIGURES) -> tuple[float | None, bool | None]:
    answer = try_on_group(parse_condition(text, GROUP_FIGURES), found)
    return answer.value, answer.met


def test_every_figure_is_in_its_unit_and_of_trials_what_95_of_100_do_not_exceed() -> None:
    for name in (each for each in FIGURES.__struct_fields__ if getattr(FIGURES, each) and each != "rebalances"):
        first, *rest = name.split("_")
        for text in (name.replace("_", "-"), first + "".join(map(str.capitalize, rest))):
            assert tried(f"{text}>0") == (getattr(FIGURES, name), True)
    for spread, value in (("", 2000), ("[p95]", 2000), ("[p50]", 1000), ("[max]", 3000)):
        assert tried(f"total-gap-ms{spread}>0", trials(total_gap_ms=(1000, 2000, 3000))) == (value, True)
    assert "needs many trials" in refusal(UsageError, tried, "total-gap-ms[p95]>0").message
    with pytest.raises(UsageError, match="unknown spread mean"):
        tried("total-gap-ms[mean]>0", trials(total_gap_ms=(1, 2, 3)))
    found = summarise([replace(FIGURES, taken=number) for number in range(1, 101)]).figures.taken
    assert (found.p50, found.p95, found.max, found.max_trial) == (50, 95, 100, 99)


@every_case(("text", "found", "met"), [
    # a group that does not converge takes longer than anything
    ("convergence-ms>999999999", {"convergence_ms": None}, True),
    ("convergence-ms<=999999999", {"convergence_ms": None}, False),
    ("convergence-ms=5", {"convergence_ms": None}, False),
    ("redelivered>0", {"redelivered": None}, None),
    ("peak-lag>999999999", {"peak_lag": None, "queues_never_drained": 1}, True),
    ("peak-lag>0", {"peak_lag": None, "queues_never_drained": None}, None),
])  # fmt: skip
def test_unknown_figures_are_beyond_any_limit_or_undecided(text: str, found: dict[str, Any], met: bool | None) -> None:
    assert tried(text, replace(FIGURES, **found)) == (None, met)
    assert tried("redelivered>0", trials())[1] is None
    assert tried("peak-lag>10", replace(FIGURES, queues_never_drained=1)) == (11, True)  # a lag that stays


@every_case(("field", "names"), [
    ("queues_with_gap_at_end", ["longest-gap-ms", "total-gap-ms"]),
    ("queues_with_overlap_at_end", ["longest-overlap-ms", "total-overlap-ms"]),
    ("queues_with_outage_at_end", ["longest-outage-ms", "total-outage-ms"]),
    ("queues_unread_at_end", ["unread-ms"]),
    ("queues_never_drained", ["lag-gone-ms"]),
])  # fmt: skip
def test_what_is_not_over_at_the_end_lasts_longer_than_anything(field: str, names: list[str]) -> None:
    for name in [each for each in GROUP_FIGURES.names if each.endswith("-ms") and each != "convergence-ms"]:
        assert tried(f"{name}>999999999", replace(FIGURES, **{field: 1}))[1] is (name in names)
        of_all = trials(100, 100, **{name.replace("-", "_"): (1, 2, 3), field: (0, 0, 1)})
        assert tried(f"{name}>999999999", of_all)[1] is (name in names)
    assert tried(f"{field.replace('_', '-')}=3", replace(FIGURES, **{field: 3}))[1] is True


@every_case(("text", "takes_ms", "value", "met"), [
    ("misassigned>0", 1, 4, True),
    ("takes-ms>100", 90, 90, False),
    ("takes-ms>100", None, None, True),
    ("longest-gap-ms>1500", 1, 2000, True),
    ("unread-ms>0", 90, 0, False),
    ("convergence-ms>0", None, None, None),
    ("longest-gap-ms[p50]>1500", 1, 1000, False),
])  # fmt: skip
def test_the_best_choice_is_judged(text: str, takes_ms: float | None, value: float | None, met: bool | None) -> None:
    best = choice(trials(100, longest_gap_ms=(1000, 2000, 3000)), takes_ms=takes_ms, best=True)
    rollout = Rollout("g", "AVG", "AVG", ("a",), (best,), (), 4, misassigned_is_minimum=True)
    found = try_on_rollout(parse_condition(text, ROLLOUT_FIGURES), rollout)
    assert (found.value, found.met) == (value, met)
