import json
import os
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from rmqlb.engine.allocate.rules import NAMES
from rmqlb.engine.check import check_policy
from rmqlb.engine.source_findings import source_findings
from rmqlb.errors import UsageError
from rmqlb.model.policy import GROUP, CheckResult, Policy
from rmqlb.model.result import ERROR, SEVERITIES, Meta, Progress, no_progress, with_meta
from rmqlb.verbs.amounts import one_of
from rmqlb.verbs.diagnose import earlier_snapshots, samples_before
from rmqlb.verbs.source import AnySource, Earlier, reader
from rmqlb.verbs.strategies import Strategies


def check(
    source: AnySource,
    policy: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    *,
    today: date | None = None,
    fail_on: str = ERROR,
    earlier: AnySource | Earlier | Sequence[AnySource | Earlier] = (),
    strategy_options: str | Sequence[str] = (),
    progress: Progress = no_progress,
) -> CheckResult:
    """Check a cluster against a policy: limits for its groups and topics, with waivers that expire.

    `policy` is a file or its content as a dict; None is the built-in policy. `outcome` of the result is `passed`,
    `failed` or `incomplete`. The limit `maxDrainTime` needs `earlier` snapshots, or one (raises DataError for one that
    is not earlier).
    """
    lowest = one_of(fail_on, "--fail-on", SEVERITIES)
    rules = policy_of(policy)
    strategies = Strategies(strategy_options)
    strategies.named += [rule.assume for rule in rules.rules if rule.assume is not None]
    strategies.must_apply(reported=True)
    before = earlier_snapshots(earlier)
    day = today or datetime.now().astimezone().date()
    snapshot = reader(source).fetch(rules.wanted)
    settings = strategies.settings_for(list(snapshot.routes))
    groups = [name for name in snapshot.groups if any(rule.about == GROUP and rule.takes(name) for rule in rules.rules)]
    past = samples_before(before, snapshot, groups)
    checked = check_policy(snapshot, rules, day, settings=settings, fail_on=lowest, earlier=past, progress=progress)
    return with_meta(checked.result, Meta(snapshot, (*checked.findings, *source_findings(snapshot)), checked))


def policy_of(policy: str | os.PathLike[str] | Mapping[str, Any] | None, *built_in: str) -> Policy:
    """A policy by its file or its content; None is the built-in one (raises UsageError)."""
    from rmqlb.sources.user_files.policy_file import built_in_text, parse_policy, read_policy

    if policy is None:
        return parse_policy(built_in_text(*built_in), "built-in policy", NAMES)
    if isinstance(policy, str | os.PathLike):
        return read_policy(os.fspath(policy), NAMES)
    try:
        text = json.dumps(policy, default=str)  # dates of waivers
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the policy cannot be written as JSON: {error}") from None
    return parse_policy(text, "the policy", NAMES)
