"""One name for one thing: what the options of all commands mean, as their help texts begin."""

import re
from collections import defaultdict
from itertools import takewhile

from rmqlb.cli.common.set_option import SETTINGS
from rmqlb.cli.help_text import SHARED_PANELS
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
    assert "include-retry" not in SETTINGS
