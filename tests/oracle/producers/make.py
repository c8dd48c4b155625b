"""Makes `tests/data/vectors/producers.jsonl.gz`: `python -m tests.oracle.producers.make`.

Needs Go, Java 17 or newer, Maven, Rust, Node, g++, git, and some minutes the first time, most of them for the Rust crate.
The programs name packages and versions, never a place to get them from.
"""

import gzip
import json
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.live.jars import compiled, jars, tool
from tests.support import maven

from .questions import Question, questions

FILE = Path(__file__).parent.parent.parent / "data" / "vectors" / "producers.jsonl.gz"
PROGRAMS = Path(__file__).parent / "programs"
GO_REMOTING = "github.com/apache/rocketmq-client-go/v2"
Built = Callable[[Path], list[str]]


@dataclass(frozen=True)
class Sdk:
    name: str
    version: str
    build: Built = field(repr=False)  # makes the program in a folder; returns the command that runs it
    needs: tuple[str, ...]  # programs that it is built and run with
    kinds: frozenset[str] = frozenset({"hash", "take"})
    signed: bool = False  # its counter is a signed number
    surrogates: bool = False  # its strings can hold half of a surrogate pair
    needs_clone: bool = False  # no package registry has it: its source is cloned from its public repository
    needs_key: bool = False  # a message without a key goes to any queue
    makes_queues: bool = False  # the program gets the number of queues of each broker

    def can_answer(self, question: Question) -> bool:
        """Whether the SDK has such a function, and strings that hold the key."""
        halves = any("\ud800" <= character <= "\udfff" for character in question.key)
        return (
            question.kind in self.kinds
            and (self.surrogates or not halves)
            and (bool(question.key.strip()) or not self.needs_key or question.kind != "hash")
            and (len(set(question.queues)) == len(question.queues) or not self.makes_queues)
        )

    def answers(self, asked: Sequence[Question]) -> list[str]:
        folder = maven.cache() / "sdks" / f"{self.name}-{self.version}"
        folder.mkdir(parents=True, exist_ok=True)
        command = self.build(folder)
        lines = "".join(question.line(signed=self.signed) + "\n" for question in asked)
        done = subprocess.run(command, input=lines, capture_output=True, encoding="utf-8", check=False)
        if done.returncode or len(done.stdout.splitlines()) != len(asked):
            raise RuntimeError(f"{self.name} {self.version} ended with {done.returncode}:\n{done.stderr[-4000:]}")
        return done.stdout.splitlines()


def _go_remoting(folder: Path) -> list[str]:
    """The client's module in a copy, to which a file is added that shows what is private."""
    program = folder / "program"
    if not program.exists():
        exposed = PROGRAMS / "go_remoting" / "exposed.go"
        shutil.copytree(exposed.parent, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(exposed.name))
        module = json.loads(_run(folder, "go", "mod", "download", "-json", f"{GO_REMOTING}@v2.1.2"))["Dir"]
        shutil.copytree(module, folder / "sdk", copy_function=shutil.copyfile)
        for inside in (folder / "sdk", *(folder / "sdk").rglob("*")):
            inside.chmod(0o755 if inside.is_dir() else 0o644)  # the module cache is read-only
        shutil.copy(exposed, folder / "sdk" / "producer")
        _run(folder, "go", "mod", "edit", "-replace", f"{GO_REMOTING}=./sdk")
        _go_build(folder)
    return [str(program)]


def _go_grpc(folder: Path) -> list[str]:
    if not (folder / "program").exists():
        shutil.copytree(PROGRAMS / "go_grpc", folder, dirs_exist_ok=True)
        _go_build(folder)
    return [str(folder / "program")]


def _go_build(folder: Path) -> None:
    _run(folder, "go", "mod", "tidy")
    _run(folder, "go", "build", "-o", "program", ".")


def _java(artifact: str, version: str, program: str, main: str) -> Built:
    def build(folder: Path) -> list[str]:
        library = jars(version, (artifact,), artifact)
        classes = compiled(PROGRAMS / program, library, folder / "classes")
        class_path = os.pathsep.join((str(classes), f"{library}/*"))
        return [tool("java"), "-Xmx256m", f"-Duser.home={folder}", "-cp", class_path, main]

    return build


