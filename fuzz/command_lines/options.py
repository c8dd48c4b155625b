"""Values for every option of every command: mostly what is there in the cluster, sometimes what is not.

An option that is added is covered when its metavar is one of those below, or when completion knows its words
(`rmqlb.cli.completion`). Otherwise a test asks for a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from msgspec import Struct

from fuzz.command_lines.snapshots import Made, earlier
from rmqlb.cli.help_text import known_values
from rmqlb.engine.allocate.rules import NAMES
from rmqlb.verbs.rebalance_events import VERBS
from tools.manual.tree import CommandPage, OptionPage

RECORDING = Path(__file__).parent.parent.parent / "examples" / "recording.json"
PLACEHOLDER = "10.9.8.7@new"
"""A client id that no cluster has."""
_TIMES = ("100ms", "1s", "5s", "15s", "30s", "1m30s", "1h")
_SHORT = ("1s", "30s", "90s", "5m")
_FIGURES = {
    "plan-rebalance": (
        "moved",
        "idle",
        "unassigned",
        "imbalance",
        "lag-moved",
        "excess-moves",
        "max-queues-per-consumer",
    ),
    "simulate-rebalance": (
        "convergence-ms",
        "longest-gap-ms",
        "total-gap-ms",
        "redelivered",
        "taken",
        "longest-outage-ms",
    ),
    "record": ("changed", "unassigned", "longest-gap-at-most-ms", "convergence-at-most-ms", "differences"),
    "plan-rollout": ("takes-ms", "misassigned", "longest-gap-ms", "taken"),
    "sweep-failures": ("counterexamples", "broken-cases", "unassigned", "moved", "without-lock"),
    "simulate-receive": ("wait-max-ms", "wait-p95-ms", "back-max-ms", "left", "receives", "unpolled-ms"),
    "size-group": ("unsatisfied", "consumers", "queues-per-broker", "imbalance", "idle"),
    "simulate-send": ("lost", "stored", "attempts", "failing-ms", "longest-send-ms", "share[broker-a]"),
}
_LIMITS = (
    "minConsumers: 2",
    "idle: 0",
    "unassigned: 0",
    "imbalance: 1.5",
    "lag: 100",
    "duplicateClientIds: 0",
    "splitViews: 0",
)


_OWN = """
def even(group, client_id, queues, client_ids):
    place = client_ids.index(client_id)
    return queues[place :: len(client_ids)]


def pick(queues, key):
    return queues[len(str(key)) % len(queues)]
"""


class Setting(Struct):
    """What values are drawn from.

    Attributes:
        dice: the random numbers.
        made: the cluster.
        group: the group that the line is about, or None.
        topic: the topic that it is about, or None.
        command: its command, as typed without rmqlb.
    """

    dice: Random
    made: Made
    group: str | None
    topic: str | None
    command: str

    @property
    def members(self) -> tuple[str, ...]:
        """The group's."""
        return self.made.groups.get(self.group or "", ())

    def one(self, *values: str) -> str:
        """One of them."""
        return self.dice.choice(values)

    def file(self, name: str, content: str | bytes) -> str:
        """Put a file beside the cluster; its name."""
        self.made.files[name] = content.encode() if isinstance(content, str) else content
        return name

    def mostly(self, known: tuple[str, ...], wrong: str) -> str:
        """One that is there, or rarely the other."""
        return self.dice.choice(known) if known and self.dice.random() < 0.98 else wrong

    def seldom(self, wrong: str, *values: str) -> str:
        """One of the values, or rarely what is wrong."""
        return self.mostly(values, wrong)


Maker = Callable[[Setting], str]


def _member(at: Setting) -> str:
    return at.mostly(at.members, PLACEHOLDER)


def _broker(at: Setting) -> str:
    return at.mostly(at.made.brokers, "broker-x")


def _topic(at: Setting) -> str:
    return at.mostly(at.made.topics, "NoSuchTopic")


