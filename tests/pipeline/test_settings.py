"""What the user may ask of Spark, and what Spark gets."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import rmqlb
from rmqlb.errors import UsageError
from rmqlb.pipeline.spark.settings import (
    SessionSettings,
    driver_conf,
    is_local,
    parse_conf,
    session_conf,
    submitted_conf,
)

MASTERS = [
    "local",
    "local[*]",
    "local[2]",
    "local[2, 3]",
    "spark://a:7077,b:7077",
    "yarn",
    "k8s://https://a:443",
    "sc://a",
]


@pytest.mark.parametrize("master", MASTERS)
def test_every_kind_of_master_is_taken(master: str) -> None:
    assert SessionSettings(master).master == master
    assert is_local(master) == master.startswith("local")


@pytest.mark.parametrize(
    "master", ["", "local[0]", "local[x]", "local-cluster[1,1,1024]", "spark://", "host:7077", "mesos://a:5050"]
)
def test_a_master_that_spark_does_not_know_is_an_error(master: str) -> None:
    with pytest.raises(UsageError, match="not a master that Spark knows"):
        SessionSettings(master)


def test_conf_is_parsed() -> None:
    pairs = ["spark.c=x=y", "spark.a.b=", "spark.hadoop.fs.s3a.access-key=k"]
    assert parse_conf(pairs) == {"spark.a.b": "", "spark.c": "x=y", "spark.hadoop.fs.s3a.access-key": "k"}


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("spark.driver.memory", "--conf spark.driver.memory: not KEY=VALUE"),
        ("driver.memory=2g", "--conf driver.memory=2g: not a key of Spark"),
        ("spark.=x", "--conf spark.=x: not a key of Spark"),
        (" spark.a=x", "--conf  spark.a=x: not a key of Spark"),
        ("spark.a=x\ny", "--conf spark.a: the value has a line break or a NUL in it"),
        ("spark.master=local", "--conf spark.master: rmqlb sets it itself"),
        ("spark.remote=sc://a", "--conf spark.remote: rmqlb sets it itself"),
        ("spark.sql.session.timeZone=CET", "--conf spark.sql.session.timeZone: rmqlb sets it itself"),
    ],
)
def test_a_conf_that_cannot_be_had_is_an_error(pair: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_conf([pair])
    assert raised.value.message == message


def test_settings_look_at_their_conf_too() -> None:
    with pytest.raises(UsageError, match="rmqlb sets it itself"):
        SessionSettings("local", {"spark.master": "yarn"})


def test_the_user_wins_over_defaults() -> None:
    asked = {"spark.driver.memory": "3g", "spark.local.dir": "/data", "spark.sql.shuffle.partitions": "7"}
    conf = driver_conf(SessionSettings("local[4]", asked), "/session")
    assert {key: conf[key] for key in asked} == asked


def test_a_local_driver_listens_on_loopback_and_keeps_to_its_folder() -> None:
    conf = driver_conf(SessionSettings("local[4]"), "/session")
    assert conf["spark.master"] == "local[4]"
    assert conf["spark.driver.memory"] == "2g"
    assert conf["spark.driver.bindAddress"] == conf["spark.driver.host"] == "127.0.0.1"
    assert conf["spark.local.dir"] == "/session"
    assert conf["spark.sql.shuffle.partitions"] == "8"
    assert conf["spark.ui.enabled"] == "false"


def test_a_clusters_driver_can_be_reached_unless_the_cluster_is_here() -> None:
    here = driver_conf(SessionSettings("spark://127.0.0.1:7077"), "/session")
    away = driver_conf(SessionSettings("spark://127.0.0.1:7077,far:7077"), "/session")
    assert here["spark.driver.host"] == "127.0.0.1"
    assert "spark.driver.host" not in away
    assert "spark.sql.shuffle.partitions" not in away


@pytest.mark.parametrize("kind", [session_conf, submitted_conf])
def test_what_results_depend_on_is_always_set(kind: type) -> None:
    conf = kind(SessionSettings("sc://a"))
    assert conf["spark.sql.session.timeZone"] == "UTC"
    assert conf["spark.sql.ansi.enabled"] == "true"


def test_the_lines_of_the_page_are_what_a_session_takes() -> None:
    page = (Path(rmqlb.__file__).parent.parent / "docs" / "pipeline.md").read_text(encoding="utf-8")
    lines = re.findall(
        r"^rmqlb pipeline run -w /shared/warehouse .*--master.*$", page.replace("\\\n", ""), re.MULTILINE
    )
    masters = []
    for words in map(shlex.split, lines):
        after = [(word, words[at + 1]) for at, word in enumerate(words[:-1])]
        (master,) = (value for word, value in after if word == "--master")
        conf = parse_conf(value for word, value in after if word == "--conf")
        assert SessionSettings(master, conf).conf["spark.pyspark.python"] == "./environment/bin/python"
        assert conf["spark.archives"] == "rmqlb-env.tar.gz#environment"
        masters.append(master.partition(":")[0])
    assert masters == ["spark", "yarn", "k8s"]
