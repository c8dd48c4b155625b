"""Events, timers and rates as they are typed; `tests/data/bad_input.txt` has the mistakes."""

import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.rebalance.simulate import in_order
from rmqlb.errors import DataError, UsageError
from rmqlb.model.group_scenario import TIMER_NAMES, Event, Timers
from rmqlb.model.route import TopicQueueMappingInfo
from rmqlb.verbs import parse as values
from rmqlb.verbs import plan_rollout as rollout_values
from rmqlb.verbs import simulated_group as group_values
from rmqlb.verbs.rates import typed_rates
from rmqlb.verbs.rebalance_events import VERBS, events
from rmqlb.verbs.strategies import zones
from tests.support.builders import route
from tests.support.mismatches import every_case, refusal

A, B, C, V6 = "10.0.0.5@7#100", "192.0.2.2@a", "192.0.2.2@b", "[fe80::1]@9#77"
IDS = (C, A, V6, B)
ORDERS = route("Orders", **{"broker-a": 4, "broker-b": 4})  # type: ignore[arg-type]
BILLS = route("Bills", **{"broker-a": 2})  # type: ignore[arg-type]
S = 1_000_000


def text_of(event: Event) -> str:
    """`route-change 1 Orders broker-a 0/4`: kind, seconds, subject, and what else there is."""
    queues = "" if event.read_queues is None else f"{event.read_queues}/{event.write_queues}"
    parts = (event.kind, f"{event.at_us / S:g}", event.subject, event.broker_name, event.strategy, queues)
    return " ".join(str(part) for part in parts if part)


DATA = Path(__file__).parent.parent / "data"
EVENTS = re.findall(r"^(\S.*?)(?: \| (.*))?\n  (.*)$", (DATA / "events.txt").read_text(encoding="utf-8"), re.MULTILINE)


@every_case(("texts", "ids", "expected"), EVENTS)
def test_a_text_is_these_events(texts: str, ids: str, expected: str) -> None:
    found, _ = events(texts.split("; "), ids.split() or IDS, [ORDERS])
    assert "; ".join(map(text_of, found)) == expected
    assert {event.text for event in found} <= {text.strip() for text in texts.split("; ")}


@every_case(("more", "codes"), [("", ["new-ids"]), (", same ids", []), (", new id", [])])
def test_what_a_restart_assumes_is_a_finding(more: str, codes: list[str]) -> None:
    assert [finding.code for finding in events([f"restart {A}@30s, down 15s{more}"], IDS, [ORDERS])[1]] == codes


@every_case("more", ["", ", with slaves"])
@every_case("name", ["broker-b", "broker-*"])
def test_a_brokers_restart_is_that_it_is_down_for_a_while(name: str, more: str) -> None:
    restart, told = events([f"restart-broker {name}@30s, down 1m{more}"], IDS, [ORDERS])
    window, told_of_it = events([f"broker-down {name}@30s-1m30s{more}"], IDS, [ORDERS])
    assert [replace(event, text="") for event in restart] == [replace(event, text="") for event in window]
    assert told == told_of_it


def test_consumer_types_and_libraries_are_of_all_or_of_one() -> None:
    for read in (group_values.consumer_type, values.sdk):
        assert values.by_consumer([], "--x", read) == (None, {})
    types, libraries = ["Lite-Pull", "a=b@c=assign"], ["Go@2.1.2", "a=b@c=CPP"]
    assert values.by_consumer(types, "--x", group_values.consumer_type) == ("lite-pull", {"a=b@c": "assign"})
    assert values.by_consumer(libraries, "--x", values.sdk) == ("go@2.1.2", {"a=b@c": "cpp"})


def test_slaves_go_on_unless_they_are_meant() -> None:
    slave = replace(ORDERS.broker_datas[0], broker_addrs={0: "a:10911", 1: "b:10911"})
    routes = [replace(ORDERS, broker_datas=(slave, ORDERS.broker_datas[1]))]
    for text, whole in (("broker-down broker-a@30s-60s", False), ("broker-loss broker-a@30s, WITH slaves", True)):
        found, findings = events([text], IDS, routes)
        assert found[0].with_slaves is whole
        assert [finding.code for finding in findings] == ([] if whole else ["slaves-go-on"])
    assert events(["broker-down broker-b@30s"], IDS, routes)[1] == ()
    with pytest.raises(UsageError, match="with masters") as refused:
        events(["broker-down broker-a@30s, with masters"], IDS, routes)
    assert refused.value.hint == "write after a comma: with slaves"


def test_a_lost_broker_of_a_static_topic_is_told_because_the_picture_cannot_show_it() -> None:
    mapping = {"a": TopicQueueMappingInfo("S", "__global__", 4, "a", 1, {0: 0, 1: 1})}
    static = replace(route("S", a=2, b=2), topic_queue_mapping_by_broker=mapping)

    def told(text: str) -> list[str]:
        return [finding.message for finding in events([text], IDS, [static, route("T", a=1, b=1, c=1)])[1]]

    (message,) = told("broker-loss a@1s")
    assert message.startswith("topic S is static: its queues keep their owners when a is lost")
    assert (told("broker-down c@1s"), told("leave #0@1s")) == ([], [])


