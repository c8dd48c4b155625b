"""How long messages wait for real consumers that receive, and when they come back, beside what `simulate-receive` says.

gRPC Java consumers behind a Proxy, and Java consumers in POP mode, at RocketMQ's default settings.
"""

import random
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from heapq import merge
from pathlib import Path

import pytest
from msgspec.structs import replace

from rmqlb import MessageQueue, UsageError
from rmqlb.engine.simulate_receive.rules import again_after_us, broker_rules
from rmqlb.engine.simulate_receive.simulate_receive import readable_queues, simulate_receive
from rmqlb.model.simulate_receive import SECOND_US, QueueRate, ReceiveClient, ReceiveScenario
from tests.support.builders import route

from .broker_requests import pop as pop_message
from .broker_requests import send
from .cluster import RocketMQCluster, TopicOnBroker
from .jvm import Java, JavaProcess, wait_until
from .members import Consumers, Receivers, Sender, all_got, consumers, receivers, sender
from .proxies import grpc_java, proxy_by_itself

pytestmark = [pytest.mark.live, pytest.mark.slow]

BROKERS = {"p": 3, "q": 2}
TOPIC = route(p=BROKERS["p"], q=BROKERS["q"])
QUEUES = readable_queues(TOPIC)
LASTING_S = 45
FURTHER_S = 20  # as long as a measured message may wait, more arrive
PER_SECOND = Fraction(1, 5)  # of each consumer's topic
CONSUMERS = {1: 20, 2: 20, 4: 4}  # loops → how many SimpleConsumers, each in a group and with a topic of its own
TRIALS = 60
STARTS = 3
TOLERANCE_MS = 500
"""A busy machine is later by so much than the simulation, which has 1 ms for a request and its answer."""
LATE_MS = 2000
"""And by so much where several programs have their turns."""
DEADLINE = 90.0
Times = Mapping[str, int]


@dataclass
class Lab:
    """What the tests share. A PushConsumer has died at `push_died_ms`, with messages that it had not acknowledged."""

    cluster: RocketMQCluster
    folder: Path
    endpoint: str
    grpc: Java
    sender: Sender
    living: Receivers
    push_died_ms: int = 0
    push_had: Sequence[str] = ()

    @contextmanager
    def doomed(self, name: str) -> Iterator[Receivers]:
        with receivers(self.grpc, self.endpoint, self.folder / f"{name}.log") as program:
            yield program

    def is_popped(self, group: str, topic: str) -> None:
        self.admin("setConsumeMode", "-g", group, "-t", topic, "-m", "POP", "-q", "0")

    def send_to_all(self, topic: str, times: int = 1) -> list[str]:
        bodies = []
        for queue in times * QUEUES:
            bodies.append(f"{topic}-{time.time_ns()}")
            self.sender.send(topic, queue.broker_name, queue.queue_id, bodies[-1])
        return bodies

    def admin(self, *args: str) -> None:
        self.cluster.admin(args[0], "-c", self.cluster.name, *args[1:])


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("receives")
    with ExitStack() as running:
        config = {"timerWheelEnable": "true"}  # POP needs it
        cluster = running.enter_context(RocketMQCluster("5.5.0", list(BROKERS), config=config))
        waiting = [waiting_topic(loops, number) for loops, count in CONSUMERS.items() for number in range(count)]
        names = [*waiting, "Held", "Ordered", "Pushed", "Popped", "Short", "PushWaits", "PopWaits"]
        cluster.create_topics([TopicOnBroker(name, each, n, n) for name in names for each, n in BROKERS.items()])
        endpoint, _ = running.enter_context(proxy_by_itself(cluster))
        grpc = grpc_java(cluster)
        sending = running.enter_context(sender(cluster, folder / "messages.log"))
        living = running.enter_context(receivers(grpc, endpoint, folder / "living.log"))
        place = Lab(cluster, folder, endpoint, grpc, sending, living)
        with place.doomed("push") as doomed:
            doomed.push("push-svc", "Pushed", ack=False)
            place.push_had = place.send_to_all("Pushed")
            must_have(doomed.process, "push-svc", place.push_had)
            doomed.process.kill()
            place.push_died_ms = round(time.time() * 1000)
        living.push("push-svc", "Pushed")
        yield place


