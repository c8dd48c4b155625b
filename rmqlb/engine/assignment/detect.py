"""The strategy of a group's consumers, and findings on owners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from rmqlb.engine.allocate import custom_inside, unset_options
from rmqlb.engine.allocate.rules import NAMES, PINNED, WITHOUT_SETTINGS, WRAPPERS
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members, owners_at_rest, runnable, under
from rmqlb.engine.assignment.balance import Owners
from rmqlb.engine.assignment.consumers import reported_strategies
from rmqlb.errors import AllocationError, DataError
from rmqlb.model.finding import ERROR, INFO, Finding
from rmqlb.model.group import ConsumerGroup, States
from rmqlb.model.message_queue import MessageQueue, queue_ranges, sort_client_ids
from rmqlb.model.route import TopicRouteData
from rmqlb.model.words import counted, messages, of_all

if TYPE_CHECKING:
    from rmqlb.model.assignment import Basis
    from rmqlb.model.plan import Origin


DEFAULT = "AVG"
_OVERLAP = "queues can be unassigned or have duplicate owners"


class Detected(Struct, frozen=True):
    """A group's strategy, and how it is known."""

    strategy: str
    origin: Origin
    # client id → its own strategy, when the members do not agree
    strategy_of: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    reported: Mapping[str, int] = field(default_factory=dict)  # strategy → consumers that report it, the most first

    @property
    def run_by_members(self) -> tuple[str, ...]:
        """The strategies that members report, by name; () when it is not they who say it."""
        return tuple(sorted({self.strategy, *self.strategy_of.values()})) if self.origin == "reported" else ()


def detect_strategy(
    given: str | None, group: ConsumerGroup | None, routes: Sequence[TopicRouteData], members: Members
) -> Detected:
    """The strategy to predict with (raises DataError)."""
    reported = reported_strategies(group) if group else {}
    names = Counter(reported.values())
    if given is not None:
        is_custom = custom_inside(given, members.settings) is not None
        return Detected(given, "given", findings=tuple(_contradiction(given, names, is_custom=is_custom)))
    if not names:
        return _from_owners(group, routes, members)
    unknown = sorted(name for name in names if name not in NAMES)
    if unknown:
        raise DataError(
            f"consumers run the strategy class {unknown[0]}, which is not one of RocketMQ's own",
            hint="say what to predict with: --strategy NAME, or its rule in Python: --strategy FILE.py:FUNCTION",
            code="unknown-strategy-class",
        )
    usual = names.most_common(1)[0][0]
    numbers = dict(names.most_common())
    if len(names) == 1:
        return Detected(usual, "reported", reported=numbers)
    text = f"consumers run different strategies: {_told(names)}; {_OVERLAP}"
    finding = Finding("mixed-strategies", text, severity=ERROR, consumers=_others(reported))
    return Detected(usual, "reported", reported, (finding,), numbers)


def not_shown(group: ConsumerGroup, strategies: Sequence[str]) -> Iterator[Finding]:
    """A finding when what the members say they run is none of the strategies that are shown, each as if all ran it."""
    reported = reported_strategies(group)
    names = Counter(reported.values())
    shown = {_outer(name) for name in strategies}
    if len(names) > 1:
        yield Finding(
            "mixed-strategies",
            f"consumers run different strategies: {_told(names)}; {_OVERLAP}, which plan-rebalance shows: "
            "here each strategy is shown as if all of them ran it",
            severity=ERROR,
            consumers=_others(reported),
        )
    elif names and not shown.intersection(names):
        yield Finding("strategy-differs", f"consumers report {next(iter(names))}, which is not among those shown")


def must_be_set(strategies: Iterable[str], settings: Settings) -> None:
    """Refuse to predict what members do by settings that nobody told (raises DataError)."""
    for strategy in strategies:
        missing = unset_options(strategy, settings)
        if missing is None:
            continue
        name, options = missing
        raise DataError(
            f"consumers run {name}, whose settings are not known ({options} says them)",
            hint="consumers do not report them: look how the application makes its strategy, or name another one to "
            "predict with, --strategy NAME",
            code="settings-unknown",
        )


def mismatches(predicted: Owners, states: States) -> list[MessageQueue]:
    """The queues whose observed owners are not the predicted ones."""
    observed = observed_owners(states)
    return [queue for queue, owners in predicted.items() if queue in observed and observed[queue] != owners]


def mixed_mismatches(
    reported: Mapping[str, str], routes: Sequence[TopicRouteData], members: Members, states: States
) -> int | None:
    """How many observed owners differ where each consumer runs its own strategy.

    None where all run the same one, one of them needs settings or is not known, or no owner is observed.

    Args:
        reported: client ID → the strategy that it reports; a consumer that reports none is taken to run the usual one.
    """
    names = {*reported.values()}
    if len(names) < 2 or not names <= {*WITHOUT_SETTINGS} or not observed_owners(states):
        return None
    usual = Counter(reported.values()).most_common(1)[0][0]
    mixed = replace(members, strategy=usual, strategy_of=reported)
    return len(mismatches(owners_at_rest(routes, mixed), states))


