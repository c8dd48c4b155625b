"""Bad input of every kind ends in one line that says what and where, perhaps one that says what next, and the documented code."""

from __future__ import annotations

import gzip
import json
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.views.explanations import explanations
from tests.support.mismatches import every_case, first_by_default
from tests.support.replay_dashboard import Replay, dashboard, endless, giving, reset, silent
from tests.support.schemas import must_fit

from .run import EXAMPLE, RECORDING, SKEWED, Ran, error_of, run, start

EXPLANATIONS = explanations()
USAGE, DATA, ENDPOINT = ExitCode.USAGE, ExitCode.DATA, ExitCode.ENDPOINT
DUMP_HINT = "expected a snapshot, a route or a Dashboard response"
KINDS_HINT = "expected a snapshot, a TopicRouteData document, a saved Dashboard response or mqadmin topicRoute output"
SOURCE_HINT = "-s takes a URL, a file, or - for stdin"
SHOW, OWNERS, PLAN = "show-route", "show-owners", "plan-rebalance"
HELP = "see rmqlb plan-rebalance --help"
CONTRADICT = "the changes contradict each other"
STDIN_AGAIN = "--watch reads its source again and again, and stdin can be read once"
WATCH_HINT = "tables are redrawn on a terminal; -o json is a line a change, anywhere"
SNAPSHOTS_HINT = "compare snapshots, as fetch-routes writes them"
I0, I1 = "192.0.2.2@inst0", "192.0.2.2@inst1"
EVENTS_HINT = "there are the events broker-down, broker-loss, broker-up, crash, freeze, host-loss, join, leave, …"
NEARBY = "--strategy MACHINE_ROOM_NEARBY"

FILES = {
    "empty": b"",
    "blank": b"\n \t\n",
    "truncated": b'{\n  "queueDatas": [\n    {"brokerName": "a"',
    "list.yaml": b"- a\n- b\n",
    "plain.txt": b"hello world\n",
    "page.html": b"<!DOCTYPE html>\n<html><body>Login</body></html>",
    "junk": bytes(range(256)) * 10,
    "bomb.yaml": b"a: &a [x, x]\nb: [*a, *a]\n",
    "deep": b"[" * 100_000,
    "other.json": b'{"hello": "world"}',
    "wrong.json": b'{"queueDatas": [{"brokerName": "a", "readQueueNums": "8"}]}',
    "newer.json": b'{"schema": "rmqlb/snapshot", "formatVersion": "3.0", "data": {}}',
    "cut.gz": gzip.compress(b"{}")[:-4],
    "failed.txt": b"org.apache.rocketmq.tools.command.SubCommandException: failed\nCaused by: CODE: 17  DESC: No topic route\n",
    "nothing.json": b"[]",
    "pop.json": b'{"schema":"rmqlb/snapshot","formatVersion":"1.0","data":{"topics":[{"topic":"T","route":{}}],'
    b'"groups":[{"group":"g","consumeType":"CONSUME_POP","clientIds":["a"]}]}}',
    "broadcasting.json": b'{"schema":"rmqlb/snapshot","formatVersion":"1.0","data":{"topics":[{"topic":"T","route":{}}],'
    b'"groups":[{"group":"g","messageModel":"BROADCASTING","clientIds":["a"]}]}}',
    "memberless.json": b'{"schema":"rmqlb/snapshot","formatVersion":"1.0","data":{"topics":[{"topic":"T","route":{}}],'
    b'"groups":[{"group":"g","clientIds":[]}]}}',
    "elsewhere.json": b'{"schema":"rmqlb/snapshot","formatVersion":"1.0","source":{"takenAt":"2026-11-20T02:00:00Z"},"data":'
    b'{"topics":[{"topic":"T","route":{"brokerDatas":[{"brokerName":"x"}]}}],"groups":[{"group":"order-svc"}]}}',
    "ids.txt": b"\xff\xfe",
    "config-list.yaml": b"- a\n",
    "config-entry.yaml": b"a: [broker-a]\n",
    "config-long.yaml": b"a: [broker-a:" + b"9" * 5000 + b"]\n",
    "config-flag.yaml": b"a: [{topic: T, brokerName: b, queueId: true}]\n",
    "config-cut.yaml": b"a: [broker-a:0\n",
    "config-binary.yaml": b"\xff\xfe",
}


ASK_PROXY = "--proxy HOST:8080, a Proxy's remoting port, tells the consumers behind it (of a file: in fetch-routes)"


class Bad(NamedTuple):
    """A command line and how it ends; `{}` in its texts is the folder of FILES."""

    line: str
    code: ExitCode
    error: str
    hint: str | None = None

    def args(self, folder: Path) -> list[str]:
        """The arguments; `_` alone is an empty one."""
        words = (
            self.line.replace("EXAMPLE", EXAMPLE)
            .replace("SKEWED", SKEWED)
            .replace("RECORDING", RECORDING)
            .format(folder)
            .split()
        )
        return ["" if word == "_" else word for word in words]


def plan(options: str, code: ExitCode, error: str, hint: str | None = None) -> Bad:
    """A plan of the example's order-svc."""
    return Bad(f"{PLAN} -s EXAMPLE --group order-svc {options}", code, error, hint)


