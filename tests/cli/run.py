import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
from rich.console import Console
from typer.testing import CliRunner

from rmqlb.cli.common.terminal import Terminal, drawn
from rmqlb.cli.main import app
from rmqlb.views.formats.machine import as_json, envelope
from rmqlb.views.formats.people import as_plain
from tools.manual.tree import CommandPage

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = str(ROOT / "examples" / "cluster.json")
RECORDING = str(ROOT / "examples" / "recording.json")
SKEWED = str(ROOT / "examples" / "topicRoute-Skewed.txt")


class Ran(NamedTuple):
    stdout: str
    stderr: str
    code: int | None


def run(*args: str, stdin: str | bytes | None = None, env: Mapping[str, str] | None = None) -> Ran:
    result = CliRunner().invoke(app, args, input=stdin, env=env, prog_name="rmqlb")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.stdout, result.stderr, result.exit_code)


def with_documents(do: Callable[[], Any], width: int | None = None) -> tuple[Any, list[str]]:
    """What a command prints, and its results as JSON has them, and a terminal of a width; of 0 columns is Markdown."""
    documents, show = list[str](), Terminal.show

    def show_with_json(self: Any, report: Any, snapshot: Any, findings: Any) -> None:
        findings = tuple(findings)
        documents.append(as_json(envelope(report, self._command, snapshot, findings)))
        if width is not None:
            chosen = report.only((), screen=True, everything=width == 0).with_findings(findings)
            console = Console(width=width, force_terminal=True, color_system="standard", highlight=False, markup=False)
            documents.append(drawn(chosen, console) if width else as_plain(chosen, is_markdown=True))
        show(self, report, snapshot, findings)

    with patch.object(Terminal, "show", show_with_json):
        return do(), documents


def envelope_of(*args: str, stdin: str | None = None, code: int = 0) -> Any:
    ran = run(*args, "-o", "json", stdin=stdin)
    assert ran.code == code, ran.stderr
    return json.loads(ran.stdout)


def data_of(*args: str, stdin: str | None = None, code: int = 0) -> Any:
    return envelope_of(*args, stdin=stdin, code=code)["data"]


def instead(line: Sequence[str], *options: str) -> list[str]:
    """The line with these options, each of which goes in the place of the same one there, with its value."""
    kept, given = list(line), {option for option in options if option.startswith("-")}
    for name in given & set(line):
        at = kept.index(name)
        kept[at : at + 2] = []
    return [*kept, *options]


def changed_example(folder: Path, change: Callable[[Any], object]) -> str:
    document = json.loads(Path(EXAMPLE).read_text(encoding="utf-8"))
    change(document)
    (path := folder / "changed.json").write_text(json.dumps(document), encoding="utf-8")
    return str(path)


class Failed(NamedTuple):
    message: str
    code: str
    hint: str | None


def error_of(stderr: str) -> Failed:
    found = re.fullmatch(r"error: ([^\n]*) \[([a-z-]+)\]\n(?:hint: ([^\n]*)\n)?", stderr)
    assert found, stderr
    return Failed(found[1], found[2], found[3])


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RMQLB_")}
    return kept | dict(more or {})


def command(*args: str | bytes) -> list[str | bytes]:
    return [sys.executable, "-m", "rmqlb", *args]


def start(*args: str | bytes, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Ran:
    """Run rmqlb as a process; the code of one that a signal ended is negative."""
    done = subprocess.run(
        command(*args), input=stdin, capture_output=True, cwd=ROOT, env=environment(env), timeout=60, check=False
    )
    return Ran(done.stdout.decode(), done.stderr.decode(), done.returncode)


def may_end_with(example: str, command: CommandPage) -> set[int]:
    """0, or 3 where the example asks to be told so; a limit of the examples' policy failed in one of the two clusters."""
    if command.name == "check":
        return {3} if "examples/policy.yaml -s examples/cluster.json" in example else {0}
    return {0, 3} if "--fail-on" in example else {0}


class Desk:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = folder / "home"
        self.user_file = self.home / ".config" / "rmqlb" / "config.yaml"
        self.project = folder / "project"
        self.project.mkdir()
        self.home.mkdir()
        monkeypatch.setenv("HOME", str(self.home))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(self.home / ".config"))
        monkeypatch.chdir(self.project)

    def user(self, text: str, mode: int = 0o600) -> None:
        self.user_file.parent.mkdir(parents=True, exist_ok=True)
        self.user_file.write_text(text)
        self.user_file.chmod(mode)

    def secret(self, text: str, mode: int = 0o600) -> str:
        path = self.home / "secret"
        path.write_text(text + "\n")
        path.chmod(mode)
        return str(path)


def settings(*args: str, env: dict[str, str] | None = None) -> dict[str, dict[str, Any]]:
    ran = run("config", "show", "-o", "json", *args, env=env)
    assert ran.code == 0, ran.stderr
    return {setting["key"]: setting for setting in json.loads(ran.stdout)["data"]["settings"]}
