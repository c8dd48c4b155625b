"""Groups whose consumers run: what rmqlb predicts of them, what they report, and which messages really reach whom."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from rmqlb import MessageQueue
from tests.cli.run import envelope_of

from .broker_requests import assignment, send, set_pop_mode
from .cluster import RocketMQCluster
from .jvm import wait_until
from .members import SETTLE_DEADLINE, Members, Owned

Owners = Mapping[MessageQueue, tuple[str, ...]]
"""Queue → client ids, sorted as text; a queue without an owner has none."""

OWNED_DEADLINE = 90.0
"""A Go consumer that misses a broker's notification rebalances 20 s later, and learns of a route within 30 s."""
_numbers = count()


@dataclass(frozen=True)
class Watched:
    cluster: RocketMQCluster
    group: str
    programs: Sequence[Members]
    strategy: str = "AVG"  # as RocketMQ names it

    def say(self, command: str, *more: str) -> Any:
        source = ("-s", f"rocketmq://{self.cluster.name_server}", "-g", self.group, "--source-timeout", "20s")
        return envelope_of(command, *source, *more)

    def owners(self) -> tuple[Owners, Owners]:
        shown = self.say("show-owners", "--strategy", self.strategy)["data"]
        rows = {MessageQueue(q["topic"], q["brokerName"], q["queueId"]): q for q in shown["queues"]}
        (name,) = (each["strategy"] for each in shown["strategies"])
        return (
            {queue: tuple(sorted(row["owners"][name])) for queue, row in rows.items()},
            {queue: tuple(sorted(row["ownersObserved"] or ())) for queue, row in rows.items()},
        )

    def planned(self, *change: str) -> Owners:
        plan = self.say("plan-rebalance", "--strategy", self.strategy, *change)["data"]
        return {
            MessageQueue(topic["topic"], queue["brokerName"], queue["queueId"]): tuple(sorted(queue["ownersAfter"]))
            for topic in plan["topics"]
            for queue in topic["queues"]
            if queue["change"] != "removed"
        }

    def must_own(self, client_ids: Sequence[str], expected: Owners | None = None) -> Owners:
        """Wait until these consumers report, and get messages of, the predicted queues and no others; `expected` is older."""
        predicted: Owners = {}
        observed: Owners = {}

        def agree() -> bool:
            nonlocal predicted, observed
            shown = self.say("show-owners", "--strategy", self.strategy)
            predicted, observed = self.owners()
            differ = any(finding["code"] == "assignment-mismatch" for finding in shown["findings"])
            return (
                sorted(shown["data"]["sortedConsumers"]) == sorted(client_ids) and predicted == observed and not differ
            )

        wait_until(agree, OWNED_DEADLINE, lambda: f"{self.group}: {differences(predicted, observed)}", 1.0)
        assert expected is None or predicted == expected, differences(expected, predicted)
        self._must_receive(predicted)
        return predicted

    def _must_receive(self, owners: Owners) -> None:
        text = next_text()
        for queue in owners:
            send(self.cluster, queue, text)

        until_equal(lambda: self.received(text, owners), owners, self.group, OWNED_DEADLINE)

    def received(self, text: str, queues: Sequence[MessageQueue] | Owners) -> Owners:
        got = [pair for program in self.programs for pair in program.received(text).items()]
        return {queue: tuple(sorted(client_id for client_id, its in got if queue in its)) for queue in queues}


def until_equal(found: Callable[[], Owners], expected: Owners, of: str, deadline: float = SETTLE_DEADLINE) -> None:
    wait_until(lambda: found() == expected, deadline, lambda: f"{of}: {differences(expected, found())}", 0.5)


def ids(*names: str) -> list[str]:
    return [f"127.0.0.1@{name}" for name in names]


def next_text() -> str:
    return f"message {next(_numbers)}"


def differences(predicted: Owners, observed: Owners) -> str:
    rows = [
        f"{queue.topic} {queue.broker_name} {queue.queue_id}: {predicted.get(queue)} predicted, {observed.get(queue)} seen"
        for queue in sorted({*predicted, *observed})
        if predicted.get(queue) != observed.get(queue)
    ]
    return "\n".join(rows) or "no difference"