DUMPS = [
    Bad(f"{SHOW} -s {{}}/none.json", DATA, "cannot read {}/none.json: No such file or directory", SOURCE_HINT),
    Bad(f"{SHOW} -s {{}}", DATA, "cannot read {}: Is a directory", SOURCE_HINT),
    Bad(f"{SHOW} -s {{}}/plain.txt/x", DATA, "cannot read {}/plain.txt/x: Not a directory", SOURCE_HINT),
    Bad(f"{SHOW} -s {{}}/{'x' * 300}", DATA, "cannot read {}/" + "x" * 300 + ": File name too long", SOURCE_HINT),
    Bad(f"{SHOW} -s {{}}/empty", DATA, "{}/empty is empty", DUMP_HINT),
    Bad(f"{SHOW} -s {{}}/blank", DATA, "{}/blank is empty", DUMP_HINT),
    Bad(f"{SHOW} -s -", DATA, "stdin is empty", DUMP_HINT),
    Bad(f"{SHOW} -s {{}}/truncated", DATA, "{}/truncated, line 3, column 23: the text ends too early"),
    Bad(f"{SHOW} -s {{}}/list.yaml", DATA, "{}/list.yaml: neither JSON nor a YAML mapping, but a YAML list", DUMP_HINT),
    Bad(f"{SHOW} -s {{}}/plain.txt", DATA, "{}/plain.txt: neither JSON nor a YAML mapping, but plain text", DUMP_HINT),
    Bad(f"{SHOW} -s {{}}/page.html", DATA, "{}/page.html: neither JSON nor a YAML mapping, but plain text", DUMP_HINT),
    Bad(
        f"{SHOW} -s {{}}/large",
        DATA,
        "{}/large: larger than 64 MB",
        "if that is right, raise the limit with --max-size",
    ),
    Bad(
        f"{SHOW} -s EXAMPLE --max-size 1KB",
        DATA,
        f"{EXAMPLE}: larger than 1 KB",
        "if that is right, raise the limit with --max-size",
    ),
    Bad(f"{SHOW} -s {{}}/junk", DATA, "{}/junk, byte 128: it is not UTF-8 text"),
    Bad(f"{SHOW} -s {{}}/bomb.yaml", DATA, "{}/bomb.yaml, line 2: YAML aliases are not read"),
    Bad(f"{SHOW} -s {{}}/deep", DATA, "{}/deep, line 1, column 257: nested deeper than 256"),
    Bad(f"{SHOW} -s {{}}/other.json", DATA, "{}/other.json: not recognised", KINDS_HINT),
    Bad(f"{SHOW} -s {{}}/wrong.json", DATA, "{}/wrong.json: Expected int, got str at $.queueDatas[0].readQueueNums"),
    Bad(
        f"{SHOW} -s {{}}/newer.json",
        DATA,
        "{}/newer.json: snapshot format 3.0 is newer than this program reads (2.0)",
        "use a newer rmqlb",
    ),
    Bad(f"{SHOW} -s {{}}/cut.gz", DATA, "{}/cut.gz: the compressed data is cut short"),
    Bad(
        f"{SHOW} -s {{}}/failed.txt",
        DATA,
        "{}/failed.txt holds a failed mqadmin command: CODE: 17  DESC: No topic route",
    ),
    Bad(f"{SHOW} -s {{}}/nothing.json", DATA, "no route is in {}/nothing.json"),
    Bad(
        f"{SHOW} -s SKEWED", DATA, f"{SKEWED} is the route of one topic and does not name it", "say which: --topic NAME"
    ),
]
NAMES = [
    Bad(f"{SHOW} -s EXAMPLE --topic Skewd", DATA, f"topic Skewd is not in {EXAMPLE}", "did you mean Skewed?"),
    Bad(
        f"{OWNERS} -s EXAMPLE --group order-svcc",
        DATA,
        f"group order-svcc is not in {EXAMPLE}",
        "did you mean order-svc?",
    ),
    Bad(
        f"{PLAN} -s EXAMPLE --group order_svc", DATA, f"group order_svc is not in {EXAMPLE}", "did you mean order-svc?"
    ),
    Bad(
        f"{PLAN} -s EXAMPLE --group zzz",
        DATA,
        f"group zzz is not in {EXAMPLE}",
        "there are the groups audit-svc, bill-svc, order-svc",
    ),
    plan("--topic OrderEvent", DATA, f"topic OrderEvent is not in {EXAMPLE}", "did you mean OrderEvents?"),
    plan("--topic _", DATA, f"topic  is not in {EXAMPLE}", "there are the topics OrderEvents, Skewed"),
    Bad(
        f"{PLAN} -s EXAMPLE",
        USAGE,
        "which group?",
        "name it with --group; the source holds audit-svc, bill-svc, order-svc",
    ),
    Bad(
        f"{PLAN} -s EXAMPLE --consumers 3",
        USAGE,
        "which topic?",
        "name it with --topic; the source holds OrderEvents, Skewed",
    ),
    Bad(
        f"{PLAN} -s SKEWED --topic Skewed",
        DATA,
        "the source holds no group's consumers",
        "name them with --consumers ID,ID,… or @FILE, or a number",
    ),
    Bad(
        f"{PLAN} -s {{}}/memberless.json --topic T",
        DATA,
        "no consumer of group g is visible: it is offline, or behind a Proxy",
        f"plan with --add N or --consumers; {ASK_PROXY}",
    ),
    Bad(
        f"{OWNERS} -s {{}}/memberless.json --topic T",
        DATA,
        "no consumer of group g is visible: it is offline, or behind a Proxy",
        f"name consumers with --consumers; {ASK_PROXY}",
    ),
    Bad(
        "plan-rollout -s {}/pop.json",
        DATA,
        "group g consumes by POP: several consumers may take messages from one queue, none owns it",
        "show-owners and plan-rebalance say who may read what; a consumer that comes or goes moves no queue",
    ),
    Bad(
        "plan-rollout -s {}/broadcasting.json",
        DATA,
        "group g is BROADCASTING: every consumer reads every queue, nothing is rebalanced",
        "adding or removing a consumer moves no queue",
    ),
    Bad(
        f"{PLAN} -s {{}}/broadcasting.json --strategy AVG",
        USAGE,
        "--strategy: no strategy decides who reads a queue of group g, because it is BROADCASTING",
        "leave --strategy out, or look at CLUSTERING: --group OTHER-NAME --topic T --consumers ID,ID,…",
    ),
    Bad(
        f"{PLAN} -s {{}}/broadcasting.json --to-strategy AVG",
        USAGE,
        "--to-strategy: no strategy decides who reads a queue of group g, because it is BROADCASTING",
        "leave --to-strategy out, or look at CLUSTERING: --group OTHER-NAME --topic T --consumers ID,ID,…",
    ),
    Bad(
        f"{OWNERS} -s {{}}/broadcasting.json --strategy AVG",
        USAGE,
        "--strategy: no strategy decides who reads a queue of group g, because it is BROADCASTING",
        "leave --strategy out, or look at CLUSTERING: --group OTHER-NAME --topic T --consumers ID,ID,…",
    ),
]
STRATEGIES = (
    "strategies: AVG, AVG_BY_CIRCLE, CONFIG, MACHINE_ROOM, CONSISTENT_HASH, MACHINE_ROOM_NEARBY, PIN, PIN_OVER_ALL"
)
SPELLING = [
    plan("--strategy AVGG", USAGE, "unknown strategy AVGG", f"did you mean AVG? {STRATEGIES}"),
    plan(
        "--to-strategy CONSISTENT-HASH",
        USAGE,
        "unknown strategy CONSISTENT-HASH",
        f"did you mean CONSISTENT_HASH? {STRATEGIES}",
    ),
    Bad(
        f"{OWNERS} -s EXAMPLE --group order-svc --strategy AVG --strategy zzz",
        USAGE,
        "unknown strategy ZZZ",
        STRATEGIES,
    ),
    Bad(f"{SHOW} -s EXAMPLE -o jsn", USAGE, "unknown format jsn", "did you mean json or jsonl?"),
    plan("--section quees", USAGE, "--section quees: no such table", "did you mean queues?"),
    plan("--ad 1", USAGE, "no such option: --ad", "did you mean --add?"),
    plan("--bogus", USAGE, "no such option: --bogus", HELP),
    plan("--group", USAGE, "option '--group' requires an argument", "see rmqlb --help"),
    plan("more", USAGE, "got unexpected extra argument(s) (more)", HELP),
    plan("--no-pager=1", USAGE, "option '--no-pager' does not take a value", "see rmqlb --help"),
    plan("--color sometimes", USAGE, "--color sometimes: neither auto, always nor never"),
    Bad(
        "plan-rebalnce -s EXAMPLE",
        USAGE,
        "no such command 'plan-rebalnce'",
        "did you mean plan-rebalance or simulate-rebalance?",
    ),
    Bad(
        f"{SHOW} -s EXAMPLE --rounds 3", USAGE, "--rounds goes with --watch", "--watch 5s --rounds 3 looks three times"
    ),
    Bad(f"{SHOW} -s EXAMPLE --watch soon", USAGE, "--watch soon: not a time", "write 45s, 1m30s, 800ms or 250us"),
    Bad(f"{SHOW} -s EXAMPLE --watch 99ms", USAGE, "--watch 99ms: shorter than 100ms"),
    Bad(f"{SHOW} -s - --watch 1s", USAGE, STDIN_AGAIN, "name a file"),
    Bad(f"{OWNERS} -s EXAMPLE -t Skewed --consumers @- --watch 1s", USAGE, STDIN_AGAIN, "name a file"),
    plan("--watch 1s -o csv", USAGE, "--watch cannot show csv in a pipe", WATCH_HINT),
    plan("--watch 1s -o table", USAGE, "--watch cannot show table in a pipe", WATCH_HINT),
    Bad(
        f"{SHOW} -s {{}}/none.json --watch 1s", DATA, "cannot read {}/none.json: No such file or directory", SOURCE_HINT
    ),
    plan(
        "-o jsonl --section queues", USAGE, "--section chooses tables, and -o jsonl shows none", "leave one of them out"
    ),
    Bad("pipeline ingst x", USAGE, "no such command 'ingst'", "did you mean ingest?"),
    Bad("frobnicate", USAGE, "no such command 'frobnicate'", "see rmqlb --help"),
    Bad(
        "fetch-routes -s EXAMPLE --group ordersvc",
        DATA,
        f"--group ordersvc: it is not in {EXAMPLE}",
        "did you mean order-svc?",
    ),
    Bad("fetch-routes -s EXAMPLE -t Skewd", DATA, f"--topic Skewd: it is not in {EXAMPLE}", "did you mean Skewed?"),
    Bad(
        "--group x plan-rebalance",
        USAGE,
        "no such option: --group",
        "a command's options go behind it, as in rmqlb COMMAND --group; see rmqlb --help",
    ),
    plan(
        "--fail-on idle",
        USAGE,
        "--fail-on 'idle': not a condition",
        "write NAME>NUMBER or NAME>NUMBER%, as in 'idle>0'",
    ),
    plan(
        "--fail-on idle>>0",
        USAGE,
        "--fail-on 'idle>>0': not a condition",
        "write NAME>NUMBER or NAME>NUMBER%, as in 'idle>0'",
    ),
    plan(
        "--fail-on idle>-1",
        USAGE,
        "--fail-on 'idle>-1': not a condition",
        "write NAME>NUMBER or NAME>NUMBER%, as in 'idle>0'",
    ),
    plan("--fail-on idel>0", USAGE, "--fail-on 'idel>0': there is no figure idel", "did you mean idle?"),
    plan(
        "--fail-on imbalance>5%",
        USAGE,
        "--fail-on 'imbalance>5%': imbalance is not a share of anything",
        "leave out the percent sign",
    ),
]
MEMBERS = [
    plan("--add -1", USAGE, "--add -1: a number of consumers cannot be negative"),
    plan("--add=-1", USAGE, "--add -1: a number of consumers cannot be negative"),
    plan("--remove -2", USAGE, "--remove -2: a number of consumers cannot be negative"),
    plan("--add 100001", USAGE, "--add 100001: more than 100000 consumers"),
    plan(f"--add {'9' * 5000}", USAGE, f"--add {'9' * 5000}: more than 100000 consumers"),
    plan("--add _", USAGE, "--add: a client id cannot be empty"),
    plan("--consumers -1", USAGE, "--consumers -1: a number of consumers cannot be negative"),
    plan("--consumers a,,b", USAGE, "--consumers a,,b: a client id is empty"),
    plan("--consumers a,", USAGE, "--consumers a,: a client id is empty"),
    plan("--consumers _", USAGE, "--consumers: a client id cannot be empty"),
    plan("--consumers @{}/none", USAGE, "--consumers @{}/none: No such file or directory"),
    plan("--consumers @{}", USAGE, "--consumers @{}: Is a directory"),
    plan("--consumers @{}/ids.txt", USAGE, "--consumers @{}/ids.txt: it is not UTF-8 text"),
    plan("--consumers @{}/large", USAGE, "--consumers @{}/large: larger than 16 MB"),
    Bad(f"{PLAN} -s - --consumers @-", USAGE, "-s - and --consumers @- both read stdin"),
    plan(
        f"--add {I0}",
        USAGE,
        f"--add {I0}: it is already in the group",
        "to see what two processes with one id do, name the id twice in --consumers",
    ),
    plan(
        "--remove 192.0.2.2@inst9",
        USAGE,
        "--remove 192.0.2.2@inst9: it is not in the group",
        "did you mean 192.0.2.2@inst2 or 192.0.2.2@inst1 or 192.0.2.2@inst0?",
    ),
    plan("--remove 99", USAGE, "--remove 99: the group has only 3 consumers"),
    plan(f"--remove {I0} --remove 3", USAGE, "--remove 3: the group has only 2 consumers"),
    plan("--replace A", USAGE, "--replace A: expected OLD=NEW"),
    plan("--replace A=", USAGE, "--replace A=: expected OLD=NEW"),
    plan(f"--replace {I0}={I1}", USAGE, f"--replace {I0}={I1}: {I1} is already in the group"),
    plan(
        "--replace zzz=B",
        USAGE,
        "--replace zzz: it is not in the group",
        "there are the consumers 192.0.2.2@inst0, 192.0.2.2@inst1, 192.0.2.2@inst2",
    ),
    plan(
        "--strategy all --to-strategy AVG",
        USAGE,
        "--strategy all and --to-strategy contradict each other",
        "name the strategy before",
    ),
    plan("--add X --remove X", USAGE, f"X is named twice, in --add and --remove: {CONTRADICT}"),
    plan("--add X --add X", USAGE, f"X is named twice, in --add: {CONTRADICT}"),
    plan(f"--replace {I0}=B --remove {I0}", USAGE, f"{I0} is named twice, in --remove and --replace: {CONTRADICT}"),
    plan(f"--replace {I0}=B --add B", USAGE, f"B is named twice, in --add and --replace: {CONTRADICT}"),
]
ROUTES = [
    plan("--add-broker b --remove-broker b", USAGE, f"broker b is added or removed twice: {CONTRADICT}"),
    plan(
        "--remove-broker broker-c",
        USAGE,
        "--remove-broker broker-c: topics OrderEvents, Skewed have no such broker",
        "did you mean broker-b or broker-a?",
    ),
    plan(
        "--remove-master broker-c",
        USAGE,
        "--remove-master broker-c: topics OrderEvents, Skewed have no such broker",
        "did you mean broker-b or broker-a?",
    ),
    plan(
        "--remove-master broker-a --remove-broker broker-a",
        USAGE,
        f"broker broker-a is added or removed twice: {CONTRADICT}",
    ),
    plan("--add-broker broker-a", USAGE, "--add-broker broker-a: topic OrderEvents already has queues there"),
    plan("--add-broker b:1:2:3", USAGE, "--add-broker b:1:2:3: expected NAME, NAME:READ or NAME:READ:WRITE"),
    plan("--add-broker :3", USAGE, "--add-broker :3: expected NAME, NAME:READ or NAME:READ:WRITE"),
    plan("--add-broker b:-1", USAGE, "--add-broker b:-1: -1 is not a number of queues (0 to 99999)"),
    plan("--add-broker b:", USAGE, "--add-broker b:: nothing is not a number of queues (0 to 99999)"),
    plan("--read-queues -1", USAGE, "--read-queues -1: -1 is not a number of queues (0 to 99999)"),
    plan("--read-queues 100000", USAGE, "--read-queues 100000: 100000 is not a number of queues (0 to 99999)"),
    plan("--read-queues ٣x", USAGE, "--read-queues ٣x: ٣x is not a number of queues (0 to 99999)"),
    plan("--write-queues =3", USAGE, "--write-queues =3: expected N or BROKER=N"),
    plan(
        "--write-queues broker-c=3",
        USAGE,
        "--write-queues broker-c: topic OrderEvents has no such broker",
        "did you mean broker-b or broker-a?",
    ),
]
SETTINGS = [
    Bad(
        f"{PLAN} --group g",
        USAGE,
        "no source",
        "name rocketmq://HOST:9876, a Dashboard's URL, a file or - with -s, or set RMQLB_SOURCE or --context",
    ),
    Bad(f"{PLAN} -s _ --group g", USAGE, "the source is empty", SOURCE_HINT),
    Bad(
        f"{PLAN} -s ftp://u:s3cret@host/x",
        USAGE,
        "cannot read ftp:// sources",
        "-s takes rocketmq://, rocketmqs://, http://, https://, a file, or - for stdin",
    ),
    Bad(
        f"{SHOW} -s ftp://u:s3cret@host/x",
        USAGE,
        "cannot read ftp:// sources",
        "-s takes rocketmq://, rocketmqs://, http://, https://, a file, or - for stdin",
    ),
    Bad(f"{SHOW} -s http://", USAGE, "the source http://… names no host", "write http://HOST:8082"),
    Bad(
        f"{SHOW} -s http://host:port",
        USAGE,
        "the source is not a URL: Port could not be cast to integer value as 'port'",
    ),
    Bad(
        f"{SHOW} -s http://admin:s3cret@127.0.0.1:1",
        USAGE,
        "the source's URL holds a password, which others can see in the process list and the shell's history",
        "keep the user, and give the password in RMQLB_PASSWORD or --password-file",
    ),
    Bad(
        f"{PLAN} -s http://127.0.0.1:1", USAGE, "which group?", "name it with --group, or name --topic and --consumers"
    ),
    plan("--source-timeout soon", USAGE, "--source-timeout soon: not a time", "write 45s, 1m30s, 800ms or 250us"),
    plan("--source-timeout 0", USAGE, "--source-timeout 0: not longer than nothing"),
    plan("--source-timeout -1", USAGE, "--source-timeout -1: not a time", "write 45s, 1m30s, 800ms or 250us"),
    plan("--source-timeout 25h", USAGE, "--source-timeout 25h: longer than a day"),
    plan("--max-size big", USAGE, "--max-size big: not a size", "write 500KB, 64MB or 1GB"),
    plan(f"--max-size {'9' * 400}", USAGE, f"--max-size {'9' * 400}: more than 1 TB"),
    plan(
        "--source-retries many",
        USAGE,
        "invalid value for '--source-retries' (env var: 'RMQLB_SOURCE_RETRIES'): 'many' is not a valid int range",
        HELP,
    ),
    plan(
        "--source-retries 21",
        USAGE,
        "invalid value for '--source-retries' (env var: 'RMQLB_SOURCE_RETRIES'): 21 is not in the range 0<=x<=20",
        HELP,
    ),
    plan(
        "--strategy-option virtual-nodes=-1",
        USAGE,
        "--strategy-option virtual-nodes=-1: not a whole number from 0 to 1000000",
    ),
    plan(
        "--strategy CONSISTENT_HASH --strategy-option virtual-nodes=1000000 --add 1",
        USAGE,
        "--strategy-option virtual-nodes=1000000: 3 consumers would have 3000000 entries on the ring of CONSISTENT_HASH, and at most "
        "1000000 are simulated",
        "for so many consumers, at most --strategy-option virtual-nodes=333333",
    ),
    plan(
        f"{NEARBY} --strategy-option broker-zone=([a",
        USAGE,
        "--strategy-option broker-zone=([a: unterminated character set at position 1",
    ),
    plan(
        f"{NEARBY} --strategy-option broker-zone=abc",
        USAGE,
        "--strategy-option broker-zone=abc: the pattern needs one group, the zone, as in '([^-]+)-'",
    ),
    plan(
        f"{NEARBY} --strategy-option broker-zone=(a)(b)",
        USAGE,
        "--strategy-option broker-zone=(a)(b): the pattern needs one group, the zone, as in '([^-]+)-'",
    ),
    plan(
        f"{NEARBY} --strategy-option client-zone=(x{{{{99999999999}}}})",
        USAGE,
        "--strategy-option client-zone=(x{{99999999999}}): the repetition number is too large",
    ),
    plan(
        f"{NEARBY} --strategy-option client-zone={'(' * 5000}", USAGE, f"--strategy-option client-zone={'(' * 5000}: "
    ),
    plan(
        f"{NEARBY} --strategy-option client-zone=a= --strategy-option client-zone=b=c",
        USAGE,
        "--strategy-option client-zone=a=: expected GLOB=ZONE, or a single pattern with one group",
    ),
    plan(
        f"{NEARBY} --strategy-option client-zone=a=b --strategy-option client-zone=c",
        USAGE,
        "--strategy-option client-zone=c: expected GLOB=ZONE, or a single pattern with one group",
    ),
    plan(
        "--strategy CONFIG --strategy-option queues={}/none.yaml",
        USAGE,
        "--strategy-option queues={}/none.yaml: No such file or directory",
    ),
    plan(
        "--strategy CONFIG --strategy-option queues={}/config-binary.yaml",
        USAGE,
        "--strategy-option queues={}/config-binary.yaml: it is not UTF-8 text",
    ),
    plan(
        "--strategy CONFIG --strategy-option queues={}/large",
        USAGE,
        "--strategy-option queues={}/large: larger than 16 MB",
    ),
    plan(
        "--strategy CONFIG --strategy-option queues={}/config-list.yaml",
        DATA,
        "{}/config-list.yaml: expected a mapping of client ids to lists of BROKER:QUEUE",
    ),
    plan(
        "--strategy CONFIG --strategy-option queues={}/config-entry.yaml",
        DATA,
        "{}/config-entry.yaml, a: 'broker-a' is not BROKER:QUEUE",
    ),
    plan(
        "--strategy CONFIG --strategy-option queues={}/config-long.yaml",
        DATA,
        f"{{}}/config-long.yaml, a: 'broker-a:{'9' * 70} is not BROKER:QUEUE",
    ),
    plan(
        "--strategy CONFIG --strategy-option queues={}/config-flag.yaml",
        DATA,
        "{}/config-flag.yaml, a: {{'topic': 'T', 'brokerName': 'b', 'queueId': True}} is not BROKER:QUEUE",
    ),
    plan(
        "--strategy CONFIG --strategy-option queues={}/config-cut.yaml",
        DATA,
        "{}/config-cut.yaml, line 2, column 1: did not find expected ',' or ']'",
    ),
    plan(
        "--strategy CONFIG --strategy-option queues={}/bomb.yaml",
        DATA,
        "{}/bomb.yaml, line 2: YAML aliases are not read",
    ),
]
COMMANDS = [
    Bad(
        "show-groups -s EXAMPLE -g ordr-svc",
        DATA,
        f"--group ordr-svc: it is not in {EXAMPLE}",
        "did you mean order-svc?",
    ),
    Bad("show-groups -s EXAMPLE --severity erro", USAGE, "--severity erro: no such severity", "did you mean error?"),
    Bad(
        "show-groups -s EXAMPLE --fail-on idle[x]>0",
        USAGE,
        "--fail-on 'idle[x]>0': group x is not looked at",
        "there are the groups audit-svc, bill-svc, order-svc",
    ),
    Bad(
        "show-groups -s EXAMPLE --fail-on idel>0",
        USAGE,
        "--fail-on 'idel>0': there is no figure idel",
        "did you mean idle?",
    ),
    Bad(
        "show-consumers -s EXAMPLE -g bil-svc",
        DATA,
        f"group bil-svc is not in {EXAMPLE}",
        "did you mean bill-svc or audit-svc?",
    ),
    Bad(
        "show-consumers -s EXAMPLE",
        USAGE,
        "which group?",
        "name it with --group; the source holds audit-svc, bill-svc, order-svc",
    ),
    Bad("simulate-rebalance -s EXAMPLE -g order-svc --event x", USAGE, "--event 'x': there is no event x", EVENTS_HINT),
    Bad("simulate-send -s EXAMPLE -t Skewed --messages 0", USAGE, "--messages 0: not a number from 1 to 1e12"),
    Bad("simulate-receive -s EXAMPLE -t Skewed --loops 0", USAGE, "--loops 0: not a number from 1 to 1000"),
    Bad("check -s EXAMPLE -p {}/none.yaml", USAGE, "--policy {}/none.yaml: No such file or directory"),
    Bad("context use nope", USAGE, "there is no context 'nope'", "rmqlb context add makes one"),
    Bad(
        "config show --source-timeout soon",
        USAGE,
        "--source-timeout soon: not a time",
        "write 45s, 1m30s, 800ms or 250us",
    ),
    Bad(
        "schema show-rout",
        USAGE,
        "there is no result show-rout",
        "did you mean show-route or show-groups or show-consumers?",
    ),
    Bad("explain mismtch", USAGE, "there is no code mismtch", "did you mean mismatch?"),
]
DIFF = [
    Bad("diff - -", USAGE, "A and B both read stdin"),
    Bad(
        "diff EXAMPLE nowhere",
        DATA,
        "nowhere: there is no such file, and no context of this name",
        "a source is a URL, a file, or - for stdin",
    ),
    Bad("diff EXAMPLE _", USAGE, "the source is empty", SOURCE_HINT),
    Bad("diff EXAMPLE SKEWED", DATA, f"{SKEWED} is the route of one topic and does not name it", SNAPSHOTS_HINT),
    Bad(
        "diff EXAMPLE EXAMPLE -g order-",
        DATA,
        f"--group order-: it is not in {EXAMPLE} and {EXAMPLE}",
        "did you mean order-svc?",
    ),
    Bad(
        "diff EXAMPLE EXAMPLE --fail-on move>0",
        USAGE,
        "--fail-on 'move>0': there is no figure move",
        "did you mean moved?",
    ),
]
DIAGNOSE = [
    Bad("diagnose -s EXAMPLE", USAGE, "which group?", "name it with --group, or take --all-groups"),
    Bad("diagnose -s EXAMPLE -g a --all-groups", USAGE, "--group a and --all-groups", "leave one of them out"),
    Bad(
        "diagnose -s EXAMPLE -g order-svcc",
        DATA,
        f"--group order-svcc: it is not in {EXAMPLE}",
        "did you mean order-svc?",
    ),
    Bad(
        "diagnose -s EXAMPLE -g order-svc -g x*",
        DATA,
        f"--group x*: it matches no group of {EXAMPLE}",
        "there are the groups order-svc",
    ),
    Bad(
        "diagnose -s SKEWED --all-groups",
        DATA,
        f"{SKEWED} is the route of one topic and does not name it",
        "say which: --topic NAME",
    ),
    Bad(
        "diagnose -s EXAMPLE -g order-svc --fail-on info",
        USAGE,
        "--fail-on info: neither error nor warning",
        "there are the severities error, warning",
    ),
    Bad("diagnose -s EXAMPLE -g order-svc --interval 0", USAGE, "--interval 0: not longer than nothing"),
    Bad(
        "diagnose -s EXAMPLE -g order-svc --interval 900ms",
        USAGE,
        "--interval 900ms: shorter than 1s",
        "a consumer is asked once a second at most",
    ),
    Bad(
        "diagnose -s EXAMPLE -g order-svc --looks 0",
        USAGE,
        "invalid value for '--looks': 0 is not in the range 1<=x<=10",
        "see rmqlb diagnose --help",
    ),
    Bad(
        "diagnose -s EXAMPLE -g order-svc --stacks",
        USAGE,
        "--stacks asks running consumers, and the source is no running cluster",
        "leave it out, or name rocketmq://HOST:9876 with -s",
    ),
    Bad("diagnose -s EXAMPLE -g order-svc --deadline 0", USAGE, "--deadline 0: not longer than nothing"),
    Bad("diagnose -s - -g order-svc --earlier -", USAGE, "-s - and --earlier - both read stdin"),
    Bad(
        "diagnose -s EXAMPLE -g order-svc --earlier rocketmq://h:9876",
        USAGE,
        "--earlier rocketmq://h:9876: a running cluster shows no earlier look",
        "name a snapshot that fetch-routes wrote before",
    ),
    Bad(
        "diagnose -s EXAMPLE -g order-svc --earlier {}/none.json",
        DATA,
        "cannot read {}/none.json: No such file or directory",
        SOURCE_HINT,
    ),
    Bad(
        "diagnose -s EXAMPLE -g order-svc --earlier EXAMPLE",
        DATA,
        f"{EXAMPLE} is not earlier: it was taken at 2026-11-21T02:02:07Z, {EXAMPLE} at 2026-11-21T02:02:07Z",
        "-s names the last snapshot, --earlier those before it",
    ),
    Bad(
        "diagnose -s EXAMPLE -g order-svc --earlier {}/elsewhere.json",
        DATA,
        "{}/elsewhere.json is of another cluster: it has broker x, " + f"{EXAMPLE} has broker-a",
    ),
    Bad(
        "diagnose -s EXAMPLE -g order-svc --earlier {}/pop.json",
        DATA,
        "{}/pop.json does not have group order-svc",
        "name a snapshot that has the group",
    ),
    Bad(
        "diagnose -s EXAMPLE -g order-svc --section queue",
        USAGE,
        "--section queue: no such table",
        "did you mean queues?",
    ),
]
PREDICTION_HINT = "name what plan-rebalance or simulate-rebalance wrote with -o json"
RECORD = [
    Bad(
        "record -s EXAMPLE -g order-svc",
        USAGE,
        f"{EXAMPLE} is not a running cluster: nothing changes there",
        "name NameServers or a Dashboard with -s; --replay FILE shows a recording again",
    ),
    Bad(
        "record -g order-svc",
        USAGE,
        "no source",
        "name rocketmq://HOST:9876, a Dashboard's URL, a file or - with -s, or set RMQLB_SOURCE or --context",
    ),
    *(
        Bad(
            f"record -s rocketmq://127.0.0.1:1 {groups}",
            USAGE,
            "which group?",
            "name one with --group",
        )
        for groups in ("", "-g order-*")
    ),
    Bad(
        "record -s rocketmq://127.0.0.1:1 -g g --every 900ms",
        USAGE,
        "--every 900ms: shorter than 1s",
        "a consumer answers on the threads that its brokers need, and is asked once per second at most",
    ),
    Bad(
        "record -s rocketmq://127.0.0.1:1 -g g --until soon",
        USAGE,
        "--until soon: not a time",
        "write converged, a time as 90s, or a moment as 2026-11-22T16:00:00Z",
    ),
    Bad(
        "record -s rocketmq://127.0.0.1:1 -g g --until 2026-11-22T16:00:00",
        USAGE,
        "--until 2026-11-22T16:00:00: in which time zone?",
        "write Z for UTC behind it, or +02:00",
    ),
    Bad(
        "record -s rocketmq://127.0.0.1:1 -g g --event-at noon",
        USAGE,
        "--event-at noon: not a moment",
        "write 2026-11-01T12:00:00Z",
    ),
    Bad(
        "fetch-routes -s EXAMPLE --every 1m --to {}/new",
        USAGE,
        "--every does not go with these options",
        "it needs a running cluster, at least 1s, the directory --to, -o json and no --redact",
    ),
    Bad(
        "fetch-routes -s rocketmq://127.0.0.1:1 --every 1m",
        USAGE,
        "--every does not go with these options",
        "it needs a running cluster, at least 1s, the directory --to, -o json and no --redact",
    ),
    Bad(
        "fetch-routes -s rocketmq://127.0.0.1:1 --every 999ms --to {}/new",
        USAGE,
        "--every does not go with these options",
        "it needs a running cluster, at least 1s, the directory --to, -o json and no --redact",
    ),
    Bad(
        "fetch-routes -s rocketmq://127.0.0.1:1 --every 1m --to {}/new --redact",
        USAGE,
        "--every does not go with these options",
        "it needs a running cluster, at least 1s, the directory --to, -o json and no --redact",
    ),
    Bad(
        "fetch-routes -s rocketmq://127.0.0.1:1 --every 1m --to {}/new -o yaml",
        USAGE,
        "--every does not go with these options",
        "it needs a running cluster, at least 1s, the directory --to, -o json and no --redact",
    ),
    Bad(
        "record --replay {}/other.json",
        USAGE,
        "--replay {}/other.json: it is not a recording",
        "name what rmqlb record wrote with -o json",
    ),
    Bad(
        "record --replay EXAMPLE",
        USAGE,
        f"--replay {EXAMPLE}: it is not a recording",
        "name what rmqlb record wrote with -o json",
    ),
    Bad(
        "record --replay RECORDING -g order-svc",
        USAGE,
        "--replay shows a recording again, and --group is of a live group",
        "leave one of them out",
    ),
    Bad("record --replay - --against -", USAGE, "--replay - and --against - both read stdin"),
    Bad(
        "record --replay RECORDING --against EXAMPLE",
        USAGE,
        f"--against {EXAMPLE}: it is not a plan or a simulation",
        PREDICTION_HINT,
    ),
    Bad(
        "record --replay RECORDING --fail-on differences>0",
        USAGE,
        "--fail-on 'differences>0': against which prediction?",
        "name it with --against",
    ),
    Bad(
        "record --replay RECORDING --fail-on difference>0",
        USAGE,
        "--fail-on 'difference>0': there is no figure difference",
        "did you mean differences?",
    ),
    Bad("record --replay RECORDING --svg - --html -", USAGE, "--svg - and --html - both write to stdout"),
    Bad(
        "record --replay RECORDING --tolerance soon",
        USAGE,
        "--tolerance soon: not a time",
        "write 45s, 1m30s, 800ms or 250us",
    ),
]
SELECT = "select-queue -s EXAMPLE -t Skewed"
KEYS = [
    Bad(SELECT, USAGE, "no key is given", "name keys with --key, or a file with one key per line: --keys-file"),
    Bad(f"{SELECT} --key _", USAGE, "--key: a blank key is none", "messages without a key go round all queues"),
    Bad(f"{SELECT} --keys-file {{}}/empty", USAGE, "no key is given", "name keys with --key, or a file with one key per line: --keys-file"),
    Bad(f"{SELECT} --keys-file {{}}/blank", DATA, "--keys-file {}/blank: line 1 is blank", "one key per line"),
    Bad(f"{SELECT} --keys-file {{}}/ids.txt", USAGE, "--keys-file {}/ids.txt: line 1 is not UTF-8 text"),
    Bad(f"{SELECT} --keys-file {{}}/none.txt", USAGE, "--keys-file {}/none.txt: No such file or directory"),
    Bad("simulate-send -s EXAMPLE -t Skewed --sdk goo", USAGE, "goo: not an SDK", "did you mean go?"),
    Bad("simulate-send -s EXAMPLE -t Skewed --sdk proxy", USAGE, "sends of proxy are not simulated", "select-queue says where its producers send keys"),
    Bad("simulate-send -s EXAMPLE -t Skewed --sdk go --compare", USAGE, "--compare compares what Java's producers do", "leave --sdk out, or use --compare-sdks"),
    Bad("simulate-send -s EXAMPLE -t Skewed --sdk java@4.9.7 --client 5.0.0", USAGE, "--sdk java@4.9.7 and --client 5.0.0", "leave one of them out"),
    Bad("simulate-send -s EXAMPLE -t Skewed --proxy-mode both", USAGE, "--proxy-mode both: write local or cluster"),
    Bad("select-queue -s - -t T --keys-file -", USAGE, "-s - and --keys-file - both read stdin"),
    Bad(f"{SELECT} --key a --sdk goo", USAGE, "goo: not an SDK", "did you mean go?"),
    Bad(f"{SELECT} --key a --sdk go-grpc@new", USAGE, "go-grpc@new: not a version of go-grpc", "known are go-grpc@master, go-grpc@5.1.4"),
    Bad(f"{SELECT} --key a --proxy-mode both", USAGE, "--proxy-mode both: write local or cluster"),
    Bad(f"{SELECT} --key a --remove-broker broker-x", USAGE, "--remove-broker broker-x: topic Skewed has no such broker", "did you mean broker-b or broker-a?"),
    Bad(f"{SELECT} --key a --write-queues many", USAGE, "--write-queues many: many is not a number of queues (0 to 99999)"),
    Bad("select-queue -s EXAMPLE -t Skewd --key a", DATA, f"topic Skewd is not in {EXAMPLE}", "did you mean Skewed?"),
    Bad("plan-topic -s EXAMPLE -t Skewed", USAGE, "what changes?", "name it with --queues N, --add-broker, --drain-broker or --move-to-cluster"),
    Bad("plan-topic -s EXAMPLE -t Skewed --queues 0", USAGE, "--queues 0: a topic without queues takes no message", "write 1 or more"),
    Bad("plan-topic -s EXAMPLE -t Skewed --queues many", USAGE, "--queues many: many is not a number of queues (0 to 99999)"),
    Bad("plan-topic -s EXAMPLE -t Skewed --drain-broker broker-x", USAGE, "--drain-broker broker-x: topic Skewed has no such broker", "did you mean broker-b or broker-a?"),
    Bad("plan-topic -s EXAMPLE -t Skewed --drain-broker broker-a --drain-broker broker-b", USAGE, "topic Skewed would have no queue left", "add a broker, or drain fewer"),
    Bad("plan-topic -s EXAMPLE -t Skewed --move-to-cluster west", DATA, "--move-to-cluster west: no broker of that cluster is in the source", "there are the clusters DefaultCluster"),
    Bad("plan-topic -s EXAMPLE -t Skewed --add-broker x:0", USAGE, "--add-broker x:0: producers would write queues that consumers cannot read", "write as many read queues as write queues, or more: x:3"),
    Bad("plan-topic -s EXAMPLE -t Skewed --add-broker x:4:6", USAGE, "--add-broker x:4:6: producers would write queues that consumers cannot read", "write as many read queues as write queues, or more: x:6"),
    Bad("plan-topic -s EXAMPLE -t Skewed --add-broker x:4 --queues 8", USAGE, "--queues 8 and --add-broker x:4 contradict each other", "--queues is about all brokers: write --add-broker x"),
    Bad("plan-topic -s EXAMPLE -t Skewed --queues 8 --unordered --check-step 5", USAGE, "--check-step 5: the plan has 4 steps"),
    Bad("plan-topic -s EXAMPLE -t Skewed --queues 8 --rates-since http://h", USAGE, "--rates-since http://h: an earlier snapshot is a file", "write one with fetch-routes --to FILE"),
    Bad("plan-topic -s - -t Skewed --queues 8 --rates-since -", USAGE, "-s - and --rates-since - both read stdin"),
    Bad("plan-topic -s EXAMPLE -t Skwed --queues 8", DATA, f"topic Skwed is not in {EXAMPLE}", "did you mean Skewed?"),
]  # fmt: skip
SIZE = "size-group -s EXAMPLE -g order-svc"
SIZES = [
    Bad(f"{SIZE} --consumers 40..2", USAGE, "--consumers 40..2: 40 is more than 2", "write 2..40"),
    Bad(f"{SIZE} --consumers 0..5", USAGE, "--consumers 0..5: from 1 on", "write 1..40"),
    Bad(f"{SIZE} --consumers 2-4", USAGE, "--consumers 2-4: not a range", "write 2..40, or one number"),
    Bad(f"{SIZE} --consumers 1..100000", USAGE, "--consumers 1..100000: more than 1000"),
    Bad(f"{SIZE} --queues-per-broker 0", USAGE, "--queues-per-broker 0: from 1 on", "write 1..40"),
    Bad(f"{SIZE} --queues-per-broker 4..5000", USAGE, "--queues-per-broker 4..5000: more than 1024"),
    Bad(f"{SIZE} --queues-per-broker 1..1000 --consumers 1..1000", USAGE, "1000000 sizes to look at, and at most 200000 are", "ask for fewer consumers, fewer numbers of queues, or fewer strategies"),
    Bad(f"{SIZE} --survive 0", USAGE, "--survive 0: not a number from 1 to 999"),
    Bad(f"{SIZE} --survive 40 --consumers 2..40", USAGE, "--survive 40 and --consumers 2..40: no consumer would be left", "look at more than 40 consumers"),
    Bad(f"{SIZE} --max-imbalance 0.9", USAGE, "--max-imbalance 0.9: 1 is perfectly even, and less cannot be", "write 1.1"),
    Bad(f"{SIZE} --max-imbalance 0", USAGE, "--max-imbalance 0: 1 is perfectly even, and less cannot be", "write 1.1"),
    Bad(f"{SIZE} --max-imbalance -1", USAGE, "--max-imbalance -1: not a number from 1 to 1000", "write 1.1"),
    Bad(f"{SIZE} --max-imbalance even", USAGE, "--max-imbalance even: not a number from 1 to 1000", "write 1.1"),
    Bad(f"{SIZE} --max-utilisation 80%", USAGE, "--max-utilisation 80%: how many messages come?", "say it: --rate R or --rates-since FILE"),
    Bad(f"{SIZE} --consume-time 4ms", USAGE, "--consume-time 4ms: how many messages come?", "say it: --rate R or --rates-since FILE"),
    Bad(f"{SIZE} --orderly", USAGE, "--orderly: how many messages come?", "say it: --rate R or --rates-since FILE"),
    Bad(f"{SIZE} --fail-on satisfied", USAGE, "--fail-on 'satisfied': not a condition", "write unsatisfied, NAME>NUMBER or NAME>NUMBER%, as in 'idle>0'"),
    Bad(f"{SIZE} --rate 5 --consume-time 0s", USAGE, "--consume-time 0s: not longer than nothing"),
    Bad(f"{SIZE} --rate 5 --consume-time 4ms --max-utilisation 0%", USAGE, "--max-utilisation 0%: not a share", "write 80% or 0.8, at most 100%"),
    Bad(f"{SIZE} --rate 5 --consume-time 4ms --max-utilisation 120%", USAGE, "--max-utilisation 120%: not a share", "write 80% or 0.8, at most 100%"),
    Bad(f"{SIZE} --rate Skewed=5 --consume-time 4ms", DATA, "how many messages come to 1 topic is unknown (OrderEvents)", "say it: --rate OrderEvents=R"),
    Bad(f"{SIZE} --rate Skewd=5 --consume-time 4ms", USAGE, "--rate Skewd=5: topic Skewd is not simulated", "did you mean Skewed?"),
    Bad(f"{SIZE} --rate 5", DATA, "how long listeners take for a message of OrderEvents is not reported by consumers", "say it: --consume-time 40ms"),
    Bad(f"{SIZE} --rates-since EXAMPLE", DATA, f"--rates-since {EXAMPLE} is not earlier than the source: 2026-11-21T02:02:07Z and 2026-11-21T02:02:07Z", "-s is the later snapshot, --rates-since the earlier one"),
    Bad("size-group -s - -g g --rates-since -", USAGE, "-s - and --rates-since - both read stdin"),
    Bad(f"{SIZE} --strategy PIN", USAGE, "PIN cannot go without --strategy-option host=IP or pin=TOPIC=IP"),
    Bad(f"{SIZE} --sdk rust", USAGE, "--sdk rust: unknown SDK rust", "SDKs whose consumers own queues: java, go, cpp"),
    Bad(f"{SIZE} --sdk a=go", USAGE, "--sdk a=go: future consumers have no IDs", "name one library for all: --sdk go"),
    Bad(f"{SIZE} --sdk cpp --strategy CONSISTENT_HASH", USAGE, "CONSISTENT_HASH: consumers of apache/rocketmq-client-cpp run AVG, no other strategy can be set", "--strategy AVG"),
    Bad(f"{SIZE} --share 0", USAGE, "--share 0: not a share", "write 80% or 0.8, at most 100%"),
    Bad(f"{SIZE} --trials 0", USAGE, "--trials 0: not a number from 1 to 1000"),
    Bad(f"{SIZE} --fail-on unsatisfied>many", USAGE, "--fail-on 'unsatisfied>many': not a condition", "write unsatisfied, NAME>NUMBER or NAME>NUMBER%, as in 'idle>0'"),
    Bad(f"{SIZE} --consumers 4..8 --fail-on consumers>3", DATA, "--fail-on consumers>3: the figure is unknown", "no size satisfies all: ask for unsatisfied too"),
    Bad(f"{SIZE} --svg {{}}/none/size.svg", USAGE, "--svg {}/none/size.svg: No such file or directory"),
    Bad("size-group -s EXAMPLE -g ordr-svc", DATA, f"group ordr-svc is not in {EXAMPLE}", "did you mean order-svc?"),
    Bad("size-group -s EXAMPLE", USAGE, "which group?", "name it with --group; the source holds audit-svc, bill-svc, order-svc"),
]  # fmt: skip