def _queue_number(at: Setting) -> str:
    return at.one("0", "1", "2", "3", "6", "12")


def _number_or_id(at: Setting) -> str:
    return at.one("1", "2", "1", "3", "0", PLACEHOLDER, _member(at), _member(at))


def _consumers(at: Setting) -> str:
    ids = [PLACEHOLDER, *dict.fromkeys(at.members)]
    text = at.one("3", "1", "12", ",".join(dict.fromkeys(each for each in ids if "," not in each)), "a,b,c", "a,a,b")
    return "@" + at.file("members.txt", "\n".join(ids) + "\n") if at.dice.random() < 0.2 else text


def _event(at: Setting) -> str:
    when, every = at.one("0s", "5s", "30s", "1m"), at.one("20s", "60s")
    who, broker, topic = _member(at), _broker(at), _topic(at)
    strategy = at.one("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")
    return at.seldom(
        "explode everything@5s",
        f"join {at.one('1', '2', PLACEHOLDER)}@{when}",
        f"join {PLACEHOLDER}2@{when}, strategy {strategy}",
        f"leave {who}@{when}",
        f"crash #{at.dice.randrange(3)}@{when}",
        f"freeze #{at.dice.randrange(2)}@{when}-{at.one('40s', '3m')}",
        at.one(*(verb.example for verb in VERBS.values())).split(" or ")[0].split(", or")[0].split(", ")[0],
        f"host-loss {who}@{when}",
        f"pull-stall #0@{when}",
        f"broker-down {broker}@{when}",
        f"broker-down {broker}@{when}-3m",
        f"restart-broker {broker}@{when}, down {at.one('200ms', '1m', '4m')}",
        f"broker-loss {broker}@{when}-{at.one('100s', '5m')}",
        f"broker-up broker-new:{_queue_number(at)}@{when}",
        f"broker-up broker-new@{when}",
        f"route-change {_queue_number(at)}@{when}",
        f"route-change {topic}:{broker}={_queue_number(at)}/{_queue_number(at)}@{when}",
        f"restart {who}@{when}, down 15s{at.one('', ', by crash', ', new ids', f', as {PLACEHOLDER}3')}",
        f"rolling-restart *@{when}, every {every}, down 15s{at.one('', ', at once 2')}",
        f"strategy-change {strategy}@{when}, every {every}, down 5s",
    )


def _failure(at: Setting) -> str:
    window = at.one("", "", "@5s-", "@45s-1m20s", "@#3-#9", "@0s-10s", "@9s-30s")
    kind = at.seldom(
        ":odd", "", ":refused", ":timeout", ":slow=800ms", ":read-only", ":SYSTEM_BUSY", ":FLUSH_DISK_TIMEOUT", ":14"
    )
    return f"{at.one(_broker(at), _broker(at), '*')}{window}{kind}"


def _latency_of_send(at: Setting) -> str:
    spec = at.seldom("late", "3ms", "30ms", "lognormal(5ms,2)", "0.2ms")
    if at.dice.random() < 0.15:
        spec = at.file("latency.csv", "".join(f"{at.dice.randrange(1, 50)}\n" for _ in range(9)))
    return at.one(spec, f"{_broker(at)}={spec}")


def _policy(at: Setting) -> str:
    limits = ", ".join(at.dice.sample(_LIMITS, at.dice.randrange(1, len(_LIMITS))))
    waived, whose = ("idle", "group: '*'") if "idle" in limits else ("minBrokers", "topic: '*'")
    severity = at.one("error", "warning", "info")
    return at.file(
        "policy.yaml",
        f"rules:\n  - {{name: groups, groups: ['*'], limits: {{{limits}}}, severity: {severity}, assume: AVG}}\n"
        "  - {name: topics, topics: '*', limits: {minBrokers: 2, missingMasters: 0}}\n"
        f"waivers:\n  - {{{whose}, limit: {waived}, reason: none, until: 2026-12-31}}\n",
    )


