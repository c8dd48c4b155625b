"""The table of `mqadmin topicRoute -l`, and the noise of a JVM around mqadmin's output."""

from __future__ import annotations

import io
import re

from rmqlb.errors import DocumentError
from rmqlb.model.route import QueueData
from rmqlb.sources.formats.documents import MOST_BROKERS, BrokerDataDocument, RouteDocument, convert

TABLE_START = "#ClusterName"
_NOISE = (
    r"OpenJDK |Java HotSpot|WARNING: |SLF4J: |RocketMQLog:|Picked up |log4j:|\[\d+\.\d+s\]\[|"
    r"\d\d:\d\d:\d\d,\d{3} \|-"  # logback's own status: 5.5.0 without its script's settings prints 240 such lines
)
_NOISY_LINES = rf"(?:[^\S\n]*\n|(?:{_NOISE})[^\n]*\n){{1,10000}}+"  # before a command's own output
_ROW = (
    r"(?P<cluster>\S+)\s+(?P<broker>\S+)\s+\{(?P<addrs>[^}]*)\}\s+(?P<readQueueNums>-?\d{1,10})\s+"
    r"(?P<writeQueueNums>-?\d{1,10})\s+(?P<perm>\d{1,10})\s*"
)


def without_noise(text: str) -> str:
    """Blank the leading lines of a JVM or its logging; line numbers in errors stay true."""
    noise = re.match(_NOISY_LINES, text)
    return text if noise is None else "\n" * noise[0].count("\n") + text[noise.end() :]


def is_noise(line: str) -> bool:
    return re.match(_NOISE, line) is not None


def failed_command(text: str) -> str | None:
    """The reason in a stack trace instead of an answer, or None."""
    if "SubCommandException" not in text and "MQClientException" not in text:
        return None
    match = re.search(r"CODE: -?\d+\s+DESC: [^\n]*", text)
    return match[0] if match else text.strip().partition("\n")[0]


def read_table(text: str, where: str) -> RouteDocument:
    """The table of `mqadmin topicRoute -l` (`TopicRouteSubCommand`; raises DocumentError)."""
    brokers: list[BrokerDataDocument] = []
    queues: list[QueueData] = []
    lines = ((number, line.rstrip("\r\n")) for number, line in enumerate(io.StringIO(text), 1))
    next(number for number, line in lines if line.lstrip().startswith(TABLE_START))
    for number, line in lines:
        if line.startswith("---"):
            try:
                return RouteDocument(queue_datas=queues, broker_datas=brokers)
            except ValueError as error:
                raise DocumentError(f"{where}: {error}") from None
        match, place = re.fullmatch(_ROW, line), f"{where}, line {number}"
        if not match:
            raise DocumentError(f"{place}: not a row of the table that mqadmin topicRoute -l prints")
        if len(brokers) == MOST_BROKERS:
            raise DocumentError(f"{place}: more than {MOST_BROKERS} brokers")
        brokers.append(BrokerDataDocument(match["broker"], match["cluster"], _addrs(match["addrs"], place)))
        numbers = {name: int(match[name]) for name in ("readQueueNums", "writeQueueNums", "perm")}
        queues.append(convert({"brokerName": match["broker"], **numbers}, QueueData, place))
    raise DocumentError(f"{where}: the table of mqadmin topicRoute -l is cut short: its Total line is missing")


def _addrs(text: str, where: str) -> dict[int, str]:
    addrs: dict[int, str] = {}
    for item in filter(None, text.split(", ")):
        broker_id, equals, addr = item.partition("=")
        if not equals or not re.fullmatch(r"\d{1,19}", broker_id):
            raise DocumentError(f"{where}: {item[:80]!r} is not ID=ADDRESS")
        addrs[int(broker_id)] = addr
    return addrs