def _rust(folder: Path) -> list[str]:
    """The crate in a copy, at whose end a module is added that shows what is private."""
    program = folder / "target" / "debug" / "rust-grpc"
    if not program.exists():
        fetched = folder / "fetched"
        shutil.copytree(PROGRAMS / "rust", fetched, dirs_exist_ok=True)
        manifest = (fetched / "Cargo.toml").read_text(encoding="utf-8").partition("[patch")[0]
        (fetched / "Cargo.toml").write_text(manifest, encoding="utf-8")
        packages = json.loads(_run(fetched, "cargo", "metadata", "--format-version", "1"))["packages"]
        crate = next(Path(package["manifest_path"]).parent for package in packages if package["name"] == "rocketmq")
        shutil.copytree(PROGRAMS / "rust", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("exposed.rs"))
        shutil.copytree(crate, folder / "rocketmq", dirs_exist_ok=True)
        library = folder / "rocketmq" / "src" / "lib.rs"
        exposed = (PROGRAMS / "rust" / "exposed.rs").read_text(encoding="utf-8")
        library.write_text(library.read_text(encoding="utf-8") + exposed, encoding="utf-8")
        _run(folder, "cargo", "build")
    return [str(program)]


def _python(folder: Path) -> list[str]:
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        _run(folder, sys.executable, "-m", "venv", str(folder))
        _run(folder, str(python), "-m", "pip", "install", "-q", "rocketmq-python-client==5.1.2")
        (folder / "ready").touch()
    return [str(python), str(PROGRAMS / "python_grpc.py")]


def _nodejs(folder: Path) -> list[str]:
    modules = folder / "node_modules"
    if not (folder / "ready").exists():
        options = ("--prefix", str(folder), "--no-audit", "--no-fund")
        _run(folder, "npm", "install", *options, "rocketmq-client-nodejs@1.0.8")
        (folder / "ready").touch()
    return [tool("node"), str(PROGRAMS / "nodejs_grpc.js"), str(modules)]


def _cpp_remoting(folder: Path) -> list[str]:
    """The class that picks, and that of a queue, among headers that stand for all others."""
    boost = ("asio", "asio/io_service", "atomic", "bind", "scoped_ptr", "thread/thread")
    dates = "boost/date_time/posix_time/posix_time.hpp"
    headers = ("UtilAll.h", "Logging.h", dates, *(f"boost/{name}.hpp" for name in boost))
    picks = ("src/producer/TopicPublishInfo.h", "src/message/MQMessageQueue.cpp")
    files = (*picks, "include/MQMessageQueue.h", "include/RocketMQClient.h")
    return _cpp(folder, "cpp_remoting", ("rocketmq-client-cpp", "2.2.0"), files, headers)


def _cpp_grpc(folder: Path) -> list[str]:
    """The class that picks, among headers that stand for all others."""
    containers = ("container/flat_hash_map", "container/flat_hash_set", "types/optional")
    absl = (*containers, "base/thread_annotations", "strings/string_view", "strings/str_join", "synchronization/mutex")
    own = ("rocketmq/Logger.h", "spdlog/spdlog.h", "MixAll.h", "ProducerImpl.h", "TopicRouteData.h")
    headers = (*own, *(f"absl/{name}.h" for name in absl))
    files = ("cpp/source/rocketmq/TopicPublishInfo.cpp", "cpp/source/rocketmq/include/TopicPublishInfo.h")
    return _cpp(folder, "cpp_grpc", ("rocketmq-clients", "cpp-5.1.1"), files, headers)


