"""`--set NAME=VALUE`: settings of the simulators for rare cases. docs/settings.md has the same table."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, get_type_hints

from msgspec import Struct

from rmqlb.cli.common.declare import Declared, Options, Texts, about
from rmqlb.errors import UsageError
from rmqlb.model.limits import MOST_THREADS
from rmqlb.model.snapshot import suggestion

_SEND, _RECEIVE, _REBALANCE, _SIZE = "simulate-send", "simulate-receive", "simulate-rebalance", "size-group"
_CLOCKS = (_REBALANCE, "plan-rollout")
_ON_OFF = "on|off"


class Setting(Struct, frozen=True):
    commands: tuple[str, ...]
    form: str  # of its value; several times where it ends in …
    meaning: str
    default: Any = None
    otherwise: str = ""  # the default in words
    most: int | None = None  # of a number from 1 on

    @property
    def shown_default(self) -> str:
        return self.otherwise or ("off" if self.default is False else str(self.default))


SETTINGS: Mapping[str, Setting] = {
    "all-new": Setting(
        (_REBALANCE,), _ON_OFF, "start all consumers at 0s; otherwise they have already run for a while", default=False
    ),
    "broadcasting": Setting(
        (_REBALANCE,), _ON_OFF, "treat the group as BROADCASTING", default=False, otherwise="from the source"
    ),
    "broker-version": Setting(
        (_RECEIVE,),
        "VERSION",
        "order in which brokers serve queues: ascending up to 5.3.4, descending from 5.4.0 on",
        "5.5.0",
    ),
    "change-at": Setting((_REBALANCE,), "TIME", "time of the changes from --scale-to, --add, …", "30s"),
    "client-version": Setting(
        _CLOCKS, "VERSION", "version of the consumers' client library", None, "as reported, or 5.5.0"
    ),
    "consume-from": Setting(
        _CLOCKS,
        "last|first|timestamp",
        "start position without a stored offset (consumeFromWhere)",
        None,
        "from the source, or last",
    ),
    "consume-threads": Setting(
        ("plan-rebalance", _REBALANCE, _SIZE),
        "N",
        "consume threads per consumer (consumeThreadMin)",
        20,
        most=MOST_THREADS,
    ),
    "consume-time": Setting(("plan-rebalance", *_CLOCKS), "TIME", "time the listener takes per message", "0s"),
    "consumer-type": Setting(
        _CLOCKS, "[ID=]push|pull|lite-pull|assign…", "type of all consumers, or of one", None, "as reported, or push"
    ),
    "detector": Setting((_SEND,), _ON_OFF, "detector of latency fault (startDetectorEnable, 5.1.4 and newer)", "off"),
    "earlier": Setting(
        _CLOCKS,
        "FILE|TIME",
        "earlier snapshot, or the time between two samples of a running cluster; gives the rate of each queue",
        None,
        "none",
    ),
    "error-pause": Setting((_RECEIVE,), "TIME", "pause of a SimpleConsumer's loop after an error", "0s"),
    "exclude": Setting((_SEND,), "BROKER…", "broker whose queues the producer skips", None, "none"),
    "first-poll": Setting((_SEND,), "TIME|random", "time of the first route poll", None, "by SDK; Java: route-poll"),
    "for": Setting((_REBALANCE,), "TIME", "simulated time", None, "until all queues have converged"),
    "id-sets": Setting(
        (_SIZE,), "N", "number of client ID sets to try, for strategies that depend on client IDs", "100"
    ),
    "id-share": Setting((_SIZE,), "SHARE", "share of these sets for which all limits must hold", "100%"),
    "key-type": Setting((_SEND,), "string|int|long", "type of the keys that the application passes", "string"),
    "latency-max": Setting((_SEND,), "MS,MS,…", "latency thresholds of latency fault", None, "by client version"),
    "nameserver-notices": Setting(
        (_SEND, _RECEIVE),
        "TIME|never",
        "time until the NameServer drops a failed broker",
        None,
        "refused 0s, timeout 120s",
    ),
    "not-available-duration": Setting(
        (_SEND,), "MS,MS,…", "isolation time for each threshold of latency-max", None, "by client version"
    ),
    "orderly": Setting(
        (_SIZE,),
        _ON_OFF,
        "ordered consumption: one thread at a time consumes a queue",
        default=False,
        otherwise="as reported",
    ),
    "precision": Setting(
        (_SEND,), "P", "stop --trials when each interval is at most ±P, such as 0.1%", None, "all trials run"
    ),
    "proxy-mode": Setting(
        (_SEND,), "local|cluster", "gRPC: the Proxy runs in each broker (local) or separately (cluster)", "local"
    ),
    "remove-master": Setting(
        ("plan-rebalance", _REBALANCE), "BROKER…", "broker that loses its master; its slaves stay", None, "none"
    ),
    "retry-not-store-ok": Setting(
        (_SEND,),
        _ON_OFF,
        "retry on another broker after a status other than SEND_OK (retryAnotherBrokerWhenNotStoreOK)",
        default=False,
    ),
    "round-trip": Setting(_CLOCKS, "TIME", "time of a request to a broker and back", "1ms"),
    "route-poll": Setting((_SEND,), "TIME", "time between a client's route polls", "30s"),
    "sdk": Setting(
        (*_CLOCKS, _SIZE),
        "[ID=]java|go|cpp…",
        "client library of all consumers, or of one; of all in size-group",
        None,
        "as reported, or java",
    ),
    "seed": Setting((_SEND, _RECEIVE, *_CLOCKS, _SIZE), "N", "random seed", 1),
    "send-timeout-per-request": Setting(
        (_SEND,), "TIME", "timeout of one attempt (sendMsgMaxTimeoutPerRequest, 5.3.3 and newer)", None, "none"
    ),
    "start-at": Setting((_SEND,), "BROKER:QUEUE", "first queue to pick", None, "random"),
    "threads": Setting((_SEND,), "N", "sending threads, each with its own round robin", 1, most=MOST_THREADS),
    "trial": Setting((_REBALANCE,), "K", "number of the simulation to show, from 0", "0"),
}


def setting(name: str, **more: Any) -> Any:
    """Declare the field of a setting of the table."""
    return Declared(f"--set {name}", SETTINGS[name].default, has_variable=False, is_setting=True, **more)


def timers() -> Any:
    """Declare the field that collects the clocks of consumers, brokers and NameServers."""
    return Declared("--set TIMER", None, has_variable=False, is_setting=True)


class SettingsOptions(Options):
    set_: Texts = about("--set NAME=VALUE", "Rare setting; see docs/settings.md; repeatable.", for_verb=False)

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        vars(self).update(_read(type(self), self.set_ or ()))


def names_for(command: str) -> tuple[str, ...]:
    """The settings of a command, timers last."""
    own = tuple(name for name, each in SETTINGS.items() if command in each.commands)
    return (*own, *_timer_names()) if command in _CLOCKS else own


def _timer_names() -> tuple[str, ...]:
    from rmqlb.model.group_scenario import TIMER_NAMES

    return tuple(TIMER_NAMES)


def _read(group: type[Options], texts: Sequence[str]) -> dict[str, Any]:
    """Field → its value, from `--set NAME=VALUE` as typed (raises UsageError)."""
    if not texts:
        return {}
    declared = {field: each for field, each in group.fields.items() if each is not None and each.is_setting}
    fields = {each.names[-1].removeprefix("--set "): field for field, each in declared.items()}
    timer_names = _timer_names() if "timers" in declared else ()
    hints, found, given = get_type_hints(group), dict[str, Any](), set[str]()
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().lower().replace("_", "-")
        if name in timer_names:
            found.setdefault("timers", []).append(text)
            continue
        if name not in fields:
            known = (*(each for each in fields if each != "TIMER"), *timer_names)
            raise UsageError(f"--set {text}: there is no setting {name}", hint=suggestion("settings", name, known))
        kind, table = hints[fields[name]], SETTINGS[name]
        if not equals and kind is not bool:
            raise UsageError(f"--set {text}: which value?", hint=f"write {name}={table.form.rstrip('…')}")
        if kind == Texts:
            found.setdefault(fields[name], []).append(value)
            continue
        if name in given:
            raise UsageError(f"--set {text}: {name} is given twice", code="given-twice")
        given.add(name)
        found[fields[name]] = _value(name, value if equals else "on", kind, table)
    return found


def _value(name: str, text: str, kind: Any, table: Setting) -> Any:
    from rmqlb.verbs.amounts import count, on_or_off
    from rmqlb.verbs.settings import read_setting

    if kind is bool:
        return read_setting(name, on_or_off, text)
    if kind is not int:
        return text
    if table.most is not None:
        return read_setting(name, count, text, table.most)
    if not re.fullmatch(r"-?\d{1,18}", text):
        raise UsageError(f"--set {name}={text}: not a whole number")
    return int(text)
