"""Each option that takes a value is given nonsense, made from the command tree, or two values.

An error is one line that names the option or what was typed, perhaps a hint, and the documented code; nothing on stdout.
A command or an option that is new is in the table by itself; a metavar that is new makes it red until it is known here.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.cli.help_text import known_values
from rmqlb.views.explanations import explanations
from tests.support.mismatches import every_case
from tests.test_golden import BASIC
from tools.manual.tree import CommandPage, OptionPage, command_tree

from .run import EXAMPLE, ROOT, error_of, instead, run

SINGLE = [command for command in command_tree().all() if not command.commands]
NOWHERE = "/dev/null/nothing"
EXPLANATIONS = explanations()
NONSENSE = """
N X K P R N,… [BROKER=]N [TOPIC=]R TIME TIME,… NAME=VALUE YYYY-MM-DD SIZE [BROKER=]SPEC
CONDITION KEY=GLOB KEY=VALUE GLOB=ZONE OLD=NEW FROM=TO BROKER:QUEUE STRATEGY STRATEGY|all VERSION GROUP TOPIC GLOB BROKER
GROUP… TOPIC… SEVERITY CODE COMMAND FORMAT SHARE N..M DAYS LIMIT=N SDK[@VERSION] TYPE URL [BROKER[:QUEUE]=]R N@TIME ID|all
"""
"""Metavars of which no text is right."""
BY_METAVAR = {
    **dict.fromkeys((*NONSENSE.split(), "'VERB WHO@TIME'"), "nonsense"),
    **dict.fromkeys(["A", "B", "FILE", "FILE|-", "FILE|TIME", "URL|FILE|-", "DIR", "PATH…"], NOWHERE),
    **dict.fromkeys(("NAME", "CLUSTER"), "no such name"),
    "URL|FILE": "no/such/file",
    "HOST:9876;…": "http://h:9876",
    "DIR|URI": "s3a:nonsense",
    "IDS|@FILE|N": f"@{NOWHERE}",
    "file:PATH|env:NAME|keyring:SERVICE/USER": "nonsense",
    "BROKER[@FROM-TO][:KIND]": "broker-a@5s-1s",
    "ID,ID,…": "nonsense,,",
    "N|ID": "-1",
    "NAME[:READ[:WRITE]]": "a:b:c",
    "HOST[:8080]": "127.0.0.1:http",
    "NAME:QUEUES": "broker-a",
}
"""Metavar → nonsense for it; what is in small letters, a list of words, is spelled wrongly."""
NOT_KNOWN_TO_BE_WRONG = {"USER", "KEY"}
"""Metavars of which every text is right: it may be a user, or an account."""
ELSEWHERE = {
    *("--log-file", "--to", "PATH…"),  # Spark opens them: tests/pipeline
    *("--client-key", "--client-cert", "--ca-file"),  # read with a connection: test_bad_input.py, tests/sources
    *("--password-file", "--secret-key-file"),  # read when a source asks for a login: the same
    "rmqlb config show --source",  # shown, not read
    *("rmqlb record --group", "rmqlb record --topic"),  # of a live cluster: test_record.py
}
"""Options, metavars of arguments, or options of one command, whose values are read only by what is not started here."""
LINES = {
    **BASIC,
    **{line.replace(" ", "-"): line for line in ("config show", "schema", "context list")},
    **{f"context-{act}": f"context {act} prod" for act in ("use", "show", "remove")},
    "context-add": "context add prod -s rocketmq://10.0.0.1:9876 --access-key viewer --secret keyring:rmqlb/prod --use",
    "explain": "explain no-master",
    "doctor": "doctor -s examples/cluster.json",
    "fetch-routes": "fetch-routes -s examples/cluster.json",
    "record": "record -s rocketmq://127.0.0.1:1 -g order-svc --source-retries 0 --for 1s",
}
FREE_NAMES = {"--cluster", "--tls-name"}
NEEDED = {"rmqlb context add": ("-s", "http://h"), "rmqlb diff": ("examples/cluster.json",)}
"""Command → what it needs beside its argument."""


def base(command: CommandPage) -> list[str]:
    """A line of the command that is right, but for a warehouse that cannot be there: Spark is never started."""
    if command.path[0] == "pipeline":
        return [*command.path, "-w", NOWHERE, *(["examples/cluster.json"] if command.name in ("ingest", "run") else [])]
    name = "-".join(command.path)
    assert name in LINES, f"give {command.typed} a transcript or a line in LINES"
    return shlex.split(LINES[name])


def given(command: CommandPage, option: OptionPage, value: str) -> list[str]:
    """That line with this value of an option, which stands there once when it takes one value."""
    typed = [name for name in option.names if name in base(command)] or [option.names[-1]]
    return [*base(command), typed[0], value] if option.repeatable else instead(base(command), typed[0], value)


def words_of(command: CommandPage, option: OptionPage) -> tuple[str, ...]:
    metavar = option.metavar or ""
    name = option.names[-1] if option.names else metavar
    return known_values(" ".join(command.path), name, metavar, option.help)


def nonsense_for(command: CommandPage, option: OptionPage) -> str:
    words = words_of(command, option)
    wrong = BY_METAVAR.get(option.metavar or "") or (f"{words[0]}x" if words else None)
    assert wrong, f"say in BY_METAVAR what {option.metavar} cannot be"
    return wrong


def spelled(command: CommandPage, option: OptionPage) -> set[str]:
    name = option.names[-1] if option.names else option.metavar or ""
    return {name, f"{command.typed} {name}"}


CASES = [
    (command, option)
    for command in SINGLE
    for option in (*command.options, *command.arguments)
    if option.metavar not in {None, *NOT_KNOWN_TO_BE_WRONG}
    and not FREE_NAMES & set(option.names)
    and not ELSEWHERE & spelled(command, option)
]
ONCE = [
    *{
        (option.names or (command.typed,), option.metavar): (command, option) for command, option in reversed(CASES)
    }.values()
]
"""Each option with the first command that has it."""
each_option = every_case(("command", "option"), ONCE, ids=lambda page: getattr(page, "typed", None) or str(page.names))


NEEDED_WITH = {"--source": "source", "--event": "group", "--fail": "topic", "--key": "topic", "--warehouse": "warehouse", "--policy": "policy"}  # fmt: skip


def needs(command: CommandPage) -> set[str]:
    """What an error about a missing argument or option may call it; none when the command needs nothing."""
    names = {name for option in command.options for name in option.names if command.path[0] != "config"}
    required = {option.metavar or "" for option in command.arguments if option.required}
    required |= {name for option in command.options if option.required for name in option.names}
    required |= {word for name, word in NEEDED_WITH.items() if name in names}
    return {word.lower().rstrip("…") for word in required}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def must_be_told(stderr: str, code: int | None, *names: str) -> None:
    """The error is the last line or the last but one; a warning may stand before it."""
    lines = [line for line in stderr.splitlines(keepends=True) if not line.startswith(("warning: ", "info: "))]
    error = error_of("".join(lines))
    assert EXPLANATIONS[error.code].exit_code == code
    assert any(name.lower() in error.message.lower() for name in names), error.message


@each_option
@pytest.mark.usefixtures("place")
def test_a_value_that_makes_no_sense_is_told(command: CommandPage, option: OptionPage) -> None:
    wrong = nonsense_for(command, option)
    line = given(command, option, wrong) if option.names else [*command.path, wrong, *NEEDED.get(command.typed, ())]
    if not (option.names or option.required):  # the same as an option, which the line has
        line = [*base(command), wrong]
    ran = run(*line)
    assert (ran.code in (ExitCode.USAGE, ExitCode.DATA), ran.stdout) == (True, ""), (line, ran)
    must_be_told(ran.stderr, ran.code, wrong, *option.names)


MIXED = {"ID|all", "ID,ID,…"}
"""Metavars whose words are only some of what is right: so is any ID."""
BEHIND = {"CONDITION": ">0", "'VERB WHO@TIME'": "x@1s", "NAME=VALUE": "1", "KEY=GLOB": "x"}
"""Metavar → what follows its words."""


def wordy() -> Iterator[tuple[CommandPage, OptionPage, str]]:
    """The options that take one of several words, with the longest, which a letter less makes no other."""
    for command, option in ONCE:
        words = [word for word in words_of(command, option) if "[" not in word and "=" not in word]
        if words and option.metavar not in MIXED and option.metavar != "NAME":
            yield command, option, max(words, key=len)


@every_case(
    ("command", "option", "word"),
    list(wordy()),
    ids=lambda each: getattr(each, "typed", None) or str(getattr(each, "names", each)),
)
@pytest.mark.usefixtures("place")
def test_a_word_almost_right_is_suggested(command: CommandPage, option: OptionPage, word: str) -> None:
    name = word.rstrip("= ")
    wrong = name[:1] + name[2:] if len(name) > 2 else f"{name}x"
    typed = f"{wrong}{word[len(name) :]}{BEHIND.get(option.metavar or '', '')}"
    ran = run(*(given(command, option, typed) if option.names else (*command.path, typed)))
    assert (ran.code, ran.stdout) == (ExitCode.USAGE, "")
    error = error_of(ran.stderr)
    assert name in f"{error.message} {error.hint}"
    assert (error.hint or "").startswith("did you mean ") or len(words_of(command, option)) <= 6


@every_case("command", [each for each in SINGLE if needs(each)], ids=lambda command: command.typed)
@pytest.mark.usefixtures("place")
def test_what_a_command_needs_and_does_not_get_is_told(command: CommandPage) -> None:
    ran = run(*command.path)
    assert (ran.code, ran.stdout) == (ExitCode.USAGE, "")
    error = error_of(ran.stderr)
    assert any(word in error.message.lower() for word in needs(command)), error.message
    assert error.hint


def test_every_exception_is_of_an_option() -> None:
    options = [(command, option) for command in SINGLE for option in (*command.options, *command.arguments)]
    assert {name for each in options for name in spelled(*each)} >= ELSEWHERE | FREE_NAMES
    assert {option.metavar for _, option in options} >= NOT_KNOWN_TO_BE_WRONG | MIXED


def test_a_second_value_is_refused_in_one_line_in_every_spelling() -> None:
    seen = set()
    for command in SINGLE:
        for option in command.options:
            if option.metavar is None or option.repeatable or option.names in seen:
                continue
            seen.add(option.names)
            short, long = option.names[0], option.names[-1]
            ways = [[long, "1", f"{long}=2"], [f"{long}=1", long, "2"]]
            ways += [[short, "1", long, "2"], [f"{short}1", f"{short}2"]] if short != long else []
            for values in ways:
                ran = run(*command.path, *values)
                failed = error_of(ran.stderr)
                assert (ran.code, ran.stdout, failed.code) == (ExitCode.USAGE, "", "given-twice")
                assert failed.message == f"{long} takes one value, but got 2: 1 and 2"
    assert {("-s", "--source"), ("-o", "--output"), ("--consumers",), ("--down",), ("--every",)} <= seen
    assert error_of(run("show-route", *["--source", "1"] * 3).stderr).message.endswith("3: 1 and 1 and 1")


def test_a_flag_may_be_given_again_and_has_no_opposite() -> None:
    assert [option.names for command in SINGLE for option in command.options if option.negations] == []
    assert run("show-route", "-s", EXAMPLE, "-q", "--quiet", "-q").code == 0
