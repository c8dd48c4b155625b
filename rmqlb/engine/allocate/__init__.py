"""The allocation strategies, keyed by RocketMQ's own names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypedDict, Unpack

from rmqlb.engine.allocate.rules import JAVA, NAMES, RULES, SIMPLE, WRAPPERS, Sdk, class_at, sdk_named
from rmqlb.engine.allocate.strategy import (
    ConfigLists,
    Settings,
    Strategy,
    StrategyClass,
    StrategyFunction,
    Zones,
    with_function,
)
from rmqlb.engine.arguments import items, require, shown
from rmqlb.errors import UsageError
from rmqlb.model.limits import MOST_CONSUMERS, MOST_QUEUES
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues
from rmqlb.model.snapshot import suggestion

_MOST_WRAPPERS = 16


def full_name(strategy: str, settings: Settings | None = None) -> str:
    """RocketMQ's `getName()`: a wrapper's name ends in the inner strategy's (raises UsageError)."""
    strategy_class(strategy, settings)
    return "-".join(names_inside(strategy, settings or Settings()))


def strategy_class(name: str, settings: Settings | None = None, sdk: Sdk = JAVA) -> StrategyClass:
    """The class behind a strategy's name, or behind `WRAPPER-INNER`, in a library (raises UsageError)."""
    settings = settings or Settings()
    *outer, innermost = names_inside(name, settings)
    alone = next((place for place, each in enumerate(outer) if each in sdk.classes), None)
    if alone is not None:
        outer, innermost = outer[:alone], outer[alone]
    if innermost in settings.custom:
        from rmqlb.engine.allocate.custom import CustomStrategy

        found: StrategyClass = partial(CustomStrategy, innermost, settings.custom[innermost])
    elif innermost in sdk.classes or innermost in SIMPLE:
        found = class_at(sdk.classes.get(innermost) or RULES[innermost].place)
    else:
        problem = f"unknown strategy {innermost[:100]}"
        raise UsageError(problem, hint=suggestion("strategies", innermost.upper(), NAMES), code="unknown-strategy")
    if len(outer) > _MOST_WRAPPERS:
        raise UsageError(f"strategy {name[:40]}…: more than {_MOST_WRAPPERS} nested strategies")
    for wrapper in reversed(outer):
        found = partial(class_at(RULES[wrapper].place), found)
    return found


def names_inside(strategy: str, settings: Settings) -> list[str]:
    names, inner = [], settings.inner
    while strategy not in settings.custom and (parts := strategy.partition("-"))[0] in WRAPPERS:
        names.append(parts[0])
        strategy, inner = (parts[2] if parts[1] else inner), "AVG"
    return [*names, strategy]


def unset_options(strategy: str, settings: Settings) -> tuple[str, str] | None:
    """The first strategy, including inner ones, that lacks required settings, and the options for them."""
    for name in names_inside(strategy, settings):
        needs = RULES[name].needs if name in RULES else None
        if needs is not None and needs.given(settings) is None:
            return name, needs.options
    return None


def custom_inside(strategy: str, settings: Settings) -> str | None:
    innermost = names_inside(strategy, settings)[-1]
    return innermost if innermost in settings.custom else None


def prepare(
    strategy: str, queues: Sequence[MessageQueue], client_ids: Sequence[str], settings: Settings, sdk: Sdk = JAVA
) -> Strategy:
    """The strategy for lists in the order of the client's call (raises AllocationError, UsageError)."""
    return strategy_class(strategy, settings, sdk)(queues, client_ids, settings)


class StrategySettings(TypedDict, total=False):
    """Settings of strategies as keywords of `allocate`, with the meanings in `Settings`."""

    virtual_nodes: int
    consumer_idcs: Iterable[str] | None
    config: ConfigLists | None
    inner: str | StrategyFunction
    broker_zones: Zones | None
    client_zones: Zones | None
    hosts: Iterable[str] | None
    pins: Mapping[str, Iterable[str]] | None
    group: str


def allocate(
    strategy: str | StrategyFunction,
    queues: Iterable[MessageQueue],
    client_ids: Iterable[str],
    *,
    presorted: bool = False,
    sdk: str = JAVA.name,
    sdks: Mapping[str, str] | None = None,
    **settings: Unpack[StrategySettings],
) -> dict[str, list[MessageQueue]]:
    """Who owns which queue once every consumer of the group has run its strategy.

    Args:
        strategy: RocketMQ's name: AVG, AVG_BY_CIRCLE, CONFIG, MACHINE_ROOM, MACHINE_ROOM_NEARBY, CONSISTENT_HASH;
            or PIN and PIN_OVER_ALL. A wrapper may name its inner strategy: `MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE`. Or a
            function (group, client id, queues, client ids) → queues, as `AllocateMessageQueueStrategy.allocate`.
        queues: the read queues of one topic, in any order.
        client_ids: the group's consumers, in any order; an ID of two processes appears twice.
        presorted: use both lists in their order instead of sorting them as clients do.
        sdk: the client library of the consumers: `java`, `go` or `cpp`, or with its version, `go@2.1.2`.
        sdks: client ID → its own library, which computes its share. A C++ consumer runs AVG in any group: its library
            has no other strategy.
        settings: `StrategySettings`.

    Returns:
        Client ID → its queues, for each distinct ID, in the order of the sorted IDs.

    Raises:
        AllocationError: a consumer's client throws; the text is RocketMQ's.
        DataError: a function does not return a list of the queues.
        UsageError: an unknown strategy or library, a strategy that no consumer's library has, or an argument of the
            wrong type.
    """
    name, prepared = _prepared(strategy, queues, client_ids, presorted, settings)
    usual, own = given_sdks(sdk, sdks)
    ids = prepared.lists(usual)[1]
    sdk_of = {client_id: own.get(client_id, usual) for client_id in ids}
    must_have(name, sdk_of.values() if ids else (usual,))
    if not ids:
        prepared.strategy(name, usual).share("nobody")  # throws as every client would
    return {client_id: list(prepared.strategy(name, own).share(client_id)) for client_id, own in sdk_of.items()}


