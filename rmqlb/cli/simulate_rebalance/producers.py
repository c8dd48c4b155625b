"""What `simulate-rebalance` of several groups sees of producers."""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.cli.common.group_simulation import parse as values
from rmqlb.cli.common.group_simulation.expand_events import events_of_brokers
from rmqlb.cli.common.group_simulation.inputs import scenario_of
from rmqlb.cli.common.group_simulation.options import GroupSimulationOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.engine.send import latency
from rmqlb.engine.send.horizon import ASSUMED_RATE
from rmqlb.engine.send.producers import Producers, failures_of, producers_of
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import NEWEST, SendScenario


def producers(
    options: GroupSimulationOptions,
    routes: Sequence[TopicRouteData],
    elsewhere: Sequence[TopicRouteData],
    terminal: Terminal,
) -> Producers:
    """Producers of these topics, while brokers fail as the events of the options say, and how they are configured."""
    texts = () if options.happens is None else options.happens.event or ()
    failures = failures_of(events_of_brokers(texts, routes, elsewhere))
    scenario = SendScenario(
        client_version=options.configured.client or NEWEST,
        latency=latency.constant(scenario_of(options).latency_us, options.configured.latency),
        seed=options.seed,
    )
    rates = values.rates(options.configured.rate or (), [route.topic for route in elsewhere])
    with terminal.progress(verb="simulating") as progress:
        progress("producers", 0, 0)
        found = producers_of(routes, failures, scenario, rates)
    if not found.reports:
        return found
    is_assumed = any(report.topic not in rates for report in found.reports)
    rate = f", at {ASSUMED_RATE} messages per second where no --rate is given" if is_assumed else ""
    text = f"producers are SYNC with the defaults of client {scenario.client_version}{rate}; simulate-send has others"
    return Producers(found.reports, (*found.findings, Finding("assumed-producers", text, severity=INFO)))
