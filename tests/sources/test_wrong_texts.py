from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rmqlb.engine.allocate.rules import NAMES
from rmqlb.errors import RmqlbError
from rmqlb.model.snapshot import Wanted
from rmqlb.remoting.header import decode_json_header
from rmqlb.sources.dump import DumpSource
from rmqlb.sources.formats.documents import parse_route
from rmqlb.sources.formats.loose_json import read_loose
from rmqlb.sources.formats.yaml_text import read_yaml
from rmqlb.sources.user_files.config_file import read_user_file
from rmqlb.sources.user_files.policy_file import parse_policy
from tests.support.mismatches import every_case

from .captures import DATA

SECRETS = ("c4nary-secret", "4711")
CODES = {"policy": "policy-invalid", "configuration": "config-invalid"}
READERS: dict[str, tuple[str, Callable[[str, str], object]]] = {
    "policy": ("FILE", lambda text, path: parse_policy(text, path, NAMES)),
    "configuration": ("FILE", lambda _, path: read_user_file(path)),
    "YAML": ("FILE", read_yaml),
    "JSON": ("FILE", read_loose),
    "route": ("route of T", lambda text, _: parse_route(text, "T")),
    "file": ("stdin", lambda text, _: DumpSource("-", stdin=io.BytesIO(text.encode())).fetch(Wanted())),
    "header": ("", lambda text, _: decode_json_header(text.encode(), None)),
}
"""Where an error begins, and what reads a text, which is also at a path."""


def cases() -> Iterator[tuple[str, str, str, str | None]]:
    reader = ""
    for block in (DATA / "wrong_texts.txt").read_text(encoding="utf-8").strip().split("\n\n")[1:]:
        if block.startswith("## "):
            reader = block[3:]
            continue
        spelled = re.sub(r"<([^<>]+?)\*(\d+)>", lambda found: found[1] * int(found[2]), block)
        text, _, error = f"\n{spelled}".rpartition("\n! ")
        problem, _, hint = error.partition("\nhint: ")
        yield reader, text[1:], problem, hint or None


@every_case(("reader", "text", "problem", "hint"), cases(), ids=lambda value: repr(value)[:60])
def test_a_wrong_text_is_one_line_that_says_where(
    reader: str, text: str, problem: str, hint: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    begins, read = READERS[reader]
    with pytest.raises(RmqlbError) as caught:
        read(text, str(path))
    assert caught.value.message == begins.replace("FILE", str(path)) + problem
    assert caught.value.hint == hint
    assert reader not in CODES or caught.value.code == CODES[reader]
    assert not [secret for secret in SECRETS if secret in f"{caught.value.message}{hint}"]
