"""Rates from two samples of a running cluster: a reader that gives the two example snapshots, one after the other."""

from pathlib import Path

import pytest

from rmqlb.errors import UsageError
from rmqlb.model.result import Progress, no_progress
from rmqlb.model.size_group import GroupSize, SizeQuestion
from rmqlb.model.snapshot import ClusterSnapshot, Wanted
from rmqlb.sources.source import NothingToAsk
from rmqlb.verbs.amounts import spacing
from rmqlb.verbs.plan_rebalance import plan_rebalance
from rmqlb.verbs.size_group import size_group
from rmqlb.verbs.source import Reader, reader

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = (str(EXAMPLES / "cluster.json"), str(EXAMPLES / "cluster-later.json"))


class Running(NothingToAsk):
    """A cluster that is read again and again, and has changed each time."""

    live = True

    def __init__(self) -> None:
        self.left = [reader(file) for file in FILES]

    def fetch(self, wanted: Wanted, progress: Progress = no_progress) -> ClusterSnapshot:
        return self.left.pop(0).fetch(wanted, progress)


def sized(source: Reader, since: str) -> GroupSize:
    found = size_group(source, SizeQuestion(), group="order-svc", consume_us=1_000_000, rates_since=since)
    assert isinstance(found, GroupSize)
    return found


def test_two_samples_give_the_rates_that_two_files_give() -> None:
    running = Running()
    live, file = sized(running, "100ms"), sized(reader(FILES[1]), FILES[0])
    assert (running.left, live) == ([], file)
    # The time between the two snapshots, whatever was waited for.
    assert ((live.rates and live.rates.over_ms) or 0) > 100_000


def test_a_file_has_one_sample() -> None:
    with pytest.raises(UsageError, match=r"^--earlier 60s: two samples need a running cluster"):
        sized(reader(FILES[0]), "60s")
    with pytest.raises(UsageError, match=r"^--set earlier=60s: two samples need a running cluster"):
        plan_rebalance(reader(FILES[0]), "order-svc", add=[1], rates_since="60s")
    with pytest.raises(UsageError, match=r"^--set earlier=25h: longer than a day"):
        plan_rebalance(reader(FILES[0]), "order-svc", add=[1], rates_since="25h")


def test_a_time_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [spacing(text) for text in ("1m30s", "100ms", "60", "60s.json", None)] == [90, 0.1, None, None, None]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "60s").touch()
    assert spacing("60s") is None
