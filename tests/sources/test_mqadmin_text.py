"""What `mqadmin topicRoute` prints: JSON, the table of `-l`, the noise of a JVM, and a stack trace instead of an answer."""

from __future__ import annotations

import pytest

from rmqlb.errors import DocumentError
from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.sources.formats import documents as docs
from rmqlb.sources.formats.mqadmin_text import failed_command, read_table, without_noise
from tests.support.mismatches import every_case

from .captures import MQADMIN, mqadmin_text

TABLES = sorted(path.stem for path in MQADMIN.glob("*-list.txt"))
NOISE = """\
OpenJDK 64-Bit Server VM warning: Options -Xverify:none were deprecated in JDK 13.
Picked up JAVA_TOOL_OPTIONS: -Dfile.encoding=UTF-8
[0.004s][warning][cds] shared class paths mismatch
RocketMQLog:WARN No appenders could be found for logger (io.netty.util.internal.InternalThreadLocalMap).
SLF4J: Failed to load class org.slf4j.impl.StaticLoggerBinder.

"""
HEADER = "#ClusterName  #BrokerName  #BrokerAddrs  #ReadQueue #WriteQueue #Perm\n"
ROW = "c  a  {0=10.0.0.1:10911, 1=10.0.0.2:10911}  8  4  6    \n"


def table(text: str) -> TopicRouteData:
    return docs.route(read_table(text, "table"), "T")


def by_name(route: TopicRouteData) -> tuple[set[QueueData], list[BrokerData]]:
    return {*route.queue_datas}, sorted(route.broker_datas, key=lambda broker: broker.broker_name)


def problem(text: str) -> str:
    with pytest.raises(DocumentError) as caught:
        table(text)
    return caught.value.message


@every_case("name", TABLES)
def test_the_table_and_the_json_of_one_route_agree(name: str) -> None:
    from_json = docs.parse_route(mqadmin_text(name.removesuffix("-list")), "T")
    assert by_name(table(mqadmin_text(name))) == by_name(from_json)
    assert from_json.subscribe_queues()


def test_line_numbers_stay_true_behind_noise() -> None:
    noisy = without_noise(NOISE + HEADER + "not a row\n")
    assert problem(noisy) == "table, line 8: not a row of the table that mqadmin topicRoute -l prints"


@every_case("version", ["4.9.7", "5.5.0"])
def test_a_stack_trace_gives_its_reason(version: str) -> None:
    reason = "CODE: 17  DESC: No topic route info in name server for the topic: NoSuchTopic"
    assert failed_command(mqadmin_text(f"{version}-topicRoute-NoSuchTopic.stderr")) == reason


def test_a_cut_table_says_that_its_end_is_missing() -> None:
    for lines in (1, 2):
        text = "".join(mqadmin_text("5.5.0-topicRoute-Skewed-list").splitlines(keepends=True)[:lines])
        assert problem(text) == "table: the table of mqadmin topicRoute -l is cut short: its Total line is missing"


@every_case("line_end", ["\n", "\r\n"])
def test_a_table_is_read_with_either_line_end_and_an_indented_heading(line_end: str) -> None:
    text = (" " + HEADER + ROW + "-----\nTotal:  1  8  4\n").replace("\n", line_end)
    [data], [broker] = table(text).queue_datas, table(text).broker_datas
    assert (data.broker_name, data.read_queue_nums, data.write_queue_nums, data.perm) == ("a", 8, 4, 6)
    assert broker.broker_addrs == {0: "10.0.0.1:10911", 1: "10.0.0.2:10911"}


@every_case("addrs", ["x=10.0.0.1:1", "10.0.0.1:1", "0=a:1, -1=b:1", "²=a:1"])
def test_an_address_without_a_broker_id_is_refused(addrs: str) -> None:
    message = problem(HEADER + f"c a {{{addrs}}} 8 8 6\n---\n")
    assert message.startswith("table, line 2: ")
    assert message.endswith(" is not ID=ADDRESS")


def test_more_queues_than_can_be_are_refused() -> None:
    message = problem(HEADER + "c a {0=x:1} 2147483647 8 6\n---\n")
    assert message == "table, line 2: Expected int <= 100000 at $.readQueueNums"
