"""The strategy of a group's consumers, and findings on owners."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from rmqlb.engine.allocate import custom_inside, unset_options
from rmqlb.engine.allocate.rules import NAMES, PINNED, WITHOUT_SETTINGS, WRAPPERS
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members, Owners, owners_at_rest, runnable, under
from rmqlb.engine.assignment.consumers import reported_strategies
from rmqlb.errors import AllocationError, DataError
from rmqlb.model.group import ConsumerGroup, States
from rmqlb.model.message_queue import MessageQueue, queue_ranges, sort_client_ids
from rmqlb.model.owners import Basis, Origin
from rmqlb.model.result import ERROR, INFO, Finding, are, counted, have, messages, of_all
from rmqlb.model.route import TopicRouteData

DEFAULT = "AVG"


class Detected(Struct, frozen=True):
    strategy: str
    origin: Origin
    strategy_of: Mapping[str, str] = field(default_factory=dict)  # client ID → its own, when consumers differ
    findings: tuple[Finding, ...] = ()
    reported: Mapping[str, int] = field(default_factory=dict)  # strategy → consumers that report it, the most first

    @property
    def run_by_members(self) -> tuple[str, ...]:
        """Reported strategies; () when the strategy is not reported."""
        return tuple(sorted({self.strategy, *self.strategy_of.values()})) if self.origin == "reported" else ()


def detect_strategy(
    given: str | None, group: ConsumerGroup | None, routes: Sequence[TopicRouteData], members: Members
) -> Detected:
    """The strategy to predict with: given, reported, fitting the observed owners, or the default (raises DataError)."""
    reported = reported_strategies(group) if group else {}
    names = Counter(reported.values())
    numbers = dict(names.most_common())
    if given is not None:
        # A function stands in for a class of the application, whatever its name.
        is_custom = custom_inside(given, members.settings) is not None
        base = _outer(given)
        others = [name for name in names if name != base and not (is_custom and name not in NAMES)]
        text = f"the plan uses {given}, but consumers report {', '.join(others)}"
        contradicts = others and base not in PINNED
        return Detected(given, "given", findings=(Finding("strategy-differs", text),) if contradicts else ())
    if not names:
        if group and (fits := fitting_strategies(routes, members, group.queues)):
            return Detected(fits[0], "observed")
        is_real = group is not None and group.client_ids
        why = "its consumers do not report their strategy" if is_real else "the consumers are placeholders"
        text = f"rmqlb assumes {DEFAULT}, the client's default: {why}"
        return Detected(DEFAULT, "assumed", findings=(Finding("assumed-strategy", text, severity=INFO),))
    if unknown := sorted(name for name in names if name not in NAMES):
        problem = f"consumers run the strategy class {unknown[0]}, which is not one of RocketMQ's own"
        hint = "name a strategy to predict with: --strategy NAME, or its rule in Python, --strategy FILE.py:FUNCTION"
        raise DataError(problem, hint=hint, code="unknown-strategy-class")
    usual = next(iter(numbers))
    if len(names) == 1:
        return Detected(usual, "reported", reported=numbers)
    listed = ", ".join(f"{name} ({number})" for name, number in numbers.items())
    text = f"consumers run different strategies: {listed}; queues can be unassigned or have duplicate owners"
    others = [client_id for client_id, name in reported.items() if name != usual]
    mixed = Finding("mixed-strategies", text, severity=ERROR, consumers=tuple(others))
    return Detected(usual, "reported", reported, (mixed,), numbers)


def not_shown(group: ConsumerGroup, strategies: Sequence[str]) -> Iterator[Finding]:
    """Report that all consumers run one strategy, which is not one of the strategies shown."""
    names = {*reported_strategies(group).values()}
    if len(names) == 1 and names.isdisjoint(map(_outer, strategies)):
        yield Finding("strategy-differs", f"consumers report {next(iter(names))}, which is not shown here")


def must_be_set(strategies: Iterable[str], settings: Settings) -> None:
    """Refuse to predict with unknown settings (raises DataError)."""
    for name, options in filter(None, (unset_options(strategy, settings) for strategy in strategies)):
        raise DataError(
            f"consumers run {name}, but its settings are unknown (pass {options})",
            hint="consumers do not report settings: find them in your application's code, or name another strategy for "
            "the prediction with --strategy NAME",
            code="settings-unknown",
        )


def mismatches(predicted: Owners, states: States) -> list[MessageQueue]:
    observed = observed_owners(states)
    return [queue for queue, owners in predicted.items() if queue in observed and observed[queue] != owners]


def mixed_mismatches(
    reported: Mapping[str, str], routes: Sequence[TopicRouteData], members: Members, states: States
) -> int | None:
    """The number of observed owners that differ where each consumer runs its own strategy.

    None where all run the same one, one needs settings or is unknown, or no owner is observed. A consumer without a
    reported strategy is taken to run the usual one.
    """
    names = {*reported.values()}
    if len(names) < 2 or not names <= {*WITHOUT_SETTINGS} or not observed_owners(states):
        return None
    usual = Counter(reported.values()).most_common(1)[0][0]
    mixed = replace(members, strategy=usual, strategy_of=reported)
    return len(mismatches(owners_at_rest(routes, mixed), states))


def mismatch_findings(predicted: Owners, strategy: str, states: States) -> Iterator[Finding]:
    differ = mismatches(predicted, states)
    if differ:
        first, observed = differ[0], observed_owners(states)
        seen, expected = (", ".join(owners) or "no owner" for owners in (observed[first], predicted[first]))
        number = counted(sum(queue in observed for queue in predicted), "queue")
        text = (
            f"observed owners of {len(differ)} of {number} differ from the prediction of {strategy}; the first is "
            f"{first.broker_name}:{first.queue_id} of {first.topic}: observed {seen}, predicted {expected}"
        )
        ids = sort_client_ids({i for queue in differ for i in {*observed[queue]} ^ {*predicted[queue]}})
        yield Finding("mismatch", text, consumers=tuple(ids))


def fitting_strategies(routes: Sequence[TopicRouteData], members: Members, states: States) -> tuple[str, ...]:
    """The strategies without settings that predict every observed owner, the default first; () without owners."""
    observed = observed_owners(states)

    def fits(name: str) -> bool:
        try:
            predicted = owners_at_rest(routes, under(members, name))
        except AllocationError:
            return False
        seen = [queue for queue in predicted if queue in observed]
        return bool(seen) and all(predicted[queue] == observed[queue] for queue in seen)

    return tuple(filter(fits, runnable(WITHOUT_SETTINGS, members)))


def _outer(strategy: str) -> str:
    outer = strategy.partition("-")[0]
    return outer if outer in WRAPPERS else strategy


def observed_owners(states: States) -> dict[MessageQueue, tuple[str, ...]]:
    return {queue: owners for queue, state in states.items() if (owners := state.sorted_owners) is not None}


def owner_findings(owners: Owners, title: str, group: str | None, basis: Basis, states: States) -> Iterator[Finding]:
    """Findings on queues without an owner, and with duplicate owners, which are right in BROADCASTING."""
    unassigned = [queue for queue, found in owners.items() if not found]
    if unassigned:
        waiting = sum(states[queue].lag or 0 for queue in unassigned if queue in states)
        left = f", {messages(waiting)} waiting" if waiting else ""
        which = f"{of_all(len(unassigned), len(owners))} of {title} {are(len(unassigned))}"
        text = f"{which} unassigned ({basis}){left}: {queue_ranges(unassigned)}"
        yield Finding("unassigned-queues", text, group, ERROR)
    several = [queue for queue, found in owners.items() if len(found) > 1]
    if several:
        which = f"{of_all(len(several), len(owners))} of {title} {have(len(several))}"
        text = f"{which} duplicate owners ({basis}): {queue_ranges(several)}"
        ids = sort_client_ids({client_id for queue in several for client_id in owners[queue]})
        yield Finding("duplicate-owners", text, group, ERROR, tuple(ids))
