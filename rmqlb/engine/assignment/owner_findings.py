"""What is wrong with the owners of queues, whether they were observed or predicted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rmqlb.engine.assignment.balance import Owners
from rmqlb.model.finding import ERROR, Finding
from rmqlb.model.group import States
from rmqlb.model.message_queue import MessageQueue, queue_ranges, sort_client_ids
from rmqlb.model.words import messages, of_all

if TYPE_CHECKING:
    from rmqlb.model.assignment import Basis


def owner_findings(owners: Owners, title: str, group: str | None, basis: Basis, states: States) -> Iterator[Finding]:
    """Queues without an owner, and with several; a BROADCASTING group's have several rightly and are not for here.

    Args:
        title: the group in a sentence.
        states: of queues, as far as they are known.
    """
    unassigned = [queue for queue, its_owners in owners.items() if not its_owners]
    if unassigned:
        verb = "is" if len(unassigned) == 1 else "are"
        waiting = sum(states[queue].lag or 0 for queue in unassigned if queue in states)
        left = f", {messages(waiting)} waiting" if waiting else ""
        text = f"{_of(unassigned, owners)} of {title} {verb} unassigned ({basis}){left}: {queue_ranges(unassigned)}"
        yield Finding("unassigned-queues", text, group, ERROR)
    several = [queue for queue, its_owners in owners.items() if len(its_owners) > 1]
    if several:
        verb = "has" if len(several) == 1 else "have"
        text = f"{_of(several, owners)} of {title} {verb} duplicate owners ({basis}): {queue_ranges(several)}"
        ids = sort_client_ids({client_id for queue in several for client_id in owners[queue]})
        yield Finding("duplicate-owners", text, group, ERROR, tuple(ids))


def _of(some: list[MessageQueue], owners: Owners) -> str:
    return of_all(len(some), len(owners))