def mismatch_findings(predicted: Owners, strategy: str, states: States) -> Iterator[Finding]:
    """A finding when observed owners differ: the group has not converged, or runs something else."""
    differ = mismatches(predicted, states)
    if differ:
        first, observed = differ[0], observed_owners(states)
        yield Finding(
            "mismatch",
            f"observed owners of {len(differ)} of {counted(sum(queue in observed for queue in predicted), 'queue')} "
            f"differ from what {strategy} predicts; first {first.broker_name}:{first.queue_id} of {first.topic}: "
            f"observed {_text(observed[first])}, predicted {_text(predicted[first])}",
            consumers=tuple(sort_client_ids({i for q in differ for i in {*observed[q]} ^ {*predicted[q]}})),
        )


def fitting_strategies(routes: Sequence[TopicRouteData], members: Members, states: States) -> tuple[str, ...]:
    """The strategies without settings that deal all queues to the owners seen, the default first; () without owners."""
    observed = observed_owners(states)
    return tuple(name for name in runnable(WITHOUT_SETTINGS, members) if _fits(name, routes, members, observed))


def _contradiction(given: str, names: Counter[str], *, is_custom: bool) -> Iterator[Finding]:
    base = _outer(given)
    # A function stands in for a class of the application's own, whatever that is called.
    others = [name for name in names if name != base and not (is_custom and name not in NAMES)]
    if others and base not in PINNED:
        yield Finding("strategy-differs", f"the plan uses {given}, but consumers report {', '.join(others)}")


def _outer(strategy: str) -> str:
    """What a member's report names: of a wrapper the outermost class."""
    outer = strategy.partition("-")[0]
    return outer if outer in WRAPPERS else strategy


def _others(reported: Mapping[str, str]) -> tuple[str, ...]:
    usual = Counter(reported.values()).most_common(1)[0][0]
    return tuple(client_id for client_id, name in reported.items() if name != usual)


def _told(names: Counter[str]) -> str:
    return ", ".join(f"{name} ({number})" for name, number in names.most_common())


def _from_owners(group: ConsumerGroup | None, routes: Sequence[TopicRouteData], members: Members) -> Detected:
    fits = fitting_strategies(routes, members, group.queues) if group else ()
    if fits:
        return Detected(DEFAULT if DEFAULT in fits else fits[0], "observed")
    known = (
        "its consumers do not report their strategy"
        if group and group.client_ids
        else "the consumers are not real ones"
    )
    return Detected(
        DEFAULT,
        "assumed",
        findings=(Finding("assumed-strategy", f"{DEFAULT}, the client's default, is assumed: {known}", severity=INFO),),
    )


def _fits(
    name: str, routes: Sequence[TopicRouteData], members: Members, observed: Mapping[MessageQueue, tuple[str, ...]]
) -> bool:
    try:
        predicted = owners_at_rest(routes, under(members, name))
    except AllocationError:
        return False
    seen = [queue for queue in predicted if queue in observed]
    return bool(seen) and all(predicted[queue] == observed[queue] for queue in seen)


def observed_owners(states: States) -> dict[MessageQueue, tuple[str, ...]]:
    """Queue → its owners, of the queues that were looked at."""
    return {queue: owners for queue, state in states.items() if (owners := state.sorted_owners) is not None}


def _text(owners: tuple[str, ...]) -> str:
    return ", ".join(owners) or "no owner"


def owner_findings(owners: Owners, title: str, group: str | None, basis: Basis, states: States) -> Iterator[Finding]:
    """Queues without an owner, and with several; a BROADCASTING group's have several rightly and are not for here.

    Args:
        title: the group in a sentence.
        states: of queues, as far as they are known.
    """
    unassigned = [queue for queue, its_owners in owners.items() if not its_owners]
    if unassigned:
        verb = "is" if len(unassigned) == 1 else "are"
        waiting = sum(states[queue].lag or 0 for queue in unassigned if queue in states)
        left = f", {messages(waiting)} waiting" if waiting else ""
        text = f"{_of(unassigned, owners)} of {title} {verb} unassigned ({basis}){left}: {queue_ranges(unassigned)}"
        yield Finding("unassigned-queues", text, group, ERROR)
    several = [queue for queue, its_owners in owners.items() if len(its_owners) > 1]
    if several:
        verb = "has" if len(several) == 1 else "have"
        text = f"{_of(several, owners)} of {title} {verb} duplicate owners ({basis}): {queue_ranges(several)}"
        ids = sort_client_ids({client_id for queue in several for client_id in owners[queue]})
        yield Finding("duplicate-owners", text, group, ERROR, tuple(ids))


def _of(some: list[MessageQueue], owners: Owners) -> str:
    return of_all(len(some), len(owners))