SWEEP = [
    Bad(
        "sweep-failures -s EXAMPLE --lose racks",
        USAGE,
        "--lose racks: no such kind of loss",
        "there are the kinds broker, consumer, host, master, zone",
    ),
    Bad("sweep-failures -s EXAMPLE --lose hots", USAGE, "--lose hots: no such kind of loss", "did you mean host?"),
    Bad(
        "sweep-failures -s EXAMPLE --zone az1",
        USAGE,
        "--zone az1: expected GLOB=ZONE",
        "write '10.1.*=az1' or 10.1.0.0/16=az1",
    ),
    Bad(
        "sweep-failures -s EXAMPLE --zone =az1",
        USAGE,
        "--zone =az1: expected GLOB=ZONE",
        "write '10.1.*=az1' or 10.1.0.0/16=az1",
    ),
    Bad(
        "sweep-failures -s EXAMPLE --zone 10.9.0.0/16=az9",
        USAGE,
        "zone az9: 10.9.0.0/16 matches no consumer, broker or address",
        "write GLOB=ZONE or 10.1.0.0/16=ZONE; of several patterns the first that matches counts",
    ),
    Bad(
        "sweep-failures -s EXAMPLE --zone broker-*=az1 --zone broker-b=az2",
        USAGE,
        "zone az2: broker-b matches only what is in zone az1 by an earlier pattern",
        "write GLOB=ZONE or 10.1.0.0/16=ZONE; of several patterns the first that matches counts",
    ),
    Bad(
        "sweep-failures -s EXAMPLE --zone 10.0.0.0/99=az1",
        USAGE,
        "zone az1: 10.0.0.0/99 is not a network",
        "write 10.1.0.0/16, or a pattern as '10.1.*'",
    ),
    Bad(
        "sweep-failures -s EXAMPLE --lose broker --zone '*=a'",
        USAGE,
        "--lose leaves zones out, and --zone names some",
        "add --lose zone, or leave --zone out",
    ),
    Bad(
        "sweep-failures -s EXAMPLE --lose zone",
        USAGE,
        "--lose zone: no zone is known",
        "name them: --zone GLOB=ZONE or --zones FILE",
    ),
    Bad("sweep-failures -s EXAMPLE --zones no.yaml", USAGE, "--zones no.yaml: No such file or directory"),
    Bad(
        "sweep-failures -s EXAMPLE --at-once 3",
        USAGE,
        "invalid value for '--at-once': 3 is not in the range 1<=x<=2",
        "see rmqlb sweep-failures --help",
    ),
    Bad(
        "sweep-failures -s EXAMPLE --jobs 0",
        USAGE,
        "invalid value for '--jobs': 0 is not in the range 1<=x<=256",
        "see rmqlb sweep-failures --help",
    ),
    Bad(
        "sweep-failures -s EXAMPLE --orderly nobody",
        USAGE,
        "--orderly nobody: it matches no group looked at",
        "there are the groups audit-svc, bill-svc, order-svc",
    ),
    Bad("sweep-failures -s EXAMPLE --today soon", USAGE, "--today soon: not a date", "write YYYY-MM-DD"),
    Bad("sweep-failures -s EXAMPLE --html no/page.html", USAGE, "--html no/page.html: No such file or directory"),
    Bad(
        "sweep-failures -s EXAMPLE --fail-on moved[x]>1",
        USAGE,
        "--fail-on 'moved[x]>1': x is not among the groups looked at",
        "there are the groups audit-svc, bill-svc, order-svc",
    ),
    Bad(
        "sweep-failures -s EXAMPLE --fail-on idles>1",
        USAGE,
        "--fail-on 'idles>1': there is no figure idles",
        "did you mean idle?",
    ),
    Bad(
        "sweep-failures --print-policy -p x",
        USAGE,
        "--print-policy prints the built-in policy, and --policy names another one",
    ),
    Bad("sweep-failures -s - -p -", USAGE, "-s - and --policy - both read stdin"),
    Bad("sweep-failures -s - --zones -", USAGE, "-s - and --zones - both read stdin"),
    Bad(
        "sweep-failures -s EXAMPLE -g bill-svc -t OrderEvents",
        DATA,
        "no group of --group consumes a topic of --topic",
        "leave one of them out",
    ),
]
ALL = [
    *DUMPS,
    *NAMES,
    *SPELLING,
    *MEMBERS,
    *ROUTES,
    *SETTINGS,
    *COMMANDS,
    *DIFF,
    *DIAGNOSE,
    *RECORD,
    *KEYS,
    *SIZES,
    *SWEEP,
]
WITHOUT_FORMAT = [bad for bad in ALL if " -o " not in bad.line]


