"""What the options of the pipeline's commands say, without Spark."""

from __future__ import annotations

import pytest

from rmqlb.cli.pipeline.options import OnlyOptions, ScheduleOptions
from rmqlb.cli.pipeline.plan import plan_for
from rmqlb.errors import UsageError


@pytest.mark.parametrize("timeout", ["500us", "1.5ms"])
def test_a_time_out_has_whole_milliseconds(timeout: str) -> None:
    with pytest.raises(UsageError, match=f"--send-timeout {timeout}: the client counts whole milliseconds"):
        plan_for(OnlyOptions(), schedule=ScheduleOptions(send_timeout=timeout))
