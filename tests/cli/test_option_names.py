"""One name for one thing: what the options of all commands mean, as their help texts begin."""

import re
from collections import defaultdict
from itertools import takewhile

from rmqlb.cli.common.send_options import SendOptions
from rmqlb.cli.common.set_option import SettingsOptions, names_in, settings_in
from rmqlb.cli.help_text import SHARED_PANELS
from rmqlb.cli.plan_rebalance import PlanFlags
from rmqlb.cli.plan_rollout import RolloutOptions
from rmqlb.cli.simulate import RebalanceFlags, ReceiveOptions
from rmqlb.cli.size_group import SizeOptions
from rmqlb.model.group_scenario import TIMER_NAMES
from tests.cli.run import EXAMPLE, ROOT, data_of, error_of, run
from tests.support.mismatches import every_case
from tools.manual.tree import command_tree

_SAYS_NOTHING = {"A", "An", "How", "Only", "Or", "Say", "The", "What", "When", "Which", "Whose"}


def meanings() -> dict[str, dict[str, list[str]]]:
    """Option → the beginning of its text, as far as the first clause → the commands that say so."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for command in command_tree().all():
        for option in command.options:
            clause = re.split(r"\.(?=\s+\W?[A-Z0-9])|[;:,] ", option.help)[0].rstrip(".")
            found[option.names[-1]][clause].append(command.typed)
    return found


def test_an_option_has_one_meaning_in_all_commands() -> None:
    several = {}
    for name, clauses in meanings().items():
        words = [[re.sub(r"s$", "", word) for word in clause.split()] for clause in clauses]
        shared = [*takewhile(lambda each: len({*each}) == 1, zip(*words, strict=False))]
        if not shared or (len(shared) == 1 < len(clauses) and shared[0][0] in _SAYS_NOTHING):
            several[name] = {clause: commands[0] for clause, commands in clauses.items()}
    assert several == {}


def test_a_meaning_has_one_name_in_all_commands() -> None:
    names: dict[str, set[str]] = defaultdict(set)
    for name, clauses in meanings().items():
        for clause in clauses:
            if len(words := clause.split()) > 2:
                names[" ".join(words[:5])].add(name)
    assert {clause: found for clause, found in names.items() if len(found) > 1} == {}


def test_a_command_has_at_most_20_options_of_its_own() -> None:
    own = {
        command.typed: sum(
            option.panel not in SHARED_PANELS and "--help" not in option.names for option in command.options
        )
        for command in command_tree().all()
    }
    assert {typed: number for typed, number in own.items() if number > 20} == {}


def test_the_retry_topic_is_taken_by_one_option() -> None:
    takes = [each for each in command_tree().all() if any("--include-retry" in one.names for one in each.options)]
    assert [each.name for each in takes] == [
        *("show-owners", "plan-rebalance", "plan-rollout", "size-group", "simulate-rebalance")
    ]
    assert "include-retry" not in names_in(COMMANDS.values())


COMMANDS: dict[str, type[SettingsOptions]] = {
    "simulate-send": SendOptions, "simulate-receive": ReceiveOptions, "simulate-rebalance": RebalanceFlags,
    "plan-rollout": RolloutOptions, "size-group": SizeOptions, "plan-rebalance": PlanFlags,
}  # fmt: skip
DOCS = ROOT / "docs"
REBALANCE = ("simulate-rebalance", "-s", EXAMPLE, "-g", "order-svc")


def test_the_page_has_the_tables() -> None:
    settings, _, clocks = (DOCS / "settings.md").read_text(encoding="utf-8").partition("## Clocks")
    rows = [row.replace("\\|", "¦").split(" | ") for row in re.findall(r"^\| (`.*) \|$", settings, re.MULTILINE)]
    known = {command: settings_in(group.fields) for command, group in COMMANDS.items()}
    assert [row[0].strip("`") for row in rows] == sorted({name for own in known.values() for name in own})
    for name, form, default, commands, *_ in rows:
        own = {command: each[name.strip("`")][1] for command, each in known.items() if name.strip("`") in each}
        assert {*commands.split(", ")} == own.keys(), name
        for declared in own.values():
            assert form.strip("`").removesuffix("…").replace("¦", "|") == declared.settings["form"].removesuffix("…")
            assert declared.default in (None, False) or default == str(declared.default)
    assert re.findall(r"^\| `([\w-]+)`", clocks, re.MULTILINE) == list(TIMER_NAMES)


LINES = {
    "simulate-send": ("-t", "OrderEvents", "--fail", "broker-b", "--messages", "5", "--trials", "2", "--sdk", "go-grpc"),
    "simulate-receive": ("-t", "OrderEvents", "--messages", "5"),
    "simulate-rebalance": ("-g", "order-svc", "--scale-to", "2"),
    "plan-rollout": ("-g", "order-svc", "--trials", "2"),
    "size-group": ("-g", "order-svc"),
    "plan-rebalance": ("-g", "order-svc"),
}  # fmt: skip
NAMED_OTHERWISE = {"broker-version", "earlier", "rate", "sdk"}
VALUES = [(command, name) for command in LINES for name in names_in([COMMANDS[command]])]


@every_case(("command", "name"), VALUES)
def test_a_wrong_value_is_refused_by_the_name_of_its_setting(command: str, name: str) -> None:
    ran = run(command, "-s", EXAMPLE, *LINES[command], "--set", f"{name}=nonsense,,", "-q")
    assert ran.code in (2, 4)
    assert f"--set {name}=nonsense,," in ran.stderr.replace(": nonsense", "=nonsense") or name in NAMED_OTHERWISE


def test_a_change_ends_with_the_owners_that_its_plan_has() -> None:
    for change in (
        ("--scale-to", "5"),
        ("--remove", "1", "--add", "new@1"),
        ("--replace", "192.0.2.2@inst0=z@1"),
        ("--remove-broker", "broker-b"),
        ("--set", "remove-master=broker-b"),
        ("--add-broker", "broker-c:4:4"),
        ("--read-queues", "broker-a=3"),
        ("--to-strategy", "AVG_BY_CIRCLE", "--scale-to", "4"),
    ):
        plan = data_of("plan-rebalance", "-s", EXAMPLE, "-g", "order-svc", *change)
        found = data_of(*REBALANCE, *change, "--set", "change-at=20s")
        ends = {each["clientId"]: each["queuesAtEnd"] for each in found["consumers"] if each["queuesAtEnd"]}
        assert ends == {each["clientId"]: each["queuesAfter"] for each in plan["consumers"] if each["queuesAfter"]}
        assert found["events"][0]["atMs"] == 20_000
        assert found["events"][0]["text"].endswith(" at 20s")


def test_the_timeline_stands_below_the_plan() -> None:
    line = ("plan-rebalance", "-s", EXAMPLE, "-g", "order-svc", "--scale-to", "4", "--timeline")
    shown = run(*line, "-o", "table").stdout
    assert shown.index("queues that change") < shown.index("timeline from ") < shown.index("in the timeline: a 192")
    assert error_of(run(*line, "-o", "yaml").stderr).message == "--timeline draws a picture, which -o yaml cannot show"
    assert error_of(run(*line, "-g", "bill-svc").stderr).code == "which-group"
