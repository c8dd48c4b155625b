from hypothesis import given
from hypothesis import strategies as st

from rmqlb import MessageQueue
from rmqlb.model.java import sort_key, split
from rmqlb.model.message_queue import queue_order, sort_queues


def test_its_text_is_javas() -> None:
    assert str(MessageQueue("T", "broker-a", 0)) == "MessageQueue [topic=T, brokerName=broker-a, queueId=0]"


def test_queues_sort_by_topic_then_broker_then_number() -> None:
    queues = [
        MessageQueue("T", "b-9", 2),
        MessageQueue("T", "b-9", 10),
        MessageQueue("T", "b-10", 0),
        MessageQueue("S", "z", 0),
    ]
    assert sort_queues(queues) == [queues[3], queues[2], queues[0], queues[1]] == sorted(queues)


@given(st.text(), st.text())
def test_text_compares_by_utf16_unit_then_length(one: str, other: str) -> None:
    def units(text: str) -> list[int]:
        raw = text.encode("utf-16-be", "surrogatepass")
        return [int.from_bytes(raw[i : i + 2], "big") for i in range(0, len(raw), 2)]

    assert (sort_key(one) < sort_key(other)) == (units(one) < units(other))


@given(st.lists(st.builds(MessageQueue, st.text(max_size=3), st.text(max_size=3), st.integers(0, 9))))
def test_sorting_is_by_the_one_order(queues: list[MessageQueue]) -> None:
    assert sort_queues(queues) == sorted(queues, key=queue_order)


@given(st.text("a;:", max_size=8))
def test_split_gives_back_the_text_but_for_trailing_separators(text: str) -> None:
    assert ";".join(split(text, ";")) == text.rstrip(";")
