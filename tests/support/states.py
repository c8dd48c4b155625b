from rmqlb.model.group import QueueState, States
from tests.support.builders import queues


def seen(*owners: str, lag: int = 0) -> States:
    """The queues of broker x, with the owners of each in one text, and so many messages to read."""
    return {
        queue: QueueState(frozenset(ids.split()), broker_offset=lag, consumer_offset=0)
        for queue, ids in zip(queues(len(owners), "x"), owners, strict=True)
    }