@every_case("verb", VERBS)
def test_the_examples_in_hints_are_right(verb: str) -> None:
    text = VERBS[verb].example.split(" or ")[0].replace("TIME", "30s").replace("'", "").split(", TOPIC")[0]
    before = ["broker-down broker-a@1s"] if verb == "broker-up" else []
    found, _ = events([*before, text], ["10.0.0.5@app", "10.0.0.6@app"], [ORDERS])
    assert in_order(found, ["10.0.0.5@app", "10.0.0.6@app"], [ORDERS])


def test_what_the_group_decides_is_refused_too() -> None:
    rollout = "rolling-restart *@0s, every 9s, down 5s"
    for text, ids, routes, error in (
        ("route-change 4@1s", IDS, [ORDERS, BILLS], "which topic"),
        (rollout, ("x", "x"), [ORDERS], "2 processes share the client ID x"),
        ("strategy-change AVG@0s, every 9s, down 5s", (), [ORDERS], "the group is empty"),
    ):
        assert error in refusal(UsageError, events, [text], ids, routes).message
    assert events(["route-change Bills:4@1s"], IDS, [ORDERS, BILLS])[0][0].subject == "Bills"


names = st.sampled_from(
    [*IDS, "*", "#0", "#9", "x", "placeholder-01", "192.0.2.*", "[a", "broker-a", "7", "", "a b", "é\n"]
)
times = st.sampled_from(["0s", "30s", "-1s", "30s-90s", "1m30s", "x", "", "99999999999h", "5-", "@", "30s@3s"])
tails = st.sampled_from(
    ["down 5s", "every 9s", "at once 2", "by crash", "as y", "same ids", "strategy AVG", f"order {B} #0", "", "x", "at"]
)


@given(
    st.lists(st.tuples(st.sampled_from([*VERBS, "lave", ""]), names, times, st.lists(tails, max_size=4)), max_size=4)
)
def test_every_text_is_events_or_one_line(parts: list[tuple[str, str, str, list[str]]]) -> None:
    texts = [", ".join((f"{verb} {name}@{when}", *tail)) for verb, name, when, tail in parts]
    try:
        found, _ = events(texts, IDS, [ORDERS])
        ordered = in_order(found, IDS, [ORDERS])
    except (DataError, UsageError) as error:
        assert error.message
    else:
        assert sorted(event.at_us for event in found) == [event.at_us for event in ordered]
        assert {event.text for event in found} <= {text.strip() for text in texts}


def test_timers_are_named_as_the_table_says() -> None:
    for name, field in TIMER_NAMES.items():
        assert getattr(group_values.timers([f"{name}=7s"]), field) == 7 * S
    assert group_values.timers([]) == Timers()
    assert group_values.timers(["Rebalance_Wait=10s", "pull-delay=0"]) == Timers(
        rebalance_wait_us=10 * S, pull_delay_us=0
    )


def test_rates_are_of_a_topic_or_of_each() -> None:
    topics = ["Orders", "Bills", "%RETRY%g"]
    assert typed_rates([], topics) == {}
    assert typed_rates(["60/m"], topics) == {"Orders": 1.0, "Bills": 1.0}
    assert typed_rates(["100", "Bills=0", "%RETRY%g=2.5/s"], topics) == {
        "Orders": 100.0, "Bills": 0.0, "%RETRY%g": 2.5,
    }  # fmt: skip


def test_a_rollouts_members_are_named_or_all_and_their_ids_change_as_processes_name_themselves() -> None:
    assert rollout_values.restarted([], IDS) is None
    assert rollout_values.restarted([A, "ALL"], IDS) is None
    assert rollout_values.restarted(["all"], ("all", "x")) == ("all",)
    assert rollout_values.restarted([C, "192*", A], IDS) == (A, B, C)
    assert rollout_values.order_of([C, A]) == (C, A)
    assert rollout_values.order_of(None) is None
    changed, findings = rollout_values.ids_afterwards((A, B), IDS, None)
    assert (changed, [finding.code for finding in findings]) == ({A: "10.0.0.5@7#101"}, ["new-ids"])
    assert rollout_values.ids_afterwards((A, B), IDS, "same") == ({}, ())
    assert rollout_values.ids_afterwards((A,), (A, "10.0.0.5@7#101"), "NEW") == ({A: "10.0.0.5@7#102"}, ())


def test_a_pattern_of_zones_is_taken_without_pythons_doubts() -> None:
    zone = zones(["([[a]+)-"], "broker-zone")
    assert isinstance(zone, re.Pattern)
    assert zone.groups == 1


def test_a_list_of_members_may_begin_with_a_byte_order_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As part of the first id the mark would sort it behind all others, and give it other queues."""
    text = "\ufeffc1\r\n# a comment\r\n\r\n c2 \nd\u2028e"
    path = tmp_path / "ids"
    path.write_bytes(text.encode())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert values.members("@-") == values.members(f"@{path}") == ("c1", "c2", "d\u2028e")
