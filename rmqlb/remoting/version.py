"""The version number that every command carries: an ordinal of RocketMQ's `MQVersion.Version` enum.

Rules of this file:
- The enum has 613 constants, V3_0_0_SNAPSHOT = 0 to HIGHER_VERSION = 612; the same in 4.9.7 and 5.5.0.
- Its first 16 names are irregular; after them come runs of releases, each release preceded by its snapshot. From 4.0.0
  on the ordinal is 212 + 200*(major - 4) + 20*minor + 2*patch, and 1 more unless it is a snapshot.
- 4.10 and 5.10 have no ordinal; a newer RocketMQ sends HIGHER_VERSION or more.
"""

from __future__ import annotations

from typing import Final

from rmqlb.errors import ProtocolError

V5_0_0: Final = 413
V5_5_0: Final = 513  # the version that rmqlb's requests carry
HIGHER_VERSION: Final = 612  # the last ordinal: every later version counts as this one

_FIRST_NAMES: Final = (
    *("V3_0_0_SNAPSHOT", "V3_0_0_ALPHA1", "V3_0_0_BETA1", "V3_0_0_BETA2", "V3_0_0_BETA3", "V3_0_0_BETA4"),
    *("V3_0_0_BETA5", "V3_0_0_BETA6_SNAPSHOT", "V3_0_0_BETA6", "V3_0_0_BETA7_SNAPSHOT", "V3_0_0_BETA7"),
    *("V3_0_0_BETA8_SNAPSHOT", "V3_0_0_BETA8", "V3_0_0_BETA9_SNAPSHOT", "V3_0_0_BETA9", "V3_0_0_FINAL"),
)


_RUNS: Final = (
    (3, range(1), range(1, 16)),
    (3, range(1, 3), range(10)),
    (3, range(3, 10), range(1, 10)),
    (4, range(10), range(10)),
    (5, range(10), range(10)),
)
"""Major, minors and patches of releases in order, two ordinals each."""


def _all_names() -> tuple[str, ...]:
    names = list(_FIRST_NAMES)
    for major, minors, patches in _RUNS:
        for minor in minors:
            for patch in patches:
                release = f"V{major}_{minor}_{patch}"
                names += (f"{release}_SNAPSHOT", release)
    return (*names, "HIGHER_VERSION")


_NAMES: Final = _all_names()


def version_text(ordinal: int) -> str:
    """`V5_5_0` or `V5_5_0_SNAPSHOT` for an ordinal (`MQVersion.getVersionDesc`), `HIGHER_VERSION` from 612 on."""
    if ordinal < 0:
        raise ProtocolError(f"version {ordinal} is not one of RocketMQ's")
    return _NAMES[min(ordinal, HIGHER_VERSION)]
