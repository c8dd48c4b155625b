"""A consumer that does not answer through one broker is asked through another one before it counts as silent."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rmqlb.model.snapshot import ClusterSnapshot, Wanted, through
from rmqlb.remoting.codes import RequestCode
from rmqlb.sources.live import LiveSource
from tests.support import replay_dashboard
from tests.support.replay_remoting import Fault, Replay, Turn, cluster, refusal, refusing, silent

from . import dashboards
from .test_nameserver import NOW, reads

RUNNING = RequestCode.GET_CONSUMER_RUNNING_INFO
ONE = "192.0.2.2@inst0"
TIMED_OUT = 207


def fetch(brokers: Sequence[Replay]) -> ClusterSnapshot:
    source = LiveSource(reads([brokers[0].address], tuple(brokers), timeout=0.3, retries=0), clock=lambda: NOW)
    return source.fetch(Wanted(group="order-svc", evidence=True))


def asked(broker: Replay) -> int:
    return sum(r.code == RUNNING and r.ext_fields["clientId"] == ONE for r in broker.requests)


def for_one(fault: Fault) -> Fault:
    """The fault when it is about that consumer."""
    return lambda turn: fault(turn) if turn.request.ext_fields["clientId"] == ONE else turn.write(turn.frame)


def asked_first() -> int:
    """Through which broker the consumer is asked when all is well."""
    with cluster() as brokers:
        fetch(brokers)
        return next(place for place, broker in enumerate(brokers) if asked(broker))


@pytest.mark.parametrize("fault", [silent, refusing(TIMED_OUT, "no answer in time")])
def test_an_answer_through_another_broker_names_the_link(fault: Fault) -> None:
    first = asked_first()
    with cluster() as brokers:
        brokers[first].faults[RUNNING] = for_one(fault)
        snapshot = fetch(brokers)
        numbers = asked(brokers[first]), asked(brokers[1 - first])
    assert numbers == (2, 1)
    assert ONE in snapshot.group("order-svc").reports
    (link,) = (part for part in snapshot.unread if part.kind == "link")
    addresses = {view.broker_addr for view in snapshot.group("order-svc").views or ()}
    assert (link.name, link.no_answer) == ("order-svc", True)
    assert through(link)[0] == ONE
    assert through(link)[1] in addresses


def test_a_consumer_that_answers_when_it_is_asked_again_has_no_broken_link() -> None:
    first = asked_first()

    def once_silent(turn: Turn) -> None:
        if asked(turn.replay) == 1:
            silent(turn)
        turn.write(turn.frame)

    with cluster() as brokers:
        brokers[first].faults[RUNNING] = for_one(once_silent)
        snapshot = fetch(brokers)
    assert ONE in snapshot.group("order-svc").reports
    assert not [part for part in snapshot.unread if part.kind == "link" or part.detail == ONE]


def test_a_consumer_that_answers_through_no_broker_is_silent() -> None:
    with cluster() as brokers:
        for broker in brokers:
            broker.faults[RUNNING] = for_one(silent)
        snapshot = fetch(brokers)
        numbers = sorted(asked(broker) for broker in brokers)
    assert numbers == [1, 1]
    assert ONE not in snapshot.group("order-svc").reports
    assert [(part.detail, part.no_answer) for part in snapshot.unread if part.detail == ONE] == [(ONE, True)]
    assert not [part for part in snapshot.unread if part.kind == "link"]


def test_a_client_that_does_not_run_the_group_owns_none_of_its_queues() -> None:
    """`ClientRemotingProcessor.getConsumerRunningInfo`; brokers up to 5.5.0 list such clients."""
    reason = "The Consumer Group <order-svc> not exist in this consumer"

    def ghost(turn: Turn) -> None:
        is_one = turn.request.ext_fields["clientId"] == ONE
        turn.write(turn.frame if is_one else turn.framed(refusal(1, reason)))

    with cluster() as brokers:
        for broker in brokers:
            broker.faults[RUNNING] = ghost
        group = fetch(brokers).group("order-svc")
    assert list(group.reports) == [ONE]
    assert {state.owners for state in group.queues.values()} == {frozenset({ONE}), frozenset()}


def test_a_dashboard_finds_its_way_to_a_consumer_by_itself() -> None:
    """It asks a broker of its own choice, so that a second answer says nothing of a link."""
    with replay_dashboard.dashboard(replay_dashboard.Replay()) as replay:
        replay.faults[dashboards.RUNNING] = replay_dashboard.silent
        snapshot = dashboards.fetch(replay, Wanted(group="order-svc", evidence=True), timeout=0.3, retries=0)
        asked_of = [each for each in replay.asked if dashboards.RUNNING in each]
    assert len(asked_of) == len(set(asked_of)) > 0
    assert {part.kind for part in snapshot.unread if part.kind != "stored-offsets"} == {"member"}
