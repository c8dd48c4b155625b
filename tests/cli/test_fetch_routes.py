import gzip
import json
import os
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rmqlb.sources.dump import read_document, split_documents
from tests.support.moving_group import GROUP, Moment, MovingGroup, moving
from tests.support.replay_remoting import cluster, refusing_address

from .run import EXAMPLE, command, data_of, environment, run

SHARED = Moment({"10.0.0.1@x": "a0-7", "10.0.0.2@y": "b0-7"})


@pytest.fixture
def live() -> Iterator[list[str]]:
    with cluster() as (a, b):
        yield ["-s", f"rocketmq://{a.address}", "--map-address", a.mapped, "--map-address", b.mapped]
        assert a.forbidden == b.forbidden == []


def test_a_live_cluster_and_its_snapshot_give_the_same_plan(live: list[str], tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    fetched = run("fetch-routes", *live, "--group", "order-svc", "--to", str(path))
    assert (fetched.code, fetched.stdout) == (4, "")
    saved = json.loads(path.read_text())["data"]
    assert [group["group"] for group in saved["groups"]] == ["order-svc"]
    unread = {(part["kind"], part["name"], part.get("detail")) for part in saved["unread"]}
    assert ("member", "order-svc", "192.0.2.2@inst1") in unread
    said = fetched.stderr.splitlines()
    assert said[-1] == f"incomplete: {len(saved['unread'])} parts could not be read"
    assert any(line.startswith("warning: not read: ") for line in said)
    plan = ["plan-rebalance", "--group", "order-svc", "--topic", "OrderEvents", "--add", "1", "-o", "json"]
    from_file, from_cluster = (json.loads(run(*plan, *source).stdout)["data"] for source in (["-s", str(path)], live))
    assert from_file == from_cluster


def test_a_dump_can_be_cut_down_and_piped_on() -> None:
    cut = run("fetch-routes", "-s", EXAMPLE, "--group", "bill-*", "--topic", "Skewed", "-o", "yaml")
    assert cut.code == 0
    assert list(yaml.safe_load(cut.stdout)["data"]) == ["topics", "groups", "unread"]
    piped = run("plan-rebalance", "-s", "-", "--add", "0", "-o", "json", stdin=cut.stdout)
    whole = run("plan-rebalance", "-s", EXAMPLE, "--group", "bill-svc", "--add", "0", "-o", "json")
    assert json.loads(piped.stdout)["data"] == json.loads(whole.stdout)["data"]


def stopped_after(group: MovingGroup, folder: Path, files: int) -> subprocess.CompletedProcess[str]:
    line = ["fetch-routes", *group.source, "-g", GROUP, "--every", "1s", "--to", str(folder), "--source-retries", "0"]
    running = subprocess.Popen(command(*line), stderr=subprocess.PIPE, text=True, env=environment())
    while len(list(folder.glob("date=*/*.json.gz"))) < files and running.poll() is None:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    return subprocess.CompletedProcess(line, running.returncode, "", said)


def test_snapshots_at_an_interval_are_read_by_commands_and_the_pipeline(tmp_path: Path) -> None:
    folder = tmp_path / "snapshots"
    with moving(Moment({"10.0.0.1@x": "a0-7 b0-7"}), Moment({"10.0.0.1@x": "a0-7"}, down=True), SHARED) as group:
        done = stopped_after(group, folder, 2)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, f"2 snapshots written to {folder}")
    assert "the fetch failed: " in done.stderr
    first, second = sorted(folder.glob("date=*/*.json.gz"))
    assert run("show-owners", "-s", str(second), "-g", GROUP).code == 0
    groups = [json.loads(gzip.decompress(path.read_bytes()))["data"]["groups"][0] for path in (first, second)]
    owners = [{queue["owners"][0] for queue in group["queues"] if queue.get("owners")} for group in groups]
    assert owners == [{"10.0.0.1@x"}, {"10.0.0.1@x", "10.0.0.2@y"}]
    (body,) = split_documents(first.read_bytes(), str(first))
    document = read_document(body, str(first))
    assert document.taken_at is not None
    assert (document.snapshots, f"date={document.taken_at.date()}") == (1, first.parent.name)


