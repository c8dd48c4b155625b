"""A strategy and a selector of one's own, which rmqlb runs: --strategy examples/custom.py:weighted.

A strategy has the arguments of AllocateMessageQueueStrategy.allocate, both lists sorted as clients sort them; a
selector has those of MessageQueueSelector.select but the message.
"""

from zlib import crc32

WEIGHTS = {"192.0.2.2@inst0": 3}
"""Client id → how many shares it takes; others take one."""


def weighted(group, client_id, queues, client_ids):
    """Queues in blocks, in proportion to the consumers' weights."""
    if client_id not in client_ids:
        return []
    weights = [WEIGHTS.get(each, 1) for each in client_ids]
    place = client_ids.index(client_id)
    first, last = (len(queues) * sum(weights[:count]) // sum(weights) for count in (place, place + 1))
    return queues[first:last]


def by_customer(queues, key):
    """All orders of a customer in one queue: the key is CUSTOMER-ORDER."""
    customer = str(key).partition("-")[0]
    return queues[crc32(customer.encode()) % len(queues)]
