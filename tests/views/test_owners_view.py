"""Who owns what under each strategy, for people and for machines."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.run import EXAMPLE, run


def test_a_queue_that_only_a_config_list_names_is_nobodys_under_the_other_strategies(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"a": [{"topic": "Skewed", "brokerName": "broker-z", "queueId": 0}]}))
    asked = ("--topic", "Skewed", "--consumers", "a,b", "--strategy", "AVG", "--strategy", "CONFIG")
    line = ("show-owners", "-s", EXAMPLE, *asked, "--config", str(config), "--section", "queues")
    *_, last = run(*line, "-o", "plain").stdout.splitlines()
    assert last.split() == ["broker-z", "0", "(nobody)", "a"]
    queue = json.loads(run(*line, "-o", "json").stdout)["data"]["queues"][-1]
    assert queue["owners"] == {"AVG": [], "CONFIG": ["a"]}
