"""The ten questions of somebody on call: at most two commands each, and the first line that they print is the answer.

That the commands print what the pages show is held by `tests/test_readme.py`.
"""

from __future__ import annotations

import re

import pytest

from tests.support.pages import DOCS, transcripts

ANSWERS = {
    "blame-lag": ("1,500, all of it on 192.0.2.52@3",),
    "scale": ("3 → 5 consumers: 10 to 20 of 25 queues move",),
    "restart-broker": ("11 of 25 queues cannot be read for up to 1m", "none lost; 375 of 12375 attempts failed"),
    "duplicate-client-id": ("4 of 8 queues unassigned; 1 duplicate client ID 192.0.2.31@app",),
    "mixed-strategies": ("2 of 8 queues with duplicate owners; mixed strategies AVG, AVG_BY_CIRCLE",),
    "compare-strategies": ("1.33 under AVG, 1.88 under CONSISTENT_HASH", "19 of 50 queues move"),
    "gate-in-ci": ("violated",),
    "how-many-consumers": ("4 → 10 consumers",),
    "what-changed": ("2 of 3 groups differ: 18 queues changed owner, all explained; lag +1,500 in audit-svc",),
    "all-groups": ("4 groups: 2 with errors, 2 in order",),
}
"""Page → what the first lines of its first commands say."""


@pytest.mark.parametrize("name", ANSWERS)
def test_the_first_line_of_the_first_commands_is_the_answer(name: str) -> None:
    first = [shown.partition("\n")[0] for _, shown in transcripts(DOCS / "how-to" / f"{name}.md")]
    assert len(ANSWERS[name]) <= 2
    for line, answer in zip(first, ANSWERS[name], strict=False):
        assert answer in line


def test_the_ten_questions_are_those_of_the_contents() -> None:
    table = (DOCS / "how-to" / "index.md").read_text(encoding="utf-8").partition("And beyond these")[0]
    assert sorted(re.findall(r"\]\(([\w-]+)\.md\)", table)) == sorted(ANSWERS)
    assert len(ANSWERS) == 10
