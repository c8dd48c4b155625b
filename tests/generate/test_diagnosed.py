"""Groups of a generated fleet: healthy ones have no finding above info, whatever their names, topics and strategies."""

from __future__ import annotations

from pathlib import Path

from rmqlb.pipeline.synthetic.generate import generate
from rmqlb.pipeline.synthetic.shape import FleetShape
from tests.engine.diagnose.running import diagnosed, grave
from tests.generate.reading import good

HEALTHY = FleetShape(seed=11, groups=1000, topics=200, days=2, faults=0.0, odd_names=0.5, churn=0.5)


def test_healthy_groups_of_a_fleet_have_no_finding_above_info(tmp_path: Path) -> None:
    generate(HEALTHY, str(tmp_path / "fleet"))
    found = {
        (snapshot.taken_at, name): grave(diagnosed(snapshot, name))
        for snapshot in good(tmp_path / "fleet")
        for name in snapshot.groups
    }
    assert len(found) == 2000
    assert {name: codes for name, codes in found.items() if codes} == {}
