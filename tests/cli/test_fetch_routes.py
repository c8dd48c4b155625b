from __future__ import annotations

import gzip
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from rmqlb.cli.main import app
from rmqlb.sources.dump import read_document, split_documents
from tests.support.mismatches import every_case
from tests.support.moving_group import GROUP, Moment, MovingGroup, moving
from tests.support.replay_remoting import Replay, cluster, refusing_address, silent

from .run import command, environment

SHARED = Moment({"10.0.0.1@x": "a0-7", "10.0.0.2@y": "b0-7"})
EXAMPLE = str(Path(__file__).parent.parent.parent / "examples" / "cluster.json")


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=stdin)


@pytest.fixture
def live() -> Iterator[list[str]]:
    with cluster() as (a, b):
        yield ["-s", f"rocketmq://{a.address}", "--map-address", a.mapped, "--map-address", b.mapped]
        assert a.forbidden == b.forbidden == []


def test_a_live_cluster_and_its_snapshot_give_the_same_plan(live: list[str], tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    fetched = run("fetch-routes", *live, "--group", "order-svc", "--to", str(path))
    assert (fetched.exit_code, fetched.stdout) == (4, "")
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
    assert cut.exit_code == 0
    assert list(yaml.safe_load(cut.stdout)["data"]) == ["topics", "groups", "unread"]
    piped = run("plan-rebalance", "-s", "-", "-o", "json", stdin=cut.stdout)
    whole = run("plan-rebalance", "-s", EXAMPLE, "--group", "bill-svc", "-o", "json")
    assert json.loads(piped.stdout)["data"] == json.loads(whole.stdout)["data"]


NO_MATCH = "warning: none of the topics matches {} [matches-nothing]"


@every_case(
    ("words", "code", "told"),
    [
        ("-o csv", 2, ["error: a snapshot cannot be written as csv [usage]", "hint: -o json, yaml or jsonl"]),
        ("-t Skeww* -t TBW* -g *-svc", 0, [NO_MATCH.format("Skeww*"), NO_MATCH.format("TBW*")]),
        ("--to no/where.json", 2, ["error: --to no/where.json: No such file or directory [cannot-write]"]),
    ],
)
def test_what_is_wrong_is_a_line(
    words: str, code: int, told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("fetch-routes", "-s", EXAMPLE, *words.split())
    assert (result.exit_code, result.stderr.splitlines()) == (code, told)
    assert list(tmp_path.iterdir()) == []


def test_what_is_rocketmqs_own_is_taken_by_its_full_name_and_a_pattern_is_told_why_not(tmp_path: Path) -> None:
    """It was said to fit nothing, or not to be there."""
    own = '{"queueDatas":[{"brokerName":"a","readQueueNums":1,"writeQueueNums":1,"perm":6}],"brokerDatas":[]}'
    dump = tmp_path / "routes.json"
    dump.write_text(f'{{"%RETRY%g": {own}, "TBW102": {own}, "T": {own}}}')

    def fetched(*args: str) -> tuple[list[str], list[str]]:
        result = run("fetch-routes", "-s", str(dump), *args)
        return [topic["topic"] for topic in json.loads(result.stdout)["data"]["topics"]], result.stderr.splitlines()

    assert fetched() == (["T"], [])
    assert fetched("-t", "TBW102", "-t", "%RETRY%g") == (["%RETRY%g", "TBW102"], [])
    told = "; RocketMQ's own are left out without --system [matches-nothing]"
    assert fetched("-t", "TB*") == ([], [f"warning: none of the topics matches TB*{told}"])
    assert fetched("-t", "%DLQ%*") == ([], [f"warning: none of the topics matches %DLQ%*{told}"])
    assert fetched("-t", "TB*", "--system") == (["TBW102"], [])


def test_a_cluster_that_never_answers_ends_by_the_deadline() -> None:
    with cluster(Replay(faults={"*": silent})) as (mute,):
        result = run("show-route", "-s", f"rocketmq://{mute.address}", "--topic", "T", "--source-timeout", "200ms")
    assert (result.exit_code, result.stdout) == (5, "")
    assert len(result.stderr.splitlines()) == 2


def test_secrets_are_never_shown(live: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMQLB_SECRET_KEY", "s3cr3t-key")
    monkeypatch.setenv("RMQLB_SECURITY_TOKEN", "s3cr3t-token")
    (tmp_path / "key").write_text("s3cr3t-key\n")
    (tmp_path / "key").chmod(0o600)
    for more in ([], ["--secret-key-file", str(tmp_path / "key")], ["--debug"]):
        result = run("fetch-routes", *live, "--access-key", "ak", "--group", "order-svc", *more)
        assert result.exit_code == 4
        assert "s3cr3t" not in result.stdout + result.stderr


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
    assert run("show-owners", "-s", str(second), "-g", GROUP).exit_code == 0
    groups = [json.loads(gzip.decompress(path.read_bytes()))["data"]["groups"][0] for path in (first, second)]
    owners = [{queue["owners"][0] for queue in group["queues"] if queue.get("owners")} for group in groups]
    assert owners == [{"10.0.0.1@x"}, {"10.0.0.1@x", "10.0.0.2@y"}]
    (body,) = split_documents(first.read_bytes(), str(first))
    document = read_document(body, str(first))
    assert document.taken_at is not None
    assert (document.kind, f"date={document.taken_at.date()}") == ("snapshot", first.parent.name)


def test_all_contexts_are_fetched_though_one_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "rmqlb" / "config.yaml"
    config.parent.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with refusing_address() as address:
        sources = {"east": EXAMPLE, "gone": f"rocketmq://{address}", "west": EXAMPLE}
        config.write_text(yaml.safe_dump({"contexts": {name: {"source": source} for name, source in sources.items()}}))
        config.chmod(0o600)
        result = run("fetch-routes", "--all-contexts", "--source-retries", "0", "--to", str(tmp_path / "to"))
    assert result.exit_code == 4
    assert "error: 1 of 3 contexts not read whole: gone [data]" in result.stderr
    written = sorted((tmp_path / "to").glob("cluster=*/date=*/*.json.gz"))
    assert [path.parts[-3] for path in written] == ["cluster=east", "cluster=west"]
    assert json.loads(gzip.decompress(written[0].read_bytes()))["source"]["context"] == "east"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-s", EXAMPLE, "--to", "to"], "--all-contexts and --source"),
        ([], "--all-contexts needs a folder"),
        (["--to", "to"], "there is no context to read"),
        (["--to", "to", "--redact"], "--all-contexts fetches once, with all names"),
    ],
)
def test_all_contexts_needs_a_folder_and_contexts(options: list[str], message: str) -> None:
    result = run("fetch-routes", "--all-contexts", *options)
    assert (result.exit_code, result.stderr.splitlines()[0]) == (2, f"error: {message} [usage]")
