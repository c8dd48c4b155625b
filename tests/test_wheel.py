import subprocess
import sys
from pathlib import Path
from tarfile import open as open_tar
from zipfile import ZipFile

import pytest

from rmqlb import __version__
from tests.cli.run import EXAMPLE, ROOT, environment

LARGEST = 1_700_000
"""Bytes; most of today's 1,620,000 are the modules."""
FOLDERS = ("rmqlb", "tests", "benchmarks", "fuzz", "tools", "docs", "examples", "man", "completions", ".ci")
TESTED = (*(f"{folder}/**/*" for folder in FOLDERS), "*.md", "*.py", "*.yml", "*.toml", "LICENSE")
BUILD = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-c", BUILD, str(folder)], cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.iterdir()
    return built


def names(wheel: Path) -> set[str]:
    with ZipFile(wheel) as file:
        return set(file.namelist())


def text(wheel: Path, name: str) -> str:
    with ZipFile(wheel) as file:
        return file.read(f"rmqlb-{__version__}.dist-info/{name}").decode()


def test_it_is_pure_and_small_and_says_what_it_needs(wheel: Path) -> None:
    assert wheel.name == f"rmqlb-{__version__}-py3-none-any.whl"
    assert "Root-Is-Purelib: true" in text(wheel, "WHEEL")
    assert wheel.stat().st_size < LARGEST
    metadata = text(wheel, "METADATA")
    assert "License-Expression: Apache-2.0" in metadata
    assert "Requires-Python: >=3.11" in metadata
    assert f"rmqlb-{__version__}.dist-info/licenses/LICENSE" in names(wheel)
    assert text(wheel, "entry_points.txt").split() == ["[console_scripts]", "rmqlb", "=", "rmqlb.__main__:run"]
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist: ")]
    always = {line.split()[1].rstrip("<>=!,.0123456789") for line in required if "extra ==" not in line}
    assert always == {"typer", "rich", "httpx", "httpcore", "tabulate[widechars]", "pyyaml", "msgspec"}


def test_it_has_every_module_manual_and_completion_nothing_else_and_is_the_same_each_time(
    wheel: Path, tmp_path: Path
) -> None:
    found = names(wheel)
    assert {f"{path.relative_to(ROOT)}" for path in (ROOT / "rmqlb").rglob("*.py")} <= found
    ours = ("rmqlb/", f"rmqlb-{__version__}.dist-info/", f"rmqlb-{__version__}.data/data/share/")
    assert not {name for name in found if not name.startswith(ours)}
    assert not {name for name in found if name.endswith((".so", ".pyc", ".jar", ".class"))}
    share = f"rmqlb-{__version__}.data/data/share"
    pages = {f"{share}/{path.relative_to(ROOT)}" for path in (ROOT / "man").rglob("*.[157]")}
    scripts = ("bash-completion/completions/rmqlb", "zsh/site-functions/_rmqlb", "fish/vendor_completions.d/rmqlb.fish")
    assert {name for name in names(wheel) if name.startswith(share)} == pages | {f"{share}/{name}" for name in scripts}
    subprocess.run([sys.executable, "-c", BUILD, str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def test_the_source_archive_has_all_that_its_tests_look_at(tmp_path: Path) -> None:
    build = BUILD.replace("build_wheel", "build_sdist")
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    with open_tar(tmp_path / f"rmqlb-{__version__}.tar.gz") as file:
        found = {name.partition("/")[2] for name in file.getnames()}
    here = (path for pattern in TESTED for path in ROOT.glob(pattern) if path.is_file() and path.suffix != ".pyc")
    assert {f"{path.relative_to(ROOT)}" for path in here} - found == set()


def test_it_works_apart_from_this_checkout(wheel: Path, tmp_path: Path) -> None:
    with ZipFile(wheel) as file:
        file.extractall(tmp_path)
    env = environment({"PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1"})

    def shown(*arguments: str) -> str:
        line = [sys.executable, *arguments]
        return subprocess.run(line, cwd=tmp_path, env=env, capture_output=True, text=True, check=True).stdout

    plan = ("plan-rebalance", "-s", EXAMPLE, "-g", "order-svc", "--add", "x@1", "-o", "csv")
    assert shown("-m", "rmqlb", *plan).startswith("topic,brokerName,queueId")
    assert shown("-c", "import rmqlb; print(rmqlb.__file__)").startswith(str(tmp_path))
