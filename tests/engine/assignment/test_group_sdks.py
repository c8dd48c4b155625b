"""Client libraries of a group: where they are known from, and what owners they give together."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb import UsageError, allocate
from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.engine.assignment.assign import Members, assign, owners_at_rest, runnable, under
from rmqlb.engine.assignment.consumers import GroupSdks, group_sdks, mixed_finding
from rmqlb.engine.assignment.detect import detect_strategy, fitting_strategies
from rmqlb.engine.assignment.owners import owners_by_strategy
from rmqlb.engine.plan.rebalance import Side, compare, plan_rebalance
from rmqlb.model.finding import INFO, WARNING
from rmqlb.model.group import Connection, ConsumerGroup, MemberView, QueueState, Seen
from tests.support.builders import route

IDS = tuple(f"10.0.0.{number}@1" for number in range(1, 5))


def group(connections: Mapping[str, tuple[str | None, str | None]], **rest: object) -> ConsumerGroup:
    listed = tuple(Connection(i, None, language, version) for i, (language, version) in connections.items())
    return ConsumerGroup("g", Seen("here"), views=(MemberView(listed, Seen("here")),), **rest)  # type: ignore[arg-type]


def codes(found: GroupSdks) -> list[str]:
    return [finding.code for finding in found.findings]


def test_each_consumer_runs_what_its_connection_says_and_the_most_frequent_is_usual() -> None:
    seen = group({"a": ("GO", "V4_5_2"), "b": ("JAVA", "V5_5_0"), "c": ("GO", "V4_5_2"), "d": ("CPP", "V4_6_0")})
    found = group_sdks(seen, ("a", "b", "c", "d"))
    assert (found.usual, found.sdk_of) == ("go", {"b": "java", "d": "cpp"})
    assert (found.assumed, found.findings) == (frozenset(), ())


def test_several_libraries_are_as_grave_as_what_they_make_of_the_queues() -> None:
    found = group_sdks(group({"a": ("GO", None), "b": ("JAVA", None), "c": ("GO", None)}), ("a", "b", "c"))
    (good,), (bad,) = (
        mixed_finding(found, ("a", "b", "c"), unassigned=unassigned, several=several)
        for unassigned, several in ((0, 0), (1, 2))
    )
    assert {(each.code, each.consumers) for each in (good, bad)} == {("mixed-sdks", ("b",))}
    assert (good.severity, bad.severity) == (INFO, WARNING)
    text = "consumers run different client libraries: go (2), java (1); each computes its own share by its own rules: "
    assert good.message == f"{text}each queue has one owner all the same"
    assert bad.message == f"{text}1 queue unassigned and 2 with duplicate owners, as predicted"
    assert list(mixed_finding(found, ("a", "c"), unassigned=1, several=0)) == []


def test_of_equally_many_java_is_usual_and_without_consumers_too() -> None:
    assert group_sdks(group({"a": ("GO", None), "b": ("JAVA", None)}), ("a", "b")).usual == "java"
    assert group_sdks(None, ()) == GroupSdks()
    assert group_sdks(None, (), given="go").usual == "go"


def test_without_languages_it_is_java_assumed_without_a_word() -> None:
    assert group_sdks(None, ("a", "b")) == GroupSdks(assumed=frozenset("ab"))
    assert group_sdks(group({"a": (None, None)}), ("a",)) == GroupSdks(assumed=frozenset("a"))


def test_a_language_that_is_not_known_has_the_nearest_rules_and_is_named() -> None:
    seen = group({"a": ("PYTHON", "V4_6_0"), "b": ("GO", "V5_0_0"), "c": ("RUST", None), "d": ("JAVA", "V5_5_0")})
    found = group_sdks(seen, ("a", "b", "c", "d"))
    assert found.sdk_of == {"a": "cpp", "b": "go"}
    assumed = [finding for finding in found.findings if finding.code == "assumed-sdk"]
    assert [(finding.consumers, finding.severity) for finding in assumed] == [
        (("c",), INFO),
        (("b",), INFO),
        (("a",), INFO),
    ]
    assert assumed[1].message == (
        "consumers run GO V5_0_0, whose rules are not known: predicted by those of go "
        "(apache/rocketmq-client-go 2.0.0 to 2.1.2), the nearest"
    )


def test_a_grpc_consumer_is_not_named_as_assumed() -> None:
    assert codes(group_sdks(group({"h@7@1@abc": ("RUST", "V5_0_0")}), ("h@7@1@abc",))) == []


def test_a_connection_that_tells_nothing_leaves_it_to_another_broker() -> None:
    views = [MemberView((Connection("a", None, language, None),), Seen("here")) for language in (None, "GO")]
    assert group_sdks(ConsumerGroup("g", Seen("here"), views=tuple(views)), ("a",)).usual == "go"


def test_what_the_user_names_goes_before_what_connections_say() -> None:
    seen = group({"a": ("JAVA", None), "b": ("GO", None)})
    assert group_sdks(seen, ("a", "b"), given="cpp") == GroupSdks("cpp")
    found = group_sdks(seen, ("a", "b"), given_of={"b": "cpp", "c": "go@3.1"})
    assert (found.usual, found.sdk_of) == ("java", {"b": "cpp", "c": "go"})
    assert codes(found) == []
    assert codes(group_sdks(seen, ("a", "b"), given="go@3.1")) == ["assumed-sdk"]


@given(
    st.sampled_from(WITHOUT_SETTINGS),
    st.dictionaries(st.sampled_from(["￮@1", "\U0001f600@1", *IDS]), st.sampled_from(["java", "go", "cpp"]), min_size=1),
    st.sampled_from(["java", "go"]),
    st.integers(1, 9),
)
def test_owners_of_a_mixed_group_are_what_each_consumer_computes(
    strategy: str, sdks: dict[str, str], usual: str, number: int
) -> None:
    topic = route(a=number, b=number)
    ids = (*sdks, "z@1")
    assignment = assign(topic, Members(ids, strategy, sdk=usual, sdk_of=sdks), explain=True)
    shares = allocate(strategy, topic.subscribe_queues(), ids, sdk=usual, sdks=sdks)
    assert {i: {q for q, its in assignment.owners.items() if i in its} for i in ids} == {
        i: set(share) for i, share in shares.items()
    }
    assert assignment.reasons.keys() == assignment.owners.keys()
    assert set(assignment.idle) == {i for i, share in shares.items() if not share}


def test_reasons_name_the_library_where_they_differ() -> None:
    members = Members(IDS, "CONSISTENT_HASH", sdk_of={IDS[1]: "go"})
    reasons = assign(route(a=8), members, explain=True).reasons.values()
    assert any(
        "CONSISTENT_HASH of go: hash" in reason and "CONSISTENT_HASH of java: hash" in reason for reason in reasons
    )
    same = assign(route(a=8), Members(IDS, "AVG", sdk_of={IDS[1]: "go"}), explain=True).reasons.values()
    assert all(" of " not in reason.partition(" of consumer")[0] for reason in same)


def test_a_group_of_cpp_consumers_has_one_strategy_to_show_and_none_to_be_told() -> None:
    members = Members(IDS, "AVG", sdk="cpp")
    assert runnable(WITHOUT_SETTINGS, members) == ["AVG"]
    assert runnable(WITHOUT_SETTINGS, Members(IDS, "AVG", sdk_of={IDS[0]: "cpp"})) == list(WITHOUT_SETTINGS)
    with pytest.raises(UsageError, match="no other strategy can be set"):
        owners_at_rest([route(a=4)], under(members, "AVG_BY_CIRCLE"))
    with pytest.raises(UsageError, match="unknown SDK"):
        Members(IDS, "AVG", sdk="perl")


def test_the_strategy_of_a_go_group_is_found_by_gos_own_ring() -> None:
    topic = route(a=8)
    members = Members(IDS, "CONSISTENT_HASH", sdk="go")
    states = {queue: QueueState(owners=frozenset(owners)) for queue, owners in owners_at_rest([topic], members).items()}
    assert fitting_strategies([topic], members, states) == ("CONSISTENT_HASH",)
    assert fitting_strategies([topic], Members(IDS, "AVG"), states) == ()
    seen = group(dict.fromkeys(IDS, ("GO", "V4_5_2")), queues=states)
    assert detect_strategy(None, seen, [topic], members).strategy == "CONSISTENT_HASH"
    report = owners_by_strategy("g", [topic], members, WITHOUT_SETTINGS, states=states)
    assert {each.strategy: each.mismatches == 0 for each in report.strategies} == {
        "AVG": False,
        "AVG_BY_CIRCLE": False,
        "CONSISTENT_HASH": True,
    }


def test_a_plan_of_cpp_consumers_is_compared_with_no_other_strategy() -> None:
    side = Side(Members(IDS, "AVG", sdk="cpp"), (route(a=8),))
    plan = compare(plan_rebalance("g", side, side), side, side, WITHOUT_SETTINGS)
    assert [each.strategy for each in plan.comparison] == ["AVG"]
