"""Where a plan's new owners start to pull: brokers are asked once more, only about the queues that move."""

from __future__ import annotations

from collections.abc import Iterator

from rmqlb.cli.common.inputs import GroupOnTopics, Reader
from rmqlb.engine.consume.starts import start_questions, with_starts
from rmqlb.model.finding import Finding
from rmqlb.model.group_scenario import known_consume_from
from rmqlb.model.plan import RebalancePlan
from rmqlb.model.words import counted

MOST_ASKED = 256
"""Queues of a plan that brokers are asked about."""


def start_where(plan: RebalancePlan, found: GroupOnTopics, reader: Reader) -> tuple[RebalancePlan, list[Finding]]:
    """The plan with the start offsets of its new owners, and why some are missing."""
    group = found.group
    consume_from = known_consume_from(group.consume_from_where if group else None)
    states = group.queues if group else {}
    questions = () if group is None else start_questions(plan, group, consume_from, found.routes)
    asked = questions[:MOST_ASKED]
    answers = reader.ask_offsets(group.group, asked) if group is not None and asked else None
    plan = with_starts(plan, {**states, **(answers or {})}, consume_from, found.routes)
    told = [] if answers is None else list(_missing(len(questions), len(asked), len(answers)))
    return plan, [*told, *_own_files(plan, consume_from)]


def _own_files(plan: RebalancePlan, consume_from: str) -> Iterator[Finding]:
    """That new BROADCASTING consumers are taken to be new on their machines too."""
    new = [each.client_id for each in plan.consumers if each.index_before is None]
    if plan.broadcasting and new:
        yield Finding(
            "own-offset-file",
            f"{counted(len(new), 'new consumer')} taken to have no offset file (~/.rocketmq_offsets/"
            f"{new[0]}/{plan.group}/offsets.json): without one a BROADCASTING consumer starts by {consume_from}",
        )


def _missing(questions: int, asked: int, answers: int) -> list[Finding]:
    findings = []
    if questions > asked:
        text = f"start offsets: brokers were asked about {asked} of {counted(questions, 'queue')} that change owners"
        findings.append(Finding("starts-not-asked", f"{text}, the others are as consume stats report them"))
    if asked > answers:
        text = f"start offsets: brokers did not answer for {asked - answers} of {counted(asked, 'queue')}"
        findings.append(Finding("starts-not-asked", text))
    return findings
