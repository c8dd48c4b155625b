"""Values for every option of every command: mostly what is there in the cluster, sometimes what is not.

`BY_NAME` and `BY_METAVAR` have alternatives between ` | `, wrong ones behind ` ! `; a word in braces is a property of
`Setting`. An option that is added needs a line when its metavar is not there and completion does not know its words
(`rmqlb.cli.completion`): a test asks for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from msgspec import Struct

from fuzz.command_lines.clusters import Cluster, earlier
from rmqlb.cli.help_text import known_names, known_values
from rmqlb.cli.results import figures_of
from rmqlb.engine.allocate.rules import NAMES
from rmqlb.verbs.rebalance_events import VERBS
from tools.manual.tree import CommandPage, OptionPage

RECORDING = Path(__file__).parent.parent.parent / "examples" / "recording.json"
PLACEHOLDER = "10.9.8.7@new"
"""A client id that no cluster has."""
_LIMITS = (
    *("minConsumers: 2", "idle: 0", "unassigned: 0", "imbalance: 1.5", "lag: 100", "duplicateClientIds: 0"),
    "splitViews: 0",
)
_OWN = """
def even(group, client_id, queues, client_ids):
    place = client_ids.index(client_id)
    return queues[place :: len(client_ids)]


def pick(queues, key):
    return queues[len(str(key)) % len(queues)]
