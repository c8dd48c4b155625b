"""A group on loopback whose owners change from look to look: two scripted brokers that say what the script says."""

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rmqlb.remoting.codes import RequestCode, ResponseCode
from rmqlb.remoting.command import RemotingCommand
from tests.support.replay_remoting import Answer, Broker, Replay, Turn, cluster, error_answer, reset, success

GROUP, TOPIC = "order-svc", "OrderEvents"
PAUSE_S = 0.7
AVG = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely"
_BROKERS: tuple[Broker, ...] = ("b0", "b1")


@dataclass(frozen=True)
class Moment:
    owners: Mapping[str, str]  # consumer → its queues, as `a0` (of broker-a) or `b7`, with a range `a0-3`
    silent: tuple[str, ...] = ()  # listed, and the broker says at once that it cannot reach them
    frozen: tuple[str, ...] = ()  # listed, and they never answer
    down: bool = False  # the brokers reset every connection


@dataclass
class MovingGroup:
    moments: Sequence[Moment]  # one per look
    begun_s: list[float] = field(default_factory=list)  # when each look so far began
    source: tuple[str, ...] = ()  # the arguments that lead there
    servers: tuple[Replay, ...] = ()
    _asked: float = -PAUSE_S
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def now(self) -> Moment:
        return self.moments[min(len(self.begun_s), len(self.moments)) - 1]

    def gate(self, turn: Turn) -> None:
        """Every request comes through here; one after a pause begins a look, for looks are a second apart."""
        with self._lock:
            before, self._asked = self._asked, time.monotonic()
            if self._asked - before > PAUSE_S:
                self.begun_s.append(self._asked)
        if self.now.down:
            reset(turn)
        elif turn.answer is not None and turn.request.ext_fields.get("clientId") not in self.now.frozen:
            turn.write(turn.frame)

    def connections(self, _: RemotingCommand) -> RemotingCommand:
        ids = [*self.now.owners, *self.now.silent, *self.now.frozen]
        client = {"clientAddr": "127.0.0.1:1", "language": "JAVA", "version": 513}
        body = {
            "connectionSet": [{"clientId": i, **client} for i in ids], "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
            "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
            "subscriptionTable": {TOPIC: {"topic": TOPIC, "subString": "*"}},
        }  # fmt: skip
        return success(json.dumps(body).encode())

    def running(self, request: RemotingCommand) -> RemotingCommand:
        client_id = request.ext_fields["clientId"]
        if client_id not in self.now.owners:
            return error_answer(ResponseCode.SYSTEM_ERROR, f"The Consumer <{GROUP}> <{client_id}> not online")
        queues = ",".join(
            f'{{"brokerName":"broker-{broker}","queueId":{number},"topic":"{TOPIC}"}}:{{"droped":false}}'
            for broker, number in _queues(self.now.owners[client_id])
        )
        properties = {
            "PROP_CLIENT_VERSION": "V5_5_0", "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY", "clientRebalance": "true",
        }  # fmt: skip
        rest = {
            "properties": {**properties, "allocateMessageQueueStrategy": f"{AVG}@1"},
            "statusTable": {},
            "subscriptionSet": [{"topic": TOPIC, "subString": "*"}],
        }
        return success(f'{{"mqTable":{{{queues}}},{json.dumps(rest)[1:]}'.encode())


def _queues(text: str) -> Iterator[tuple[str, int]]:
    for part in text.split():
        first, _, last = part[1:].partition("-")
        for number in range(int(first), int(last or first) + 1):
            yield part[0], number


@contextmanager
def moving(*moments: Moment) -> Iterator[MovingGroup]:
    group = MovingGroup(moments)
    key = f"consumerGroup={GROUP}"
    lists, running = RequestCode.GET_CONSUMER_CONNECTION_LIST, RequestCode.GET_CONSUMER_RUNNING_INFO
    ids = {client_id for moment in moments for client_id in (*moment.owners, *moment.silent, *moment.frozen)}
    told: dict[tuple[int, str], Answer] = {(running, f"{key}&clientId={client_id}"): group.running for client_id in ids}
    answers: dict[tuple[int, str], Answer] = {(lists, key): group.connections, **told}
    first, other = (Replay(broker=name, answers=answers, faults={"*": group.gate}) for name in _BROKERS)
    with cluster(first, other) as (a, b):
        group.servers = (a, b)
        group.source = ("-s", f"rocketmq://{a.address}", "--map-address", a.mapped, "--map-address", b.mapped)
        yield group
