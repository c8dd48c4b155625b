"""Makes the vectors of allocation by other clients and by brokers: `python -m tests.oracle.make_allocations`.

Writes `go-allocate`, `cpp-allocate`, `pop-allocate` and `query-assignment` in `tests/data/vectors`. Needs Go, g++, git,
Java 17 or newer and Maven, and takes a minute or two the first time. `--sources PLACE` is a repository of
rocketmq-client-cpp for git, such as a folder.
"""

import argparse
import gzip
import json
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.live.jars import compiled, jars, tool

FOLDER = Path(__file__).parent.parent / "data" / "vectors"
PROGRAMS = Path(__file__).parent
GO_MODULE, GO_VERSION = "github.com/apache/rocketmq-client-go/v2", "v2.1.2"
CPP_SOURCES, CPP_VERSION = "https://github.com/apache/rocketmq-client-cpp", "2.2.0"
BROKER_VERSION = "5.5.0"
GO_STRATEGIES = ("AVG", "AVG_BY_CIRCLE", "MACHINE_ROOM_NEARBY", "MACHINE_ROOM", "CONFIG", "CONSISTENT_HASH")
Line = dict[str, Any]
Queue = tuple[str, str, int]

# The questions: seeded lists of a topic and a group, odd ones included. Names have no tab, no line break and no half of a
# surrogate pair: the first two part the fields of a question, and the third is written by no broker.

BROKERS = (
    ("broker-a", "broker-b", "broker-c", "broker-d"), tuple(f"broker-{number}" for number in range(7, 14)),
    ("r1@a", "r1@b", "r2@a", "r2@b", "r3@a", "plain"), ("r1@a", "r1@", "@", "@a", "r1@a@", "r1@a@b", "a@@", "r1", ""),
    ("брокер-1", "経路-乙", "\U0001f418-1", "￮", "\ue000", "ﬁ", "é", "e\u0301", "\U00010000"),
    ("b" * 70, "b" * 63, "b" * 64, "B"),
)  # fmt: skip
IDS = (
    tuple(f"10.0.0.{number}@{100 + number}#9{number}7" for number in range(1, 40)),
    ("10.0.0.9@1", "10.0.0.10@1", "10.0.0.1@2", "10.0.0.1@10", "[fe80::1]@7", "10.0.0.9@1@unit", "a", "b", "c"),
    ("\U0001f600@1", "￮@1", "\ue000@1", "\U00010000@1", "é@1", "e\u0301@1", "z@1", "Ж@1", "経@1"),
    ("a", "0a", "00a", "1a", "10a", "0", "00", "1", "a0"),  # the number of a ring's entry may run into a name
    tuple(f"{'x' * length}@{length}" for length in (50, 58, 60, 61, 62, 63, 64, 65, 100)),
)
TOPICS = ("T", "TopicTest", "MQ_INST_1%orders", "тема", "\U0001f418")
SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 12, 20)
LAST_ID = 2**31 - 1
STRANGER = "not-there@1"


@dataclass(frozen=True)
class Question:
    topic: str
    queues: list[Queue]
    client_ids: list[str]
    asked: list[str]
    rooms: list[str] = field(default_factory=list)
    config: list[Queue] = field(default_factory=list)
    virtual_nodes: int = 10


def questions(name: str, count: int, *, duplicate_queues: bool = False) -> Iterator[Question]:
    """So many questions, the same for a name; `duplicate_queues` lists queues twice, as a client's list may."""
    for number in range(count):
        yield _question(random.Random(f"{name} {number}"), duplicate_queues=duplicate_queues)


def _question(rng: random.Random, *, duplicate_queues: bool) -> Question:
    topic = rng.choice(TOPICS)
    names = rng.choice(BROKERS)
    brokers = rng.sample(names, min(len(names), rng.choice(SIZES)))
    queues = [(topic, broker, n) for broker in brokers for n in rng.sample(_numbers(rng), rng.choice((1, 2, 4, 8)))]
    if duplicate_queues and queues and rng.random() < 0.1:
        queues += rng.choices(queues, k=2)
    rng.shuffle(queues)
    pool = rng.choice(IDS)
    ids = rng.sample(pool, min(len(pool), rng.choice(SIZES)))
    if ids and rng.random() < 0.25:
        ids += rng.choices(ids, k=rng.randint(1, 3))
    rng.shuffle(ids)
    return Question(
        topic, queues, ids, [*list(dict.fromkeys(ids))[:10], STRANGER, ""],
        rng.sample(("r1", "r2", "r3", "", "a", "nowhere"), rng.choice((0, 1, 2, 3))),
        rng.sample([*queues, (topic, "elsewhere", 3)], rng.randint(0, min(3, len(queues)))),
        rng.choice((10, 10, 10, 1, 2, 20, 50, 0, -1)),
    )  # fmt: skip


def _numbers(rng: random.Random) -> list[int]:
    """Ids of a broker's queues: from 0 on, and seldom from where they are nearly too large."""
    return list(range(8)) if rng.random() < 0.9 else [LAST_ID - number for number in range(4)] + [0, 9, 10, 100]