def name(bad: Bad) -> str:
    """The case, for pytest."""
    return bad.line[:90]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bad")
    for name, body in FILES.items():
        (folder / name).write_bytes(body)
    with (folder / "large").open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    return folder


def must_end(ran: Ran, code: int, error: str, hint: str | None) -> None:
    """One line of error, at most one of hint, nothing on stdout, the exit code, and a code that explains it."""
    assert (ran.code, ran.stdout) == (code, "")
    failed = error_of(ran.stderr)
    assert failed.message.startswith(error)
    assert failed.message == error or error.endswith(": ")
    assert failed.hint == hint
    assert EXPLANATIONS[failed.code].exit_code == code


@every_case("bad", ALL, ids=name)
def test_bad_input_ends_in_one_line_and_the_documented_code(bad: Bad, folder: Path) -> None:
    must_end(run(*bad.args(folder)), bad.code, bad.error.format(folder), bad.hint)


@every_case("bad", WITHOUT_FORMAT[::5], ids=name)
def test_in_json_bad_input_is_one_object_on_stderr(bad: Bad, folder: Path) -> None:
    plain = run(*bad.args(folder))
    ran = run(*bad.args(folder), env={"RMQLB_OUTPUT": "json"})
    assert (ran.stdout, ran.code, ran.stderr.count("\n")) == ("", bad.code, 1)
    value = json.loads(ran.stderr)
    assert value["schema"] == "rmqlb/error"
    assert value["error"]["exitCode"] == bad.code
    assert value["error"]["hint"] == bad.hint
    assert error_of(plain.stderr) == (value["error"]["message"], value["error"]["code"], value["error"]["hint"])
    must_fit(value)


