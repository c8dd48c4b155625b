"""Proxies in local and in cluster mode, their gRPC producers, and where each message is stored."""

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct, convert

from .cluster import RocketMQCluster
from .jars import grpc_class_path, jars
from .jvm import LOOPBACK, START_DEADLINE, Java, JavaProcess, free_port, started, wait_until
from .members import Program

PROXY = "org.apache.rocketmq.proxy.ProxyStartup"
_POLL = 0.01
# A client that is told of a route without the broker sends it no heartbeats, so that its isolation ends with a later poll
# of routes: the first is 10 s after its start, the others 30 s apart, and a Proxy answers what it has read before.
_ROUTES_STAY = {"topicRouteServiceCacheRefreshSeconds": 3600}
Printed = TypeVar("Printed", bound=Struct)


class ClusterOfProxies(RocketMQCluster):
    """Brokers that each run inside a Proxy in local mode.

    A Proxy believes that all others listen to its own port, so each broker has an address of loopback for itself.
    """

    def __init__(self, version: str, brokers: Sequence[str]) -> None:
        super().__init__(version, brokers)
        self._hosts = {name: f"127.0.0.{number}" for number, name in enumerate(brokers, 1)}
        self._grpc = free_port()
        self._commands: dict[str, list[str]] = {}

    def endpoints(self, *broker_names: str) -> str:
        return ";".join(f"{self._hosts[name]}:{self._grpc}" for name in broker_names)

    def broker_at(self, endpoints: str) -> str:
        (name,) = (name for name, host in self._hosts.items() if f"{host}:" in endpoints)
        return name

    def start_again(self, broker_name: str) -> None:
        broker = self._alive.enter_context(self._started(broker_name))
        self._await_broker(broker)

    def _started(self, broker_name: str) -> AbstractContextManager[JavaProcess]:
        return started(broker_name, self._commands[broker_name], self.java.home / f"{broker_name}.log")

    def _await_broker(self, broker: JavaProcess) -> None:
        broker.wait_for_text("rocketmq-proxy startup successfully")

    def _broker(self, starting: ExitStack, broker_name: str, folder: Path) -> JavaProcess:
        host, home = self._hosts[broker_name], self.java.home
        config = self._broker_config(broker_name, folder, host)
        broker = home / f"{broker_name}.conf"
        broker.write_text("".join(f"{key}={value}\n" for key, value in config.items()), encoding="utf-8")
        proxy = _settings(self, home / f"{broker_name}.json", "local", self._grpc, **_ROUTES_STAY)
        java = _with_proxy(self.java)
        arguments = ("-pc", str(proxy), "-bc", str(broker))
        self._commands[broker_name] = java.command("Loopback", PROXY, *arguments, properties={"loopback": host})
        return starting.enter_context(self._started(broker_name))


@contextmanager
def proxy_by_itself(cluster: RocketMQCluster) -> Iterator[tuple[str, str]]:
    """In cluster mode; the addresses of its gRPC and of its remoting port."""
    port, home = free_port(), cluster.java.home
    settings = _settings(cluster, home / "proxy.json", "cluster", port)
    remoting = json.loads(settings.read_text(encoding="utf-8"))["remotingListenPort"]
    command = _with_proxy(cluster.java).command("Loopback", PROXY, "-pc", str(settings))
    with started("proxy", command, home / "proxy.log") as proxy:
        proxy.wait_for_text("rocketmq-proxy startup successfully")
        yield f"{LOOPBACK}:{port}", f"{LOOPBACK}:{remoting}"


def _settings(cluster: RocketMQCluster, file: Path, mode: str, port: int, **more: int) -> Path:
    settings = {
        "rocketMQClusterName": cluster.name,
        "namesrvAddr": cluster.name_server,
        "proxyMode": mode,
        "grpcServerPort": port,
        "remotingListenPort": free_port(),
        "enableTopicMessageTypeCheck": False,  # any topic takes message groups
        **more,
    }
    file.write_text(json.dumps(settings), encoding="utf-8")
    return file


def _with_proxy(java: Java) -> Java:
    """Our own programs, and the jars of a Proxy, which has all that a broker needs."""
    programs, _, _ = java.class_path.partition(":")
    return replace(java, class_path=f"{programs}:{jars('5.5.0', ('rocketmq-proxy',), 'rocketmq-proxy')}/*")


class Sent(Struct, frozen=True, rename="camel"):
    """A message, in epoch milliseconds; the queue is the one that the SDK picked, None when the message is lost."""

    body: str
    at_ms: int
    took_ms: int
    broker_name: str | None = None
    queue_id: int | None = None


class Isolation(Struct, frozen=True, rename="camel"):
    """An attempt that failed, which isolates its endpoints, or the end of that."""

    endpoints: str
    at_ms: int


class GrpcProducer(Program):
    def send_group(self, group: str) -> Sent:
        """Send a message of a message group; its body is the group too."""
        return convert(self.ask(f"group {group}"), Sent)

    def start_sending(self, pause_ms: int) -> None:
        """A message each so many milliseconds from now on; their bodies count from 0."""
        self.ask(f"send {pause_ms}")

    def stop_sending(self) -> None:
        self.ask("stop")

    def sent(self) -> list[Sent]:
        return self._printed("sent ", Sent)

    def failed(self) -> list[Isolation]:
        return self._printed("failed ", Isolation)

    def rejoined(self) -> list[Isolation]:
        return self._printed("rejoined ", Isolation)

    def await_sent(self, count: int) -> None:
        """Until so many messages are over; comes back soon enough to do something before the next one."""
        wait_until(lambda: len(self.sent()) >= count, START_DEADLINE, lambda: f"{len(self.sent())} messages", _POLL)

    def _printed(self, start: str, kind: type[Printed]) -> list[Printed]:
        self.process.must_run()
        return [msgspec.json.decode(line.removeprefix(start), type=kind) for line in self.process.lines(start)]


def grpc_java(cluster: RocketMQCluster) -> Java:
    return replace(cluster.java, class_path=grpc_class_path())


def grpc_producer(
    cluster: RocketMQCluster, endpoints: str, topic: str, folder: Path
) -> AbstractContextManager[GrpcProducer]:
    command = grpc_java(cluster).command("GrpcProducer", endpoints, topic)
    return GrpcProducer.start("producer", command, folder / "producer.log")


def stored(cluster: RocketMQCluster, topic: str) -> list[tuple[str, int, str]]:
    """Broker, queue and body of each message of a topic, queue by queue in the order of their offsets."""
    lines = cluster.run("Stored", cluster.name_server, topic).splitlines()
    (line,) = (line for line in lines if line.startswith('{"stored"'))
    return [(row["brokerName"], row["queueId"], row["body"]) for row in json.loads(line)["stored"]]
