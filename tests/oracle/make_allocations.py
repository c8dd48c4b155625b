"""Makes the vectors of allocation by other clients and by brokers: `python -m tests.oracle.make_allocations`.

Writes `go-allocate`, `cpp-allocate`, `pop-allocate` and `query-assignment` in `tests/data/vectors`. Needs Go, g++, git,
Java 17 or newer and Maven, and takes a minute or two the first time. `--sources PLACE` is a repository of
rocketmq-client-cpp for git, such as a folder.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.live.jars import compiled, jars, tool

from .allocation_questions import Question, Queue, questions

FOLDER = Path(__file__).parent.parent / "data" / "vectors"
PROGRAMS = Path(__file__).parent
GO_MODULE, GO_VERSION = "github.com/apache/rocketmq-client-go/v2", "v2.1.2"
CPP_SOURCES, CPP_VERSION = "https://github.com/apache/rocketmq-client-cpp", "2.2.0"
BROKER_VERSION = "5.5.0"
GO_STRATEGIES = ("AVG", "AVG_BY_CIRCLE", "MACHINE_ROOM_NEARBY", "MACHINE_ROOM", "CONFIG", "CONSISTENT_HASH")
EACH_OF_GO, EACH_OF_POP, OF_CPP, OF_QUERIES = 100, 200, 320, 320

Line = dict[str, Any]


def go_lines(each: int = EACH_OF_GO) -> list[Line]:
    """What the Go client's rebalance gives each consumer under each strategy, in the orders in which it sorts."""
    lines: list[Line] = []
    fields = []
    for strategy in GO_STRATEGIES:
        for question in questions(f"go {strategy}", each, duplicate_queues=True):
            line = {"id": len(lines), "strategy": strategy, **_lists(question)}
            if strategy == "MACHINE_ROOM":
                line["consumeridcs"] = question.rooms
            if strategy == "CONFIG":
                line["config"] = question.config
            if strategy == "CONSISTENT_HASH":
                line["virtualNodeCnt"] = question.virtual_nodes
            lines.append(line)
            extra = [*_counted(question.rooms), *_queue_fields(question.config)]
            fields.append([strategy, question.virtual_nodes, question.topic, *extra, *_asked_fields(question)])
    with tempfile.TemporaryDirectory() as scratch:
        _answer_sorted(lines, _answers([str(_go_program(Path(scratch)))], fields))
    return lines


def cpp_lines(sources: str = CPP_SOURCES, count: int = OF_CPP) -> list[Line]:
    """What the C++ client's one strategy gives each consumer, with lists in its orders."""
    asked = list(questions("cpp", count, duplicate_queues=True))
    lines = [{"id": number, "strategy": "AVG", **_lists(question)} for number, question in enumerate(asked)]
    with tempfile.TemporaryDirectory() as scratch:
        program = _cpp_program(sources, Path(scratch))
        _answer_sorted(lines, _answers([str(program)], [_asked_fields(question) for question in asked]))
    return lines


def broker_lines(each_pop: int = EACH_OF_POP, queries: int = OF_QUERIES) -> tuple[list[Line], list[Line]]:
    """What the broker's `allocate4Pop` returns, and what a broker answers to QUERY_ASSIGNMENT."""
    rng = random.Random("broker")
    pops: list[Line] = []
    fields: list[list[object]] = []
    for strategy in ("AVG", "AVG_BY_CIRCLE"):
        for question in questions(f"pop {strategy}", each_pop):
            share = rng.choice((1, 1, 1, 2, 2, 3, 5, 0, -1, len(question.client_ids) - rng.randint(0, 3)))
            pops.append({"id": len(pops), "strategy": strategy, "popShareQueueNum": share, **_lists(question)})
            fields.append(["pop", strategy, share, *_asked_fields(question)])
    asked: list[Line] = []
    for question in questions("query", queries):
        line = _query(rng, len(asked), question)
        asked.append(line)
        words = ["strategy", "mode", "popShareQueueNum", "messageModel", "serverLoadBalancerEnable", "brokerName"]
        told = ["-" if line[word] is None else str(line[word]) for word in words]
        told[4] = told[4].lower()
        fields.append(["query", *told, line["topic"], *_asked_fields(question)])
    with tempfile.TemporaryDirectory() as scratch:
        library = jars(BROKER_VERSION)
        classes = compiled(PROGRAMS / "broker", library, Path(scratch) / "classes")
        command = [tool("java"), "-Xmx256m", f"-Duser.home={scratch}", "-cp", f"{classes}:{library}/*", "Assignments"]
        for line, words in zip([*pops, *asked], _answers([*command, scratch], fields), strict=True):
            line["expected"] = _expected(line, iter(words))
    return pops, asked