@pytest.mark.parametrize("bad", first_by_default(ALL[::10]), ids=name)
def test_a_process_ends_the_same_way(bad: Bad, folder: Path) -> None:
    must_end(start(*bad.args(folder)), bad.code, bad.error.format(folder), bad.hint)


@every_case("flags", [("-o", "json"), ("-ojson",), ("--output", "json"), ("--output=json",)])
@every_case("wrong", ["--bogus", "--add=-1"])
def test_json_is_asked_for_in_every_spelling_even_of_a_line_that_cannot_be_parsed(
    flags: tuple[str, ...], wrong: str
) -> None:
    ran = run(PLAN, "-s", EXAMPLE, wrong, *flags)
    assert json.loads(ran.stderr)["error"]["exitCode"] == ran.code == USAGE


@every_case(
    ("setting", "value", "error"),
    [
        ("RMQLB_SOURCE_TIMEOUT", "soon", "RMQLB_SOURCE_TIMEOUT soon: not a time"),
        ("RMQLB_MAX_SIZE", "big", "RMQLB_MAX_SIZE big: not a size"),
        (
            "RMQLB_SOURCE_RETRIES",
            "many",
            "invalid value for '--source-retries' (env var: 'RMQLB_SOURCE_RETRIES'): 'many'",
        ),
        ("RMQLB_OUTPUT", "jsn", "unknown format jsn"),
        ("RMQLB_SOURCE", "ftp://x", "cannot read ftp:// sources"),
    ],
)
def test_a_bad_setting_in_the_environment_is_as_bad_as_on_the_line(setting: str, value: str, error: str) -> None:
    source = () if setting == "RMQLB_SOURCE" else ("-s", EXAMPLE)
    ran = run(SHOW, *source, env={setting: value})
    assert (ran.code, ran.stdout) == (USAGE, "")
    assert ran.stderr.startswith(f"error: {error}")


