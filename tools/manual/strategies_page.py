"""rmqlb-strategies(7): what each strategy gives whom, drawn by running it, and when to use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import cleandoc, getdoc
from typing import Any

from msgspec import Struct, field

from rmqlb.engine.allocate import allocate
from rmqlb.engine.allocate.rules import class_of
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
    use: str  # when to choose the strategy, and what it costs
    # broker name → its read queues
    brokers: Mapping[str, int] = field(default_factory=lambda: {"broker-a": 5, "broker-b": 5})
    settings: Mapping[str, Any] = field(default_factory=dict)  # what `allocate` is given besides
    said: str = ""  # the settings as options


CASES: Mapping[str, Case] = {
    "AVG": Case(
        "Each consumer gets one block of neighbouring queues. Where the queues do not divide evenly, the "
        "first consumers get one more.",
        "The default; leave it while nothing speaks against it. It is even, and a consumer's queues lie together. A "
        "change of the consumers moves many queues, for every block behind the change is cut again, and where topics "
        "have fewer queues than the group has consumers, the first ids get the queues of all of them.",
    ),
    "AVG_BY_CIRCLE": Case(
        "The queues go to the consumers in turn, one at a time.",
        "Where the brokers differ in load: each consumer gets queues of many brokers, not of one or two, so that a "
        "slow broker slows every consumer a little. As even as AVG; a change of the consumers mostly moves even more.",
    ),
    "CONSISTENT_HASH": Case(
        "Consumers have places on a ring of hashes, and each queue goes to the next consumer on the ring.",
        "Where a move is dear (caches, ordered queues, long warm-up) and consumers come and go: a change moves only "
        "what the new consumer takes or the lost one had. It is uneven, all the more with few virtual nodes, and a "
        "consumer may get nothing: `rmqlb show-owners --strategy-option virtual-nodes=N` shows how uneven it is here.",
    ),
    "CONFIG": Case(
        "Each consumer gets the list it was configured with, whatever the cluster says.",
        "Where an operator decides by hand which consumer reads what, and keeps it right. A queue in no list is "
        "unassigned, one in two lists has two owners, and no consumer takes the place of one that is lost.",
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
        "Only queues on brokers of the listed rooms are assigned, in blocks; the remainder comes from the tail.",
        "Where brokers are named room@name and only some rooms are to be read. Queues of other rooms are "
        "unassigned in this group. MACHINE_ROOM_NEARBY is the better choice for nearly every other purpose.",
        brokers={"r1@broker-a": 5, "r2@broker-b": 5},
        settings={"consumer_idcs": ("r1",)},
        said="--strategy-option idc=r1",
    ),
    "MACHINE_ROOM_NEARBY": Case(
        "A zone with consumers keeps its queues to itself; all consumers share the queues of other zones.",
        "Where traffic between zones is slow or dear: queues are read in their own zone while a consumer is there, and "
        "by all consumers otherwise. Give each zone as many consumers as its share of the queues asks for, for no zone "
        "helps another one. Wraps another strategy, here AVG.",
        brokers={"r1-broker": 5, "r2-broker": 5},
        settings={
            "broker_zones": "([^-]+)-",
            "client_zones": {"10.0.0.1@g": "r1", "10.0.0.2@g": "r1", "10.0.0.3@g": "r2", "10.0.0.4@g": "r2"},
        },
        said="--strategy-option 'broker-zone=([^-]+)-' and the zones r1, r1, r2 and r2 of the consumers",
    ),
    "PIN": Case(
        "Only the consumers on the listed machines share the queues of a pinned topic.",
        "Where a topic may be read on chosen machines only: a licence, a disk, a canary. It is a wrapper that users "
        "write around RocketMQ's strategies; when none of the machines has a consumer, the topic's queues are "
        "unassigned. Wraps another strategy, here AVG.",
        settings={"hosts": ("10.0.0.2", "10.0.0.4")},
        said="--strategy-option host=10.0.0.2 --strategy-option host=10.0.0.4",
    ),
    "PIN_OVER_ALL": Case(
        "Consumers on the listed machines take their shares as if all consumers of the group shared the topic.",
        "Never on purpose: it shows what a PIN that counts the consumers elsewhere does. Compare it with the owners "
        "that `rmqlb show-owners` observed, when queues of a pinned topic are unassigned. Wraps another "
        "strategy, here AVG.",
        settings={"hosts": ("10.0.0.2", "10.0.0.4")},
        said="--strategy-option host=10.0.0.2 --strategy-option host=10.0.0.4",
    ),
}


def strategies_page() -> Page:
    """The page."""
    page = Page("rmqlb-strategies", 7, "which consumer gets which queue, strategy by strategy")
    page.heading("Description")
    page.paragraph(
        "A group's consumers divide the queues of a topic among themselves. Each one sorts the queues and the client "
        "ids, runs the strategy that it was built with, and takes its own share; no one checks that the shares fit "
        "together. They do while all consumers see the same lists and run the same strategy."
    )
    page.paragraph(
        "The pictures below are drawn by the same code that rmqlb plans with. A column is a queue, a row is a "
        "consumer, and # is a queue that the consumer reads. On the left are three consumers, on the right a "
        "fourth has joined."
    )
    page.paragraph(
        "Names are given in any case; a wrapper may name what it wraps: `MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE`."
    )
    page.heading("Strategies")
    for name in CASES:
        _strategy(page, name)
    page.heading("A strategy of one's own")
    page.paragraph(
        "Where a name of a strategy is asked for, `FILE.py:NAME` names a function in a file. rmqlb runs the file, as "
        "Python does, so name only files that you trust. The function has the arguments of "
        "`AllocateMessageQueueStrategy.allocate`:"
    )
    page.verbatim(["def NAME(group, client_id, queues, client_ids):", "    return queues[...]"])
    page.paragraph(
        "`queues` is a list of MessageQueue (topic, broker_name, queue_id), `client_ids` one of texts, both sorted as "
        "clients sort them. It returns a list of some of the queues, [] for none. It is asked once for each consumer. "
        "What it raises is what the client's strategy throws: the consumer keeps what it holds. A class or an object "
        "with a method `allocate` does as well."
    )
    page.paragraph(
        "Findings say when it leaves queues unassigned, gives a queue to several consumers, answers differently when "
        "it is asked again, or when its lists come in another order."
    )
    page.heading("Which one does a group run?")
    page.paragraph(
        "`rmqlb show-owners` puts who owns each queue now beside what each strategy would give it; the strategy with 0 "
        "in the column `mismatches` is the one. Consumers report their strategy where the source can ask them."
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
    for text in _prose(getdoc(class_of(name)) or ""):
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