def _cpp(
    folder: Path, program: str, repository: tuple[str, str], files: Sequence[str], headers: Sequence[str]
) -> list[str]:
    """Our program with files of a client, whose other headers are all our own `shims.h`."""
    built = folder / "program"
    if not built.exists():
        name, tag = repository
        shutil.rmtree(folder / "client", ignore_errors=True)
        clone = ("clone", "-q", "-c", "advice.detachedHead=false", "--depth", "1", "--branch", tag)
        _run(folder, "git", *clone, f"https://github.com/apache/{name}", "client")
        ours = (*(PROGRAMS / program).iterdir(), PROGRAMS / "cpp_text.h")
        for source in (*ours, *(folder / "client" / file for file in files)):
            shutil.copy(source, folder)
        for header in headers:
            (folder / header).parent.mkdir(parents=True, exist_ok=True)
            (folder / header).write_text('#include "shims.h"\n', encoding="utf-8")
        sources = sorted(str(source) for source in folder.glob("*.cpp"))
        _run(folder, "g++", "-std=c++17", "-O1", "-w", "-I", str(folder), "-o", str(built), *sources)
    return [str(built)]


_JAVA = ("javac", "mvn")
SDKS = (
    Sdk("go", "2.1.2", _go_remoting, ("go",), frozenset({"hash", "take", "send"}), needs_key=True),
    *(Sdk("java-grpc", version, _java("rocketmq-client-java", version, "java_grpc", "Balancer"), _JAVA, signed=True, surrogates=True) for version in ("5.0.7", "5.2.0")),
    Sdk("go-grpc", "5.1.4", _go_grpc, ("go",), signed=True),
    Sdk("rust-grpc", "5.0.0", _rust, ("cargo",)),
    Sdk("python-grpc", "5.1.2", _python, (), surrogates=True),
    Sdk("nodejs-grpc", "1.0.8", _nodejs, ("node", "npm"), surrogates=True),
    Sdk("cpp", "2.2.0", _cpp_remoting, ("g++", "git"), frozenset({"send"}), needs_clone=True),
    # Its std::hash is that of libstdc++, which both C++ clients take.
    Sdk("cpp-grpc", "5.1.1", _cpp_grpc, ("g++", "git"), needs_clone=True),
    Sdk("proxy", "5.5.0", _java("rocketmq-proxy", "5.5.0", "java_proxy", "ProxyPicks"), _JAVA, frozenset({"hash"}), surrogates=True, needs_key=True, makes_queues=True),
)  # fmt: skip


def _run(folder: Path, *command: str) -> str:
    # Tests have a home of their own; rustup keeps its toolchains, and cargo its registry, in the user's.
    home = pwd.getpwuid(os.getuid()).pw_dir
    environment = {"RUSTUP_HOME": f"{home}/.rustup", "CARGO_HOME": f"{home}/.cargo", **os.environ}
    line = [tool(command[0]), *command[1:]]
    done = subprocess.run(line, cwd=folder, capture_output=True, encoding="utf-8", env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def main() -> None:
    asked = list(questions())
    lines = [document(question) for question in asked]
    for sdk in SDKS:
        for line, answer in answered(sdk, asked):
            lines[line]["expected"][f"{sdk.name}@{sdk.version}"] = answer
        sys.stdout.write(f"{sdk.name} {sdk.version} has answered\n")
        sys.stdout.flush()
    text = "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines)
    FILE.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def answered(sdk: Sdk, asked: Sequence[Question]) -> list[tuple[int, Any]]:
    numbers = [number for number, question in enumerate(asked) if sdk.can_answer(question)]
    answers = sdk.answers([asked[number] for number in numbers])
    return [(number, read(asked[number].kind, answer)) for number, answer in zip(numbers, answers, strict=True)]


def read(kind: str, answer: str) -> Any:
    """A position, lists of positions, [broker, id] of the Proxy, or {"error": the exception's name}."""
    if answer.startswith("!"):
        return {"error": answer[1:]}
    broker, colon, number = answer.partition(":")
    if colon:
        return [broker, int(number)]
    if kind == "hash":
        return int(answer)
    return [[int(position) for position in step.split(",") if position] for step in answer.split(";")]


def document(question: Question) -> dict[str, Any]:
    if question.kind == "hash":
        asked: dict[str, Any] = {"key": question.key}
    else:
        asked = {"start": question.start, "steps": [[step.count, list(step.brokers)] for step in question.steps]}
    return {"kind": question.kind, "queues": [list(queue) for queue in question.queues], **asked, "expected": {}}


if __name__ == "__main__":
    main()
