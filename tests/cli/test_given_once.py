"""Of two values none is passed over in silence: each option of every command that takes one value refuses a second."""

from __future__ import annotations

import pytest

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.errors import UsageError
from rmqlb.pipeline.spark import parse_conf
from rmqlb.sources.native.address_map import parse_address_map
from tests.support.mismatches import every_case
from tools.manual.tree import CommandPage, OptionPage, command_tree

from .run import EXAMPLE, error_of, run

SINGLE = [command for command in command_tree().all() if not command.commands]
OPTIONS = [(command, option) for command in SINGLE for option in command.options]
FIRST = {option.names: command for command, option in reversed(OPTIONS)}
"""Names of an option → the first command that has it."""
each_single_valued = every_case(
    ("command", "option"),
    [(c, o) for c, o in OPTIONS if o.metavar is not None and not o.repeatable],
    ids=lambda value: value.typed if isinstance(value, CommandPage) else value.names[-1],
)


def twice(option: OptionPage, first: str, second: str) -> list[list[str]]:
    """Two values in all spellings and mixtures of them."""
    short, long = option.names[0], option.names[-1]
    ways = [[long, first, f"{long}={second}"], [f"{long}={first}", long, second]]
    if short != long:
        ways += [[short, first, long, second], [f"{short}{first}", f"{short}{second}"]]
    return ways


@each_single_valued
def test_a_second_value_is_refused_in_one_line(command: CommandPage, option: OptionPage) -> None:
    """An option of many commands, like --source, is spelled in all ways for the first, and in one for the others."""
    ways = twice(option, "1", "2")
    for values in ways if command is FIRST[option.names] else ways[:1]:
        ran = run(*command.path, *values)
        failed = error_of(ran.stderr)
        assert (ran.code, ran.stdout, failed.code) == (ExitCode.USAGE, "", "given-twice")
        assert failed.message == f"{option.names[-1]} takes one value, and is given 2: 1 and 2"


def test_a_third_value_is_told_too() -> None:
    assert error_of(run("show-route", *["--source", "1"] * 3).stderr).message.endswith("3: 1 and 1 and 1")


def test_there_are_options_to_look_at() -> None:
    names = {option.names[-1] for _, option in OPTIONS if option.metavar is not None and not option.repeatable}
    assert {"--source", "--output", "--consumers", "--seed", "--trials", "--watch"} <= names


@pytest.mark.parametrize(
    ("command", "option"),
    [(c, o) for c, o in OPTIONS if o.negations],
    ids=lambda value: value.typed if isinstance(value, CommandPage) else value.names[-1],
)
def test_a_flag_and_its_contrary_contradict_each_other(command: CommandPage, option: OptionPage) -> None:
    failed = error_of(run(*command.path, option.names[-1], option.negations[-1]).stderr)
    assert failed.message == f"{option.names[-1]} and {option.negations[-1]} contradict each other"


def test_a_flag_may_be_given_again() -> None:
    assert run("show-route", "-s", EXAMPLE, "-q", "--quiet", "-q").code == 0


def test_the_line_goes_before_the_environment_and_is_no_second_value() -> None:
    assert run("show-route", "-s", EXAMPLE, env={"RMQLB_SOURCE": "nowhere"}).code == 0


@every_case("secret", ["http://me:s3cret@h", "rocketmq://s3cret@h:9876", "http://h/?token=s3cret"])
def test_a_login_in_a_url_is_not_repeated(secret: str) -> None:
    ran = run("show-route", "-s", secret, "-s", "http://h", "--debug")
    assert ran.code == ExitCode.USAGE
    assert "s3cret" not in ran.stderr


KEYED = [
    ("plan-rebalance", "--read-queues", "4", "5"),
    ("plan-rebalance", "--read-queues", "broker-a=4", "broker-a=5"),
    ("plan-rebalance", "--write-queues", "broker-a=4", "broker-a=4"),
    ("show-owners", "--strategy-option", "broker-zone=a*=x", "broker-zone=a*=y"),
    ("simulate-rebalance --event 'join z@1s'", "--rate", "5", "6"),
    ("simulate-rebalance --event 'join z@1s'", "--timer", "heartbeat=5s", "HEARTBEAT=6s"),
    ("simulate-send -t OrderEvents", "--latency", "3ms", "4ms"),
    ("simulate-send -t OrderEvents", "--latency", "broker-a=3ms", "broker-a=4ms"),
    ("simulate-send -t OrderEvents", "--fail", "broker-a@1s-2s", "broker-a@1s-2s:timeout"),
    ("simulate-send -t OrderEvents", "--fail", "broker-a", "broker-a:timeout"),
]


@every_case(("line", "option", "first", "second"), KEYED, ids=str)
def test_one_thing_is_given_one_value(line: str, option: str, first: str, second: str) -> None:
    import shlex

    name, *more = shlex.split(line)
    group = [] if name == "simulate-send" else ["-g", "order-svc"]
    start = (name, "-s", EXAMPLE, *group, *more)
    failed = error_of(run(*start, option, first, option, second).stderr)
    assert failed.code == "given-twice"
    assert option in failed.message
    assert second in failed.message


def test_the_number_of_a_broker_goes_before_that_of_all_in_any_order() -> None:
    plan = ("plan-rebalance", "-s", EXAMPLE, "-g", "order-svc", "-o", "json")
    both = ("--read-queues", "9"), ("--read-queues", "broker-a=5")
    first, second = (run(*plan, *one, *other).stdout for one, other in (both, both[::-1]))
    assert '"queueId": 8' in first
    assert sorted(first.split()) == sorted(second.split())


def test_settings_of_spark_and_addresses_are_given_once() -> None:
    with pytest.raises(UsageError, match=r"spark\.driver\.memory: it is given twice") as conf:
        parse_conf(["spark.driver.memory=1g", "spark.driver.memory=2g"])
    with pytest.raises(UsageError, match=r"a:1=…: it is given twice") as addresses:
        parse_address_map(["a:1=b:1", "a:1=c:1"])
    assert {conf.value.code, addresses.value.code} == {"given-twice"}
    assert parse_address_map(["a:1=b:1", "a:1=b:1"]).apply("a:1") == "b:1"