def _query(rng: random.Random, number: int, question: Question) -> Line:
    return {
        "id": number,
        "topic": rng.choice((question.topic, question.topic, question.topic, "%LMQ%x")),
        "strategy": rng.choice(("AVG", "AVG", "AVG_BY_CIRCLE", "AVG_BY_CIRCLE", "CONSISTENT_HASH")),
        "mode": rng.choice((None, "PULL", "POP", "POP")),
        "popShareQueueNum": rng.choice((-1, 0, 1, 1, 2, 3)),
        "messageModel": rng.choice(("CLUSTERING",) * 7 + ("BROADCASTING",)),
        "serverLoadBalancerEnable": rng.random() < 0.9,
        "brokerName": "asked",
        **_lists(question),
    }


def _lists(question: Question) -> Line:
    return {"mqAll": question.queues, "cidAll": question.client_ids, "ask": question.asked}


def _counted(words: Sequence[object]) -> list[object]:
    return [len(words), *words]


def _queue_fields(queues: Sequence[Queue]) -> list[object]:
    return [len(queues), *(field for queue in queues for field in queue)]


def _asked_fields(question: Question) -> list[object]:
    return [*_queue_fields(question.queues), *_counted(question.client_ids), *_counted(question.asked)]


def _answers(command: list[str], fields: Iterable[Sequence[object]]) -> list[list[str]]:
    text = "".join("\t".join(map(str, line)) + "\n" for line in fields)
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{Path(command[0]).name} ended:\n{done.stderr.decode(errors='replace')[-4000:]}")
    return [line.split("\t") for line in done.stdout.decode().split("\n")[:-1]]


def _answer_sorted(lines: Sequence[Line], answers: Sequence[list[str]]) -> None:
    for line, answer in zip(lines, answers, strict=True):
        words = iter(answer)
        line["sortedMqAll"] = _queues(int(next(words)), words)
        line["sortedCidAll"] = [next(words) for _ in range(int(next(words)))]
        line["expected"] = _expected(line, words)


def _expected(line: Line, words: Iterator[str]) -> Line:
    expected: Line = {}
    for client_id in line["ask"]:
        word = next(words)
        if word == "null":
            expected[client_id] = None
        elif word.startswith("!"):
            expected[client_id] = {"error": word[1:]}
        else:
            expected[client_id] = _queues(int(word), words)
    assert next(words, None) is None, line
    return expected


def _queues(count: int, words: Iterator[str]) -> list[list[Any]]:
    return [[next(words), next(words), int(next(words))] for _ in range(count)]


def _go_program(scratch: Path) -> Path:
    """Our program and the client's module, whose package `consumer` has one file of ours more."""
    go, folder = tool("go"), scratch / "go"
    module = f"{GO_MODULE}@{GO_VERSION}"
    found = subprocess.run([go, "mod", "download", "-json", module], capture_output=True, check=True, cwd=scratch)
    shutil.copytree(PROGRAMS / "go", folder)
    shutil.copytree(json.loads(found.stdout)["Dir"], folder / "client", copy_function=shutil.copyfile)
    os.chmod(folder / "client" / "consumer", 0o755)  # the module cache is read-only
    shutil.copyfile(folder / "rebalance.go.txt", folder / "client" / "consumer" / "rebalance.go")
    environment = {**os.environ, "GOFLAGS": "-mod=mod"}
    for path in (folder / "client").rglob("*"):
        path.chmod(path.stat().st_mode | 0o200)
    subprocess.run([go, "build", "-o", "allocations", "."], cwd=folder, env=environment, check=True)
    return folder / "allocations"


def _cpp_program(sources: str, scratch: Path) -> Path:
    client, program = scratch / "client", scratch / "allocations"
    clone = [tool("git"), "clone", "-q", "-c", "advice.detachedHead=false", "--branch", CPP_VERSION]
    subprocess.run([*clone, sources, str(client)], check=True)
    folders = (PROGRAMS / "cpp", client / "include", client / "src" / "consumer")
    includes = [option for folder in folders for option in ("-I", str(folder))]
    files = (PROGRAMS / "cpp" / "allocations.cpp", client / "src" / "message" / "MQMessageQueue.cpp")
    command = [tool("g++"), "-std=c++11", "-O1", "-w", *includes, "-o", str(program), *map(str, files)]
    subprocess.run(command, check=True)
    return program


def write(name: str, lines: Iterable[Line]) -> None:
    text = "".join(f"{json.dumps(line, ensure_ascii=False, separators=(',', ':'))}\n" for line in lines)
    (FOLDER / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sources", default=CPP_SOURCES, help="repository of rocketmq-client-cpp")
    sources = options.parse_args().sources
    write("go-allocate", go_lines())
    write("cpp-allocate", cpp_lines(sources))
    pops, asked = broker_lines()
    write("pop-allocate", pops)
    write("query-assignment", asked)


if __name__ == "__main__":
    main()