"""
_EVENTS = " | ".join(
    (
        *("join 1@{when}", "join 2@{when}", "join {new}@{when}", "join {new}2@{when}, strategy {plain}"),
        *("leave {member}@{when}", "crash #0@{when}", "crash #1@{when}", "{example}", "{example}"),
        *("freeze #0@{when}-40s", "freeze #1@{when}-3m", "host-loss {member}@{when}", "pull-stall #0@{when}"),
        *("broker-down {broker}@{when}", "broker-down {broker}@{when}-3m", "broker-loss {broker}@{when}-100s"),
        *("broker-loss {broker}@{when}-5m", "broker-up broker-new:{number}@{when}", "broker-up broker-new@{when}"),
        *("restart-broker {broker}@{when}, down 200ms", "restart-broker {broker}@{when}, down 4m"),
        *("route-change {number}@{when}", "route-change {topic}:{broker}={number}/{number}@{when}"),
        *("restart {member}@{when}, down 15s", "restart {member}@{when}, down 15s, by crash"),
        *("restart {member}@{when}, down 15s, new ids", "restart {member}@{when}, down 15s, as {new}3"),
        *("rolling-restart *@{when}, every 20s, down 15s", "rolling-restart *@{when}, every 60s, down 15s, at once 2"),
        "strategy-change {plain}@{when}, every 20s, down 5s ! explode everything@5s",
    )
)
_FAILURES = " | ".join(
    f"{who}{window}{kind}"
    for who in ("{broker}", "{broker}", "*")
    for window in ("", "", "@5s-", "@45s-1m20s", "@#3-#9", "@0s-10s", "@9s-30s")
    for kind in ("", ":refused", ":timeout", ":slow=800ms", ":read-only", ":SYSTEM_BUSY", ":FLUSH_DISK_TIMEOUT", ":14")
)
_ZONES = "*a=z1 | *=z1 | ([^-]+)- | (.) | broker-b=z2 | 192*=z1"
_STRATEGIES = " | ".join((*NAMES, "AVG", "AVG_BY_CIRCLE", "{own}:even", "{all} ! NO_SUCH_STRATEGY | {own}:none"))
_ONE_BROKER = "{broker}"
_SETTINGS: Mapping[str, str] = {
    **dict.fromkeys(("all-new", "broadcasting", "retry-not-store-ok", "detector"), "on"),
    **dict.fromkeys(("seed", "trial", "threads", "consume-threads", "id-sets"), "2"),
    **dict.fromkeys(("latency-max", "not-available-duration"), "50,100,550"),
    "broker-version": "5.3.4",
    "client-version": "5.1.4",
    "consume-from": "first",
    "consumer-type": "pull",
    **dict.fromkeys(("exclude", "remove-master"), "{broker}"),
    "id-share": "80%",
    "key-type": "long",
    "nameserver-notices": "never",
    "precision": "5%",
    "proxy-mode": "cluster",
    "earlier": "{earlier}",
    "sdk": "go",
    "start-at": "{broker}:0",
}
BY_NAME: Mapping[str, str] = {
    "--source": "{cluster} ! nowhere.json | http://127.0.0.1:1 | rocketmq://127.0.0.1:1 | odd://x | -",
    **dict.fromkeys(("--remove-broker", "--drain-broker"), _ONE_BROKER),
    "--zones": "{zones}",
    "--jobs": "1 | 2",
    **dict.fromkeys(("--strategy", "--to-strategy"), _STRATEGIES),
    "--selector": "hash | random | machine-room | {broker}:0 | {own}:pick ! {own}:none",
    "--strategy-option": "virtual-nodes=0 | virtual-nodes=1 | virtual-nodes=10 | inner=AVG_BY_CIRCLE | "
    "inner=CONSISTENT_HASH | broker-zone={zone} | client-zone={zone} | host={machine} | pin={topic}={machine} "
    "! odd=1 | idc=room1 | queues={queue_lists} | virtual-nodes=many",
    "--keys": "{keys}",
    "--policy": "{policy}",
    **dict.fromkeys(("--password-file", "--secret-key-file"), "{secret}"),
    "--to": "written.json | written.yaml | no-such-folder/x",
    "--redact-map": "map.json | names.json",
    "--svg": "- | picture.svg",
    "--html": "- | page.html",
    **dict.fromkeys(("--ca-file", "--client-cert", "--client-key"), "nothing.pem | {secret}"),
    "--send-retries": "0 | 1 | 3",
    "--source-retries": "0",
    "--trials": "2 | 3 | 5",
    "--messages": "1 | 10 | 50 | 200 ! 0",
    "--replay": "{recording} | {recording} | none.json",
    "--earlier": "{cluster} | {earlier} | none.json",
    "--against": "{cluster} | {secret} | none.json",
    "--message-type": "FIFO | normal | odd",
    "--samples": "1 | 2",
    "--every": "100ms | 1s ! 0",
    "--down": "5s | 15s",
    "--for": "1s | 20s | 0.5m",
    "--context": "none-such | default",
    "--round-trip": "{latency}",
    "--compare": "latency-fault | clients | sdks ! all",
    "--set": "{setting}",
    "--sizes": "3 | 1..6 | 2..40 ! 0..3 | 5..2",
    "--rate": "{rate}",
    "--loops": "1 | 4 | 9 ! 0",
    "--crash": "1@5s | 1@30s | 2@1m ! x",
    "--await": "5s | 20s | 1m ! 0s",
    "--invisible": "10s | 60s | 5m ! 1s",
    "--broker": "broker-a:4 | broker-b:2 | broker-a",
    "--tls-name": "name.example",
    "--fail-on": "error | warning | info ! fatal",
    "--proxy": "127.0.0.1:1",
    "--map-address": "10.0.0.1:9876=127.0.0.1:1",
}
"""Options whose name says more than their metavar."""
BY_METAVAR: Mapping[str, str] = {
    **dict.fromkeys(("A", "B"), "{cluster} | {cluster} | {earlier} ! none.json | -"),
    "N": "1 | 2 | 3",
    "K": "0 | 1",
    "TIME": "100ms | 1s | 5s | 15s | 30s | 1m30s | 1h ! 0s | soon | 250us",
    "TIME,…": "10s | 10s,30s | 1s",
    "N,…": "1 | 1,2 | 2",
    "SIZE": "64MB | 1GB ! 1KB",
    "KEY": "reader",
    "USER": "operator",
    "YYYY-MM-DD": "2026-11-21 | 2027-06-01 ! tomorrow",
    "N..M": "3 | 1..6 | 2..40 | 4..12 ! 0..3 | 5..2 | 1..99999",
    "X": "1 | 1.1 | 1.28 | 1.5 | 3 ! 0.9",
    "SHARE": "80% | 0.5 | 100% ! 0%",
    "GLOB=ZONE": "*=az1 | {broker}=az2 | 192.0.2.0/24=az3 ! az1",
    "N|ID": "1 | 2 | 1 | 3 | {new} | {member} | {member} ! 0",
    "OLD=NEW": "{member}={new}",
    "ID|all": "all | {member} | * | *1",
    "ID,ID,…": "{members}",
    "IDS|@FILE|N": "3 | 1 | 12 | {members},{new} | a,b,c | a,a,b | @{ids}",
    "BROKER": _ONE_BROKER,
    "SDK[@VERSION]": "java | java@5.1.4 | java@4.9.7 | go-grpc@5.1.3 | csharp-grpc | nodejs",
    "TYPE": "NORMAL | FIFO | DELAY | TRANSACTION",
    "CLUSTER": "DefaultCluster ! west",
    "BROKER:QUEUE": "{broker}:0 | {broker}:1 | {broker}:99",
    "BROKER[@FROM-TO][:KIND]": f"{_FAILURES} ! {{broker}}:odd",
    "[ID=]java|go|cpp": "java | go | {member}=java | {member}=go@2.1.2 | {member}=cpp ! go@3",
    "[BROKER=]N": "{number} | {broker}={number}",
    "NAME[:READ[:WRITE]]": "broker-new | broker-new:4 | broker-new:4:2 | {broker}:4",
    "GLOB": "* | Topic* | none* | {group}",
    **dict.fromkeys(("TOPIC", "TOPIC…"), "{topic}"),
    **dict.fromkeys(("GROUP", "GROUP…"), "{group}"),
    "GROUP|GLOB": "{group} ! * | g*",
    "CONDITION": "{figure}>0 | {figure}>=1 | {figure}<2 | {figure}==1000 | {figure}>60000",
    "'VERB WHO@TIME'": _EVENTS,
    "NAME": "one | two",
    "URL|FILE": "{cluster} | rocketmq://127.0.0.1:1",
    "HOST:9876;…": "127.0.0.1:1 | 127.0.0.1:1;127.0.0.1:2 ! h:x | ;",
    "file:PATH|env:NAME|keyring:SERVICE/USER": "file:secret | env:SECRET | keyring:a/b | odd",
}
NEEDS: Mapping[str, tuple[tuple[str, str] | tuple[str], ...]] = {
    "--strategy-option": (("--strategy", "PIN-MACHINE_ROOM_NEARBY-CONSISTENT_HASH"),),
    "--keys": (("--selector", "hash"),),
    "--redact-map": (("--redact",),),
}
"""What an option means something with."""
BY_WORDS = ("--section", "--output")
"""Options whose values completion knows, command by command."""
Maker = Callable[["Setting"], str]


class Setting(Struct):
    """What values are drawn from: a cluster, the group and the topic that the line is about, and its command."""

    dice: Random
    made: Cluster
    about_group: str | None
    about_topic: str | None
    command: str

    def one(self, *values: str) -> str:
        return self.dice.choice(values)

    def file(self, name: str, content: str | bytes) -> str:
        """Put a file next to the cluster; its name."""
        self.made.files[name] = content.encode() if isinstance(content, str) else content
        return name

    def mostly(self, known: tuple[str, ...], wrong: str) -> str:
        """One that is there, or rarely the other."""
        return self.dice.choice(known) if known and self.dice.random() < 0.98 else wrong

    def fill(self, template: str) -> str:
        good, _, wrong = template.partition(" ! ")
        chosen = wrong if wrong and self.dice.random() < 0.02 else good
        return re.sub(r"\{(\w+)\}", lambda name: str(getattr(self, name[1])), self.one(*chosen.split(" | ")))

    cluster = property(lambda at: at.made.file)
    ids_of_group = property(lambda at: at.made.groups.get(at.about_group or "", ()))
    member = property(lambda at: at.mostly(at.ids_of_group, PLACEHOLDER))
    members = property(lambda at: ",".join(dict.fromkeys(each for each in at.ids_of_group if "," not in each)) or "a,b")
    broker = property(lambda at: at.mostly(at.made.brokers, "broker-x"))
    topic = property(lambda at: at.mostly(at.made.topics, "NoSuchTopic"))
    group = property(lambda at: at.mostly(tuple(at.made.groups), "no-such-group"))
    new = PLACEHOLDER
    number = property(lambda at: at.one("0", "1", "2", "3", "6", "12"))
    when = property(lambda at: at.one("0s", "5s", "30s", "1m"))
    plain = property(lambda at: at.one("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"))
    machine = property(lambda at: at.one("192.0.2.1", "192.0.2.2", "192.0.2.9"))
    zone = property(lambda at: at.fill(_ZONES))
    all = property(lambda at: "all" if at.command in ("plan-rebalance", "size-group") else "AVG")
    example = property(lambda at: re.split(r" or |, ", at.one(*(verb.example for verb in VERBS.values())))[0])
    figure = property(lambda at: at.one(*(name for name in figures_of(at.command) if name[-1] != "["), "moved"))
    own = property(lambda at: at.file("own.py", _OWN))
    earlier = property(lambda at: at.file("earlier.json", earlier(at.dice, at.made.document)))
    recording = property(lambda at: at.file("recording.json", RECORDING.read_bytes()))
    secret = property(lambda at: at.file("secret", "secret\n"))
    ids = property(lambda at: at.file("members.txt", "\n".join([PLACEHOLDER, *dict.fromkeys(at.ids_of_group)]) + "\n"))
    keys = property(lambda at: at.file("keys.txt", "".join(f"{at.dice.randrange(100)}\n" for _ in range(30))))

    @property
    def zones(self) -> str:
        text = self.one("az1: [broker-a, '192.*']\naz2: '*'\n", "az1: none-*\n", "[]\n")
        return self.file("zones.yaml", text)

    @property
    def rate(self) -> str:
        if self.command == "simulate-receive":
            return self.fill("5 | 30/m | {broker}=2 | {broker}:0=1")
        return self.fill("5 | 100 | 30/m" if self.command == "simulate-send" else "10 | 2.5/s | {topic}=5")

    @property
    def latency(self) -> str:
        if self.command != "simulate-send":
            return self.one("1ms", "0s", "40ms", "2s")
        file = self.file("latency.csv", "".join(f"{self.dice.randrange(1, 50)}\n" for _ in range(9)))
        spec = self.fill("3ms | 30ms | lognormal(5ms,2) | 0.2ms ! late")
        return self.fill(f"{spec} | {{broker}}={spec} | {file}")

    @property
    def setting(self) -> str:
        name = self.one(*known_names(self.command, "--set")).rstrip("=")
        return self.fill(f"{name}={_SETTINGS.get(name, '100ms | 5s | 30s')} ! none=1s")

    @property
    def policy(self) -> str:
        limits = ", ".join(self.dice.sample(_LIMITS, self.dice.randrange(1, len(_LIMITS))))
        waived = "limit: idle, group: '*'" if "idle" in limits else "limit: minBrokers, topic: '*'"
        severity = self.one("error", "warning", "info")
        return self.file(
            "policy.yaml",
            f"rules:\n  - {{name: groups, groups: ['*'], limits: {{{limits}}}, severity: {severity}, assume: AVG}}\n"
            "  - {name: topics, topics: '*', limits: {minBrokers: 2, missingMasters: 0}}\n"
            f"waivers:\n  - {{{waived}, reason: none, until: 2026-12-31}}\n",
        )

    @property
    def queue_lists(self) -> str:
        owned = {each: [f"{broker}:0" for broker in self.made.brokers[:2]] for each in self.ids_of_group[:2]}
        return self.file("queues.json", json.dumps(owned))


def maker_of(command: CommandPage, option: OptionPage) -> Maker | None:
    """What makes values of the option; None when nothing here or in the completion knows any."""
    long, metavar = option.names[-1] if option.names else "", option.metavar or ""
    template = None if long in BY_WORDS else BY_NAME.get(long) or BY_METAVAR.get(metavar)
    if template is not None:
        return lambda at: at.fill(template)
    words = known_values(" ".join(command.path), long, metavar, option.help)
    return (lambda at: at.mostly(words, "nonsense")) if words else None
