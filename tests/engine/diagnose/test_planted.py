from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.model.snapshot import ClusterSnapshot
from tests.engine.diagnose.running import Process, diagnosed, grave, running
from tests.support.builders import route

STRATEGIES = WITHOUT_SETTINGS
SIZES = st.tuples(st.integers(1, 9), st.integers(1, 9))


@st.composite
def planted(draw: st.DrawFn, *faults: str) -> ClusterSnapshot:
    topics = draw(st.lists(SIZES, min_size=2, max_size=3))
    routes = tuple(route(f"T{n}", a=a, b=b) for n, (a, b) in enumerate(topics))
    names = tuple(each.topic for each in routes)
    ids = draw(st.lists(st.text("abcxyz019.@", min_size=1, max_size=6), min_size=3, max_size=7, unique=True))
    strategy = draw(st.sampled_from(STRATEGIES))
    processes = [Process(client_id, strategy, names) for client_id in ids]
    for place, fault in enumerate(faults):
        one = processes[place]
        if fault == "duplicate-client-id":
            processes.append(one)
        elif fault == "mixed-strategies":
            other = draw(st.sampled_from([name for name in STRATEGIES if name != strategy]))
            processes[place] = replace(one, strategy=other)
        elif fault == "subscription-mismatch":
            processes[place] = replace(one, topics=names[:-1])
        elif fault == "split-consumer-view":
            asked = draw(st.lists(st.sampled_from("ab"), min_size=len(processes), max_size=len(processes)))
            processes = [replace(each, asks=broker) for each, broker in zip(processes, asked, strict=True)]
            processes[place] = replace(one, unlisted=("b",))  # it cannot ask a broker that does not know it
        else:
            processes[place] = replace(one, cut=("b",))
    return running(*processes, routes=routes)


def is_disturbed(snapshot: ClusterSnapshot) -> bool:
    return any(len(state.owners or ()) != 1 for state in snapshot.groups["g"].queues.values())


def check(snapshot: ClusterSnapshot, *faults: str) -> None:
    found = diagnosed(snapshot)
    codes = set(grave(found))
    assert codes == set(faults)
    if is_disturbed(snapshot):
        first = found.findings[0]
        assert first.severity == "error"
        assert first.explains is not None
        assert first.explains.reproduces is True


FAULTS = ("duplicate-client-id", "mixed-strategies", "subscription-mismatch", "split-consumer-view")


@given(st.data(), st.lists(st.sampled_from(FAULTS), max_size=2, unique=True))
@settings(max_examples=300)
def test_planted_faults_are_found_and_no_other(data: st.DataObject, faults: list[str]) -> None:
    snapshot = data.draw(planted(*faults))
    check(snapshot, *faults)
    explains = [each.explains.fixes_all for each in diagnosed(snapshot).findings if each.explains is not None]
    assert len(faults) != 1 or explains == [True]


@given(st.data())
@settings(max_examples=100)
def test_a_consumer_that_does_not_reach_a_broker_is_found_by_the_queues_that_it_lacks(data: st.DataObject) -> None:
    snapshot = data.draw(planted("broker-unreachable-from-consumer"))
    lacks = is_disturbed(snapshot)  # otherwise it has no queue there, and only the lists show it
    check(snapshot, "broker-unreachable-from-consumer" if lacks else "split-consumer-view")
