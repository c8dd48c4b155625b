"""Commands answer for random clusters, and to the lines of `scenarios.txt`, as `tests/data/random_clusters/` records.

A record proves no rule: it shows which answers a change alters. Each is a command line, its exit code, checksums of its
result as JSON and of its text (all tables as Markdown, or what a terminal shows, with colours; of a live source JSON alone),
and its first line; cluster N is `make_cluster(Random("recorded N"))` of the fuzzer. `--update-golden` writes them.
"""

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch
from zlib import crc32

import pytest

from fuzz.command_lines.clusters import earlier, make_cluster
from rmqlb.cli.common.terminal import Terminal
from rmqlb.views.formats.machine import as_json, envelope
from tests.cli.recorded_lines import EXAMPLES, LIVE, run_live
from tests.support.mismatches import DATA, assert_summaries_recorded
from tests.support.pages import ROOT

CLUSTERS, PARTS, LINES_EACH = 14, 8, 10
LINES = (
    "show-groups", "show-consumers -g *", "show-consumers -g GROUP --earlier EARLIER", "show-route",
    "show-owners -g * --strategy all", "show-owners -g GROUP --explain", "diagnose --all-groups",
    "diagnose -g GROUP --earlier EARLIER", "diff EARLIER NOW", "plan-rebalance -g GROUP --add 2 --explain",
    "plan-rebalance -g * --remove-broker BROKER", "plan-rebalance -g GROUP --to-strategy AVG_BY_CIRCLE --earlier EARLIER",
    "sweep-failures", "size-group -g GROUP --sizes 1..6", "size-group -g GROUP --earlier EARLIER --drain-in 10m",
    "plan-topic -t TOPIC --queues 6", "simulate-rebalance -g GROUP --event 'crash #0@5s' --rate 50 --set consume-time=9ms",
    "simulate-rebalance -g GROUP --event 'broker-down BROKER@9s'", "simulate-send -t TOPIC --fail BROKER --messages 40",
    "check -p POLICY --today 2026-11-21", "show-groups --earlier EARLIER",
)  # fmt: skip


SCENARIOS = (DATA / "scenarios.txt").read_text(encoding="utf-8").splitlines()


def records(number: int) -> Iterator[str]:
    dice = Random(f"recorded {number}")
    made = next(made for made in (make_cluster(dice) for _ in count()) if any(map(len, made.groups.values())))
    Path("now").write_text(json.dumps(made.document))
    Path("before").write_bytes(earlier(dice, made.document).replace(b"2026-11-22T00:00:00Z", b"2026-11-21T02:01:57Z"))
    largest, broker = max(made.groups, key=lambda name: len(made.groups[name])), dice.choice(made.brokers or ["b"])
    names = {
        "GROUP": largest, "TOPIC": dice.choice(made.topics or ["t"]), "NOW": "now", "EARLIER": "before",
        "BROKER": broker, "POLICY": "policy.yaml",
    }  # fmt: skip
    for line in dice.sample(LINES, LINES_EACH):
        words = [names.get(word, word.replace("BROKER", broker)) for word in re.findall(r"'[^']*'|\S+", line)]
        source = () if "NOW" in line else ("-s", "now")
        yield summary(f"{number} {line}", [*(word.strip("'") for word in words), *source])


def scenario(line: str) -> str:
    """EXAMPLE|/OLD/NEW|/OLD/NEW/2 is the example, on stdin, with each OLD replaced, or the first two."""
    words = [os.path.relpath(EXAMPLES[word]) if word in EXAMPLES else word for word in shlex.split(line)]
    stdin: bytes | None = None
    for place, (name, *edits) in enumerate(word.split("|") for word in words):
        if edits and name in EXAMPLES:
            words[place], text = "-", Path(EXAMPLES[name]).read_text(encoding="utf-8")
            for _, old, new, *times in (edit.split("/") for edit in edits):
                assert old in text, line
                text = text.replace(old, new, *map(int, times))
            stdin = text.encode()
    return summary(line, words, stdin)


def summary(name: str, words: Iterable[str], stdin: bytes | None = None) -> str:
    documents, show = list[str](), Terminal.show

    def show_with_json(self: Any, report: Any, snapshot: Any, findings: Any) -> None:
        findings = tuple(findings)
        documents.append(as_json(envelope(report, self._command, snapshot, findings)))
        show(self, report, snapshot, findings)

    as_text = ("-o", "table", "--color", "always") if crc32(name.encode()) & 1 else ("-o", "markdown", "--all")
    form = () if " -o " in name else ("-o", "json", "--all") if LIVE.search(name) else as_text
    with patch.object(Terminal, "show", show_with_json):
        ran = run_live([*words, *form], stdin)
    printed = [*documents * (form == as_text), f"{ran.stdout}{ran.stderr}"]
    sums = [f"{crc32(text.encode()):08x}" for text in printed]
    without_colour = re.sub(r"\x1b\[[0-9;]*m", "", printed[-1])
    return f"{name}: {ran.code} {' '.join(sums)} {without_colour.splitlines()[0][:80]}"


@pytest.mark.parametrize("part", range(PARTS))
def test_commands_answer_for_random_clusters_as_recorded(
    part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm-256color")
    (tmp_path / "policy.yaml").write_bytes((ROOT / "examples" / "policy.yaml").read_bytes())
    found = [each for number in range(part, CLUSTERS, PARTS) for each in records(number)]
    monkeypatch.chdir(ROOT / "examples")
    found += [scenario(line) for line in SCENARIOS[part::PARTS]]
    assert_summaries_recorded(DATA / "random_clusters" / f"{part}.json", found, request)
