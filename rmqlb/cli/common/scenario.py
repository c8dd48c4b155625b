"""`--scenario FILE`: options of plans and simulations that are kept in a file and replayed.

Rules of this file:
- A file has a part per command; its keys are the command's options by their long names, without the dashes.
- The command line adds to it: of options that are repeatable, its values follow those of the file; of others, and of
  which groups and topics, what it says counts.
- Where the source is and how the result is shown are not for a file: options with an environment variable, and those of
  `NOT_KEPT`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from typer import BadParameter
from typer.core import TyperOption

from rmqlb.cli import click
from rmqlb.cli.common import amounts
from rmqlb.cli.common import parse as values
from rmqlb.errors import UsageError
from rmqlb.sources.user_files.send_inputs import read_text
from rmqlb.sources.user_files.strict_yaml import Path, StrictReader, shown

SCENARIO_COMMANDS = ("plan-rebalance", "simulate-rebalance", "plan-rollout", "simulate-send", "simulate-receive")
_MAX_BYTES = 1 << 20
NOT_KEPT = frozenset(
    (
        *("scenario", "against", "watch", "rounds", "section", "svg", "html", "no_pager", "quiet", "debug"),
        *("all", "explain", "trace", "changed"),
    )
)
_CHOSEN = ("group", "topic")
"""Repeatable options of which those on the line replace those of the file."""
_EXAMPLE = "write plan-rebalance: {group: order-svc, add: 1, fail-on: ['unassigned>0']}"
Check = Callable[[str], object]


def kept_options(command: click.Command) -> dict[str, TyperOption]:
    """Key → the option of the command that it stands for, of those that a file may have."""
    return {
        max(option.opts, key=len).removeprefix("--"): option
        for option in command.params
        if isinstance(option, TyperOption) and option.envvar is None and option.name not in NOT_KEPT
    }


def with_scenario(line: click.Context, given: Mapping[str, Any], path: str, source: object) -> dict[str, Any]:
    """The values of the options with those of the file.

    Raises:
        UsageError: the file cannot be read, or something in it is wrong.
    """
    if path == source == "-":
        raise UsageError("-s - and --scenario - both read stdin")
    text = read_text(path, "--scenario", _MAX_BYTES, "a scenario has at most 1 MB")
    reader = _ScenarioReader(text, "stdin" if path == "-" else path, line)
    merged = dict(given)
    for option, value in reader.values():
        name = option.name or ""
        on_line = line.get_parameter_source(name) is click.ParameterSource.COMMANDLINE
        if not on_line:
            merged[name] = value
        elif option.multiple and name not in _CHOSEN:
            merged[name] = [*value, *given[name]]
    return merged


def _invalid(problem: str, hint: str | None) -> UsageError:
    return UsageError(problem, hint=hint, code="scenario-invalid")


class _ScenarioReader(StrictReader):
    """One reading of a scenario, for the command of the line."""

    def __init__(self, text: str, where: str, line: click.Context) -> None:
        super().__init__(text, where, _invalid, _EXAMPLE)
        self._line = line
        self._command = line.command.name or ""
        self._checks = _checks(self._command)

    def values(self) -> Iterator[tuple[TyperOption, Any]]:
        """Each option that the command's part has, with its value as the line would have it."""
        document = self.mapping(self.document(), (), ("description", *SCENARIO_COMMANDS))
        if "description" in document:
            self.name(document["description"], ("description",))
        if self._command not in document:
            parts = [name for name in SCENARIO_COMMANDS if name in document]
            self.refuse((), f"it has no part {self._command}", f"it has {', '.join(parts)}" if parts else _EXAMPLE)
        known = kept_options(self._line.command)
        part = self.mapping(document[self._command], (self._command,), known)
        for key, value in part.items():
            yield known[key], self._value(value, (self._command, key), known[key])

    def _value(self, value: object, path: Path, option: TyperOption) -> object:
        if option.is_flag:
            if not isinstance(value, bool):
                self.refuse(path, f"{shown(value)} is neither true nor false")
            return value
        if not option.multiple:
            return self._one(value, path, option)
        if not isinstance(value, list):
            return [self._one(value, path, option)]
        return [self._one(item, (*path, i), option) for i, item in enumerate(self.items(value, path))]

    def _one(self, value: object, path: Path, option: TyperOption) -> object:
        """A single value: as text, but for an option that takes a whole number."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.refuse(path, f"{shown(value)} is neither a text nor a number")
        if isinstance(value, str):
            self.name(value, path)
        try:
            typed = option.type.convert(str(value), option, self._line)
        except BadParameter as error:
            self.refuse(path, error.message.rstrip("."))
        check = self._checks.get(str(path[1]))
        try:
            if check is not None:
                check(str(value))
        except UsageError as error:
            self.refuse(path, error.message, error.hint)
        return typed


def _checks(command: str) -> Mapping[str, Check]:
    """Key → what refuses a value of a wrong form, before anything is read; what depends on the cluster comes later."""
    from rmqlb.cli.common.group_simulation.parse import consumer_types, timers
    from rmqlb.cli.common.group_simulation.parse_events import parse_event
    from rmqlb.cli.common.producer_values import failure
    from rmqlb.cli.common.strategy_options import parse_strategy_options

    def time(key: str) -> Check:
        return lambda text: amounts.duration_us(text, f"--{key}", zero=True)

    def number(key: str) -> Check:
        return lambda text: amounts.count(text, f"--{key}", least=0)

    times = ("for", "down", "consume-time", "route-poll", "send-timeout", "send-timeout-per-request")
    receiving = ("await", "invisible", "error-pause", "round-trip", "target-wait")
    return {
        **{key: time(key) for key in (*times, *receiving)},
        **{key: number(key) for key in ("messages", "trials", "trial", "loops", "processes", "batch")},
        "add": lambda text: values.count_or_id(text, "--add"),
        "remove": lambda text: values.count_or_id(text, "--remove"),
        "replace": lambda text: values.pair(text, "--replace"),
        "add-broker": lambda text: values.new_broker(text, f"--add-broker {text}"),
        "read-queues": lambda text: values.queue_counts([text], "--read-queues"),
        "write-queues": lambda text: values.queue_counts([text], "--write-queues"),
        "strategy-option": lambda text: parse_strategy_options([text]),
        "event": parse_event,
        "fail": lambda text: failure(text, (), None),
        "timer": lambda text: timers([text]),
        "sdk": lambda text: values.sdks([text]),
        "consumer-type": lambda text: consumer_types([text]),
        "fail-on": lambda text: _parse_condition(command, text),
    }


def _parse_condition(command: str, text: str) -> None:
    from rmqlb.engine.fail_on_figures.conditions import Figures, parse_condition
    from rmqlb.engine.fail_on_figures.of_plan import PLAN_FIGURES
    from rmqlb.engine.fail_on_figures.of_receives import RECEIVE_FIGURES
    from rmqlb.engine.fail_on_figures.of_sends import SEND_FIGURES
    from rmqlb.engine.fail_on_figures.of_simulation import GROUP_FIGURES, ROLLOUT_FIGURES

    figures: Mapping[str, Figures] = {
        "plan-rebalance": PLAN_FIGURES,
        "simulate-rebalance": GROUP_FIGURES,
        "plan-rollout": ROLLOUT_FIGURES,
        "simulate-send": SEND_FIGURES,
        "simulate-receive": RECEIVE_FIGURES,
    }
    parse_condition(text, figures[command])
