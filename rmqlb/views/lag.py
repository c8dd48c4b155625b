"""Rates in words; lag over time in words, and drawn as columns of characters."""

from itertools import pairwise

from rmqlb.model.result import RateSource, milliseconds, rate_text
from rmqlb.model.simulate_rebalance import LagCurve, RebalanceResult
from rmqlb.views.columns import Cell, Column
from rmqlb.views.numbers import about, duration, moment, number
from rmqlb.views.report import Section
from rmqlb.views.timeline import begin_of, round_edges, time_ruler

_LENGTH, _HEIGHT = 60, 5
_EDGE = "|"


def rate_source(source: RateSource) -> str:
    """Where rates come from.

    >>> rate_source(RateSource(("500",), None)), rate_source(RateSource(("T=5",), 60_000))
    ('--rate 500', '--rate T=5, otherwise from 2 samples over 1m')
    """
    typed = " ".join(f"--rate {text}" for text in source.given)
    if source.over_ms is None:
        return typed
    samples = f"from 2 samples over {duration(source.over_ms)}"
    return f"{typed}, otherwise {samples}" if typed else samples


def lag_text(lag: LagCurve, since_ms: float = 0) -> str:
    """The peak and the end of a lag, from the event on."""
    if lag.peak is None:
        return f"lag grows by {rate_text(lag.growth_per_second)} messages per second, and never drains"
    peak = round(lag.peak.messages)
    if lag.gone_ms is None:
        return f"lag of {number(peak)} messages never drains"
    if not peak:
        return "no lag"
    return f"lag peaks at {number(peak)}, gone after {about(max(lag.gone_ms - since_ms, 0))}"


def lag_section(found: RebalanceResult, lag: LagCurve, length: int = _LENGTH) -> Section:
    """The lag of the group, on a time axis that ends when the lag is gone."""
    last_us = round(1000 * max(point.at_ms for point in lag.points))
    end_us = max(found.end_us, last_us + (last_us - begin_of(found)) // (20 if lag.gone_ms is not None else 2))
    edges = round_edges(begin_of(found), end_us, max(length - 2 * len(_EDGE), 2))
    tops = [lag.most(begin / 1000, end / 1000) for begin, end in pairwise(edges)]
    top = max(*tops, 1)
    rows: list[tuple[Cell, ...]] = []
    for level in reversed(range(_HEIGHT)):
        drawn = "".join("#" if messages * _HEIGHT > level * top and messages >= 0.5 else " " for messages in tops)
        rows.append((number(round(top)) if level == _HEIGHT - 1 else "", f"{_EDGE}{drawn}{_EDGE}"))
    rows.append(("", f"{_EDGE}{time_ruler(edges)}{_EDGE}"))
    begin, end = (moment(milliseconds(us)) for us in (edges[0], edges[-1]))
    title = f"lag of the group from {begin} to {end}, {duration(milliseconds(edges[1] - edges[0]))} per column"
    columns = (Column("messages", "label"), Column("# = most in the column", "strip", "strip"))
    return Section("lag-chart", title, columns, tuple(rows), heads=1, draw=lambda other: lag_section(found, lag, other))
