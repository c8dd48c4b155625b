"""Groups of a generated fleet: healthy ones have no finding above info, whatever their names, topics and strategies."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random

from rmqlb.engine.diagnose.diagnose import RULES
from rmqlb.model.diagnosis import Diagnosis
from tests.engine.diagnose.consuming import earlier
from tests.engine.diagnose.running import diagnosed, grave
from tests.generate.healthy import healthy_looks
from tests.support.synthetic.faults import read
from tests.support.synthetic.fleet import FleetShape, generate

GROUPS = int(os.environ.get("HEALTHY_GROUPS", "300"))
"""`.ci/full` asks for more."""
HEALTHY = FleetShape(
    seed=11, groups=GROUPS, topics=200, days=2, faults=0.0, odd_names=0.5, churn=0.5, other_clients=0.0
)


def test_healthy_groups_of_a_fleet_have_no_finding_above_info(tmp_path: Path) -> None:
    generate(HEALTHY, str(tmp_path / "fleet"))
    found: dict[tuple[object, str], Diagnosis] = {}
    for snapshot in map(read, sorted(tmp_path.rglob("snapshot.json.gz"))):
        for number, name in enumerate(snapshot.groups):
            looks = healthy_looks(snapshot, name, Random(f"{name} {snapshot.taken_at}"))
            found[snapshot.taken_at, name] = diagnosed(looks[-1], name, earlier(looks, name))
            if number % 5 == 0:  # without what consumers report of their queues
                assert grave(diagnosed(snapshot, name)) == []
    assert len(found) == 2 * GROUPS
    assert {name: grave(each) for name, each in found.items() if grave(each)} == {}
    decided = Counter(code for each in found.values() for code in each.checked)
    assert all(decided[rule.code] > 100 for rule in RULES), decided
