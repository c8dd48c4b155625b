"""Random questions about allocation, seeded: the lists of a topic and a group, odd ones included.

Names have no tab, no line break and no half of a surrogate pair: the first two part the fields of a question, and the
third is written by no broker.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

Queue = tuple[str, str, int]

BROKERS = (
    ("broker-a", "broker-b", "broker-c", "broker-d"),
    tuple(f"broker-{number}" for number in range(7, 14)),
    ("r1@a", "r1@b", "r2@a", "r2@b", "r3@a", "plain"),
    ("r1@a", "r1@", "@", "@a", "r1@a@", "r1@a@b", "a@@", "r1", ""),
    ("брокер-1", "経路-乙", "\U0001f418-1", "￮", "\ue000", "ﬁ", "é", "e\u0301", "\U00010000"),
    ("b" * 70, "b" * 63, "b" * 64, "B"),
)
IDS = (
    tuple(f"10.0.0.{number}@{100 + number}#9{number}7" for number in range(1, 40)),
    ("10.0.0.9@1", "10.0.0.10@1", "10.0.0.1@2", "10.0.0.1@10", "[fe80::1]@7", "10.0.0.9@1@unit", "a", "b", "c"),
    ("\U0001f600@1", "￮@1", "\ue000@1", "\U00010000@1", "é@1", "e\u0301@1", "z@1", "Ж@1", "経@1"),
    ("a", "0a", "00a", "1a", "10a", "0", "00", "1", "a0"),  # the number of a ring's entry may run into a name
    tuple(f"{'x' * length}@{length}" for length in (50, 58, 60, 61, 62, 63, 64, 65, 100)),
)
TOPICS = ("T", "TopicTest", "MQ_INST_1%orders", "тема", "\U0001f418")
SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 12, 20)
LAST_ID = 2**31 - 1
STRANGER = "not-there@1"


@dataclass(frozen=True)
class Question:
    topic: str
    queues: list[Queue]
    client_ids: list[str]
    asked: list[str]
    rooms: list[str] = field(default_factory=list)
    config: list[Queue] = field(default_factory=list)
    virtual_nodes: int = 10


def questions(name: str, count: int, *, duplicate_queues: bool = False) -> Iterator[Question]:
    """So many questions, the same for a name; `duplicate_queues` lists queues twice, as a client's list may."""
    for number in range(count):
        yield _question(random.Random(f"{name} {number}"), duplicate_queues=duplicate_queues)


def _question(rng: random.Random, *, duplicate_queues: bool) -> Question:
    topic = rng.choice(TOPICS)
    names = rng.choice(BROKERS)
    brokers = rng.sample(names, min(len(names), rng.choice(SIZES)))
    queues = [
        (topic, broker, number) for broker in brokers for number in rng.sample(_numbers(rng), rng.choice((1, 2, 4, 8)))
    ]
    if duplicate_queues and queues and rng.random() < 0.1:
        queues += rng.choices(queues, k=2)
    rng.shuffle(queues)
    pool = rng.choice(IDS)
    ids = rng.sample(pool, min(len(pool), rng.choice(SIZES)))
    if ids and rng.random() < 0.25:
        ids += rng.choices(ids, k=rng.randint(1, 3))
    rng.shuffle(ids)
    return Question(
        topic,
        queues,
        ids,
        [*list(dict.fromkeys(ids))[:10], STRANGER, ""],
        rng.sample(("r1", "r2", "r3", "", "a", "nowhere"), rng.choice((0, 1, 2, 3))),
        rng.sample([*queues, (topic, "elsewhere", 3)], rng.randint(0, min(3, len(queues)))),
        rng.choice((10, 10, 10, 1, 2, 20, 50, 0, -1)),
    )


def _numbers(rng: random.Random) -> list[int]:
    """Ids of a broker's queues: from 0 on, and seldom from where they are nearly too large."""
    return list(range(8)) if rng.random() < 0.9 else [LAST_ID - number for number in range(4)] + [0, 9, 10, 100]