def _condition(at: Setting) -> str:
    known = _FIGURES.get(at.command, ("moved",))
    return f"{at.one(*known)}{at.one('>', '>=', '<', '==')}{at.one('0', '1', '2', '1000', '60000')}"


def _sends(at: Setting) -> bool:
    return at.command == "simulate-send"


def _consumer_sdk(at: Setting) -> str:
    name = at.mostly(("java", "go", "go@2.1.2", "cpp"), "go@3")
    return f"{_member(at)}={name}" if at.dice.random() < 0.7 else name


def _rate(at: Setting) -> str:
    if at.command == "simulate-receive":
        return at.one("5", "30/m", f"{_broker(at)}=2", f"{_broker(at)}:0=1")
    return at.one("5", "100", "30/m") if _sends(at) else at.one("10", "2.5/s", f"{_topic(at)}=5")


def _selector(at: Setting) -> str:
    own = f"{at.file('own.py', _OWN)}:{at.seldom('none', 'pick')}"
    return at.one("hash", "random", "machine-room", f"{_broker(at)}:0", own)


def _strategy(at: Setting) -> str:
    own = f"{at.file('own.py', _OWN)}:{at.seldom('none', 'even')}"
    all_of_them = "all" if at.command in ("plan-rebalance", "size-group") else "AVG"
    return at.seldom("NO_SUCH_STRATEGY", *NAMES, "AVG", "AVG_BY_CIRCLE", own, all_of_them)


def _queue_lists(at: Setting) -> str:
    owned = {client_id: [f"{broker}:0" for broker in at.made.brokers[:2]] for client_id in at.members[:2]}
    import json

    return at.file("queues.json", json.dumps(owned))


def _strategy_option(at: Setting) -> str:
    machine = at.one("192.0.2.1", "192.0.2.2", "192.0.2.9")
    return at.seldom(
        at.one("odd=1", "idc=room1", f"queues={_queue_lists(at)}", "virtual-nodes=many"),
        f"virtual-nodes={at.one('0', '1', '3', '10', '40')}",
        f"inner={at.one('AVG_BY_CIRCLE', 'CONSISTENT_HASH')}",
        f"broker-zone={_zone(at)}",
        f"client-zone={_zone(at)}",
        f"host={machine}",
        f"pin={_topic(at)}={machine}",
    )


def _keys(at: Setting) -> str:
    return at.file("keys.txt", "".join(f"{at.dice.randrange(100)}\n" for _ in range(30)))


def _zone(at: Setting) -> str:
    return at.one("*a=z1", "*=z1", "([^-]+)-", "(.)", "broker-b=z2", "192*=z1")


def _source(at: Setting) -> str:
    known = at.one("-", at.made.cluster) if at.dice.random() < 0.1 else at.made.cluster
    return at.mostly((known,), at.one("nowhere.json", "http://127.0.0.1:1", "rocketmq://127.0.0.1:1", "odd://x"))


