import gzip
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from rmqlb.cli.exit_codes import ExitCode
from tests.cli.run import ROOT, command, environment
from tests.support.mismatches import first_by_default
from tests.support.replay_dashboard import Replay, dashboard, giving

MB = 1 << 20
GB = 1 << 30
HOLD_MB = 200
SNAPSHOT = b'{"schema":"rmqlb/snapshot","formatVersion":"1.0","data":{'
TOO_LARGE = "larger than 64 MB"
TOO_MANY = "more than 2097152 values"
HALF = "larger than 32 MB, and not one whole snapshot in JSON"
TOO_MANY_OF_ANY = "more than 1048576 values"
TOO_MANY_LOOSE = "more than 500000 values in what is not strict JSON"
NO_YAML = "no JSON, and larger than the 12 MB for YAML"
TOO_MANY_NODES = "more than 1000000 YAML nodes"
UNKNOWN = "not recognised"
Pieces = Callable[[], Iterator[bytes]]


class Ended(NamedTuple):
    code: int
    stdout: bytes
    stderr: str
    peak_mb: float


def repeated(start: bytes, unit: bytes, end: bytes, size: int) -> Pieces:
    def pieces() -> Iterator[bytes]:
        block = unit * (MB // len(unit) + 1)
        yield start
        for _ in range(size // len(block)):
            yield block
        yield end

    return pieces


def counted(start: bytes, unit: bytes, end: bytes, number: int) -> Pieces:
    def pieces() -> Iterator[bytes]:
        yield start
        for first in range(0, number, 50_000):
            yield b"".join(unit % place for place in range(first, first + 50_000))
        yield end

    return pieces


def colliding(number: int) -> Pieces:
    return lambda: iter([b"0: x\n", *(b"%d: x\n" % (place * sys.hash_info.modulus) for place in range(1, number))])


def read(pieces: Pieces, scratch: Path, *more: str, source: str = "-") -> Ended:
    peak = scratch / "peak"
    line = [
        *(sys.executable, str(Path(__file__).parent / "measured.py"), str(peak)),
        *map(str, command("show-route", "-s", source, *more)),
    ]
    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=environment()
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        feeder = threading.Thread(target=feed, args=(child.stdin, pieces), daemon=True)
        feeder.start()
        stderr, stdout = child.stderr.read(), child.stdout.read()
        code = child.wait(timeout=60)
        feeder.join(timeout=60)
    return Ended(code, stdout, stderr.decode(), int(peak.read_text()) / 1024)


def feed(pipe: object, pieces: Pieces) -> None:
    try:
        with pipe as file:  # type: ignore[attr-defined]
            for piece in pieces():
                file.write(piece)
    except BrokenPipeError:
        pass


HOSTILE: dict[str, tuple[Pieces, str]] = {
    "1 GB in one string": (repeated(b'{"queueDatas":"', b"x", b'"}', GB), TOO_LARGE),
    "1 GB in one list": (repeated(b'{"queueDatas":[1', b",1", b"]}", GB), TOO_LARGE),
    "1 GB of keys": (repeated(b"{", b'"key":1,', b'"z":1}', GB), TOO_LARGE),
    "1 GB of nothing": (repeated(b"", b"\0", b"", GB), TOO_LARGE),
    "a string": (repeated(b'{"a":"', b"x", b'"}', 60 * MB), HALF),
    "a string, just within": (repeated(b'{"a":"', b"x", b'"}', 31 * MB), UNKNOWN),
    "a string in the dialect": (repeated(b"{'a':'", b"x", b"'}", 31 * MB), UNKNOWN),
    "empty lists": (repeated(b'{"a":[[]', b",[]", b"]}", 60 * MB), TOO_MANY),
    "empty objects": (repeated(b'{"queueDatas":[{}', b",{}", b"]}", 60 * MB), TOO_MANY),
    "numbers": (repeated(b"{a:[1", b",1", b"]}", 60 * MB), TOO_MANY),
    "documents": (repeated(b"", b"{}", b"", 60 * MB), TOO_MANY),
    "topics": (repeated(SNAPSHOT + b'"topics":[{}', b',{"topic":"T","route":{}}', b"]}}", 60 * MB), TOO_MANY),
    "what is passed over": (repeated(SNAPSHOT + b'"x":[[]', b",[]", b"]}}", 60 * MB), TOO_MANY),
    "escapes": (repeated(b"{a:'", b"\\n", b"'}", 31 * MB), "more than 2000000 escapes"),
    "line ends": (repeated(b"{", b"\n", b"", 31 * MB), "the text ends too early"),
    "wide characters": (repeated("{a:'\U0001f600".encode(), b"x", b"'}", 31 * MB), "characters beyond U+FFFF"),
    "text": (repeated(b"", b"hello world\n", b"", 31 * MB), NO_YAML),
    "text behind a warning": (repeated(b"OpenJDK 64-Bit Server VM warning: x\n", b"hello world\n", b"", 31 * MB), NO_YAML),
    "a table": (repeated(b"#ClusterName\n", b"c b {} 4 4 6\n", b"", 8 * MB), "more than 20000 brokers"),
    "many keys": (counted(b"{", b'"k%d":1,', b'"z":1}', 1_500_000), TOO_MANY_OF_ANY),
    "keys, just within": (counted(b"{", b'"kkkkkkkkkkkkkkkkk%d":1,', b'"z":1}', 1_000_000), UNKNOWN),
    "lists, just within": (repeated(b'{"a":[[]', b",[]", b"]}", 3 * MB // 2), UNKNOWN),
    "objects, just within": (repeated(b'{"a":[{"a":1}', b',{"a":1}', b"]}", 4_000_000), UNKNOWN),
    "keys in the dialect": (counted(b"{", b"k%d:1,", b"z:1}", 550_000), TOO_MANY_LOOSE),
    "keys in the dialect, just within": (counted(b"{", b"k%050d:1,", b"z:1}", 450_000), UNKNOWN),
    "brokers": (repeated(SNAPSHOT + b'"topics":[{"topic":"T","route":{"queueDatas":[{"brokerName":"a"}', b',{"brokerName":"a"}', b"]}}]}}", 18 * MB), "brokers in one route, more than 20000"),
    "YAML keys, just within": (counted(b"", b"kkkkkk%06d: 'vvv'\n", b"", 450_000), UNKNOWN),
    "YAML keys with one hash": (colliding(20_000), "line 2, column 1: a number too large for a key"),
    "YAML items": (repeated(b"a:\n", b"- 1.5\n", b"", 8 * MB), TOO_MANY_NODES),
    "YAML text": (repeated(b"a: |\n", b" xxxxxxxx\n", b"", 31 * MB), NO_YAML),
    "YAML text, just within": (repeated("a: '\U0001f600".encode(), b"x", b"'", 11 * MB), UNKNOWN),
    "depth": (repeated(b"", b"[   ", b"", 2 * MB), "nested deeper than 256"),
    "YAML depth": (repeated(b"- ", b"- ", b"", 4 * MB), "nested deeper than 256"),
}  # fmt: skip


@pytest.mark.parametrize("what", first_by_default(HOSTILE))
def test_a_hostile_file_is_one_line_within_bounded_memory(what: str, tmp_path: Path) -> None:
    pieces, problem = HOSTILE[what]
    ended = read(pieces, tmp_path)
    assert (ended.code, ended.stdout) == (ExitCode.DATA, b"")
    first, *hints = ended.stderr.splitlines()
    assert first.startswith("error: stdin")
    assert problem in first
    assert [hint.partition(": ")[0] for hint in hints] in ([], ["hint"])
    assert ended.peak_mb < HOLD_MB


@pytest.mark.parametrize(("size", "problem"), [(GB, TOO_LARGE), (60 * MB, TOO_MANY)])
def test_a_packed_bomb_is_one_line_within_bounded_memory(size: int, problem: str, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "bomb.gz", "wb", compresslevel=1) as file:
        for piece in repeated(b'{"a":[[]', b",[]", b"]}", size)():
            file.write(piece)
    assert (tmp_path / "bomb.gz").stat().st_size < size / 100
    ended = read(repeated(b"", b"x", b"", 0), tmp_path, source=str(tmp_path / "bomb.gz"))
    assert ended.code == ExitCode.DATA
    assert problem in ended.stderr
    assert ended.peak_mb < HOLD_MB


def test_a_bomb_from_a_server_is_one_line_within_bounded_memory(tmp_path: Path) -> None:
    packed = gzip.compress(bytes(300 * MB), compresslevel=9)
    assert len(packed) < 310_000
    with dashboard(Replay(faults={"*": giving(packed, headers={"Content-Encoding": "gzip"})})) as replay:
        ended = read(repeated(b"", b"x", b"", 0), tmp_path, "-t", "T", source=replay.url)
    assert ended.code == ExitCode.ENDPOINT
    assert TOO_LARGE in ended.stderr
    assert ended.peak_mb < 60