def test_all_contexts_are_fetched_though_one_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "rmqlb" / "config.yaml"
    config.parent.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with refusing_address() as address:
        sources = {"east": EXAMPLE, "gone": f"rocketmq://{address}", "west": EXAMPLE}
        config.write_text(yaml.safe_dump({"contexts": {name: {"source": source} for name, source in sources.items()}}))
        config.chmod(0o600)
        result = run("fetch-routes", "--all-contexts", "--source-retries", "0", "--to", str(tmp_path / "to"))
    assert result.code == 4
    assert "error: 1 of 3 contexts not read completely: gone [data]" in result.stderr
    written = sorted((tmp_path / "to").glob("cluster=*/date=*/*.json.gz"))
    assert [path.parts[-3] for path in written] == ["cluster=east", "cluster=west"]
    assert json.loads(gzip.decompress(written[0].read_bytes()))["source"]["context"] == "east"


RUNNING_INFO = Path(__file__).parent.parent / "data" / "dashboard" / "running-order-svc-inst0.json"
FETCH = ("fetch-routes", "-s", EXAMPLE, "--redact")
SECRET = ("order-svc", "OrderEvents", "192.0.2.2", "broker-a", "DefaultCluster", "cluster.json", "127.0.0.1")


def plan(source: str, stdin: str | None, group: str, strategy: str) -> Any:
    return data_of("plan-rebalance", "-s", source, "-g", group, "--remove", "1", "--strategy", strategy, stdin=stdin)


def test_no_name_is_left_anywhere_and_whoever_reads_it_is_told_what_it_cannot_tell() -> None:
    for fmt in ("json", "yaml"):
        done = run(*FETCH, "-o", fmt)
        assert done.code == 0
        assert [name for name in SECRET if name in done.stdout + done.stderr] == []
    shown = run("show-owners", "-s", "-", "-g", "group-1", stdin=done.stdout)
    assert "CONSISTENT_HASH hashes names and does not" in shown.stderr
    done = run(*FETCH, "--group", "order-*", "--topic", "zecret-*", "-o", "json")
    assert "zecret" not in done.stdout + done.stderr
    assert "none of the topics matches a pattern" in done.stdout


@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE"])
def test_a_plan_from_it_moves_the_same_queues(strategy: str, tmp_path: Path) -> None:
    redacted = run(*FETCH, "--redact-map", str(tmp_path / "map.json"))
    names = json.loads((tmp_path / "map.json").read_text())
    group = names["groups"]["order-svc"]
    back = json.dumps(plan("-", redacted.stdout, group, strategy))
    for kind in ("clientIds", "brokerNames", "topics", "groups", "addresses"):
        for old, new in sorted(names[kind].items(), key=lambda pair: -len(pair[1])):
            back = back.replace(json.dumps(new), json.dumps(old))
    found, planned = json.loads(back), plan(EXAMPLE, None, "order-svc", strategy)
    for each in (found, planned):
        del each["convergence"]  # each broker answers in times of its own, drawn by its name
    assert found == planned


def test_evidence_is_written_where_it_is_asked_for_and_names_nothing_then() -> None:
    saved = RUNNING_INFO.read_text()
    assert '"evidence"' not in run("fetch-routes", "-s", "-", stdin=saved).stdout
    with_names = run("fetch-routes", "-s", "-", "--evidence", stdin=saved).stdout
    (report,) = json.loads(with_names)["data"]["groups"][0]["reports"]
    assert len(report["evidence"]["queues"]) == 10
    for source in (saved, with_names):
        done = run("fetch-routes", "-s", "-", "--evidence", "--redact", stdin=source)
        (redacted,) = json.loads(done.stdout)["data"]["groups"][0]["reports"]
        assert [each | {"queue": None} for each in redacted["evidence"]["queues"]] == [
            each | {"queue": None} for each in report["evidence"]["queues"]
        ]
        assert sorted(redacted["evidence"]["statuses"]) == ["%RETRY%group-1", "topic-2", "topic-3"]
        assert [name for name in (*SECRET, "Skewed") if name in done.stdout + done.stderr] == []


def test_the_map_is_for_the_user_alone_and_leads_back(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    path.write_text("old")
    path.chmod(0o666)
    before = os.umask(0)
    try:
        assert run(*FETCH, "--redact-map", str(path)).code == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    written = json.loads(path.read_text())
    assert written["schema"] == "rmqlb/redact-map"
    assert "order-svc" in written["groups"]
    assert list(tmp_path.iterdir()) == [path]
