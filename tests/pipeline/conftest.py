"""The sessions and servers that Spark tests share. Missing Java or pyspark is an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from .quick_java import QUICK_JAVA
from .spark_servers import ConnectServer, StandaloneCluster, connect_server_process, standalone_processes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local session for all tests; whatever calls `spark_session` in this process gets it too."""
    from rmqlb.pipeline.spark.session import spark_session
    from rmqlb.pipeline.spark.settings import SessionSettings

    conf = {
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.ui.retainedStages": "100000",  # or Spark forgets stages that `spark_costs` asks for
    }
    log_file = str(tmp_path_factory.mktemp("spark") / "spark.log")
    with spark_session(SessionSettings("local[2]", conf, log_file, "rmqlb-tests")) as session:
        yield session


@pytest.fixture(scope="session")
def standalone_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """A Spark master and one worker of two cores on loopback, from the installed pyspark."""
    with standalone_processes(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A server of Spark Connect on loopback, from the installed pyspark; needs pyspark[connect]."""
    with connect_server_process(tmp_path_factory.mktemp("connect")) as server:
        yield server
