"""Faults that are planted in groups of real consumers, and what `rmqlb diagnose` says of these groups over time."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.cli.run import data_of

from .broker_requests import set_pop_mode
from .cluster import RocketMQCluster
from .jvm import JavaProcess, Relay, relay, wait_until
from .members import Consumers, consumers

NAMED_DEADLINE = 360.0
"""A blocked listener counts from 60 s on, other tags from 120 s, and the machine may be busy."""
PATIENCE = ("--source-timeout", "10s", "--deadline", "2m")


@dataclass(frozen=True)
class Fault:
    """A fault of a group.

    Attributes:
        codes: the findings that must be named, in order.
        consumers: those that the first finding must name; none when it is about no consumer, None for any.
        before: codes that may come first until enough time has passed to tell their cause.
    """

    group: str
    codes: tuple[str, ...]
    plant: Callable[["Lab", str], None]
    consumers: tuple[str, ...] | None = ()
    before: tuple[str, ...] = ()


@dataclass
class Lab:
    """A cluster with consumers, their JVMs, and each diagnosis of a group, the oldest first.

    Attributes:
        links: a group's own relay to a broker.
        proxy: address of the remoting port of a Proxy, whose gRPC consumers are in `grpc`.
    """

    cluster: RocketMQCluster
    crew: Consumers
    fast: bool
    _alive: ExitStack
    own: dict[str, Consumers] = field(default_factory=dict)
    links: dict[str, Relay] = field(default_factory=dict)
    said: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    proxy: str = ""
    grpc: JavaProcess = field(init=False)

    def alone(self, name: str) -> Consumers:
        self.own[name] = self._alive.enter_context(consumers(self.cluster, name, fast=self.fast))
        return self.own[name]

    def cut_off(self, broker_name: str) -> str:
        """A NameServer's address by which a consumer learns a way to the broker that leads nowhere."""
        broker = self.cluster.broker_addresses[broker_name]
        nowhere = self._alive.enter_context(relay(broker))
        nowhere.cut()
        return self._alive.enter_context(relay(self.cluster.name_server, {broker: nowhere.address})).address

    def link_to(self, broker_name: str) -> tuple[str, Relay]:
        """A NameServer's address by which a consumer reaches the broker through a relay, and that relay."""
        broker = self.cluster.broker_addresses[broker_name]
        link = self._alive.enter_context(relay(broker))
        return self._alive.enter_context(relay(self.cluster.name_server, {broker: link.address})).address, link

    def diagnose(self, groups: Sequence[str], *more: str) -> dict[str, dict[str, Any]]:
        chosen = [word for group in groups for word in ("-g", group)]
        source = ("-s", f"rocketmq://{self.cluster.name_server}")
        data = data_of("diagnose", *source, *chosen, *(() if "--source-timeout" in more else PATIENCE), *more)
        found = {each["group"]: each for each in data.get("groups", [data])}
        for group, diagnosis in found.items():
            self.said.setdefault(group, []).append(diagnosis)
        return found

    def until_named(self, faults: Sequence[Fault], *others: str, more: Sequence[str] = ()) -> None:
        waiting = list(faults)

        def all_are_named() -> bool:
            found = self.diagnose([*(fault.group for fault in waiting), *others], *more)
            waiting[:] = [f for f in waiting if not is_named(f, found[f.group], young=self.fast)]
            return not waiting

        wait_until(all_are_named, NAMED_DEADLINE, lambda: str({f.group: self.brief(f.group) for f in waiting}), 5.0)

    def brief(self, group: str) -> list[list[str]]:
        return [[f"{each['code']} ({each['severity']})" for each in said["findings"]] for said in self.said[group]]


def is_named(fault: Fault, diagnosis: dict[str, Any], *, young: bool = False) -> bool:
    """The diagnosis names the fault first, with the consumers that have it; of young groups as what may pass."""
    findings = diagnosis["findings"]
    codes = [each["code"] for each in findings] if young else grave(diagnosis)
    if codes[:1] != [fault.codes[0]] or not set(fault.codes) <= set(codes):
        return False
    return fault.consumers is None or set(findings[0]["consumers"]) == {f"127.0.0.1@{name}" for name in fault.consumers}


def false_causes(fault: Fault, diagnosis: dict[str, Any]) -> list[str]:
    """Graver codes than info that are no part of the fault."""
    return [code for code in grave(diagnosis) if code not in (*fault.codes, *fault.before)]


def grave(diagnosis: dict[str, Any]) -> list[str]:
    return [each["code"] for each in diagnosis["findings"] if each["severity"] != "info"]


@contextmanager
def lab(cluster: RocketMQCluster, *, fast: bool) -> Iterator[Lab]:
    with ExitStack() as alive:
        crew = alive.enter_context(consumers(cluster, "crew", fast=fast))
        yield Lab(cluster, crew, fast, alive)


# -- groups of three consumers, the last of which has the fault -----------------------------------------------------------


def crew_of(topics: str, *options: dict[str, str]) -> Callable[[Lab, str], None]:
    """Consumers GROUP-0, GROUP-1, … in the common JVM, each with its options."""

    def plant(of: Lab, group: str) -> None:
        for number, own in enumerate(options):
            of.crew.join(group, f"{group}-{number}", **{"topics": topics, **own})

    return plant


def one_id_twice(topics: str, **options: str) -> Callable[[Lab, str], None]:
    """GROUP-0 runs in two processes, beside GROUP-1 with its options."""

    def plant(of: Lab, group: str) -> None:
        crew_of(topics, {}, options)(of, group)
        of.alone(f"second-{group}").join(group, f"{group}-0", topics)

    return plant


def last_alone(topics: str, **options: str) -> Callable[[Lab, str], None]:
    """GROUP-2 has a process of its own, which has the group's name."""

    def plant(of: Lab, group: str) -> None:
        crew_of(topics, options, options)(of, group)
        of.alone(group).join(group, f"{group}-2", topics, **options)

    return plant


def cut_from(broker_name: str, topics: str, **options: str) -> Callable[[Lab, str], None]:
    """GROUP-2 does not reach a broker."""

    def plant(of: Lab, group: str) -> None:
        crew_of(topics, options, options, {**options, "nameServer": of.cut_off(broker_name)})(of, group)

    return plant


def silenced(broker_name: str, topics: str) -> Callable[[Lab, str], None]:
    """GROUP-2 reaches a broker through a link that can be silenced."""

    def plant(of: Lab, group: str) -> None:
        name_server, of.links[group] = of.link_to(broker_name)
        crew_of(topics, {}, {}, {"nameServer": name_server})(of, group)

    return plant


def pop_alone(topic: str) -> Callable[[Lab, str], None]:
    """Two consumers in a process of their own; POP holds on a broker from when it knows the group."""

    def plant(of: Lab, group: str) -> None:
        own = of.alone(group)
        for number in range(2):
            own.join(group, f"{group}-{number}", topic, assigned="true")
        set_pop_mode(of.cluster, of.cluster.broker_addresses, group, topic, 0, NAMED_DEADLINE)

    return plant
