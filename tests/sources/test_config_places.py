"""Where configuration files are looked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rmqlb.sources.user_files.config_places import project_file, user_file


@pytest.mark.parametrize(
    ("environment", "path"),
    [
        ({"XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/x/rmqlb/config.yaml"),
        ({"HOME": "/h"}, "/h/.config/rmqlb/config.yaml"),
        ({"XDG_CONFIG_HOME": "", "HOME": "/h"}, "/h/.config/rmqlb/config.yaml"),
        ({"XDG_CONFIG_HOME": "relative", "HOME": "/h"}, "/h/.config/rmqlb/config.yaml"),
        ({"XDG_CONFIG_HOME": "relative", "HOME": "h"}, None),
        ({}, None),
    ],
)
def test_the_users_file_is_where_xdg_says(environment: dict[str, str], path: str | None) -> None:
    assert user_file(environment) == path


def found(here: Path, monkeypatch: pytest.MonkeyPatch, home: Path | None = None) -> str | None:
    monkeypatch.chdir(here)
    path = project_file({} if home is None else {"HOME": str(home)})
    return None if path is None else str(Path(path).parent)


def folders(tmp_path: Path) -> tuple[Path, Path, Path]:
    """a, a/b and a/b/c."""
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    return tmp_path / "a", tmp_path / "a" / "b", deep


def test_the_search_goes_up_to_the_root_of_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = folders(tmp_path)
    (a / ".rmqlb.yaml").touch()
    (b / ".git").mkdir()
    assert found(c, monkeypatch) is None
    (b / ".rmqlb.yaml").touch()
    assert found(c, monkeypatch) == str(b)
    (c / ".rmqlb.yaml").touch()
    assert found(c, monkeypatch) == str(c)


def test_a_worktree_has_a_file_where_others_have_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = folders(tmp_path)
    (a / ".rmqlb.yaml").touch()
    (b / ".git").write_text("gitdir: elsewhere")
    assert found(c, monkeypatch, home=tmp_path) is None


def test_the_search_goes_up_to_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = folders(tmp_path)
    (tmp_path / ".rmqlb.yaml").touch()
    assert found(c, monkeypatch, home=a) is None
    (a / ".rmqlb.yaml").touch()
    assert found(c, monkeypatch, home=a) == str(a)
    assert found(c, monkeypatch, home=b) is None


def test_outside_of_both_only_the_working_directory_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, b, c = folders(tmp_path)
    (b / ".rmqlb.yaml").touch()
    assert found(c, monkeypatch) is None
    assert found(b, monkeypatch) == str(b)


def test_a_working_directory_that_was_removed_has_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert project_file({}) is None


def test_the_file_of_another_user_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".rmqlb.yaml").touch()
    assert found(tmp_path, monkeypatch) == str(tmp_path)
    owner = (tmp_path / ".rmqlb.yaml").stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert found(tmp_path, monkeypatch) == (str(tmp_path) if owner == 0 else None)
    if os.getuid() == 0:
        os.chown(tmp_path / ".rmqlb.yaml", 4711, -1)
        assert found(tmp_path, monkeypatch) is None
