"""Who really owns a queue: what members say they hold goes before what a server says of them."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from rmqlb.model.group import QueueState
from rmqlb.model.message_queue import MessageQueue
from rmqlb.sources.formats.documents import with_owners

A0, A1, A2 = (MessageQueue("T", "a", i) for i in range(3))
QUEUES = st.sampled_from((A0, A1, A2))
IDS = st.sampled_from("xyz")


def owners(states: Mapping[MessageQueue, QueueState]) -> dict[MessageQueue, set[str] | None]:
    return {queue: None if state.owners is None else set(state.owners) for queue, state in states.items()}


def owned_by(*client_ids: str) -> QueueState:
    return QueueState(frozenset(client_ids))


def test_a_queue_is_owned_by_all_who_hold_it() -> None:
    states = with_owners({A0: QueueState()}, {"x": {A0}, "y": {A0, A1}}, {"x", "y"})
    assert owners(states) == {A0: {"x", "y"}, A1: {"y"}}


def test_what_members_hold_goes_before_what_the_server_says() -> None:
    assert owners(with_owners({A0: owned_by("old")}, {"x": {A0}}, {"x"})) == {A0: {"x"}}


def test_a_queue_that_nobody_holds_has_no_owner_once_every_member_answered() -> None:
    assert owners(with_owners({A0: owned_by("x"), A1: QueueState()}, {"x": set()}, {"x"})) == {A0: set(), A1: set()}


def test_while_a_member_has_not_answered_what_was_known_stands() -> None:
    states = with_owners({A0: owned_by("y"), A1: QueueState()}, {"x": set()}, {"x", "y"})
    assert owners(states) == {A0: {"y"}, A1: None}


def test_without_members_nothing_is_concluded() -> None:
    for members in (None, set[str]()):
        assert owners(with_owners({A0: QueueState(), A1: owned_by("x")}, {}, members)) == {A0: None, A1: {"x"}}


def test_offsets_stay_as_they_were() -> None:
    states = with_owners({A0: QueueState(None, 10, 4, 99)}, {"x": {A0}}, None)
    assert states == {A0: QueueState(frozenset({"x"}), 10, 4, 99)}
    assert states[A0].lag == 6


@given(
    st.dictionaries(QUEUES, st.builds(QueueState, st.none() | st.frozensets(IDS))),
    st.dictionaries(IDS, st.frozensets(QUEUES)),
    st.none() | st.frozensets(IDS),
)
def test_no_queue_is_lost_and_no_holder_forgotten(
    queues: dict[MessageQueue, QueueState], held: dict[str, frozenset[MessageQueue]], members: frozenset[str] | None
) -> None:
    states = with_owners(queues, held, members)
    assert set(states) == {*queues, *(queue for its in held.values() for queue in its)}
    for queue, state in states.items():
        holders = {client_id for client_id, its in held.items() if queue in its}
        if holders:
            assert state.owners == holders