BY_NAME: Mapping[str, Maker] = {
    "--source": _source,
    **dict.fromkeys(("--remove-broker", "--remove-master", "--drain-broker"), _broker),
    "--zones": lambda at: at.file(
        "zones.yaml", at.one("az1: [broker-a, '192.*']\naz2: '*'\n", "az1: none-*\n", "[]\n")
    ),
    "--jobs": lambda at: at.one("1", "2"),
    "--strategy": _strategy,
    "--to-strategy": _strategy,
    "--selector": _selector,
    "--rates-since": lambda at: at.file("earlier.json", earlier(at.dice, at.made.document)),
    "--strategy-option": _strategy_option,
    "--keys": _keys,
    "--keys-file": _keys,
    "--policy": _policy,
    "--password-file": lambda at: at.file("password", "secret\n"),
    "--secret-key-file": lambda at: at.file("key", "secret\n"),
    "--to": lambda at: at.one("written.json", "written.yaml", "no-such-folder/x"),
    "--redact-map": lambda at: at.one("map.json", "names.json"),
    "--svg": lambda at: at.one("-", "picture.svg"),
    "--html": lambda at: at.one("-", "page.html"),
    "--ca-file": lambda at: at.one("nothing.pem", at.file("odd.pem", "odd")),
    "--client-cert": lambda _: "nothing.pem",
    "--client-key": lambda _: "nothing.pem",
    "--threads": lambda at: at.seldom("0", "1", "2", "7"),
    "--send-retries": lambda at: at.one("0", "1", "3"),
    "--source-retries": lambda _: "0",
    "--trials": lambda at: at.one("2", "3", "5"),
    "--trial": lambda at: at.one("0", "1", "4"),
    "--messages": lambda at: at.seldom("0", "1", "10", "50", "200"),
    "--replay": lambda at: at.one("none.json", *([at.file("recording.json", RECORDING.read_bytes())] * 3)),
    "--earlier": lambda at: at.one(
        at.made.cluster, at.file("earlier.json", earlier(at.dice, at.made.document)), "none.json"
    ),
    "--against": lambda at: at.one(at.made.cluster, at.file("earlier.json", "{}"), "none.json"),
    "--message-type": lambda at: at.one("FIFO", "normal", "odd"),
    "--rounds": lambda at: at.one("1", "2"),
    "--watch": lambda _: "100ms",
    "--interval": lambda at: at.seldom("0", "1s", "10s"),
    "--down": lambda at: at.one("5s", "15s"),
    "--for": lambda at: at.one(*_SHORT),
    "--precision": lambda at: at.one("5%", "20%"),
    "--context": lambda at: at.one("none-such", "default"),
    "--latency": lambda at: _latency_of_send(at) if _sends(at) else at.one("1ms", "0s", "40ms", "2s"),
    "--timer": lambda at: at.seldom("none=1s", "rebalance-wait=10s", "heartbeat=5s", "lock-life=30s", "start=10ms"),
    "--rate": _rate,
    "--loops": lambda at: at.seldom("0", "1", "4", "9"),
    "--crash": lambda at: at.seldom("x", "1@5s", "1@30s", "2@1m"),
    "--await": lambda at: at.seldom("0s", "5s", "20s", "1m"),
    "--invisible": lambda at: at.seldom("1s", "10s", "60s", "5m"),
    "--broker": lambda at: at.one("broker-a:4", "broker-b:2", "broker-a"),
    "--tls-name": lambda _: "name.example",
    "--fail-from": lambda at: at.seldom("fatal", "error", "warning", "info"),
    "--proxy": lambda _: "127.0.0.1:1",
    "--map-address": lambda _: "10.0.0.1:9876=127.0.0.1:1",
    "--broker-version": lambda at: at.seldom("5.0.0", "5.5.1", "5.3.4", "5.3.3", "5.1.4"),
    "--client": lambda at: at.seldom("3.0.0", "5.5.0", "5.3.1", "5.1.4", "4.9.7", "5.2.0"),
}
"""Of options whose name says more than their metavar."""
BY_METAVAR: Mapping[str, Maker] = {
    "A": lambda at: at.mostly((at.made.cluster, at.made.cluster, "-"), "none.json"),
    "B": lambda at: at.mostly((at.made.cluster,), "none.json"),
    "N": lambda at: at.one("1", "2", "3"),
    "K": lambda at: at.one("0", "1"),
    "TIME": lambda at: at.seldom(at.one("0s", "soon", "250us"), *_TIMES),
    "TIME,…": lambda at: at.one("10s", "10s,30s", "1s"),
    "N,…": lambda at: at.one("1", "1,2", "2"),
    "MS,MS,…": lambda at: at.one("50,100,550", "0,20,30000", "1,2,3"),
    "SIZE": lambda at: at.seldom("1KB", "64MB", "1GB"),
    "KEY": lambda _: "reader",
    "USER": lambda _: "operator",
    "YYYY-MM-DD": lambda at: at.seldom("tomorrow", "2026-11-21", "2027-06-01"),
    "N..M": lambda at: at.seldom(at.one("0..3", "5..2", "1..99999"), "3", "1..6", "2..40", "4..12"),
    "X": lambda at: at.seldom("0.9", "1", "1.1", "1.28", "1.5", "3"),
    "SHARE": lambda at: at.seldom("0%", "80%", "0.5", "100%"),
    "GLOB=ZONE": lambda at: at.seldom("az1", "*=az1", f"{_broker(at)}=az2", "192.0.2.0/24=az3"),
    "N|ID": _number_or_id,
    "OLD=NEW": lambda at: f"{_member(at)}={PLACEHOLDER}",
    "ID|all": lambda at: at.one("all", _member(at), "*", "*1"),
    "ID,ID,…": lambda at: ",".join(dict.fromkeys(at.members)) or "a,b",
    "IDS|@FILE|N": _consumers,
    "BROKER": _broker,
    "SDK[@VERSION]": lambda at: at.one("java", "go-grpc@5.1.3", "csharp-grpc", "nodejs"),
    "TYPE": lambda at: at.one("NORMAL", "FIFO", "DELAY", "TRANSACTION"),
    "CLUSTER": lambda at: at.seldom("west", "DefaultCluster"),
    "BROKER:QUEUE": lambda at: f"{_broker(at)}:{at.one('0', '1', '99')}",
    "BROKER[@FROM-TO][:KIND]": _failure,
    "[ID=]java|go|cpp": _consumer_sdk,
    "[BROKER=]N": lambda at: at.one(_queue_number(at), f"{_broker(at)}={_queue_number(at)}"),
    "NAME[:READ[:WRITE]]": lambda at: at.one("broker-new", "broker-new:4", "broker-new:4:2", f"{_broker(at)}:4"),
    "GLOB": lambda at: at.one("*", f"{_topic(at)[:3]}*", "none*", at.group or "g*"),
    "TOPIC": _topic,
    "GROUP": lambda at: at.mostly(tuple(at.made.groups), "no-such-group"),
    "GROUP|GLOB": lambda at: at.seldom(
        at.one("*", f"{(at.group or 'g')[:2]}*"), at.mostly(tuple(at.made.groups), "none")
    ),
    "CONDITION": _condition,
    "'VERB WHO@TIME'": _event,
    "TIME|never": lambda at: at.one("never", "1s", "30s"),
    "TIME|random": lambda at: at.one("random", "1s", "30s"),
    "NAME": lambda at: at.one("one", "two"),
    "URL|FILE": lambda at: at.one(at.made.cluster, "rocketmq://127.0.0.1:1"),
    "file:PATH|env:NAME|keyring:SERVICE/USER": lambda at: at.one("file:secret", "env:SECRET", "keyring:a/b", "odd"),
}


NEEDS: Mapping[str, tuple[tuple[str, str] | tuple[str], ...]] = {
    "--strategy-option": (("--strategy", "PIN-MACHINE_ROOM_NEARBY-CONSISTENT_HASH"),),
    "--keys": (("--selector", "hash"),),
    "--key-type": (("--selector", "random"),),
    "--latency-max": (("--not-available-duration", "0,20,30000"),),
    "--not-available-duration": (("--latency-max", "50,100,550"),),
    "--redact-map": (("--redact",),),
    "--precision": (("--trials", "50"),),
}
"""What an option means something with."""
BY_WORDS = ("--section", "--output")
"""Options whose values completion knows, command by command."""


def maker_of(command: CommandPage, option: OptionPage) -> Maker | None:
    """What makes values of the option; None when nothing here or in the completion knows any."""
    long, metavar = option.names[-1] if option.names else "", option.metavar or ""
    found = None if long in BY_WORDS else BY_NAME.get(long) or BY_METAVAR.get(metavar)
    words = () if found else known_values(" ".join(command.path), long, metavar, option.help)
    return (lambda at: at.mostly(words, "nonsense")) if words else found
