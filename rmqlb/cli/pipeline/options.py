"""Options that the stages share."""

from typing import Annotated

from msgspec import Struct
from typer import Option

from rmqlb.cli.common.options import panel
from rmqlb.model.send_scenario import NEWEST

warehouse_option = panel("Warehouse")
spark_option = panel("Spark")
which_option = panel("What to look at")
producers_option = panel("Producers")
size_option = panel("Size")
loss_option = panel("Losses")
LOSS_LIMITS = (
    "unassigned",
    "duplicateOwners",
    "imbalance",
    "idle",
    "minConsumers",
    "movedOnConsumerLoss",
    "movedOnBrokerLoss",
)
"""What may be a limit of losses."""
ReportFolder = Annotated[
    str | None, Option("--to", metavar="DIR", help="The report's folder; default: rmqlb-report, here.")
]
Top = Annotated[int, Option("--top", min=1, max=1000, help="How many rows a list of the page has.")]
IncludeRetry = Annotated[bool, which_option("--include-retry", help="The groups' %RETRY% topics too.")]


class StageOptions(Struct, frozen=True):
    """Where the tables are, and on which Spark they are made."""

    warehouse: Annotated[
        str | None,
        warehouse_option(
            "-w",
            "--warehouse",
            metavar="DIR|URI",
            envvar="RMQLB_WAREHOUSE",
            help="A folder that all of Spark's machines see, or a URI: hdfs://, s3a://, gs://, abfss://.",
        ),
    ] = None
    force: Annotated[bool, warehouse_option("--force", help="Rebuild even if up to date.")] = False
    master: Annotated[
        str,
        spark_option(
            metavar="URL",
            envvar="RMQLB_SPARK_MASTER",
            help="local[N], spark://HOST:7077, yarn, k8s://…, or sc://HOST:15002 for Spark Connect.",
        ),
    ] = "local[*]"
    conf: Annotated[list[str] | None, spark_option(metavar="KEY=VALUE", help="A setting of Spark's; repeatable.")] = (
        None
    )
    log_file: Annotated[
        str | None, spark_option(metavar="FILE", help="Where Spark's log goes; default: in ~/.local/state/rmqlb.")
    ] = None


class OnlyOptions(Struct, frozen=True):
    """Which part of the fleet."""

    only: Annotated[
        list[str] | None,
        which_option(metavar="KEY=GLOB", help="Only this cluster=, group=, topic= or date=; repeatable."),
    ] = None


class AsOfOptions(OnlyOptions, frozen=True):
    """And which snapshots of it."""

    as_of: Annotated[
        str | None,
        which_option(metavar="YYYY-MM-DD", help="Each cluster's last snapshot up to this day; default its last one."),
    ] = None


class StrategiesOptions(AsOfOptions, frozen=True):
    """And which strategies are compared on them."""

    strategy: Annotated[
        list[str] | None,
        which_option(
            metavar="STRATEGY", help="Or FILE.py:NAME, which is run; repeatable; default: those without settings."
        ),
    ] = None


class SizeOptions(Struct, frozen=True):
    """What a group of the right size keeps to."""

    max_imbalance: Annotated[
        str | None,
        size_option(metavar="X", help="Most queues of a consumer over the mean, at most; 1 is perfectly even."),
    ] = None
    no_idle: Annotated[bool, size_option("--no-idle", help="Every consumer has a queue.")] = False
    survive: Annotated[str, size_option(metavar="K", help="The same after any K consumers, or fewer, are lost.")] = "0"
    survive_broker: Annotated[bool, size_option("--survive-broker", help="The same after any one broker is lost.")] = (
        False
    )
    id_trials: Annotated[str, size_option(metavar="N", help="Sets of client IDs to try, where these decide.")] = "20"


class LossOptions(Struct, frozen=True):
    """What is held against each loss."""

    limit: Annotated[
        list[str] | None,
        loss_option(
            metavar="LIMIT=N",
            help=f"{', '.join(LOSS_LIMITS)}; repeatable; default: those of sweep-failures.",
        ),
    ] = None


class ScheduleOptions(Struct, frozen=True):
    """What the producers of every topic are put through."""

    fail: Annotated[
        list[str] | None,
        producers_option(
            metavar="BROKER[@FROM-TO][:KIND]",
            help="Who fails, as in simulate-send; repeatable. By default each broker dies in turn.",
        ),
    ] = None
    each: Annotated[bool, producers_option("--each", help="The brokers that --fail names fail one at a time.")] = False
    nameserver_notices: Annotated[
        str | None, producers_option(metavar="TIME|never", help="When the NameServer drops a failed broker.")
    ] = None
    rate: Annotated[str, producers_option(metavar="R", help="Messages per second to each topic.")] = "10"
    for_: Annotated[str, producers_option("--for", metavar="TIME", help="No message starts after this time.")] = "2m"
    threads: Annotated[int, producers_option(min=1, max=1000, help="Sending threads.")] = 1
    client: Annotated[str, producers_option(metavar="VERSION", help="Version of the RocketMQ client library.")] = NEWEST
    latency_fault: Annotated[str, producers_option(metavar="on|off", help="sendLatencyFaultEnable.")] = "off"
    send_retries: Annotated[int, producers_option(min=0, max=100, help="retryTimesWhenSendFailed.")] = 2
    send_timeout: Annotated[str, producers_option(metavar="TIME", help="sendMsgTimeout.")] = "3s"
    trials: Annotated[str, producers_option(metavar="N", help="Trials of each scenario.")] = "200"
    seed: Annotated[int, producers_option(help="Random seed.")] = 1
