"""A loopback Proxy that answers as captured ones of 5.5.0 did; `tests/data/proxy` says which."""

from pathlib import Path

from rmqlb.remoting.codes import RequestCode
from rmqlb.remoting.command import RemotingCommand
from rmqlb.remoting.frame import FrameDecoder
from tests.support.replay_remoting import Replay, Turn, raw

CAPTURES = Path(__file__).parent.parent / "data" / "proxy"


def captured(name: str) -> RemotingCommand:
    (answer,) = FrameDecoder().feed((CAPTURES / f"5.5.0-{name}.frame").read_bytes())
    return answer


def consumers(answer: str) -> RemotingCommand:
    """What the first Proxy answered, of which it lists a group's consumers; `missing` when it listed none."""
    return captured(f"p1-connections-{answer}")


def proxy_replay(**groups: str) -> Replay:
    """A Proxy that lists the consumers of these groups (`_` for `-`): group → the captured answer."""
    found = {group.replace("_", "-"): consumers(answer) for group, answer in groups.items()}

    def listed(request: RemotingCommand) -> RemotingCommand:
        return found.get(request.ext_fields.get("consumerGroup", ""), consumers("missing"))

    def answer(turn: Turn) -> None:
        is_list = turn.request.code == RequestCode.GET_CONSUMER_CONNECTION_LIST
        turn.write(turn.framed(listed(turn.request) if is_list else captured("p1-stats")))

    return Replay(faults={"*": answer})


def grpc_port() -> Replay:
    """The gRPC port of a Proxy, which takes what we send for bad HTTP/2."""

    def refuse(turn: Turn) -> None:
        raw((CAPTURES / "5.5.0-grpc-port.bytes").read_bytes())(turn)
        turn.hang_up()

    return Replay(faults={"*": refuse})
