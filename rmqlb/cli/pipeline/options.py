"""Options that the stages share."""

from typing import Annotated

from msgspec import Struct
from typer import Option

from rmqlb.model.send_scenario import NEWEST

WAREHOUSE, SPARK, WHICH, PRODUCERS = "Warehouse", "Spark", "What to look at", "Producers"


class StageOptions(Struct, frozen=True):
    """Where the tables are, and on which Spark they are made."""

    warehouse: Annotated[
        str | None,
        Option(
            "-w",
            "--warehouse",
            metavar="DIR",
            envvar="RMQLB_WAREHOUSE",
            help="The folder of the tables; all of Spark's machines see it under this name.",
            rich_help_panel=WAREHOUSE,
        ),
    ] = None
    force: Annotated[
        bool,
        Option("--force", help="Write anew what is unchanged.", rich_help_panel=WAREHOUSE),
    ] = False
    master: Annotated[
        str,
        Option(
            metavar="URL",
            envvar="RMQLB_SPARK_MASTER",
            help="local\\[N], spark://HOST:7077, yarn, k8s://…, or sc://HOST:15002 for Spark Connect.",
            rich_help_panel=SPARK,
        ),
    ] = "local[*]"
    conf: Annotated[
        list[str] | None,
        Option(metavar="KEY=VALUE", help="A setting of Spark's; repeatable.", rich_help_panel=SPARK),
    ] = None
    log_file: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="Where Spark's own words go; else spark.log in the warehouse.",
            rich_help_panel=SPARK,
        ),
    ] = None


class OnlyOptions(Struct, frozen=True):
    """Which part of the fleet."""

    only: Annotated[
        list[str] | None,
        Option(
            metavar="KEY=GLOB",
            help="Only this cluster=, group=, topic= or date=; repeatable.",
            rich_help_panel=WHICH,
        ),
    ] = None


class AsOfOptions(OnlyOptions, frozen=True):
    """And which snapshots of it."""

    as_of: Annotated[
        str | None,
        Option(
            metavar="YYYY-MM-DD",
            help="Each cluster's last snapshot up to this day; default its last one.",
            rich_help_panel=WHICH,
        ),
    ] = None


class StrategiesOptions(AsOfOptions, frozen=True):
    """And which strategies are compared on them."""

    strategy: Annotated[
        list[str] | None,
        Option(
            metavar="STRATEGY",
            help="Or FILE.py:NAME, which is run; repeatable; default: those without settings.",
            rich_help_panel=WHICH,
        ),
    ] = None


class ScheduleOptions(Struct, frozen=True):
    """What the producers of every topic are put through."""

    fail: Annotated[
        list[str] | None,
        Option(
            metavar="BROKER[@FROM-TO][:KIND]",
            help="Who fails, as in simulate-send; repeatable. Else each broker dies in turn.",
            rich_help_panel=PRODUCERS,
        ),
    ] = None
    each: Annotated[
        bool, Option("--each", help="The brokers that --fail names fail one at a time.", rich_help_panel=PRODUCERS)
    ] = False
    nameserver_notices: Annotated[
        str | None,
        Option(metavar="TIME|never", help="When the NameServer drops a failed broker.", rich_help_panel=PRODUCERS),
    ] = None
    rate: Annotated[str, Option(metavar="R", help="Messages a second to each topic.", rich_help_panel=PRODUCERS)] = "10"
    for_: Annotated[
        str, Option("--for", metavar="TIME", help="No message starts after this time.", rich_help_panel=PRODUCERS)
    ] = "2m"
    threads: Annotated[int, Option(min=1, max=1000, help="Sending threads.", rich_help_panel=PRODUCERS)] = 1
    client: Annotated[
        str, Option(metavar="VERSION", help="Version of the RocketMQ client library.", rich_help_panel=PRODUCERS)
    ] = NEWEST
    latency_fault: Annotated[
        str, Option(metavar="on|off", help="sendLatencyFaultEnable.", rich_help_panel=PRODUCERS)
    ] = "off"
    retries: Annotated[int, Option(min=0, max=100, help="retryTimesWhenSendFailed.", rich_help_panel=PRODUCERS)] = 2
    timeout: Annotated[str, Option(metavar="TIME", help="sendMsgTimeout.", rich_help_panel=PRODUCERS)] = "3s"
    trials: Annotated[str, Option(metavar="N", help="Trials of each scenario.", rich_help_panel=PRODUCERS)] = "200"
    seed: Annotated[int, Option(help="Of everything random.", rich_help_panel=PRODUCERS)] = 1
