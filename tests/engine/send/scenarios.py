from typing import Any

from rmqlb import Failure, Reaction, SendReport, SendScenario, TopicRouteData, simulate_send
from tests.support.builders import route

S = 1_000_000
REFUSED = Reaction("refused", "refused", 0, 1000)
TIMEOUT = Reaction("timeout", "timeout")
SLOW = Reaction("slow", "slow", 0, 800_000)
UNSAFE = Reaction("status", "FLUSH_DISK_TIMEOUT", 10)
ERROR = Reaction("code", "SYSTEM_ERROR", 1)
READ_ONLY = Reaction("read-only", "read-only")
TWO = route(a=2, b=2)
THREE = route(a=2, b=2, c=2)


def sent(*failures: Failure, topic: TopicRouteData = THREE, **fields: Any) -> SendReport:
    given: dict[str, Any] = {"start_at": 0, "messages": 6, "failures": failures}
    return simulate_send(topic, SendScenario(**given | fields))
