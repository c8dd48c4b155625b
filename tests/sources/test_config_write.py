"""The user's file, changed: whole or not at all, private, and by one at a time."""

from __future__ import annotations

import fcntl
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.errors import UsageError
from rmqlb.model.configuration import ConfigFile, Value
from rmqlb.sources.user_files import config_file
from rmqlb.sources.user_files.config_file import change_user_file, read_user_file, with_context, with_value

PRINTABLE = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def put(path: Path, name: str, source: str = "http://h") -> None:
    change_user_file(str(path), lambda config: with_context(config, name, {"source": source}))


def test_folder_and_file_are_the_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "x" / "rmqlb" / "config.yaml"
    old = os.umask(0)
    try:
        put(path, "prod")
    finally:
        os.umask(old)
    assert (mode(path.parent), mode(path)) == (0o700, 0o600)
    path.parent.chmod(0o755)
    path.chmod(0o644)
    put(path, "staging")
    assert (mode(path.parent), mode(path)) == (0o700, 0o600)
    assert list(read_user_file(str(path)).contexts) == ["prod", "staging"]
    assert os.listdir(path.parent) == ["config.yaml"]


@given(user=PRINTABLE, tls_name=PRINTABLE, addresses=st.lists(PRINTABLE, min_size=1), retries=st.integers(0, 20))
def test_what_is_written_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, user: str, tls_name: str, addresses: list[str], retries: int
) -> None:
    path = str(tmp_path_factory.getbasetemp() / "written" / "config.yaml")
    values: dict[str, Value] = {
        "source": "http://h",
        "user": user,
        "tls-name": tls_name,
        "map-address": tuple(addresses),
        "source-timeout": "010",
        "source-retries": retries,
    }
    change_user_file(path, lambda _: with_value(with_context(ConfigFile(), "no", values), "context", "no"))
    read = read_user_file(path)
    assert {key: written.value for key, written in read.contexts["no"].values.items()} == values
    assert read.values["context"].value == "no"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file, with a context."""
    put(tmp_path / "rmqlb" / "config.yaml", "prod")
    return tmp_path / "rmqlb" / "config.yaml"


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    target, path = tmp_path / "dotfiles" / "rmqlb.yaml", tmp_path / "rmqlb" / "config.yaml"
    target.parent.mkdir(mode=0o755)
    target.write_text("output: json\n")
    target.chmod(0o600)
    path.parent.mkdir()
    path.symlink_to(target)
    put(path, "prod")
    assert (path.is_symlink(), mode(target.parent)) == (True, 0o755)
    assert read_user_file(str(target)).values["output"].value == "json"


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(UsageError, match=f"cannot write {path}: No space left on device"):
        put(path, "staging")
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["config.yaml"]


def test_a_file_that_is_wrong_is_not_written_over(path: Path) -> None:
    path.write_text("outptu: json\n")
    with pytest.raises(UsageError, match="line 1: outptu: there is no key"):
        put(path, "prod")
    assert path.read_text() == "outptu: json\n"


def test_no_change_is_lost_when_many_are_made_at_once(path: Path) -> None:
    names = [f"c{number}" for number in range(8)]
    with ThreadPoolExecutor(len(names)) as pool:  # a lock is of an open folder, so threads contend as processes do
        list(pool.map(lambda name: put(path, name), names))
    assert sorted(read_user_file(str(path)).contexts) == [*names, "prod"]
    assert os.listdir(path.parent) == ["config.yaml"]


def test_a_writer_that_never_ends_is_not_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_file, "_PATIENCE_S", 0.0)
    other = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another rmqlb has been changing it"):
            put(path, "staging")
    finally:
        os.close(other)
    put(path, "staging")