def go_lines() -> list[Line]:
    """What the Go client's rebalance gives each consumer under each strategy, in the orders in which it sorts."""
    lines: list[Line] = []
    fields = []
    for strategy in GO_STRATEGIES:
        for asked in questions(f"go {strategy}", 100, duplicate_queues=True):
            settings: dict[str, Line] = {
                "MACHINE_ROOM": {"consumeridcs": asked.rooms},
                "CONFIG": {"config": asked.config},
                "CONSISTENT_HASH": {"virtualNodeCnt": asked.virtual_nodes},
            }
            lines.append({"id": len(lines), "strategy": strategy, **_lists(asked), **settings.get(strategy, {})})
            fields.append([strategy, asked.virtual_nodes, asked.topic, asked.rooms, asked.config, *_asked(asked)])
    with tempfile.TemporaryDirectory() as scratch:
        _answer_sorted(lines, _answers([str(_go_program(Path(scratch)))], fields))
    return lines


def cpp_lines(sources: str = CPP_SOURCES) -> list[Line]:
    """What the C++ client's one strategy gives each consumer, with lists in its orders."""
    asked = list(questions("cpp", 320, duplicate_queues=True))
    lines = [{"id": number, "strategy": "AVG", **_lists(question)} for number, question in enumerate(asked)]
    with tempfile.TemporaryDirectory() as scratch:
        program = _cpp_program(sources, Path(scratch))
        _answer_sorted(lines, _answers([str(program)], map(_asked, asked)))
    return lines


def broker_lines() -> tuple[list[Line], list[Line]]:
    """What the broker's `allocate4Pop` returns, and what a broker answers to QUERY_ASSIGNMENT."""
    rng = random.Random("broker")
    pops: list[Line] = []
    fields: list[list[object]] = []
    for strategy in ("AVG", "AVG_BY_CIRCLE"):
        for question in questions(f"pop {strategy}", 200):
            share = rng.choice((1, 1, 1, 2, 2, 3, 5, 0, -1, len(question.client_ids) - rng.randint(0, 3)))
            pops.append({"id": len(pops), "strategy": strategy, "popShareQueueNum": share, **_lists(question)})
            fields.append(["pop", strategy, share, *_asked(question)])
    asked: list[Line] = []
    for question in questions("query", 320):
        line = _query(rng, len(asked), question)
        asked.append(line)
        values = [line[word] for word in ("strategy", "mode", "popShareQueueNum", "messageModel")]
        enabled = str(line["serverLoadBalancerEnable"]).lower()
        words = ["-" if value is None else value for value in (*values, enabled, line["brokerName"], line["topic"])]
        fields.append(["query", *words, *_asked(question)])
    with tempfile.TemporaryDirectory() as scratch:
        library = jars(BROKER_VERSION)
        classes = compiled(PROGRAMS / "broker", library, Path(scratch) / "classes")
        command = [tool("java"), "-Xmx256m", f"-Duser.home={scratch}", "-cp", f"{classes}:{library}/*", "Assignments"]
        for line, answer in zip([*pops, *asked], _answers([*command, scratch], fields), strict=True):
            line["expected"] = _expected(line, iter(answer))
    return pops, asked


def _query(rng: random.Random, number: int, question: Question) -> Line:
    return {
        "id": number, "topic": rng.choice((question.topic, question.topic, question.topic, "%LMQ%x")),
        "strategy": rng.choice(("AVG", "AVG", "AVG_BY_CIRCLE", "AVG_BY_CIRCLE", "CONSISTENT_HASH")),
        "mode": rng.choice((None, "PULL", "POP", "POP")), "popShareQueueNum": rng.choice((-1, 0, 1, 1, 2, 3)),
        "messageModel": rng.choice(("CLUSTERING",) * 7 + ("BROADCASTING",)),
        "serverLoadBalancerEnable": rng.random() < 0.9, "brokerName": "asked", **_lists(question),
    }  # fmt: skip


def _lists(question: Question) -> Line:
    return {"mqAll": question.queues, "cidAll": question.client_ids, "ask": question.asked}


def _asked(question: Question) -> list[object]:
    return [question.queues, question.client_ids, question.asked]


def _words(values: Iterable[object]) -> Iterator[object]:
    """The values in a row, a list after its length."""
    for value in values:
        if isinstance(value, list | tuple):
            yield from (len(value),) if isinstance(value, list) else ()
            yield from _words(value)
        else:
            yield value


def _answers(command: list[str], fields: Iterable[list[object]]) -> list[list[str]]:
    text = "".join("\t".join(map(str, _words(line))) + "\n" for line in fields)
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
    for path in (folder / "client").rglob("*"):
        path.chmod(path.stat().st_mode | 0o200)  # the module cache is read-only
    shutil.copyfile(folder / "rebalance.go.txt", folder / "client" / "consumer" / "rebalance.go")
    environment = {**os.environ, "GOFLAGS": "-mod=mod"}
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
