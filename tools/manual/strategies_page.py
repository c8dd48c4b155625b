"""rmqlb-strategies(7): what each strategy gives whom, drawn by running it, and when to use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import cleandoc, getdoc
from typing import Any

from msgspec import Struct, field

from rmqlb.engine.allocate import allocate
from rmqlb.engine.allocate.rules import RULES, class_at
from rmqlb.model.message_queue import MessageQueue
from tools.manual.roff import Page

_TOPIC = "T"
_MEMBERS = ("10.0.0.1@g", "10.0.0.2@g", "10.0.0.3@g")
_JOINER = "10.0.0.4@g"
_NAMES, _NUMBERS, _NOBODY = "", " ", "(unassigned)"
_ROWS = (_NAMES, _NUMBERS, *_MEMBERS, _JOINER, _NOBODY)


class Case(Struct, frozen=True):
    """A small group that shows what a strategy does."""

    rule: str  # the strategy in one or two sentences
    use: str  # when to choose the strategy, and its cost
    # broker name → its read queues
    brokers: Mapping[str, int] = field(default_factory=lambda: {"broker-a": 5, "broker-b": 5})
    settings: Mapping[str, Any] = field(default_factory=dict)  # what `allocate` is given besides
    said: str = ""  # the settings as options


CASES: Mapping[str, Case] = {
    "AVG": Case(
        "Each consumer gets one block of neighbouring queues. Where the queues do not divide evenly, the "
        "first consumers get one more.",
        "By default; change it only for a reason. AVG is even, and a consumer's queues are neighbours. When a consumer "
        "joins or leaves, many queues move, because all later blocks shift. If topics have fewer queues than the "
        "group has consumers, the consumers that sort first get the queues of all these topics.",
    ),
    "AVG_BY_CIRCLE": Case(
        "The queues go to the consumers in turn, one at a time.",
        "Where the brokers differ in load: each consumer gets queues of many brokers, so a slow "
        "broker slows every consumer a little. AVG_BY_CIRCLE is as even as AVG, but usually moves more queues when "
        "consumers change.",
    ),
    "CONSISTENT_HASH": Case(
        "Consumers have places on a ring of hashes, and each queue goes to the next consumer on the ring.",
        "Where moves are expensive (caches, ordered queues, long warm-up) and consumers often join and leave: only "
        "the queues of the new or lost consumer move. The shares are uneven, especially with few virtual nodes, and a "
        "consumer may get no queue. `rmqlb show-owners --strategy-option virtual-nodes=N` shows the shares in your "
        "group.",
    ),
    "CONFIG": Case(
        "Each consumer gets the list it was configured with, whatever the cluster says.",
        "Where an operator decides by hand which consumer reads which queues, and updates the lists after each "
        "change. A queue in no list is unassigned, and a queue in two lists has two owners. If a consumer is lost, no "
        "other consumer takes its queues.",
        settings={
            "config": {
                "10.0.0.1@g": [MessageQueue(_TOPIC, "broker-a", number) for number in range(5)],
                "10.0.0.2@g": [MessageQueue(_TOPIC, "broker-b", number) for number in range(3)],
            }
        },
        said="--strategy-option queues=FILE, which lists broker-a:0 to 4 for the first consumer and broker-b:0 to 2 "
        "for the second",
    ),
    "MACHINE_ROOM": Case(
        "Only queues on brokers of the listed rooms are assigned, in blocks. The first consumers each get one queue "
        "of the remainder.",
        "Where brokers are named room@name and the group should read only some rooms. Queues of other rooms are "
        "unassigned in this group. MACHINE_ROOM_NEARBY is the better choice for nearly every other purpose.",
        brokers={"r1@broker-a": 5, "r2@broker-b": 5},
        settings={"consumer_idcs": ("r1",)},
        said="--strategy-option idc=r1",
    ),
    "MACHINE_ROOM_NEARBY": Case(
        "The consumers of a zone share its queues; all consumers share the queues of zones without a consumer.",
        "Where traffic between zones is slow or expensive: consumers read the queues of their own zone, and all "
        "consumers share the queues of zones without a consumer. Give each zone consumers in proportion to its "
        "queues, because consumers never read from another zone that has consumers. Wraps another strategy, here AVG.",
        brokers={"r1-broker": 5, "r2-broker": 5},
        settings={
            "broker_zones": "([^-]+)-",
            "client_zones": {"10.0.0.1@g": "r1", "10.0.0.2@g": "r1", "10.0.0.3@g": "r2", "10.0.0.4@g": "r2"},
        },
        said="--strategy-option 'broker-zone=([^-]+)-' and the zones r1, r1, r2 and r2 of the consumers",
    ),
    "PIN": Case(
        "Only the consumers on the listed machines share the queues of a pinned topic.",
        "Where a topic may be read on chosen machines only: a licence, a disk, a canary. If none of the machines has "
        "a consumer, the topic's queues are unassigned. Wraps another strategy, here AVG.",
        settings={"hosts": ("10.0.0.2", "10.0.0.4")},
        said="--strategy-option host=10.0.0.2 --strategy-option host=10.0.0.4",
    ),
    "PIN_OVER_ALL": Case(
        "Consumers on the listed machines take their shares as if all consumers of the group shared the topic.",
        "Only to find a mistake: PIN_OVER_ALL shows the effect of a PIN that also counts consumers on other machines. "
        "Compare it with the owners that `rmqlb show-owners` observed, when queues of a pinned topic are unassigned. "
        "Wraps another strategy, here AVG.",
        settings={"hosts": ("10.0.0.2", "10.0.0.4")},
        said="--strategy-option host=10.0.0.2 --strategy-option host=10.0.0.4",
    ),
}


def strategies_page() -> Page:
    """The page."""
    page = Page("rmqlb-strategies", 7, "which consumer gets which queue, strategy by strategy")
    page.heading("Description")
    page.paragraph(
        "A group's consumers divide the queues of a topic among themselves. Each consumer sorts the queues and the "
        "client IDs, runs its own strategy, and takes its own share. No client or broker checks that the shares fit "
        "together. The shares fit if all consumers see the same lists and run the same strategy."
    )
    page.paragraph(
        "rmqlb draws the pictures below with the code that it uses for plans. A column is a queue, a row is a "
        "consumer, and # is a queue that the consumer reads. The left half has three consumers. In the "
        "right half, a fourth consumer has joined."
    )
    page.paragraph(
        "Case does not matter in strategy names. To choose the strategy that a wrapper wraps, append its name: "
        "`MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE`."
    )
    page.heading("Strategies")
    for name in CASES:
        _strategy(page, name)
    page.heading("Write your own strategy")
    page.paragraph(
        "Wherever you can name a strategy, you can also pass `FILE.py:NAME`, a function in a file. rmqlb runs the "
        "file, as Python does, so name only files that you trust. The function has the arguments of "
        "`AllocateMessageQueueStrategy.allocate`:"
    )
    page.verbatim(["def NAME(group, client_id, queues, client_ids):", "    return queues[...]"])
    page.paragraph(
        "`queues` is a list of MessageQueue (topic, broker_name, queue_id), and `client_ids` is a list of strings. "
        "Both are sorted as clients sort them. The function returns the queues of `client_id` as a list, or [] for no "
        "queue. rmqlb calls the function once for each consumer. If the function raises an exception, the consumer "
        "keeps its queues, as in a RocketMQ client. NAME can also be a class or an object with a method `allocate`."
    )
    page.paragraph(
        "Findings report a function that leaves queues unassigned, gives a queue to several consumers, returns "
        "different results for the same input, or depends on the order of its lists."
    )
    page.heading("Which strategy does a group run?")
    page.paragraph(
        "`rmqlb show-owners` compares the observed owner of each queue with the owner that each strategy predicts. "
        "The group runs the strategy with 0 in the column `mismatches`. If the source can query "
        "the consumers, the command also prints the strategy that they report."
    )
    page.see_also([("rmqlb", 1), ("rmqlb-show-owners", 1), ("rmqlb-plan-rebalance", 1), ("rmqlb-plan-rollout", 1)])
    return page


def picture(name: str) -> list[str]:
    """Who gets what of the case, before and after a member joins, and how many queues that moves."""
    case = CASES[name]
    queues = [MessageQueue(_TOPIC, broker, number) for broker, count in case.brokers.items() for number in range(count)]
    before = _owners(name, queues, _MEMBERS)
    after = _owners(name, queues, (*_MEMBERS, _JOINER))
    parts = [_parts(owners, queues, case.brokers) for owners in (before, after)]
    lines = []
    for row in _ROWS:
        cells = [part[row] for part in parts]
        if row == _JOINER:
            cells[0] = " " * len(cells[0])
        if row != _NOBODY or any("#" in cell for cell in cells):
            lines.append(f"{row:10}  {cells[0]}     {cells[1]}".rstrip())
    moved = sum(1 for queue in queues if before.get(queue) != after.get(queue))
    return [*lines, "", f"{moved} of {len(queues)} queues move"]


def _strategy(page: Page, name: str) -> None:
    case = CASES[name]
    page.subheading(name)
    page.paragraph(case.rule)
    for text in _prose(getdoc(class_at(RULES[name].place)) or ""):
        page.paragraph(text)
    if case.said:
        page.paragraph(f"With {case.said}:")
    page.verbatim(picture(name))
    page.paragraph(f"When to use it: {case.use}")


def _owners(name: str, queues: Sequence[MessageQueue], members: Sequence[str]) -> dict[MessageQueue, str]:
    shares = allocate(name, queues, members, **CASES[name].settings)
    return {queue: member for member, owned in shares.items() for queue in owned}


def _parts(
    owners: Mapping[MessageQueue, str], queues: Sequence[MessageQueue], brokers: Mapping[str, int]
) -> dict[str, str]:
    """Row → what stands there; the first two rows, whose names are blank, are the brokers and the numbers."""
    widths = {broker: max(2 * count - 1, len(broker)) for broker, count in brokers.items()}
    rows = {
        _NAMES: [broker.ljust(width) for broker, width in widths.items()],
        _NUMBERS: [" ".join(map(str, range(count))).ljust(widths[broker]) for broker, count in brokers.items()],
    }
    for row in (*_MEMBERS, _JOINER, _NOBODY):
        owner = None if row == _NOBODY else row
        rows[row] = [
            " ".join(
                "#" if owners.get(queue) == owner else "." for queue in queues if queue.broker_name == broker
            ).ljust(width)
            for broker, width in widths.items()
        ]
    return {row: "  ".join(cells) for row, cells in rows.items()}


def _prose(docstring: str) -> list[str]:
    """Its paragraphs without the worked example."""
    blocks = [block for block in cleandoc(docstring).split("\n\n") if not block.startswith(">>>")]
    return [" ".join(block.split()) for block in blocks]