def waiting_topic(loops: int, number: int) -> str:
    return f"Waits-{loops}-{number}"


def pop(program: Consumers, group: str, topic: str, **options: str) -> None:
    """Start a client in POP mode; on a busy machine one may not reach the NameServer in time."""
    for attempt in range(STARTS):
        try:
            program.join(group, f"{group}-{attempt}", topic, assigned="true", tells="true", **options)
        except RuntimeError:
            if attempt + 1 == STARTS:
                raise
        else:
            return


def must_have(process: JavaProcess, group: str, bodies: Sequence[str], deadline: float = DEADLINE) -> dict[str, int]:
    """When a process's consumers of a group had each of these messages first, once they have had all."""

    def times() -> dict[str, int]:
        found: dict[str, int] = {}
        for got in all_got(process):
            if got.group == group and got.body in wanted:
                found.setdefault(got.body, got.at_ms)
        return found

    wanted = set(bodies)
    wait_until(lambda: len(times()) == len(wanted), deadline, lambda: f"{group} had {len(times())} of {len(wanted)}")
    return times()


def simulated_waits(client: ReceiveClient, loops: int = 1) -> list[float]:
    each = PER_SECOND / len(QUEUES)
    rates = tuple(QueueRate(queue.broker_name, queue.queue_id, each) for queue in QUEUES)
    scenario = ReceiveScenario(
        client, loops=loops, await_us=5 * SECOND_US, rates=rates, duration_us=LASTING_S * SECOND_US
    )
    reports = [simulate_receive(TOPIC, scenario, trace=True, trial=trial) for trial in range(TRIALS)]
    return [message.wait_ms for report in reports for message in report.messages or () if message.wait_ms is not None]


def distance(one: Sequence[float], other: Sequence[float]) -> float:
    """Kolmogorov's and Smirnov's distance of two samples, of which times that differ by the tolerance are equal."""
    one, other = sorted(one), sorted(other)

    def beyond(sample: Sequence[float], beside: Sequence[float]) -> float:
        return max(
            bisect_right(sample, at) / len(sample) - bisect_right(beside, at + TOLERANCE_MS) / len(beside)
            for at in sample
        )

    return max(beyond(one, other), beyond(other, one))


def bound(messages: int) -> float:
    """What one of a thousand samples of the same distribution exceeds, of a second sample that is many times larger."""
    return float(1.95 / messages**0.5)


def arrivals(topic: str, began_ms: int) -> Iterator[tuple[float, str, int]]:
    numbers = random.Random(topic)
    at = float(began_ms)
    while True:
        at += numbers.expovariate(float(PER_SECOND)) * 1000
        if at >= began_ms + (LASTING_S + FURTHER_S) * 1000:
            return
        yield at, topic, numbers.randrange(len(QUEUES))


def test_messages_wait_for_simple_consumers_as_simulated(lab: Lab) -> None:
    began = {}
    for loops, count in CONSUMERS.items():
        for number in range(count):
            topic = waiting_topic(loops, number)
            began[topic] = lab.living.simple(f"{topic}-svc", topic, loops=loops)
    bodies: dict[str, list[str]] = {topic: [] for topic in began}
    for number, (at, topic, place) in enumerate(merge(*(arrivals(*each) for each in began.items()))):
        time.sleep(max(0.0, at / 1000 - time.time()))
        body = f"{topic}-{number}"
        if at < began[topic] + LASTING_S * 1000:
            bodies[topic].append(body)
        lab.sender.send(topic, QUEUES[place].broker_name, QUEUES[place].queue_id, body)
    received = {topic: must_have(lab.living.process, f"{topic}-svc", own) for topic, own in bodies.items()}
    sent = lab.sender.sent()
    predicted = {loops: simulated_waits("simple", loops) for loops in CONSUMERS}
    for loops in CONSUMERS:
        own = [topic for topic in began if topic.startswith(waiting_topic(loops, 0)[:-1])]
        waits = [at - sent[body] for topic in own for body, at in received[topic].items()]
        others = [distance(predicted[loops], predicted[other]) for other in CONSUMERS if other != loops]
        found, limit = distance(waits, predicted[loops]), bound(len(waits))
        assert found <= limit
        assert loops == 4 or min(others) > limit, "the bound tells one number of loops from another"


