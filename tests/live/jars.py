"""RocketMQ's own jars, brought once per version by `tests.support.maven` and kept in the user's cache."""

import atexit
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tests.support import maven
from tests.support.maven import MissingToolError, run, tool

__all__ = ["MissingToolError", "compiled", "compiled_programs", "go_program", "grpc_class_path", "jars", "tool"]

GROUP = "org.apache.rocketmq"
ARTIFACTS = ("rocketmq-namesrv", "rocketmq-broker", "rocketmq-tools", "rocketmq-client")
PROGRAMS, GRPC_PROGRAMS = (Path(__file__).parent / name for name in ("programs", "grpc"))
GRPC_CLIENT = "5.2.0"


def jars(version: str, artifacts: tuple[str, ...] = ARTIFACTS, cache: str = "rocketmq") -> Path:
    """The folder with the jars of a RocketMQ version, filled on the first call; each choice has its own cache."""
    folder = maven.cache() / cache / version / "lib"
    if not any(folder.glob(f"{artifacts[-1]}-*.jar")):
        shutil.rmtree(folder, ignore_errors=True)
        maven.bring((f"{GROUP}:{artifact}:{version}" for artifact in artifacts), folder)
    return folder


@cache
def compiled_programs(version: str) -> Path:
    """Our Java programs, compiled against a version: 4.9.7 and 5.5.0 agree in source, not in byte code."""
    return compiled(PROGRAMS, jars(version), _classes() / version)


@cache
def grpc_class_path() -> str:
    """Our gRPC clients, and the SDK's jar."""
    library = jars(GRPC_CLIENT, ("rocketmq-client-java",), "rocketmq-client-java")
    return f"{compiled(GRPC_PROGRAMS, library, _classes() / 'grpc')}:{library}/*"


@cache
def _classes() -> Path:
    """What this process has compiled; it goes when the process ends."""
    folder = tempfile.mkdtemp(prefix="rmqlb-classes-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def compiled(programs: Path, library: Path, into: Path) -> Path:
    sources = sorted(str(source) for source in programs.glob("*.java"))
    run([tool("javac"), "-nowarn", "-XDsuppressNotes", "-d", str(into), "-cp", f"{library}/*", *sources])
    return into


def go_program(folder: Path, into: Path) -> Path:
    done = subprocess.run(
        [tool("go"), "build", "-o", str(into), "."], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"go build ended with {done.returncode}:\n{done.stderr[-4000:]}")
    return into
