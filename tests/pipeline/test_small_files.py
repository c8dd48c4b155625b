"""Small files of a storage: what two writers know of each other, by Java and, where there is none, by jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rmqlb.pipeline.storage.claims import claimed
from rmqlb.pipeline.storage.files import SparkFiles, _JavaFiles, _JobFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(params=[_JavaFiles, _JobFiles])
def files(request: pytest.FixtureRequest, spark: SparkSession) -> SparkFiles:
    kind: Callable[[SparkSession], SparkFiles] = request.param
    return kind(spark)


def test_a_file_has_the_text_that_was_written_last(files: SparkFiles, tmp_path: Path) -> None:
    folder = files.folder(f"file://{tmp_path}/there")
    assert folder.all() == ()
    for name, text in (("a", "first"), ("b", "other"), ("a", "second")):
        folder.write(name, text)
    assert {file.name: file.text for file in folder.all()} == {"a": "second", "b": "other"}
    folder.remove("a")
    assert [file.name for file in folder.all()] == ["b"]
    folder.remove("b")
    assert folder.all() == ()


def test_a_file_that_is_written_anew_is_there_all_the_time(files: SparkFiles, tmp_path: Path) -> None:
    folder = files.folder(f"file://{tmp_path}/there")
    folder.write("a", "0")
    ended = threading.Event()

    def anew() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            folder.write("a", str(number))

    thread = threading.Thread(target=anew)
    thread.start()
    seen = [folder.has("a") for _ in range(40)]
    ended.set()
    thread.join()
    assert seen == [True] * 40


def test_a_writer_that_gives_signs_all_the_time_holds_its_claim(files: SparkFiles, tmp_path: Path) -> None:
    folder = files.folder(f"file://{tmp_path}/writers")
    with claimed(folder, "here", beat=0.01) as claim:
        for _ in range(40):
            claim.must_hold("here")
    assert folder.all() == ()
