"""What topics have left without a broker, on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rmqlb.pipeline.groups.what_if_rows import broker_losses
from rmqlb.pipeline.schemas import TOPICS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_broker_takes_its_queues_and_a_static_topic_has_no_broker_to_lose(spark: SparkSession) -> None:
    plain, static = [("a", 2), ("b", 1)], [("__syslo__global__", 8)]
    key = ("c", None, "s")
    rows = [(*key, "plain", plain, plain[:1], None, None, False), (*key, "static", static, static, None, None, True)]
    found = broker_losses(spark.createDataFrame(rows, TOPICS.ddl)).orderBy("brokerName").collect()
    assert [tuple(row)[3:] for row in found] == [("a", "plain", 3, 1, 2, 0), ("b", "plain", 3, 2, 2, 2)]
