"""How each group's queues lie on its consumers under each strategy: `engine.assignment.balance` of a fleet."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.engine.allocate.sdks import JAVA, SDKS
from rmqlb.engine.assignment.detect import DEFAULT
from rmqlb.pipeline.schemas import FLEET, GROUP, GROUP_IN_SNAPSHOT, LOADS, QUEUE, SCORES

_UNDER = (*GROUP_IN_SNAPSHOT, "strategy")


def loads(assignments: DataFrame, fleet: DataFrame) -> DataFrame:
    """ASSIGNMENTS, and FLEET for the members that get nothing, → LOADS."""
    got = (
        assignments.where(fn.col("owner").isNotNull())
        .groupBy(*_UNDER, fn.col("owner").alias("clientId"))
        .agg(fn.count("*").cast("int").alias("queues"), fn.when(_all_known("lag"), fn.sum("lag")).alias("lag"))
    )
    sdks = fn.coalesce("sdks", fn.array().cast(FLEET.columns["sdks"]))
    each = fn.posexplode(fn.arrays_zip("clientIds", "sdks")).alias("place", "each")
    members = fleet.withColumn("sdks", sdks).select(*GROUP_IN_SNAPSHOT, each)
    ids = members.groupBy(*GROUP_IN_SNAPSHOT, fn.col("each.clientIds").alias("clientId")).agg(
        fn.min("place").alias("place"),
        fn.count("*").cast("int").alias("processes"),
        fn.min_by(fn.coalesce("each.sdks.name", fn.lit(JAVA.name)), "place").alias("sdk"),
        fn.min_by(fn.coalesce("each.sdks.assumed", fn.lit(False)), "place").alias("assumedSdk"),  # noqa: FBT003
    )
    everybody = assignments.select(*GROUP, "strategy").distinct().join(ids, list(GROUP_IN_SNAPSHOT))
    whole = everybody.join(got, [*_UNDER, "clientId"], "left")
    queues = fn.coalesce("queues", fn.lit(0))
    whole = whole.withColumns({"lag": fn.when(fn.col("queues").isNull(), 0).otherwise(fn.col("lag")), "queues": queues})
    # Means and what a group shows by windows: a join with what comes of the same rows would make these twice.
    mean = fn.avg("queues").over(Window.partitionBy(*_UNDER))
    return whole.withColumn("excess", fn.col("queues") - mean).select(*LOADS.columns)


def scores(assignments: DataFrame, loads: DataFrame, fleet: DataFrame) -> DataFrame:
    """ASSIGNMENTS, LOADS, and FLEET for the strategies that members report, → SCORES."""
    whole = _queues(assignments, loads).join(_members(loads), list(_UNDER), "left")
    whole = whole.join(fleet.select(*GROUP_IN_SNAPSHOT, fn.col("strategy").alias("reported")), list(GROUP_IN_SNAPSHOT))
    mean = fn.col("meanQueuesPerConsumer")
    whole = whole.withColumns(
        {
            "consumers": fn.coalesce("consumers", fn.lit(0)),
            "idle": fn.coalesce("idle", fn.lit(0)),
            "mixedSdks": fn.coalesce("mixedSdks", fn.lit(False)),  # noqa: FBT003 - a literal
            "assumedSdks": fn.coalesce("assumedSdks", fn.lit(0)),
            "imbalance": fn.when(mean > 0, fn.col("maxQueuesPerConsumer") / mean),
        }
    )
    whole = whole.withColumn("shown", _shown())
    runs, origin = _runs()
    return whole.withColumns({"runs": runs, "origin": fn.when(runs, origin)}).select(*SCORES.columns)


def _queues(assignments: DataFrame, loads: DataFrame) -> DataFrame:
    """What is counted by queue: a queue with several owners has a row for each of them."""
    one = fn.when(fn.col("owners") > 1, 1 / fn.col("owners")).otherwise(fn.lit(1.0))
    lag = fn.round(fn.sum(fn.col("lag") * one)).cast("bigint")
    counted = assignments.groupBy(*GROUP, "strategy").agg(
        fn.count_distinct("topic").cast("int").alias("topics"),
        _count(one).alias("queues"),
        _count(fn.when(fn.col("owner").isNull(), one)).alias("unassigned"),
        _count(fn.when(fn.col("owners") > 1, one)).alias("duplicateOwners"),
        fn.when(_all_known("lag"), lag).alias("lag"),
        _count(fn.when(fn.col("mismatch").isNotNull(), one)).alias("observed"),
        _count(fn.when(fn.col("mismatch"), one)).alias("mismatches"),
    )
    shared = _of_duplicate_ids(assignments, loads)
    number = fn.coalesce("queuesOfDuplicateClientIds", fn.lit(0)).cast("int")
    return counted.join(shared, list(_UNDER), "left").withColumn("queuesOfDuplicateClientIds", number)


def _of_duplicate_ids(assignments: DataFrame, loads: DataFrame) -> DataFrame:
    """How many queues are owned by ids that several processes have.

    What such ids own is added up, and what was so counted more than once is taken off: of all rows of ASSIGNMENTS only
    those of queues with several owners, of which there are few, are joined.
    """
    shared = loads.where(fn.col("processes") > 1).select(*_UNDER, fn.col("clientId").alias("owner"), "queues")
    several = assignments.where(fn.col("owners") > 1).select(*_UNDER, "owner", fn.struct(*QUEUE).alias("queue"))
    joined = several.join(shared.drop("queues"), [*_UNDER, "owner"])
    again = joined.groupBy(*_UNDER).agg((fn.count("*") - fn.count_distinct("queue")).alias("again"))
    owned = shared.groupBy(*_UNDER).agg(fn.sum("queues").alias("owned")).join(again, list(_UNDER), "left")
    number = fn.col("owned") - fn.coalesce("again", fn.lit(0))
    return owned.select(*_UNDER, number.alias("queuesOfDuplicateClientIds"))


def _members(loads: DataFrame) -> DataFrame:
    return loads.groupBy(*_UNDER).agg(
        fn.count("*").cast("int").alias("consumers"),
        fn.count_if(fn.col("queues") == 0).cast("int").alias("idle"),
        fn.min("queues").alias("minQueuesPerConsumer"),
        fn.max("queues").alias("maxQueuesPerConsumer"),
        fn.avg("queues").alias("meanQueuesPerConsumer"),
        fn.when(_all_known("lag"), fn.max("lag")).alias("maxLagPerConsumer"),
        fn.min_by("excess", "place").alias("firstIdBias"),
        _usual_sdk().alias("sdk"),
        (fn.min("sdk") != fn.max("sdk")).alias("mixedSdks"),
        fn.count_if("assumedSdk").cast("int").alias("assumedSdks"),
    )


def _usual_sdk() -> Column:
    """As `engine.assignment.consumers.usual_sdk`: the library of most consumers, the first of equals."""
    numbers = (
        fn.struct(fn.count_if(fn.col("sdk") == name), fn.lit(-place), fn.lit(name).alias("name"))
        for place, name in enumerate(SDKS)
    )
    return fn.array_max(fn.array(*numbers))["name"]


def _shown() -> Column:
    """The strategy that the queues show: all that were looked at lie as it says; the client's default first."""
    order = fn.array_position(fn.array(*(fn.lit(name) for name in WITHOUT_SETTINGS)), fn.col("strategy"))
    fits = (order > 0) & (fn.col("observed") > 0) & (fn.col("mismatches") == 0)
    return fn.min_by("strategy", fn.when(fits, order)).over(Window.partitionBy(*GROUP_IN_SNAPSHOT))


def _runs() -> tuple[Column, Column]:
    """Whether the group runs the row's strategy, and how that is known (`rmqlb.engine.assignment.detect`)."""
    reported, shown = fn.col("reported"), fn.col("shown")
    name = fn.coalesce(reported, shown, fn.lit(DEFAULT))
    origin = (
        fn.when(reported.isNotNull(), fn.lit("reported"))
        .when(shown.isNotNull(), fn.lit("observed"))
        .otherwise(fn.lit("assumed"))
    )
    return (fn.col("strategy") == name) | fn.startswith("strategy", fn.concat(name, fn.lit("-"))), origin


def _count(values: Column) -> Column:
    """A sum of fractions of queues, which add up to whole ones."""
    return fn.coalesce(fn.round(fn.sum(values)), fn.lit(0)).cast("int")


def _all_known(column: str) -> Column:
    return fn.count(column) == fn.count("*")