def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    path.write_bytes(b"{}")
    path.chmod(0)
    if os.access(path, os.R_OK):  # to root everything is readable, but for what leads nowhere
        path.unlink()
        path.symlink_to(path)
    ran = run(SHOW, "-s", str(path))
    assert (ran.code, ran.stdout) == (DATA, "")
    assert ran.stderr.startswith(f"error: cannot read {path}: ")
    assert ran.stderr.endswith(f"\nhint: {SOURCE_HINT}\n")


@pytest.mark.parametrize("place", first_by_default(["--group", "--topic", "-s", "--add", "--strategy"]))
def test_an_argument_that_is_no_text_is_told(place: str) -> None:
    ran = start(PLAN, place.encode(), b"a\xff\xfe")
    must_end(ran, USAGE, "an argument is not UTF-8 text: a\\udcff\\udcfe", None)


# -- live sources -------------------------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """Options for a Dashboard that misbehaves, and how the command ends; `{}` is its URL."""

    options: tuple[str, ...]
    replay: Replay
    code: ExitCode
    error: str


LOGIN = ("admin", "right-one")
LIVE = {
    "an unknown topic": Asked(("--topic", "Skewd"), Replay(), DATA, "topic Skewd has no route at {}"),
    "an HTML page": Asked(
        (), Replay(faults={"*": giving(b"<html>")}), ENDPOINT, "GET {}/topic/list.query: an HTML page instead of JSON"
    ),
    "HTTP 503": Asked((), Replay(faults={"*": giving(b"", 503)}), ENDPOINT, "GET {}/topic/list.query: HTTP 503"),
    "HTTP 401": Asked(
        (), Replay(faults={"*": giving(b"", 401)}), ENDPOINT, "GET {}/topic/list.query: refused (HTTP 401)"
    ),
    "a reset": Asked((), Replay(faults={"*": reset}), ENDPOINT, "GET {}/topic/list.query: the connection broke: "),
    "silence": Asked(
        ("--source-timeout", "200ms"),
        Replay(faults={"*": silent}),
        ENDPOINT,
        "GET {}/topic/list.query: no whole answer within 0.2 s",
    ),
    "too much": Asked(
        ("--max-size", "100KB"), Replay(faults={"*": endless}), ENDPOINT, "GET {}/topic/list.query: larger than 100 KB"
    ),
    "a login that is not given": Asked((), Replay(login=LOGIN), ENDPOINT, "{} asks for a login"),
    "a user without a password": Asked(("--user", "admin"), Replay(login=LOGIN), USAGE, "no password for admin"),
    "no password file": Asked(
        ("--user", "admin", "--password-file", "/nonexistent"),
        Replay(login=LOGIN),
        USAGE,
        "--password-file /nonexistent: No such file or directory",
    ),
    "no CA file": Asked(
        ("--ca-file", "/nonexistent"),
        Replay(),
        USAGE,
        "cannot read the CA file /nonexistent: No such file or directory",
    ),
}


