from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb import AllocationError, MessageQueue, UsageError, allocate, allocate_for
from rmqlb.engine.allocate.rules import NAMES
from rmqlb.engine.allocate.sdks import SDKS, sdk_named, sdk_of_connection
from tests.support.builders import queues, short
from tests.support.mismatches import every_case
from tests.support.vectors import vectors

ids = st.lists(st.text("abc10.@é\U0001f600￮", min_size=1, max_size=8), min_size=1, max_size=12)
some_queues = st.lists(
    st.builds(MessageQueue, st.just("T"), st.sampled_from(["a", "b-10", "r@x", "￮", "\U0001f600"]), st.integers(0, 30)),
    min_size=1,
    unique=True,
)
SETTINGS: dict[str, Any] = {
    "consumer_idcs": ["r"],
    "config": [MessageQueue("T", "a", 1)],
    "broker_zones": lambda name: name[0],
    "client_zones": lambda name: name[0],
    "hosts": ["a", "1"],
}
ROOT = Path(__file__).parents[3]


@given(st.data(), st.sampled_from(NAMES), some_queues, ids)
def test_a_mixed_group_is_each_consumer_by_its_own_rule(
    data: st.DataObject, strategy: str, some: list[MessageQueue], client_ids: list[str]
) -> None:
    sdks = {i: data.draw(st.sampled_from(["java@5.5.0", "go", "cpp"])) for i in dict.fromkeys(client_ids)}
    # Without one consumer that can run it, nobody does.
    strategy = "AVG" if set(sdks.values()) == {"cpp"} else strategy
    shares = allocate(strategy, some, client_ids, sdks=sdks, **SETTINGS)
    assert list(shares) == list(allocate("AVG", some, client_ids))
    for client_id, sdk in sdks.items():
        own = "AVG" if sdk == "cpp" else strategy
        assert shares[client_id] == allocate_for(client_id, own, some, client_ids, sdk=sdk, **SETTINGS)


def test_nearby_of_go_is_avg_without_any_zone_and_whatever_is_inside() -> None:
    expected = allocate("AVG", queues(5), ["x", "y"])
    assert allocate("MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE", queues(5), ["x", "y"], sdk="go") == expected
    pinned = allocate("PIN-MACHINE_ROOM_NEARBY-CONFIG", queues(5), ["x@1", "y@1"], sdk="go", hosts=["y"])
    assert {i: len(share) for i, share in pinned.items()} == {"x@1": 0, "y@1": 5}


def test_a_cpp_consumer_runs_avg_in_any_group_and_a_group_of_them_nothing_else() -> None:
    mixed = allocate("AVG_BY_CIRCLE", queues(4), ["x", "y"], sdks={"y": "cpp"})
    assert [short(share) for share in mixed.values()] == [["broker-a0", "broker-a2"], ["broker-a2", "broker-a3"]]
    for call in (
        lambda: allocate("AVG_BY_CIRCLE", queues(4), ["x"], sdk="cpp"),
        lambda: allocate("AVG_BY_CIRCLE", queues(4), [], sdk="cpp"),
        lambda: allocate("AVG_BY_CIRCLE", queues(4), ["x"], sdks={"x": "cpp"}),
        lambda: allocate_for("x", "CONFIG", queues(4), ["x"], sdk="cpp"),
    ):
        with pytest.raises(UsageError, match="no other strategy can be set") as raised:
            call()
        assert raised.value.code == "strategy-not-in-sdk"
    with pytest.raises(UsageError, match="unknown strategy AVGG"):
        allocate("AVGG", queues(4), ["x"], sdk="cpp")


def test_without_consumers_java_and_cpp_throw_and_go_does_not() -> None:
    for sdk, text in (("java", "cidAll is null or cidAll empty"), ("cpp", "cidAll is empty")):
        with pytest.raises(AllocationError, match=f"^{text}$"):
            allocate("AVG", queues(1), [], sdk=sdk)
    assert allocate("AVG", queues(1), [], sdk="go") == {}


@every_case("text", ["java", "go", "go@2.1.2", "go@v2.0.0", "cpp@2.2", "go@2.2.0?", "go@1.2.4?", "java@5.6.0?"])
def test_a_version_that_was_not_read_has_the_rules_of_the_nearest(text: str) -> None:
    guess = sdk_named(text.rstrip("?"))
    assert (guess.sdk.name, guess.assumed) == (text.partition("@")[0], text.endswith("?"))


WRONG = ["", "rust", "GO", "java-grpc", "go@", "go@x", "go@2", "@2.1.2"]


@every_case(
    "given_",
    [{"sdk": text} for text in WRONG]
    + [{"sdks": {"nobody": "rust"}}, {"sdk": 1}, {"sdks": ["go"]}, {"sdks": {"x": 1}}, {"sdks": {1: "go"}}],
)
def test_what_is_no_library_is_refused(given_: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        allocate("AVG", queues(1), ["x"], **given_)


@every_case(("connections", "name", "assumed"), [
    ("JAVA V5_5_0, JAVA", "java", False),
    ("GO V4_5_2, GO", "go", False),
    ("GO V5_0_0", "go", True),
    ("CPP V4_6_0, CPP V3_1_8", "cpp", False),
    ("CPP V4_9_0, PYTHON V4_6_0, NODE_JS", "cpp", True),
    ("RUST, OTHER V5_5_0,", "java", True),
])  # fmt: skip
def test_a_connection_tells_the_library_or_the_nearest_is_assumed(connections: str, name: str, assumed: bool) -> None:
    for each in connections.split(","):
        language, _, version = each.strip().partition(" ")
        guess = sdk_of_connection(language or None, version or None)
        assert (guess.sdk.name, guess.assumed) == (name, assumed), each


def test_the_page_and_the_vectors_say_what_the_table_of_libraries_says() -> None:
    page = (ROOT / "docs/explanation/strategies.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines()]
    said = {row[0]: row[4:] for row in rows if len(row) == 8}
    for name, file in {"java": "allocate", "go": "go-allocate", "cpp": "cpp-allocate"}.items():
        sdk = SDKS[name]
        assert said[f"`{name}`"] == [sdk.newest, sdk.oldest, str(sdk.vectors), "yes" if sdk.live else "no"]
        assert len(list(vectors(file))) == sdk.vectors
