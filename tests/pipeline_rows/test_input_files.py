"""Which files ingest reads, and what their paths tell."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from rmqlb.errors import DataError
from rmqlb.pipeline.ingest.input_files import PathLabels, find, path_labels
from tests.cli.run import run
from tests.support.mismatches import every_case


def touch(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}")


@every_case(
    ("path", "told"),
    [
        ("/d/x.json", PathLabels("/d")),
        ("/d/cluster=a/x.json", PathLabels("/d/cluster=a", "a")),
        ("/cluster=a%2Fb%3D1/x.json", PathLabels("/cluster=a%2Fb%3D1", "a/b=1")),
        ("/cluster=a/cluster=b/x", PathLabels("/cluster=a/cluster=b", "b")),
        ("/date=2026-02-28/x", PathLabels("/date=2026-02-28", None, date(2026, 2, 28))),
        ("/date=2026-02-30/x", PathLabels("/date=2026-02-30")),
        ("/date=20260228/x", PathLabels("/date=20260228")),
        ("/d/topic=T/group=g/x", PathLabels("/d", topic="T", group="g")),
        ("/d/cluster=c.json", PathLabels("/d")),
        ("s3a://b/d/cluster=c/x", PathLabels("s3a://b/d/cluster=c", "c")),
    ],
)
def test_a_path_tells_what_its_folders_are_called(path: str, told: PathLabels) -> None:
    assert path_labels(path) == told


def test_a_folder_is_read_with_all_below_it_but_what_is_hidden(tmp_path: Path) -> None:
    touch(tmp_path, "a.json", "b/c.json", "cluster=x/_y=1/d.json", "_h.json", ".h", "_d/in.json", "b/.git/e")
    found = find([str(tmp_path)])
    names = [str(Path(path).relative_to(tmp_path)) for path in found.files]
    assert names == ["a.json", "b/c.json", "cluster=x/_y=1/d.json"]
    assert (found.hidden, found.sizes, found.urls) == (4, (2, 2, 2), ())


@every_case("name", ["_h.json", ".h", "snapshot-2026-11-21T02:02:07.json", "[a]*.json", "a b%20ü.json"])
def test_a_file_that_is_named_is_read_whatever_its_name(tmp_path: Path, name: str) -> None:
    touch(tmp_path, name)
    assert find([str(tmp_path / name)]).files == (str(tmp_path / name),)


def test_globs_are_looked_up_and_files_named_twice_are_read_once(tmp_path: Path) -> None:
    touch(tmp_path, "1/a.json", "1/b.yaml", "2/deep/a.json", "c.json")
    files = find([f"{tmp_path}/**/*.json", f"{tmp_path}/?", f"file://{tmp_path}/c.json"]).files
    assert [str(Path(path).relative_to(tmp_path)) for path in files] == [
        "1/a.json",
        "1/b.yaml",
        "2/deep/a.json",
        "c.json",
    ]


def test_urls_are_left_to_spark(tmp_path: Path) -> None:
    touch(tmp_path, "a")
    found = find([str(tmp_path), "s3a://bucket/dumps/*"])
    assert (len(found.files), found.urls) == (1, ("s3a://bucket/dumps/*",))


@every_case("given", ["missing.json", "empty", "*.nothing"])
def test_an_input_that_stands_for_no_file_is_an_error(tmp_path: Path, given: str) -> None:
    (tmp_path / "empty").mkdir()
    touch(tmp_path, "good.json")
    with pytest.raises(DataError, match=r"there is no file to read$"):
        find([str(tmp_path / "good.json"), str(tmp_path / given)])


def test_a_folder_with_hidden_files_only_says_so(tmp_path: Path) -> None:
    touch(tmp_path, "_a", ".b")
    with pytest.raises(DataError, match=r"no file to read but 2 whose names begin with \. or _"):
        find([str(tmp_path)])


def test_a_name_that_is_no_text_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a\udcff.json").write_bytes(b"{}")
    with pytest.raises(DataError, match=r"a.udcff\.json': the file's name is not UTF-8 text"):
        find([str(tmp_path)])


def test_a_path_that_is_not_there_is_told_before_java_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))
    for stage in ("ingest", "run"):
        ran = run("pipeline", stage, str(tmp_path / "nights"), "-w", str(tmp_path / "warehouse"))
        assert (ran.code, ran.stderr.splitlines()[-2]) == (
            4,
            f"error: {tmp_path}/nights: there is no file to read [data]",
        )
    assert not (tmp_path / "warehouse").exists()