def test_messages_wait_for_a_push_consumer_and_for_pop_clients_as_simulated(lab: Lab) -> None:
    lab.living.push("push-waits-svc", "PushWaits")
    lab.is_popped("pop-waits-svc", "PopWaits")
    with consumers(lab.cluster, "pop-waits") as popping:
        pop(popping, "pop-waits-svc", "PopWaits")
        clients: tuple[tuple[ReceiveClient, str, JavaProcess], ...]
        clients = ("push", "PushWaits", lab.living.process), ("pop", "PopWaits", popping.process)
        for client, topic, process in clients:
            group = f"{client}-waits-svc"
            must_have(process, group, lab.send_to_all(topic))  # from here on it is at each broker
            bodies = []
            for _ in range(8):
                bodies += lab.send_to_all(topic)
                time.sleep(0.3)
            received, sent = must_have(process, group, bodies), lab.sender.sent()
            waits = [received[body] - sent[body] for body in bodies]
            assert distance(waits, simulated_waits(client)) <= bound(len(waits))


def test_what_dead_consumers_had_comes_back_when_predicted(lab: Lab) -> None:
    lab.admin("updateSubGroup", "-g", "ordered-svc", "-o", "true")
    lab.is_popped("popped-svc", "Popped")
    simple = {"held-svc": "Held", "ordered-svc": "Ordered"}
    with ExitStack() as alive:
        living = alive.enter_context(consumers(lab.cluster, "living-pop"))
        doomed_pop = alive.enter_context(consumers(lab.cluster, "doomed-pop"))
        doomed = alive.enter_context(lab.doomed("simple"))
        pop(doomed_pop, "popped-svc", "Popped", listener="hangs", invisible="20000")
        lab.send_to_all("Popped")
        threads = 4  # all of them are with a message then
        wait_until(lambda: len(all_got(doomed_pop.process)) == threads, DEADLINE, lambda: "it has too few messages")
        popped = {got.body: got.at_ms for got in all_got(doomed_pop.process)}
        doomed_pop.process.kill()
        pop(living, "popped-svc", "Popped")
        for group, topic in simple.items():
            doomed.simple(group, topic, loops=4, ack=False)
        held = must_have(doomed.process, "held-svc", lab.send_to_all("Held", 3))
        ordered = must_have(doomed.process, "ordered-svc", lab.send_to_all("Ordered"))
        doomed.process.kill()
        for group, topic in simple.items():
            lab.living.push(group, topic)  # is at each broker at all times
        held_again = must_have(lab.living.process, "held-svc", list(held))
        ordered_again = must_have(lab.living.process, "ordered-svc", list(ordered))
        popped_again = must_have(living.process, "popped-svc", list(popped))
    sent, scenario = lab.sender.sent(), ReceiveScenario(invisible_us=10 * SECOND_US)
    assert_comes_back(held_again, sent, held, scenario)
    assert_comes_back(ordered_again, sent, ordered, replace(scenario, fifo=True))
    assert_comes_back(popped_again, sent, popped, ReceiveScenario("pop", invisible_us=20 * SECOND_US))
    again = must_have(lab.living.process, "push-svc", lab.push_had, deadline=180)
    died = dict.fromkeys(again, lab.push_died_ms)
    assert_comes_back(again, died, died, ReceiveScenario("push"))


def assert_comes_back(again: Times, not_before: Times, not_after: Times, scenario: ReceiveScenario) -> None:
    """All of them in time, counted from when a consumer had them or, of a PushConsumer, died: between these moments."""
    early_us, late_us = again_after_us(scenario)
    early = [ms for body, at in again.items() if (ms := at - not_before[body]) < early_us / 1000]
    late = [ms for body, at in again.items() if (ms := at - not_after[body]) > late_us / 1000 + LATE_MS]
    assert (early, late) == ([], [])


