"""How many consumers each group should have: `size-group` for every group, under the strategy that it runs.

Where only a consumer's place counts, groups whose topics have the same queues on as many brokers have the same sizes,
whatever their names are: these are worked out once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial

from pyspark.sql import DataFrame

from rmqlb.engine.allocate.rules import BY_PLACE
from rmqlb.engine.allocate.sdks import JAVA
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.size_group.size_group import size_group
from rmqlb.model.route import PERM_READ, PERM_WRITE, QueueData, TopicRouteData
from rmqlb.model.size_group import MOST_SIZE, GroupSize, SizeLimits, SizeQuestion
from rmqlb.pipeline.groups.running_groups import Row, RunningGroup, each_group, running_groups, with_left_out
from rmqlb.pipeline.schemas import SIZES
from rmqlb.pipeline.spark.progress import Count

_KNOWN = 4096
"""Different layouts that a worker remembers."""
_Broker = tuple[str, int]


def sizes(
    fleet: DataFrame,
    scores: DataFrame,
    groups: DataFrame,
    limits: SizeLimits,
    trials: int,
    settings: Settings,
    count: Count | None = None,
) -> DataFrame:
    """FLEET, SCORES and GROUPS → SIZES; `trials`: sets of client IDs that are tried where IDs decide."""
    rows_of = partial(size_rows, limits, trials)
    found = each_group(running_groups(fleet, scores), SIZES.columns, settings, rows_of, count)
    return with_left_out(found, groups).select(*SIZES.columns)


def size_rows(limits: SizeLimits, trials: int, group: RunningGroup) -> Iterator[Row]:
    """The row of a group (raises RmqlbError)."""
    members = group.members
    now = len(set(members.client_ids))
    largest = max((len(route.subscribe_queues()) for route in group.routes), default=1)
    most = min(max(largest, now, 1) + limits.survive, MOST_SIZE)
    by_place = group.strategy in ("AVG", "AVG_BY_CIRCLE") and group.strategy in BY_PLACE and members.sdks == (JAVA,)
    if by_place and group.strategy not in members.settings.custom:
        found = _by_layout(_layout(group.routes), group.strategy, limits, most)
    else:
        present = tuple(dict.fromkeys(members.client_ids))
        found = _sized(group.routes, group.strategy, limits, most, trials, group.sdk, members.settings, present)
    point = next((each for each in found.curve if each.consumers == now), None)
    yield {
        "queues": sum(topic.queues for topic in found.topics),
        "consumers": now,
        "satisfied": None if point is None else point.satisfied,
        "fails": None if point is None or not point.fails else ", ".join(point.fails),
        "fewest": found.consumers,
        "nextFewer": max((number for number in found.replica_counts.allowed if number < now), default=None),
        "nextMore": min((number for number in found.replica_counts.allowed if number > now), default=None),
        "imbalance": found.best.imbalance,
        "idle": found.best.idle,
        "share": found.best.share,
    }


def _layout(routes: tuple[TopicRouteData, ...]) -> tuple[tuple[_Broker, ...], ...]:
    """The queues of each topic on each broker, with numbers for names, the same for all that are alike."""
    brokers = sorted({data.broker_name for route in routes for data in route.queue_datas})
    number = {name: f"{place:06d}" for place, name in enumerate(brokers)}
    topics = (tuple((number[data.broker_name], data.read_queue_nums) for data in each.queue_datas) for each in routes)
    return tuple(sorted(topics))


@lru_cache(_KNOWN)
def _by_layout(layout: tuple[tuple[_Broker, ...], ...], strategy: str, limits: SizeLimits, most: int) -> GroupSize:
    routes = tuple(
        TopicRouteData(
            f"{place}", tuple(QueueData(name, number, number, PERM_READ | PERM_WRITE) for name, number in brokers), ()
        )
        for place, brokers in enumerate(layout)
    )
    return _sized(routes, strategy, limits, most, 1, JAVA.name, Settings(), ())


def _sized(
    routes: tuple[TopicRouteData, ...],
    strategy: str,
    limits: SizeLimits,
    most: int,
    trials: int,
    sdk: str,
    settings: Settings,
    present: tuple[str, ...],
) -> GroupSize:
    question = SizeQuestion(
        limits=limits,
        consumers=(1, most),
        strategies=(strategy,),
        present=present,
        sdk=sdk,
        trials=trials,
    )
    return size_group(None, routes, question, settings)
