"""Producers under the failure schedules."""

from __future__ import annotations

from rmqlb.pipeline.report.charts import Picture, Series, bars
from rmqlb.pipeline.report.figures import Figures
from rmqlb.pipeline.report.page import Grid, Section, grid_of, said
from rmqlb.pipeline.report.sections_groups import IN_PICTURE
from rmqlb.pipeline.report.values import BrokerSends, Scenario, TopicSends
from rmqlb.pipeline.report.words import share_of

_TITLE = "Producers while brokers fail"


def send_sections(figures: Figures) -> tuple[Section, ...]:
    """The section that comes from SENDS and SEND_SHARES."""
    if figures.scenarios is None:
        return ()
    if not figures.scenarios:
        return (Section("producers", _TITLE, (said("Nothing: no producer was simulated."),)),)
    return (_producers(figures, figures.scenarios),)


def _switch(*, on: bool) -> str:
    return "on" if on else "off"


def _producers(figures: Figures, found: tuple[Scenario, ...]) -> Section:
    totals, worst = figures.send_totals, found[0]
    lost, messages = totals.lost or 0, totals.messages
    if not messages:
        nothing = said("Nothing: of no topic can anybody tell what its producer goes through.")
        return Section("producers", _TITLE, (nothing,), grids=(_scenarios(found),))
    seen = [
        said("Of {} simulated messages {} are lost on average over the trials.", round(messages), lost)
        if lost
        else said("No simulated message is lost: a producer's retries reach another broker every time.")
    ]
    if lost:
        seen.append(
            said(
                "The largest share is lost in {} (latency fault {}), by the producers of {} of {} topics.",
                worst.scenario, _switch(on=worst.latency_fault), worst.losing, worst.topics,
            )
        )  # fmt: skip
    few = found[:IN_PICTURE]
    labels = [f"{one.scenario}, {_switch(on=one.latency_fault)}" for one in few]
    values = [(one.lost if lost else one.extra_attempts, one.messages) for one in few]
    axis = "messages lost in a million" if lost else "extra attempts for a million messages"
    picture = bars(
        Picture("producers", _TITLE, f"Bars: {axis}, for each scenario with and without latency fault."),
        labels,
        [Series("a million", [1e6 * (share_of(part, whole) or 0) for part, whole in values])],
        f"{axis} (latency fault off or on)",
    )
    return Section(
        "producers",
        _TITLE,
        tuple(seen),
        "a topic with write queues on one broker only loses whatever is sent while it is away: give it a second one. "
        "Where a slow or silent broker costs, sendLatencyFaultEnable makes producers avoid it.",
        (picture,),
        (_scenarios(found), _losing(figures.losing), _brokers(figures.broker_sends)),
    )


def _scenarios(found: tuple[Scenario, ...]) -> Grid:
    return grid_of(
        "Each scenario over all topics, the largest share lost first; means over the trials",
        found,
        ("scenario", "name", "scenario"),
        ("latency fault", "word", lambda one: _switch(on=one.latency_fault)),
        ("topics", "count", "topics"),
        ("that lose", "count", "losing"),
        ("messages", "count", "messages"),
        ("lost", "figure", "lost"),
        ("of all", "share", lambda one: share_of(one.lost, one.messages)),
        ("extra attempts", "figure", "extra_attempts"),
        ("longest send", "ms", "longest_ms"),
    )


def _losing(losing: tuple[TopicSends, ...]) -> Grid:
    return grid_of(
        "Topics that lose most messages; between low and high the mean lies with 95 % confidence",
        losing,
        ("cluster", "name", "cluster"),
        ("topic", "name", "topic"),
        ("scenario", "name", "scenario"),
        ("latency fault", "word", lambda one: _switch(on=one.latency_fault)),
        ("messages", "count", "messages"),
        ("lost", "figure", "lost"),
        ("low", "figure", "lost_low"),
        ("high", "figure", "lost_high"),
        ("trials with loss", "share", "any_lost"),
    )


def _brokers(brokers: tuple[BrokerSends, ...]) -> Grid:
    return grid_of(
        "Brokers by failed attempts; share: of all attempts in the cluster",
        brokers,
        ("cluster", "name", "cluster"),
        ("broker", "name", "broker_name"),
        ("scenario", "name", "scenario"),
        ("latency fault", "word", lambda one: _switch(on=one.latency_fault)),
        ("attempts", "count", "attempts"),
        ("share", "share", "share"),
        ("failed", "figure", "failures"),
        ("of attempts", "share", lambda one: share_of(one.failures, one.attempts)),
    )