def unassigned(owners: Owners) -> list[MessageQueue]:
    return [queue for queue, its in owners.items() if not its]


def owned_twice(owners: Owners) -> list[MessageQueue]:
    return [queue for queue, its in owners.items() if len(its) > 1]


ANY_QUEUE = -1


@dataclass(frozen=True)
class PopGroup(Watched):
    """A group that subscribes to one topic; `share` is its `popShareQueueNum`."""

    topic: str = ""
    queues: tuple[MessageQueue, ...] = ()
    share: int = -1

    @property
    def members(self) -> Members:
        return self.programs[0]

    def set_mode(self) -> None:
        """POP on every broker of the topic, as soon as each knows the group."""
        set_pop_mode(self.cluster, self.brokers, self.group, self.topic, self.share, SETTLE_DEADLINE)
        wait_until(
            lambda: not any(self._pulled()), SETTLE_DEADLINE, lambda: f"{self.group} still pulls {list(self._pulled())}"
        )

    @property
    def brokers(self) -> list[str]:
        its = {queue.broker_name for queue in self.queues}
        return [name for name in self.cluster.running_brokers if name in its]

    def may_read(self) -> Owners:
        (topic,) = self.say("show-owners")["data"]["popTopics"]
        assert (topic["topic"], topic["popShareQueueNums"], topic["assumed"]) == (self.topic, [self.share], False)
        return self.by_queue(_rows(topic, "consumers"))

    def planned_readers(self, *change: str) -> Owners:
        (topic,) = self.say("plan-rebalance", *change)["data"]["popTopics"]
        return self.by_queue(_rows(topic, "consumersAfter"))

    def by_queue(self, readers: Owners) -> Owners:
        """Each single queue, that of brokers of which any queue may be read too."""
        brokers = {queue.broker_name for queue in readers}
        return {
            queue: tuple(sorted({*readers.get(queue, ()), *readers.get(_any_of(queue), ())}))
            for queue in self.queues
            if queue.broker_name in brokers
        }

    def must_read(self, client_ids: Sequence[str], expected: Owners | None = None) -> Owners:
        """Come back once brokers answer, consumers hold, and messages go as predicted, of each queue and consumer."""
        readers = self.may_read()
        assert expected is None or readers == expected, differences(expected, readers)
        for broker_name in self.brokers:
            until_equal(partial(self._answered, broker_name, client_ids), readers, broker_name)
        until_equal(lambda: self.by_queue(_readers(self.members.popped())), readers, self.group)
        self._must_get(readers)
        return readers

    def _pulled(self) -> Iterator[MessageQueue]:
        held = self.members.owned().values()
        return (queue for its in held for queue in its if queue.topic == self.topic)

    def _answered(self, broker_name: str, client_ids: Iterable[str]) -> Owners:
        answers = {
            i: assignment(self.cluster, broker_name, self.group, self.topic, i, self.strategy) or {} for i in client_ids
        }
        assert {mode for answer in answers.values() for mode in answer.values()} <= {"POP"}
        return self.by_queue(_readers({client_id: frozenset(answer) for client_id, answer in answers.items()}))

    def _must_get(self, readers: Owners) -> None:
        """Rounds of a message to each queue, until each consumer had one from each queue that it may read."""
        text = next_text()

        def got() -> Owners:
            for queue in readers:
                send(self.cluster, queue, text)
            return self.received(text, readers)

        until_equal(got, readers, self.group)


def _rows(topic: Mapping[str, Any], side: str) -> Owners:
    """The owners on one side of a plan, of queues that exist there."""
    return {
        MessageQueue(topic["topic"], row["brokerName"], row["queueId"]): tuple(row[side])
        for row in topic["queues"]
        if row[side] is not None
    }


def _readers(held: Owned) -> Owners:
    queues = {queue for its in held.values() for queue in its}
    return {queue: tuple(sorted(i for i, its in held.items() if queue in its)) for queue in queues}


def _any_of(queue: MessageQueue) -> MessageQueue:
    return MessageQueue(queue.topic, queue.broker_name, ANY_QUEUE)
