from pathlib import Path

from rmqlb.model.message_queue import MessageQueue
from rmqlb.sources.formats.documents import decode, open_envelope

DATA = Path(__file__).parent.parent / "data"
DASHBOARD = DATA / "dashboard"
MQADMIN = DATA / "mqadmin"


def dashboard_path(name: str) -> str:
    return str(DASHBOARD / f"{name}.json")


def dashboard_body(name: str) -> bytes:
    return (DASHBOARD / f"{name}.json").read_bytes()


def dashboard_data(name: str) -> object:
    envelope = decode(dashboard_body(name), object, name)
    assert isinstance(envelope, dict)
    return open_envelope(envelope, name)


def mqadmin_text(name: str) -> str:
    return (MQADMIN / f"{name}.txt").read_text(encoding="utf-8")


def queue(text: str) -> MessageQueue:
    """`topic broker id` as a queue."""
    topic, broker_name, queue_id = text.split()
    return MessageQueue(topic, broker_name, int(queue_id))
