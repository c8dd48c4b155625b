"""Producers while brokers fail as the events of a group's simulation say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.send.simulate import long_enough, simulate_send
from rmqlb.errors import DataError, UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.group_scenario import Event
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import HOST_LOSS_US, REFUSED_US, Failure, Moment, Reaction, SendScenario
from rmqlb.model.simulate_send import SendReport

_REFUSED, _SILENT = Reaction("refused", "refused", 0, REFUSED_US), Reaction("timeout", "timeout")


class Producers(Struct, frozen=True):
    """Producers of several topics."""

    reports: tuple[SendReport, ...]  # one for each topic that a failing broker has queues of
    findings: tuple[Finding, ...]


def failures_of(events: Iterable[Event]) -> tuple[Failure, ...]:
    """What brokers do to producers from each `broker-down` or `broker-loss` until the next `broker-up` of the same one.

    A process that ends refuses connections, and the NameServers drop it at once, whether it unregisters or its
    connection closes; a machine that is lost stays silent until its last registration is too old.
    """
    brokers = [event for event in events if event.kind in ("broker-down", "broker-loss", "broker-up")]
    open_: dict[str, Failure] = {}
    found: list[Failure] = []
    for event in sorted(brokers, key=lambda event: event.at_us):
        name, at = event.subject, Moment(event.at_us)
        if event.kind == "broker-up":
            if name in open_:
                found.append(replace(open_.pop(name), end=at))
        elif name not in open_:
            refuses = event.kind == "broker-down"
            notices_us = 0 if refuses else HOST_LOSS_US
            open_[name] = Failure(name, _REFUSED if refuses else _SILENT, at, notices_us=notices_us)
    return (*found, *open_.values())


def producers_of(
    routes: Sequence[TopicRouteData], failures: Sequence[Failure], scenario: SendScenario, rates: Mapping[str, float]
) -> Producers:
    """A producer of each topic that a failing broker takes messages of, for as long as its failures are news.

    Args:
        failures: of brokers by name.
        scenario: how producers are configured.
        rates: topic → messages per second, where known.
    """
    reports: list[SendReport] = []
    findings: list[Finding] = []
    for route in routes:
        brokers = {queue.broker_name for queue in route.publish_queues()}
        own = tuple(failure for failure in failures if failure.broker_name in brokers)
        if not own:
            continue
        rate = rates.get(route.topic)
        asked = replace(scenario, failures=own, rate=Fraction(rate).limit_denominator(10**6) if rate else None)
        try:
            reports.append(simulate_send(route, long_enough(asked), trace=False))
        except (DataError, UsageError) as error:
            findings.append(Finding("producers-left-out", f"producers of topic {route.topic}: {error.message}"))
    return Producers(tuple(reports), tuple(findings))
