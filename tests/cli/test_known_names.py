"""The cache of names: written by what reads a source, bounded, private, and never in the way."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from rmqlb.cli.common.known_names import MOST_NAMES, remember
from rmqlb.model.group import ConsumerGroup, Seen
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, Everything, RouteSighting
from tests.support.replay_remoting import cluster

from .run import EXAMPLE, run


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache's file, not there yet."""
    monkeypatch.delenv("RMQLB_NO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "rmqlb" / "names"


def seen(topics: Iterable[str] = (), groups: Iterable[str] = (), at: str = "rocketmq://h:9876") -> ClusterSnapshot:
    where = Seen(at)
    return ClusterSnapshot(
        kind="dump",
        endpoint=at,
        routes={topic: RouteSighting(TopicRouteData(topic, (), ()), where) for topic in topics},
        groups={group: ConsumerGroup(group, where) for group in groups},
    )


def kept(path: Path) -> list[tuple[str, ...]]:
    return [tuple(line.split("\t")) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_command_that_reads_a_source_keeps_its_names(names: Path) -> None:
    assert run("plan-rebalance", "-s", EXAMPLE, "-g", "order-svc", "--add", "1", "-q").code == 0
    assert ("topic", EXAMPLE, "OrderEvents") in kept(names)
    assert ("group", EXAMPLE, "order-svc") in kept(names)


def test_a_live_fetch_keeps_its_names_and_stdin_does_not(names: Path) -> None:
    with cluster() as (a, b):
        run("fetch-routes", "-s", f"rocketmq://{a.address}", "--map-address", a.mapped, "--map-address", b.mapped, "-q")
    assert {line[0] for line in kept(names)} == {"topic", "group"}
    assert {line[1] for line in kept(names)} == {f"rocketmq://{a.address}"}
    names.unlink()
    text = Path(EXAMPLE).read_text(encoding="utf-8")
    assert run("show-route", "-s", "-", "-q", stdin=text).code == 0
    assert not names.exists()


def test_file_and_folder_are_the_users_alone(names: Path) -> None:
    old = os.umask(0)
    try:
        remember(seen(["T"]), "rocketmq://h:9876")
    finally:
        os.umask(old)
    assert names.stat().st_mode & 0o777 == 0o600
    assert names.parent.stat().st_mode & 0o777 == 0o700


def test_under_a_umask_of_none_the_folders_made_on_the_way_are_the_users_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RMQLB_NO_CACHE", raising=False)
    for variable, name in (("XDG_CACHE_HOME", "cache"), ("XDG_CONFIG_HOME", "config")):
        monkeypatch.setenv(variable, str(tmp_path / name / "below"))
    old = os.umask(0)
    try:
        remember(seen(["T"]), "rocketmq://h:9876")
        assert run("context", "add", "c", "-s", "rocketmq://h:9876").code == 0
    finally:
        os.umask(old)
    folders = [path for path in tmp_path.rglob("*") if path.is_dir()]
    assert {path.name for path in folders} == {"cache", "config", "below", "rmqlb"}
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}


def test_the_source_read_last_comes_first_and_what_is_the_same_is_not_written_again(names: Path) -> None:
    remember(seen(["A"], at="a"), "a")
    remember(seen(["B"], ["g"], at="b"), "b")
    assert kept(names) == [("group", "b", "g"), ("topic", "b", "B"), ("topic", "a", "A")]
    before = names.stat()
    remember(seen(["B"], ["g"], at="b"), "b")
    assert names.stat().st_ino == before.st_ino


def test_a_part_of_a_cluster_adds_names_and_the_whole_of_it_replaces_them(names: Path) -> None:
    remember(seen(["A"], at="a"), "a")
    remember(seen(["B"], at="a"), "a")
    remember(seen(["C"], at="a"), "a", Everything(("C*",)))
    remember(seen(["C"], at="a"), "a", Everything(of_groups=True))
    assert kept(names) == [("topic", "a", "A"), ("topic", "a", "B"), ("topic", "a", "C")]
    remember(seen(["C"], at="a"), "a", Everything())
    assert kept(names) == [("topic", "a", "C")]


def test_names_are_bounded(names: Path) -> None:
    for source in "ab":
        remember(seen([f"T{number}" for number in range(MOST_NAMES)], at=source), source)
    assert len(kept(names)) == MOST_NAMES
    assert {line[1] for line in kept(names)} == {"b"}


@pytest.mark.parametrize("name", ["a b", "a\tb", "a\nb", "\x1b[31m", "a\u202eb", "a\u200bb", "x" * 256, "", "\ud800"])
def test_a_name_that_cannot_be_typed_is_left_out(name: str, names: Path) -> None:
    remember(seen([name, "good"], [name]), "rocketmq://h:9876")
    assert [line[2] for line in kept(names)] == ["good"]


def test_rocketmqs_own_topics_and_groups_are_left_out(names: Path) -> None:
    remember(seen(["%RETRY%g", "RMQ_SYS_TRACE_TOPIC", "T"], ["CID_RMQ_SYS_TRACE", "g"]), "rocketmq://h:9876")
    assert [line[2] for line in kept(names)] == ["g", "T"]


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe", b"topic\n\n\t\t\n", b"topic\ta\n", b"topic\ta\tb\tc\n", b"topic\ta\t\x1b[31m\n", b"\0" * 100],
)
def test_a_damaged_cache_is_made_anew(content: bytes, names: Path) -> None:
    names.parent.mkdir(parents=True)
    names.write_bytes(content)
    remember(seen(["T"], at="a"), "a")
    assert kept(names) == [("topic", "a", "T")]


def test_a_pipe_in_its_place_keeps_nobody_waiting(names: Path) -> None:
    names.parent.mkdir(parents=True)
    os.mkfifo(names)
    remember(seen(["T"]), "x")
    assert kept(names) == [("topic", "rocketmq://h:9876", "T")]


def test_where_nothing_can_be_written_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RMQLB_NO_CACHE")
    (tmp_path / "file").touch()
    for home, cache in (("", ""), ("relative", "relative"), ("", str(tmp_path / "file")), ("/dev/null", "")):
        monkeypatch.setenv("HOME", home)
        monkeypatch.setenv("XDG_CACHE_HOME", cache)
        ran = run("show-route", "-s", EXAMPLE, "-t", "Skewed", "-o", "json")
        assert (ran.code, ran.stderr) == (0, "")
        assert json.loads(ran.stdout)["data"]


def test_a_full_disk_leaves_the_names_of_before(names: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(seen(["A"], at="a"), "a")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    remember(seen(["B"], at="b"), "b")
    assert kept(names) == [("topic", "a", "A")]
    assert [path.name for path in names.parent.iterdir()] == ["names"]


def test_it_can_be_switched_off(names: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMQLB_NO_CACHE", "1")
    remember(seen(["A"], at="a"), "a")
    assert not names.exists()


def test_without_a_cache_home_it_is_in_the_users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RMQLB_NO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    remember(seen(["A"], at="a"), "a")
    assert kept(tmp_path / ".cache" / "rmqlb" / "names") == [("topic", "a", "A")]


def test_a_file_that_has_the_names_already_is_left_as_it_is(names: Path) -> None:
    remember(seen(["a", "b"], ["g"]), "x", Everything())
    remember(seen(["c"], at="rocketmq://other:9876"), "x")
    remember(seen(["a", "b"], ["g"]), "x", Everything())
    written = names.stat().st_ino
    remember(seen(["b"]), "x")
    remember(seen(["a", "b"], ["g"]), "x", Everything())
    assert names.stat().st_ino == written
    remember(seen(["c"], at="rocketmq://other:9876"), "x")
    assert names.stat().st_ino != written
    assert kept(names)[0] == ("topic", "rocketmq://other:9876", "c")
    remember(seen(["a"], ["g"]), "x", Everything())
    assert ("topic", "rocketmq://h:9876", "b") not in kept(names)
