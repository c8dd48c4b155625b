"""A RocketMQ of one NameServer and some brokers, alive for the length of a ``with`` block, reachable from here only."""

import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from rmqlb.remoting.codes import RequestCode, ResponseCode
from rmqlb.remoting.command import request
from rmqlb.sources.native.wire import RemotingClient
from rmqlb.sources.source import Access

from .jvm import LOOPBACK, START_DEADLINE, Java, JavaProcess, free_port, started

NAMESRV = "org.apache.rocketmq.namesrv.NamesrvStartup"
BROKER = "org.apache.rocketmq.broker.BrokerStartup"
MQADMIN = "org.apache.rocketmq.tools.command.MQAdminStartup"
READ_AND_WRITE = 6


@dataclass(frozen=True)
class TopicOnBroker:
    topic: str
    broker_name: str
    read_queues: int
    write_queues: int
    perm: int = READ_AND_WRITE


class RocketMQCluster:
    """One NameServer and one master per broker name; `config` goes before our own configuration of the brokers."""

    java: Java
    name_server: str

    def __init__(
        self, version: str, brokers: Sequence[str], name: str = "DefaultCluster", config: Mapping[str, str | int] = {}
    ) -> None:
        self.version = version
        self._config = config
        self.name = name
        self.broker_addresses = dict.fromkeys(brokers, "")
        self._brokers: dict[str, JavaProcess] = {}
        self._alive = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as starting:
            folder = Path(starting.enter_context(tempfile.TemporaryDirectory(prefix="rmqlb-live-")))
            self.java = Java.prepare(self.version, folder)
            self._start_all(starting, folder)
            self._alive = starting.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._alive.close()

    def create_topics(self, topics: Sequence[TopicOnBroker]) -> int:
        """Create them and come back once the NameServer's routes show them; when they did, in epoch microseconds."""
        rows = [
            f"{t.topic},{self.broker_addresses[t.broker_name]},{t.read_queues},{t.write_queues},{t.perm}"
            for t in topics
        ]
        lines = self.run("Topics", self.name_server, *rows).splitlines()
        (said,) = (json.loads(line) for line in lines if line.startswith('{"created"'))
        return int(said["atUs"])

    def run(self, program: str, *arguments: str) -> str:
        """What a program of ours prints, which has to end well."""
        command = self.java.command(program, *arguments)
        done = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=2 * START_DEADLINE, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{program}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def admin(self, command: str, *arguments: str) -> None:
        self.run(MQADMIN, command, "-n", self.name_server, *arguments)

    def knows_members(self, broker_name: str, group: str) -> bool:
        """Whether a broker, asked for the members of a group, can name any."""
        client = RemotingClient(Access())
        asked = request(RequestCode.GET_CONSUMER_CONNECTION_LIST, consumerGroup=group)
        try:
            answer = client.call(self.broker_addresses[broker_name], asked)
        finally:
            client.close()
        return answer.code == ResponseCode.SUCCESS

    @property
    def running_brokers(self) -> list[str]:
        return [name for name, broker in self._brokers.items() if broker.popen.poll() is None]

    @contextmanager
    def paused(self, broker_name: str) -> Iterator[None]:
        """The broker's process stands still for the length of a ``with`` block."""
        self._brokers[broker_name].freeze()
        try:
            yield
        finally:
            self._brokers[broker_name].unfreeze()

    def kill_broker(self, broker_name: str) -> None:
        """End one broker at once, without a word to anybody; its connections are closed for it by the kernel."""
        self._brokers[broker_name].kill()

    def _start_all(self, starting: ExitStack, folder: Path) -> None:
        """The NameServer first, then the brokers together: a broker says it is ready even when nobody heard it.

        The other way round at the end, so that no broker is left looking for the NameServer.
        """
        port = free_port()
        self.name_server = f"{LOOPBACK}:{port}"
        name_server = self._server(starting, NAMESRV, "namesrv", {"listenPort": port, "bindAddress": LOOPBACK})
        starting.callback(name_server.terminate)
        name_server.wait_for_text("The Name Server boot success")
        self._brokers = {name: self._broker(starting, name, folder) for name in self.broker_addresses}
        for broker in self._brokers.values():
            self._await_broker(broker)

    def _await_broker(self, broker: JavaProcess) -> None:
        broker.wait_for_text(f"The broker[{broker.name}, {self.broker_addresses[broker.name]}] boot success")

    def _broker(self, starting: ExitStack, broker_name: str, folder: Path) -> JavaProcess:
        config = self._broker_config(broker_name, folder)
        return self._server(starting, BROKER, broker_name, config)

    def _broker_config(self, broker_name: str, folder: Path, host: str = LOOPBACK) -> dict[str, str | int]:
        """The second server of a broker listens two ports lower, its HA service one higher."""
        port = free_port(-2, 1)
        self.broker_addresses[broker_name] = f"{host}:{port}"
        store = folder / f"store-{broker_name}"
        return {
            "brokerClusterName": self.name, "brokerName": broker_name, "brokerId": 0, "namesrvAddr": self.name_server,
            **dict.fromkeys(("brokerIP1", "brokerIP2", "bindAddress"), host), "listenPort": port, "haListenPort": port + 1,
            "storePathRootDir": str(store), "storePathCommitLog": str(store / "commitlog"),
            "mappedFileSizeCommitLog": 16 * 1024 * 1024, "autoCreateTopicEnable": "false", "timerWheelEnable": "false",
            # A broker that a busy machine keeps waiting answers "busy" to what has waited for 0.2 s, when not set.
            "waitTimeMillsInSendQueue": 10_000,
            # Each flush compares the whole timer wheel, byte by byte: once a second, that takes a quarter of a core.
            "timerFlushIntervalMs": 600_000,
            **self._config,
        }  # fmt: skip

    def _server(self, starting: ExitStack, main: str, name: str, config: dict[str, str | int]) -> JavaProcess:
        file = self.java.home / f"{name}.conf"
        file.write_text("".join(f"{key}={value}\n" for key, value in config.items()), encoding="utf-8")
        command = self.java.command("Loopback", main, "-c", str(file))
        return starting.enter_context(started(name, command, self.java.home / f"{name}.log"))