def test_an_await_that_the_simulation_refuses_is_refused_by_the_proxy(lab: Lab) -> None:
    with pytest.raises(UsageError, match="the Proxy refuses each receive"):
        simulate_receive(TOPIC, ReceiveScenario(await_us=SECOND_US))
    lab.living.simple("short-svc", "Short", await_s=1)
    wait_until(lambda: lab.living.failures("short-svc") != [], DEADLINE, lambda: "no receive failed")
    assert "not enough for polling" in lab.living.failures("short-svc")[0]


POP_BROKER = "broker-a"
ORDERED = 4
WITH_MESSAGES = (0, 1)
RECEIVES = 300
TOLERANCE = 0.15  # more than four standard deviations of a share of three quarters
POP_LATE_MS = 1000
INVISIBLE_MS = 5000
AWAIT_MS = 15_000


@pytest.fixture(scope="module", params=["5.3.3", "5.5.0"])
def popping(request: pytest.FixtureRequest) -> Iterator[RocketMQCluster]:
    if request.param == "5.5.0":
        yield request.getfixturevalue("cluster")
        return
    with RocketMQCluster(request.param, brokers=[POP_BROKER], config={"timerWheelEnable": "true"}) as running:
        counts = {"Ordered": ORDERED, "Back": 1}
        running.create_topics([TopicOnBroker(topic, POP_BROKER, queues, queues) for topic, queues in counts.items()])
        yield running


def simulated_first(version: str) -> Counter[int]:
    rates = tuple(QueueRate("a", queue, Fraction(50)) for queue in WITH_MESSAGES)
    scenario = ReceiveScenario(
        "pop", batch=1, rates=rates, round_trip_us=100_000, messages=5 * RECEIVES, broker_version=version
    )
    report = simulate_receive(route(a=ORDERED), scenario, trace=True)
    received = sorted(report.messages or (), key=lambda message: message.received_ms or 0)
    return Counter(message.queue_id for message in received[:RECEIVES])


def test_receives_go_through_the_queues_as_simulated(popping: RocketMQCluster) -> None:
    for queue in WITH_MESSAGES:
        for number in range(RECEIVES):
            send(popping, MessageQueue("Ordered", POP_BROKER, queue), str(number))
    found = Counter(
        pop_message(popping, POP_BROKER, "ordered-svc", "Ordered", invisible_ms=600_000) for _ in range(RECEIVES)
    )
    simulated = simulated_first(popping.version)
    assert sum(found.values()) == RECEIVES
    for queue in WITH_MESSAGES:
        assert abs(found["normal", queue] - simulated[queue]) < TOLERANCE * RECEIVES
    favoured = 1 if broker_rules(popping.version).counts_down else 0
    assert found["normal", favoured] > 2 * found["normal", 1 - favoured]


def test_a_message_that_comes_back_wakes_a_receive_as_simulated(popping: RocketMQCluster) -> None:
    send(popping, MessageQueue("Back", POP_BROKER, 0), "comes back")
    assert pop_message(popping, POP_BROKER, "back-svc", "Back", invisible_ms=INVISIBLE_MS) == ("normal", 0)
    began = time.monotonic()
    woken = pop_message(popping, POP_BROKER, "back-svc", "Back", invisible_ms=INVISIBLE_MS, wait_ms=AWAIT_MS)
    lasted_ms = (time.monotonic() - began) * 1000
    early_us, late_us = again_after_us(ReceiveScenario("pop", invisible_us=INVISIBLE_MS * 1000))
    assert late_us / 1000 + POP_LATE_MS < AWAIT_MS - SECOND_US / 1000
    assert woken == ("retry", 0)
    if broker_rules(popping.version).retry_wakes:
        assert early_us / 1000 - POP_LATE_MS <= lasted_ms <= late_us / 1000 + POP_LATE_MS
    else:
        assert lasted_ms > AWAIT_MS - POP_LATE_MS
