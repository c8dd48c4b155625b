"""What people type first, and the one line that says what to type instead: the exit code, the line, the answer.

The answer is the hint, or the error where it has none; `(works)` is a spelling that is understood. `S` is `-s` with
examples/cluster.json, and an answer that goes on ends in …
"""

from __future__ import annotations

import re
import shlex

import pytest

from tests.support.mismatches import every_case

from .run import ROOT, error_of, run

MISTAKES = r"""
2 plan -g order-svc => did you mean rmqlb plan-rebalance GROUP --scale-to N?
2 scale order-svc 5 => did you mean rmqlb plan-rebalance GROUP --scale-to N?
2 lag => did you mean rmqlb show-groups?
2 groups => did you mean rmqlb show-groups?
2 list groups => did you mean rmqlb show-groups?
2 topics => did you mean rmqlb show-route TOPIC?
2 consumers order-svc => did you mean rmqlb show-consumers GROUP?
2 routes => did you mean rmqlb show-route TOPIC?
2 rebalance => did you mean rmqlb plan-rebalance or rmqlb simulate-rebalance?
2 send OrderEvents => did you mean rmqlb simulate-send TOPIC?
2 restart order-svc => did you mean rmqlb plan-rollout GROUP?
2 topicRoute -t OrderEvents => did you mean rmqlb show-route TOPIC?
2 consumerProgress -g order-svc => did you mean rmqlb show-groups?
2 allocateMQ -t OrderEvents => did you mean rmqlb show-owners GROUP?
2 describe group order-svc => did you mean rmqlb diagnose GROUP?
2 order-svc => a command comes first, as in rmqlb diagnose order-svc
2 examples/cluster.json => a command comes first: rmqlb show-groups -s examples/cluster.json
2 show => did you mean rmqlb show-groups, rmqlb show-consumers, rmqlb show-owners or rmqlb show-route?
2 simulate => did you mean rmqlb simulate-rebalance, rmqlb simulate-send or rmqlb simulate-receive?
2 help => did you mean rmqlb --help?
2 version => did you mean rmqlb --version?
2 diagnos => did you mean diagnose?
2 show-groups S --sort lag => the worst is first already; -o json with jq sorts otherwise
2 show-groups S --json => write -o json
2 show-groups S --format json => write -o FORMAT, as -o json
0 show-groups S -o JSON => (works)
0 diagnose S order-svc --max-lag 5000 => (works)
2 show-consumers S order-svc --max-lag -1 => see rmqlb show-consumers --help
2 show-groups S -o yamll => did you mean yaml?
2 show-groups S --namespace prod => write it in the name, as in -g 'NAMESPACE%GROUP'
2 show-groups S --timeout 5s => write --source-timeout 5s for a request, --deadline 1m for all
2 show-groups S --verbose => --all lists every row, --explain shows why where it is offered
2 show-groups S --limit 5 => write rmqlb … -o plain | head
2 show-groups S --profile prod => write --context NAME; rmqlb context list shows all
2 show-groups S --password x => set RMQLB_PASSWORD, or name a --password-file
2 show-groups S --no-color => write --color never, or set NO_COLOR=1
2 show-groups --file examples/cluster.json => name the source with -s
2 show-groups examples/cluster.json => name the source with -s: -s examples/cluster.json
0 show-groups S order-svc => (works)
2 show-groups S --severity critical => there are the severities error, info, warning
0 show-groups S --severity WARNING => (works)
4 show-groups S order_svc => did you mean order-svc?
4 show-groups --context nope => rmqlb context add makes one
2 diagnose S => name it with --group, or take --all-groups
0 diagnose S order-svc => (works)
0 diagnose S order-svc bill-svc => (works)
4 diagnose S ordersvc => did you mean order-svc?
0 diagnose S order-svc -g order-svc => (works)
0 show-owners S order-svc --strategy all => (works)
0 show-owners S order-svc --strategy avg => (works)
0 show-owners S order-svc --strategy consistent-hash => (works)
0 show-owners S order-svc --strategy average-by-circle => (works)
0 show-owners S order-svc --strategy AllocateMessageQueueAveragely => (works)
0 show-owners S order-svc --strategy pin-over-all-avg --strategy-option host=192.0.2.2 => (works)
2 show-owners S order-svc --strategy sticky => there are the strategies AVG, AVG_BY_CIRCLE, CONFIG, CONSISTENT_HASH,…
4 show-owners S order-svc --strategy mine.py:allocate => --strategy mine.py: No such file or directory
2 show-owners S order-svc --strategy mine.py => write --strategy FILE.py:NAME
0 show-owners S order-svc --sdk Java => (works)
0 show-consumers S '*-svc' => (works)
0 size-group S '*-svc' => (works)
2 plan-rollout S '*-svc' => name one of audit-svc, bill-svc, order-svc
0 show-route S OrderEvents => (works)
4 show-route S orderevents => did you mean OrderEvents?
2 show-route S --topics OrderEvents => did you mean --topic?
2 show-route S --source-timeout 5000 => --source-timeout 5000: which unit? 5000ms or 5s
2 show-route S --section brokrs => did you mean brokers?
2 show-route S --color yes => --color yes: neither auto, always nor never
2 plan-rebalance S order-svc => name it: --scale-to N, --add, --remove, --to-strategy, --add-broker, --remove-broker…
2 plan-rebalance S order-svc --add two => write a number as --add 2, or a client ID as --add 10.0.0.5@app
2 plan-rebalance S order-svc --add 1,2 => write a number as --add 2, or a client ID as --add 10.0.0.5@app
2 plan-rebalance S order-svc --scale-to +2 => write --add 2, or --scale-to N
2 plan-rebalance S order-svc --scale-to five => --scale-to five: not a number from 0 to 100000
2 plan-rebalance S order-svc --replicas 5 => write rmqlb plan-rebalance GROUP --scale-to N
2 plan-rebalance S order-svc --queues 8 => write --read-queues N --write-queues N, or plan-topic --queues N
4 plan-rebalance S order-svc --remove 192.0.2.2@inst9 => did you mean 192.0.2.2@inst2 or 192.0.2.2@inst1 or 192.0.2.…
4 plan-rebalance S order-svc --remove-broker broker-c => did you mean broker-b or broker-a?
2 plan-rebalance S order-svc --broker broker-b => did you mean --add-broker or --remove-broker?
0 plan-rebalance S order-svc --add 1 --strategy avg --strategy consistent-hash => (works)
2 plan-rebalance S order-svc --to-strategy all => run it once for each; show-owners, plan-rebalance and size-group c…
2 plan-rebalance S order-svc --add 1 --fail-on moves>0 => did you mean moved or removed?
2 plan-rebalance S order-svc --add 1 --dry-run => leave it out: rmqlb only reads
0 plan-rebalance S order-svc -g bill-svc --add 1 => (works)
2 plan-topic S --queues 16 => name it: TOPIC or --topic TOPIC
2 plan-topic S OrderEvents => name it with --queues N, --add-broker, --drain-broker or --move-to-cluster
2 plan-topic S OrderEvents --queues 16 --type fifo => did you mean --message-type?
4 plan-topic S OrderEvents --drain-broker broker-z => did you mean broker-b or broker-a?
2 plan-rollout S order-svc --down 15 => --down 15: which unit? 15s or 15ms
2 plan-rollout S order-svc --strategy all => run it once for each; show-owners, plan-rebalance and size-group compar…
2 simulate-rebalance S order-svc => name it: --scale-to 5, --event 'join 1@30s', or --set all-new for its start
2 simulate-rebalance S order-svc --event 'leave #0' => write leave 10.0.0.5@app@30s
2 simulate-rebalance S order-svc --event 'leave #0@10' => --event 'leave #0@10': 10: which unit? 10s or 10ms
2 simulate-rebalance S order-svc --event 'kill #0@10s' => did you mean crash?
4 simulate-rebalance S order-svc --event 'leave #9@10s' => the 3 of the beginning are #0 to #2 in sorted order
4 simulate-rebalance S order-svc --event 'broker-down broker-z@10s' => did you mean broker-b or broker-a?
2 simulate-rebalance S order-svc --event 'leave #0@10s' --set for=60 => --set for=60: which unit? 60s or 60ms
2 simulate-send S => name it: TOPIC or --topic TOPIC
4 simulate-send S OrderEvents --fail broker-z => did you mean broker-b or broker-a?
2 simulate-send S OrderEvents --send-timeout 3000 => --send-timeout 3000: which unit? 3000ms or 3s
2 simulate-send S OrderEvents --messages 1,000 => write 1000 or 1k, without a comma
0 simulate-send S OrderEvents --rate 1k --messages 10 => (works)
0 simulate-receive S OrderEvents --type POP => (works)
2 simulate-receive S OrderEvents --target-wait 1 => --target-wait 1: which unit? 1s or 1ms
2 simulate-receive S => name it: TOPIC or --topic TOPIC
0 select-queue S OrderEvents -k a => (works)
4 size-group S order-svc --rate 500 => say it: --consume-time 40ms
2 size-group S order-svc --rate 500 --consume-time 40 => --consume-time 40: which unit? 40s or 40ms
2 size-group S order-svc --max-imbalance 10% => write 1.1
4 sweep-failures S nope => there are the groups audit-svc, bill-svc, order-svc
2 sweep-failures S --lose brokers => did you mean broker?
4 check S -p none.yaml => --policy none.yaml: No such file or directory
2 diff examples/cluster.json => write rmqlb diff A B; see rmqlb diff --help
4 diff examples/cluster.json nope.json => a source is a URL, a file, or - for stdin
2 record S order-svc => name NameServers or a Dashboard with -s; --replay FILE shows a recording again
2 record S -g order-svc bill-svc => leave one of them out
2 explain no-masters => did you mean no-master or no-answer or too-many-steps?
2 completion powershell => there are the shells bash, fish, zsh
""".strip().splitlines()


@every_case("row", MISTAKES)
def test_a_mistake_is_answered_with_what_to_type(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    code, typed, answer = re.fullmatch(r"(\d) (.*) => (.*)", row).groups()  # type: ignore[union-attr]
    ran = run(*shlex.split(re.sub(r" S\b", " -s examples/cluster.json", typed, count=1)))
    assert ran.code == int(code), ran.stderr
    if answer != "(works)":
        error = error_of(ran.stderr)
        said = error.hint or error.message
        assert (said[: len(answer) - 1] + "…" if answer.endswith("…") else said) == answer


def test_the_table_has_eighty_mistakes() -> None:
    assert len(MISTAKES) >= 80
