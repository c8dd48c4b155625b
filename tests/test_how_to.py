"""The ten questions of somebody on call: at most two commands each, and the first line that they print is the answer.

That the commands print what the pages show is held by `tests/test_readme.py`.
"""

from __future__ import annotations

import re

from tests.support.mismatches import every_case
from tests.support.pages import DOCS, transcripts

ANSWERS = {
    "blame-lag": (r"1,500.*192\.0\.2\.52@3",),
    "scale": (r"10 to 20 of 25",),
    "restart-broker": (r"3 of 3 groups .*22 of 50 queues .* 1m;.* no message",),
    "duplicate-client-id": (r"4 of 8 .*192\.0\.2\.31@app",),
    "mixed-strategies": (r"2 of 8 .*AVG, AVG_BY_CIRCLE",),
    "compare-strategies": (r"1\.33.*1\.88", r"19 of 50"),
    "gate-in-ci": (r"1 of 35 limits failed: group bill-svc",),
    "how-many-consumers": (
        r"9 consumers satisfy all; 8 do not: imbalance 1\.28 > 1\.1",
        r"3 consumers satisfy all; 2 do not",
    ),
    "what-changed": (r"2 of 3 .*18 .*1,500",),
    "all-groups": (r"4 groups.* 2 .* 2 ",),
}
"""Page → what the first lines of its first commands say, in whichever words."""


@every_case("name", ANSWERS)
def test_the_first_line_of_the_first_commands_is_the_answer(name: str) -> None:
    first = [shown.partition("\n")[0] for _, shown in transcripts(DOCS / "how-to" / f"{name}.md")]
    assert len(ANSWERS[name]) <= 2
    for line, answer in zip(first, ANSWERS[name], strict=False):
        assert re.search(answer, line)


def test_the_ten_questions_are_those_of_the_contents() -> None:
    table = (DOCS / "how-to" / "index.md").read_text(encoding="utf-8").partition("And beyond these")[0]
    assert sorted(re.findall(r"\]\(([\w-]+)\.md\)", table)) == sorted(ANSWERS)
    assert len(ANSWERS) == 10
