"""What the user asks of Spark, and what rmqlb asks for beside it; neither Java nor pyspark is touched.

Where both name a key, the user wins, but for the few that results or the launch depend on: naming one is an error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rmqlb.errors import UsageError

SUBMITTED = "PYSPARK_GATEWAY_PORT"  # spark-submit sets it for the Python program that it starts
DEFAULT_MASTER = "local[*]"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_LOCAL = re.compile(r"local(\[(?P<cores>\*|[1-9]\d*)(,\s*\d+)?])?")
_REMOTE = re.compile(r"(sc|spark|k8s)://.+|yarn")
_KEY = re.compile(r"spark\.[A-Za-z0-9_.\-]*[A-Za-z0-9_\-]")
_OWNED = {
    "spark.master": "use --master",
    "spark.remote": "use --master sc://…",
    "spark.api.mode": "--master decides it: sc://… is Spark Connect",
    "spark.submit.deployMode": "rmqlb runs the driver itself; for a driver elsewhere use spark-submit",
    "spark.sql.session.timeZone": "rmqlb's tables are in UTC",
    "spark.sql.ansi.enabled": "rmqlb's steps count on an overflow being an error",
}
_RESULTS_CONF = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}
_LOOPBACK_CONF = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


_DELTA_CONF = {
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "32",
}
"""A table's log has some hundreds of lines, and VACUUM lists some hundreds of folders: the defaults are 50 and 10,000
tasks."""
_EXTENSIONS, _CATALOG = "spark.sql.extensions", "spark.sql.catalog.spark_catalog"
_DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How to get a Spark session; `conf` has Spark's own keys, `log_file` gets all that Spark and its processes say.

    `delta`: the session's tables are Delta Lake's; its jars are the user's to give.

    Raises:
        UsageError: the master is of no form that Spark knows, or a key in `conf` is malformed or not the user's to set.
    """

    master: str = DEFAULT_MASTER
    conf: Mapping[str, str] = field(default_factory=dict)
    log_file: str = "rmqlb-spark.log"
    name: str = "rmqlb"
    delta: bool = False

    def __post_init__(self) -> None:
        if not _LOCAL.fullmatch(self.master) and not _REMOTE.fullmatch(self.master):
            hint = "one of local[*], local[2], spark://host:7077, yarn, k8s://…, sc://host:15002"
            raise UsageError(f"--master {self.master}: not a master that Spark knows", hint=hint)
        for key, value in self.conf.items():
            _must_be_allowed(key, value)


def parse_conf(pairs: Iterable[str]) -> dict[str, str]:
    """`--conf K=V`, any number of times, as a mapping."""
    conf: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--conf {pair}: not KEY=VALUE", hint="such as --conf spark.driver.memory=3g")
        _must_be_allowed(key, value)
        if key in conf:
            raise UsageError(f"--conf {key}: it is given twice", hint="leave one of them out", code="given-twice")
        conf[key] = value
    return conf


def is_local(master: str) -> bool:
    """Driver and executors are one process on this machine."""
    return _LOCAL.fullmatch(master) is not None


def session_conf(settings: SessionSettings) -> dict[str, str]:
    """The settings that hold in every kind of session, the user's among them."""
    return {
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "2048",
        "spark.sql.adaptive.enabled": "true",
        # Tables are divided by cluster and date. Without this Spark sorts all rows by them before it writes any.
        "spark.sql.maxConcurrentOutputFileWriters": "32",
        **({"spark.sql.shuffle.partitions": str(2 * _cores(settings.master))} if is_local(settings.master) else {}),
        **(_DELTA_CONF if settings.delta else {}),
        **settings.conf,
        **_RESULTS_CONF,
    }


def submitted_conf(settings: SessionSettings) -> dict[str, str]:
    """What is set under spark-submit, whose own settings are the user's too: what results depend on, and `--conf`."""
    return {
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        **(_DELTA_CONF if settings.delta else {}),
        **settings.conf,
        **(_delta_session(settings.conf) if settings.delta else {}),
        **_RESULTS_CONF,
    }


def driver_conf(settings: SessionSettings, folder: str) -> dict[str, str]:
    """The settings of a driver that rmqlb starts itself, the user's among them.

    `folder` is this session's alone; Spark's temporary files go there unless the user says elsewhere.
    """
    hosts = [address.rpartition(":")[0] for address in settings.master.removeprefix("spark://").split(",")]
    stays_here = is_local(settings.master) or all(host in _LOOPBACK for host in hosts)
    return {
        "spark.app.name": settings.name,
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": os.path.join(folder, "spark-warehouse"),
        **(_LOOPBACK_CONF if stays_here else {}),  # no other machine has to reach the driver
        **session_conf(settings),
        **(_delta_session(settings.conf) if settings.delta else {}),
        "spark.master": settings.master,
        "spark.submit.deployMode": "client",
    }


def _delta_session(conf: Mapping[str, str]) -> dict[str, str]:
    """What a session must have from its start for Delta Lake's SQL; extensions of the user's stay."""
    named = [name for name in conf.get(_EXTENSIONS, "").split(",") if name and name != _DELTA_EXTENSION]
    return {
        _EXTENSIONS: ",".join([*named, _DELTA_EXTENSION]),
        _CATALOG: conf.get(_CATALOG, "org.apache.spark.sql.delta.catalog.DeltaCatalog"),
    }


def _cores(master: str) -> int:
    said = _LOCAL.fullmatch(master)
    cores = (said["cores"] if said else None) or "1"
    if cores != "*":
        return int(cores)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _must_be_allowed(key: str, value: str) -> None:
    if not _KEY.fullmatch(key):
        raise UsageError(f"--conf {key}={value}: not a key of Spark", hint="Spark's keys begin with 'spark.'")
    if "\n" in value or "\0" in value:
        raise UsageError(f"--conf {key}: the value has a line break or a NUL in it")
    if key in _OWNED:
        raise UsageError(f"--conf {key}: rmqlb sets it itself", hint=_OWNED[key])
