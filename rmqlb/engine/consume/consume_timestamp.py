"""Which moment a consumer's `consumeTimestamp` is: yyyyMMddHHmmss by the consumer's own clock and time zone.

A consumer tells the text and when it was made, not its zone. Left alone, the text is the moment it was made less 30
minutes (`DefaultMQPushConsumer.consumeTimestamp`), so that it gives the zone away. For any other text the earliest and
the latest moment that it is anywhere on earth are both asked for: where a broker finds the same message for both, the
zone makes no difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from rmqlb.model.group import MemberReport

_TEXT = re.compile(r"[12][0-9]{3}[01][0-9][0-3][0-9][0-2][0-9][0-5][0-9][0-5][0-9]", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DEFAULT_AGE = timedelta(minutes=30)
_FURTHEST_EAST, _FURTHEST_WEST = timedelta(hours=14), timedelta(hours=-12)
_ZONE_STEP = timedelta(minutes=15)
_MAKING = timedelta(seconds=3)
"""A consumer is made within it; the text, in whole seconds, is that much older at most."""


def timestamps(reports: Mapping[str, MemberReport], takers: Iterable[str]) -> tuple[int, ...]:
    """The moment from which those who take a queue begin it, in ms since 1970; or the earliest and latest, or ().

    A taker that has not come yet is configured as the members are, when all of them have the same text and it is none
    that each makes for itself.
    """
    found: set[tuple[int, ...]] = set()
    for client_id in takers:
        report = reports.get(client_id) or _like_all(reports)
        found.add(() if report is None else _moments(report))
    return found.pop() if len(found) == 1 else ()


def _like_all(reports: Mapping[str, MemberReport]) -> MemberReport | None:
    texts = {report.consume_timestamp for report in reports.values()}
    if len(texts) != 1 or any(_own_zone(report) is not None for report in reports.values()):
        return None
    return next(iter(reports.values()))


def _moments(report: MemberReport) -> tuple[int, ...]:
    local, zone = _local(report), _own_zone(report)
    if local is None:
        return ()
    moments = [local - ahead for ahead in ((_FURTHEST_EAST, _FURTHEST_WEST) if zone is None else (zone,))]
    return tuple(round(moment.timestamp() * 1000) for moment in moments)


def _local(report: MemberReport) -> datetime | None:
    """What the consumer's clock shows at the moment, as if it were UTC; None when the text is none that Java reads."""
    if not _TEXT.fullmatch(report.consume_timestamp or ""):
        return None
    try:
        return datetime.strptime(report.consume_timestamp or "", "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def _own_zone(report: MemberReport) -> timedelta | None:
    """How far the consumer's zone is ahead of UTC, if its text is the one that it made for itself."""
    local = _local(report)
    if local is None or report.started_at is None:
        return None
    ahead = local - (_EPOCH + timedelta(milliseconds=report.started_at) - _DEFAULT_AGE)
    zone = -(-ahead // _ZONE_STEP) * _ZONE_STEP
    return zone if zone - ahead <= _MAKING and _FURTHEST_WEST <= zone <= _FURTHEST_EAST else None
