"""`--set NAME=VALUE` of the simulators: the settings that few users need. docs/settings.md has the same table."""

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
        (_REBALANCE,), _ON_OFF, "all consumers start at 0s; otherwise they have run for a while", default=False
    ),
    "broadcasting": Setting(
        (_REBALANCE,), _ON_OFF, "the group is BROADCASTING", default=False, otherwise="as the source says"
    ),
    "broker-version": Setting(
        (_RECEIVE,), "VERSION", "brokers up to 5.3.4 serve queues upward, from 5.4.0 on downward", "5.5.0"
    ),
    "change-at": Setting((_REBALANCE,), "TIME", "when the changes of --scale-to, --add, … happen", "30s"),
    "client-version": Setting(_CLOCKS, "VERSION", "version of the consumers' library", None, "as reported, or 5.5.0"),
    "consume-from": Setting(_CLOCKS, "last|first|timestamp", "consumeFromWhere", None, "as the source says, or last"),
    "consume-threads": Setting(
        (_SIZE,), "N", "consume threads of a consumer (consumeThreadMin)", 20, most=MOST_THREADS
    ),
    "consume-time": Setting(_CLOCKS, "TIME", "how long the listener takes for a message", "0s"),
    "consumer-type": Setting(
        _CLOCKS, "[ID=]push|pull|lite-pull|assign…", "kind of one consumer or of all", None, "as reported, or push"
    ),
    "detector": Setting((_SEND,), _ON_OFF, "startDetectorEnable (5.1.4 and newer)", "off"),
    "earlier": Setting(_CLOCKS, "FILE", "earlier snapshot: each queue's rate is what came since", None, "none"),
    "error-pause": Setting((_RECEIVE,), "TIME", "pause of a SimpleConsumer's loop after an error", "0s"),
    "exclude": Setting((_SEND,), "BROKER…", "the producer leaves this broker's queues out", None, "none"),
    "first-poll": Setting(
        (_SEND,), "TIME|random", "first poll of the route", None, "as the SDK does; Java: route-poll"
    ),
    "for": Setting((_REBALANCE,), "TIME", "simulated time", None, "until all queues have converged"),
    "id-sets": Setting(
        (_SIZE,), "N", "sets of client IDs that strategies which look at client IDs are tried on", "100"
    ),
    "id-share": Setting((_SIZE,), "SHARE", "share of these sets for which all limits hold", "100%"),
    "key-type": Setting((_SEND,), "string|int|long", "type of the keys that the application passes on", "string"),
    "latency-max": Setting((_SEND,), "MS,MS,…", "thresholds of latency fault", None, "those of the version"),
    "nameserver-notices": Setting(
        (_SEND, _RECEIVE), "TIME|never", "when the NameServer drops a failed broker", None, "refused 0s, timeout 120s"
    ),
    "not-available-duration": Setting(
        (_SEND,), "MS,MS,…", "isolation from each threshold of latency-max on", None, "those of the version"
    ),
    "precision": Setting((_SEND,), "P", "end of --trials: each interval is ±P, as 0.1%", None, "all trials run"),
    "proxy-mode": Setting((_SEND,), "local|cluster", "gRPC: the Proxy runs in each broker or separately", "local"),
    "remove-master": Setting(
        ("plan-rebalance", _REBALANCE), "BROKER…", "this broker's master is lost; its slaves stay", None, "none"
    ),
    "retry-not-store-ok": Setting((_SEND,), _ON_OFF, "retryAnotherBrokerWhenNotStoreOK", default=False),
    "round-trip": Setting(_CLOCKS, "TIME", "a request's way to a broker and back", "1ms"),
    "route-poll": Setting((_SEND,), "TIME", "how often a client polls the route", "30s"),
    "sdk": Setting(_CLOCKS, "[ID=]java|go|cpp…", "library of one consumer or of all", None, "as reported, or java"),
    "seed": Setting((_SEND, _RECEIVE, *_CLOCKS, _SIZE), "N", "random seed", 1),
    "send-timeout-per-request": Setting(
        (_SEND,), "TIME", "sendMsgMaxTimeoutPerRequest (5.3.3 and newer)", None, "none"
    ),
    "start-at": Setting((_SEND,), "BROKER:QUEUE", "queue of the first pick", None, "random"),
    "threads": Setting((_SEND,), "N", "sending threads, each with its own round robin", 1, most=MOST_THREADS),
    "trial": Setting((_REBALANCE,), "K", "the simulation to show, from 0", "0"),
}


def setting(name: str, **more: Any) -> Any:
    """Declare the field of a setting of the table."""
    return Declared(f"--set {name}", SETTINGS[name].default, has_variable=False, is_setting=True, **more)


def timers() -> Any:
    """Declare the field that collects the clocks of consumers, brokers and NameServers."""
    return Declared("--set TIMER", None, has_variable=False, is_setting=True)


class SettingsOptions(Options):
    set_: Texts = about(
        "--set NAME=VALUE", "A rare setting; docs/settings.md explains each; repeatable.", for_verb=False
    )

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
