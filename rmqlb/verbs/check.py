"""`rmqlb.check`: a cluster held against a policy."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from msgspec import Struct

from rmqlb.engine.allocate.rules import NAMES
from rmqlb.engine.check.check import check_policy
from rmqlb.engine.source_findings import source_findings
from rmqlb.errors import UsageError
from rmqlb.model.check_result import CheckResult, check_result
from rmqlb.model.checking import CheckReport
from rmqlb.model.finding import ERROR, Severity
from rmqlb.model.policy import Policy
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.result import Meta, with_meta
from rmqlb.verbs.parse import severity
from rmqlb.verbs.source import AnySource, Reader, reader
from rmqlb.verbs.strategies import Strategies


class CheckQuestion(Struct, frozen=True):
    """What is checked.

    Attributes:
        policy: the rules and waivers.
        today: the day on which waivers are looked at.
        fail_from: the lowest severity that decides the outcome.
        strategies: the settings of whatever strategies consumers report, or rules assume.
    """

    policy: Policy
    today: date
    fail_from: Severity
    strategies: Strategies


def check(
    source: AnySource,
    policy: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    *,
    today: date | None = None,
    fail_from: Severity = ERROR,
    strategy_options: Sequence[str] = (),
) -> CheckResult:
    """Check a cluster against a policy: limits for its groups and topics, with waivers that expire.

    Args:
        source: a URL, a file, a snapshot, a parsed document or a reader.
        policy: the file of the policy, or what it holds as a dict; None is the built-in policy.
        today: the day on which waivers are looked at; None is the day of this computer.
        fail_from: the lowest severity that decides `outcome`: error, warning or info.
        strategy_options: settings of strategies, as `virtual-nodes=20`.

    Returns:
        The limits; `outcome` is `passed`, `failed` or `incomplete`.

    Raises:
        UsageError: an argument or the policy cannot be meant.
        DataError: the source does not hold what the policy is about.
        EndpointError: the source cannot be read.
    """
    report, meta = check_source(reader(source), check_question(policy, today, fail_from, strategy_options))
    return with_meta(check_result(report), meta)


def check_question(
    policy: str | os.PathLike[str] | Mapping[str, Any] | None,
    today: date | None,
    fail_from: str,
    strategy_options: Sequence[str],
) -> CheckQuestion:
    """The question that options or arguments ask (raises UsageError)."""
    lowest = severity(fail_from, "--fail-from")
    rules = _policy(policy)
    strategies = Strategies(strategy_options)
    strategies.named += [rule.assume for rule in rules.rules if rule.assume is not None]
    strategies.must_apply(reported=True)
    return CheckQuestion(rules, today or datetime.now().astimezone().date(), lowest, strategies)


def check_source(source: Reader, question: CheckQuestion, progress: Progress = no_progress) -> tuple[CheckReport, Meta]:
    """What came of each limit, from one reading, and what belongs next to it (raises RmqlbError)."""
    snapshot = source.fetch(question.policy.wanted)
    settings = question.strategies.settings_for(list(snapshot.routes))
    report = check_policy(
        snapshot, question.policy, question.today, settings=settings, fail_from=question.fail_from, progress=progress
    )
    return report, Meta(snapshot, (*report.findings, *source_findings(snapshot)))


def _policy(policy: str | os.PathLike[str] | Mapping[str, Any] | None) -> Policy:
    from rmqlb.sources.user_files.policy_file import built_in_text, parse_policy, read_policy

    if policy is None:
        return parse_policy(built_in_text(), "built-in policy", NAMES)
    if isinstance(policy, str | os.PathLike):
        return read_policy(os.fspath(policy), NAMES)
    try:
        text = json.dumps(policy, default=str)  # dates of waivers
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the policy cannot be written as JSON: {error}") from None
    return parse_policy(text, "the policy", NAMES)
