"""Random questions, seeded: the same for every SDK that can be asked.

A program in `programs/` reads a question a line, its fields parted by tabs, and answers each with a line:

    hash  KEY    QUEUES          where a message with that key goes
    take  START  QUEUES  STEPS   the candidates of messages, one step each, from a counter that stands at START
    send  START  QUEUES  STEPS   where the attempts of messages go, in each step with other brokers failing

KEY is UTF-16 as hexadecimal digits. QUEUES are `broker:id,broker:id` in the order of the route. STEPS are
`count:broker,broker;count:broker`: how many candidates are wanted, and which brokers are isolated (`take`) or fail
(`send`). Answers are positions among the queues: `3`, or for steps `0,2;1`. An exception is `!` and its name.
"""

import random
from collections.abc import Iterator

from msgspec import Struct

HASHES, SURROGATES, TAKES, SENDS = 400, 24, 360, 320
WORDS = ("order-", "user/", "Bestellung ", "заказ-", "注文", "ключ", "é", "e\u0301", "\U0001f418", "ﬁ", "%RETRY%", "\t")


class Step(Struct, frozen=True):
    """One message: how many candidates are wanted, and the brokers that are isolated, or fail."""

    count: int
    brokers: tuple[str, ...]

    def text(self) -> str:
        return f"{self.count}:{','.join(self.brokers)}"


class Question(Struct, frozen=True):
    kind: str
    queues: tuple[tuple[str, int], ...]
    key: str = ""
    start: int = 0
    steps: tuple[Step, ...] = ()

    def line(self, *, signed: bool) -> str:
        """As a program reads it; a signed program's counter has 32 bits of which the first is the sign."""
        queues = ",".join(f"{broker}:{number}" for broker, number in self.queues)
        if self.kind == "hash":
            return f"hash\t{self.key.encode('utf-16-be', 'surrogatepass').hex()}\t{queues}"
        start = self.start - 2**32 if signed and self.start >= 2**31 else self.start
        return f"{self.kind}\t{start}\t{queues}\t{';'.join(step.text() for step in self.steps)}"


def questions() -> Iterator[Question]:
    rng = random.Random("what producers pick")
    for number in range(HASHES):
        yield Question("hash", _queues(rng), _key(rng, number))
    for _ in range(SURROGATES):
        at = rng.choice(("\ud83d", "\udc18", "\udc18\ud83d"))
        yield Question("hash", _queues(rng), f"{_key(rng, 3)}{at}{_key(rng, 2)}")
    for _ in range(TAKES):
        queues = _queues(rng)
        steps = tuple(Step(rng.choice((1, 2, 3, 3, 3, 5)), _some(rng, queues)) for _ in range(rng.randint(4, 14)))
        yield Question("take", queues, start=_start(rng), steps=steps)
    for _ in range(SENDS):
        queues = _queues(rng, repeats=False)
        steps = tuple(Step(3, _some(rng, queues)) for _ in range(rng.randint(4, 14)))
        yield Question("send", queues, start=_start(rng), steps=steps)


def _key(rng: random.Random, number: int) -> str:
    """Every length from none to two blocks of the hashes and more, in bytes of several kinds."""
    if number < 40:
        return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz0123456789-_") for _ in range(number))
    return "".join(f"{rng.choice(WORDS)}{rng.randrange(10 ** rng.randint(1, 9))}" for _ in range(rng.randint(1, 5)))


def _queues(rng: random.Random, *, repeats: bool = True) -> tuple[tuple[str, int], ...]:
    """Broker by broker as in a route; now and then in another order, or with a queue listed twice."""
    brokers = [f"b{number}" for number in range(rng.choice((1, 1, 2, 2, 3, 4, 7)))]
    rng.shuffle(brokers)
    most = rng.choice((1, 2, 4, 8, 16))
    queues = [(broker, number) for broker in brokers for number in range(rng.choice((most, rng.randint(1, most))))]
    odd = rng.random()
    if odd < 0.15:
        rng.shuffle(queues)
    elif odd < 0.25 and repeats:
        queues.append(rng.choice(queues))
    return tuple(queues)


def _some(rng: random.Random, queues: tuple[tuple[str, int], ...]) -> tuple[str, ...]:
    brokers = sorted({broker for broker, _ in queues} | {"stranger"})
    roll = rng.random()
    if roll < 0.4:
        return ()
    return tuple(brokers) if roll < 0.55 else tuple(rng.sample(brokers, rng.randint(1, len(brokers))))


def _start(rng: random.Random) -> int:
    """Anywhere in 32 bits, often where a counter of 31 or 32 bits is about to wrap, and often at the beginning."""
    near = rng.randrange(12)
    return rng.choice((near, 2**31 - 1 - near, 2**31 + near, 2**32 - 1 - near, rng.randrange(2**32)))