@every_case("case", LIVE)
def test_a_live_source_that_misbehaves_ends_in_one_line(case: str) -> None:
    options, fields, code, error = LIVE[case]
    with dashboard(replace(fields, stop=threading.Event(), asked=[])) as replay:
        ran = run(SHOW, "-s", replay.url, "--source-retries", "0", *options)
    assert (ran.code, ran.stdout) == (code, "")
    assert ran.stderr.startswith(f"error: {error.format(replay.url)}")
    assert len(ran.stderr.splitlines()) <= 2


def test_a_password_is_in_no_output(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text("wr0ng-one\n")
    path.chmod(0o600)
    for debug in ((), ("--debug",)):
        for given in (("--password-file", str(path)), ()):
            with dashboard(Replay(login=LOGIN)) as replay:
                url = replay.url.replace("http://", "http://admin@")
                ran = run(SHOW, "-s", url, *given, *debug, env={} if given else {"RMQLB_PASSWORD": "wr0ng-one"})
            assert ran.code == ENDPOINT
            assert ran.stderr.startswith(f"error: {replay.url}: login of admin failed: Bad username or password! [")
            assert "wr0ng-one" not in ran.stdout + ran.stderr
            assert b"wr0ng-one" in replay.posted[0]


@every_case("mode", [0o644, 0o640, 0o620, 0o606])
def test_a_password_file_that_others_can_open_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "password"
    path.write_text("wr0ng-one\n")
    path.chmod(mode)
    with dashboard(Replay(login=LOGIN)) as replay:
        ran = run(SHOW, "-s", replay.url, "--user", "admin", "--password-file", str(path))
    assert (ran.code, ran.stdout, replay.posted) == (USAGE, "", [])
    assert (
        ran.stderr
        == f"error: --password-file {path}: other users can open it [secret-not-private]\nhint: chmod 600 {path}\n"
    )


ROUTE = """{"queueDatas":[{"brokerName":"a","readQueueNums":4,"writeQueueNums":4,"perm":6}],
"brokerDatas":[{"brokerName":"a","brokerAddrs":{"0":"10.0.0.1:10911"}}]}"""


@every_case("format_", ["table", "plain", "markdown", "csv", "json", "yaml"])
def test_a_route_without_queues_is_shown(format_: str) -> None:
    ran = run(SHOW, "-s", "-", "--topic", "T", "-o", format_, stdin='{"queueDatas":[],"brokerDatas":[]}')
    assert ran.code == 0
    assert ran.stdout.endswith("\n")
    assert ("no-read-queues" in ran.stderr) != ("no-read-queues" in ran.stdout)


def test_a_plan_without_members_names_no_group_it_was_not_told() -> None:
    ran = run("plan-rebalance", "-s", "-", "--topic", "T", "--consumers", "0", stdin=ROUTE)
    assert (ran.code, ran.stdout) == (DATA, "")
    assert ran.stderr.startswith("error: the group has no consumer online [no-consumer-online]\n")


@pytest.mark.parametrize(
    ("topics", "problem", "hint"),
    [
        (["%RETRY%g"], "only its retry topic is known of group g", "--include-retry takes it"),
        ([], "group g subscribes to no topic", "to see what would be if it did"),
    ],
)
def test_a_group_without_a_topic_of_its_own_is_told_what_to_ask_for(topics: list[str], problem: str, hint: str) -> None:
    """The topics that there are were suggested instead, the very retry topic among them."""
    data = {"topics": [{"topic": "%RETRY%g", "route": json.loads(ROUTE)}], "groups": [{"group": "g", "topics": topics}]}
    text = json.dumps({"schema": "rmqlb/snapshot", "formatVersion": "1.0", "data": data})
    ran = run("show-owners", "-s", "-", "--consumers", "2", "-g", "g", stdin=text)
    failed = error_of(ran.stderr)
    assert (ran.code, failed.message, failed.code) == (DATA, problem, "topic-not-found")
    assert (failed.hint or "").startswith(hint)


def test_a_topic_that_a_member_reports_is_one_of_the_groups_whatever_the_last_heartbeat_said() -> None:
    route = json.loads(ROUTE)
    data = {
        "topics": [{"topic": name, "route": route} for name in ("T", "U", "V")],
        "groups": [
            {
                "group": "g",
                "topics": ["T"],
                "clientIds": ["a", "b", "b"],
                "reports": [{"clientId": "a", "topics": ["T", "U"]}, {"clientId": "b", "topics": ["T"]}],
            }
        ],
    }
    text = json.dumps({"schema": "rmqlb/snapshot", "formatVersion": "1.0", "data": data})
    ran = run("show-owners", "-s", "-", "--topic", "U", "-o", "plain", stdin=text)
    assert ran.stdout.startswith("g, 2 consumers (3 processes): ")
    assert "[not-subscribed]" not in ran.stderr
    assert "[not-subscribed]" in run("show-owners", "-s", "-", "--topic", "V", stdin=text).stderr


def test_a_condition_on_an_unknown_figure_leaves_stdout_empty() -> None:
    plan = ("plan-rebalance", "-s", "-", "--topic", "T", "--consumers", "2", "--add", "1")
    ran = run(*plan, "--fail-on", "lag-moved>0", "-o", "plain", stdin=ROUTE)
    assert (ran.code, ran.stdout) == (DATA, "")
    assert ran.stderr.splitlines()[-2:] == [
        "error: --fail-on lag-moved>0: the figure is unknown [figure-not-seen]",
        "hint: leave the condition out to see the plan",
    ]
    both = run(*plan, "--fail-on", "lag-moved>0", "--fail-on", "moved>0", "-o", "plain", stdin=ROUTE)
    assert (both.code, bool(both.stdout)) == (3, True)


def test_a_password_in_the_url_is_not_echoed(folder: Path) -> None:
    for bad in (bad for bad in SETTINGS if "s3cret" in bad.line):
        for fmt in ("plain", "json"):
            ran = run(*bad.args(folder), "-o", fmt, "--debug")
            assert ran.code == USAGE
            assert "s3cret" not in ran.stdout + ran.stderr