def allocate_for(
    client_id: str,
    strategy: str | StrategyFunction,
    queues: Iterable[MessageQueue],
    client_ids: Iterable[str],
    *,
    presorted: bool = False,
    sdk: str = JAVA.name,
    **settings: Unpack[StrategySettings],
) -> list[MessageQueue]:
    """One consumer's queues exactly as its own client computes them (`AllocateMessageQueueStrategy.allocate`).

    A consumer that is not in `client_ids` gets nothing, as in RocketMQ. The libraries of others do not matter. Other
    arguments are those of `allocate`.

    Raises:
        AllocationError: this consumer's client throws; the text is RocketMQ's.
        DataError: a function does not return a list of the queues.
        UsageError: an unknown strategy, or an argument of the wrong type.
    """
    require(client_id, str, "client_id")
    name, prepared = _prepared(strategy, queues, client_ids, presorted, settings)
    own, _ = given_sdks(sdk, None)
    must_have(name, (own,))
    return list(prepared.strategy(name, own).share(client_id))


class PreparedStrategies:
    """A topic's queues and a group's consumers in each library's order, with the strategies prepared for them."""

    def __init__(
        self,
        queues: Sequence[MessageQueue],
        client_ids: Sequence[str],
        settings: Settings,
        *,
        presorted: bool = False,
        order: Callable[[str], bytes] | None = None,  # the order in which the lists are
    ) -> None:
        self._given, self._settings, self._presorted = (queues, client_ids), settings, presorted
        self._sorted = {} if order is None else {order: self._given}
        self._strategies: dict[tuple[str, str], Strategy] = {}

    def strategy(self, name: str, sdk: Sdk) -> Strategy:
        """The strategy that consumers of this library run in a group of strategy `name` (raises as `prepare`)."""
        key = sdk.strategy(name), sdk.name
        if key not in self._strategies:
            self._strategies[key] = prepare(key[0], *self.lists(sdk), self._settings, sdk)
        return self._strategies[key]

    def lists(self, sdk: Sdk) -> tuple[Sequence[MessageQueue], Sequence[str]]:
        if self._presorted:
            return self._given
        if sdk.order not in self._sorted:
            queues, client_ids = self._given
            self._sorted[sdk.order] = sort_queues(queues, sdk.order), sort_client_ids(client_ids, sdk.order)
        return self._sorted[sdk.order]


def _prepared(
    strategy: str | StrategyFunction,
    queues: Iterable[MessageQueue],
    client_ids: Iterable[str],
    presorted: bool,
    settings: StrategySettings,
) -> tuple[str, PreparedStrategies]:
    name, known = with_function(strategy, _settings(settings))
    given_queues = items(queues, MessageQueue, "queues", MOST_QUEUES)
    given_ids = items(client_ids, str, "client_ids", MOST_CONSUMERS)
    require(presorted, bool, "presorted")
    strategy_class(name, known)
    return name, PreparedStrategies(given_queues, given_ids, known, presorted=presorted)


def given_sdks(sdk: str, sdks: Mapping[str, str] | None) -> tuple[Sdk, dict[str, Sdk]]:
    """The usual library, and the libraries by client ID (raises UsageError)."""
    require(sdk, str, "sdk")
    require(sdks, Mapping[str, str] | None, "sdks")
    return sdk_named(sdk).sdk, {client_id: sdk_named(own).sdk for client_id, own in (sdks or {}).items()}


def must_have(strategy: str, sdks: Iterable[Sdk]) -> None:
    """Refuse a strategy that none of the libraries has (raises UsageError)."""
    known = tuple(dict.fromkeys(sdks))
    if known and all(sdk.strategy(strategy) != strategy for sdk in known):
        sdk = known[0]
        problem = f"{strategy[:100]}: consumers of {sdk.library} run {sdk.only}; no other strategy can be set"
        raise UsageError(problem, hint=f"pass --strategy {sdk.only}", code="strategy-not-in-sdk")


def _settings(given: StrategySettings) -> Settings:
    known = StrategySettings.__annotations__
    for name in given:
        if name not in known:
            raise UsageError(f"there is no setting {name}", hint=f"settings: {', '.join(known)}")
    inner, own = with_function(given.get("inner", "AVG"), Settings())
    values: dict[str, Any] = {**given, "inner": inner, "custom": own.custom}
    for name in ("consumer_idcs", "hosts"):
        if values.get(name) is not None:
            values[name] = frozenset(items(values[name], str, name, MOST_CONSUMERS))
    pins = values.get("pins")
    require(pins, Mapping[str, object] | None, "pins")
    values["pins"] = {
        topic: frozenset(items(machines, str, f"pins[{topic!r}]", MOST_CONSUMERS))
        for topic, machines in (pins or {}).items()
    }
    settings = Settings(**values)
    check_settings(settings)
    return settings


def check_settings(settings: Settings) -> None:
    """Refuse settings that no strategy accepts (raises UsageError)."""
    require(settings, Settings, "Settings")
    for name in ("broker_zones", "client_zones"):
        pattern = getattr(settings, name)
        if isinstance(pattern, re.Pattern):
            require(pattern.pattern, str, name)
        if isinstance(pattern, str):
            try:
                re.compile(pattern)
            except (re.error, RecursionError, OverflowError) as error:
                raise UsageError(f"{name} {shown(pattern)}: not a pattern: {error}") from None
