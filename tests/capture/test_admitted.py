"""Whatever is captured passes the check that stands in front of tasks from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.admission import read_task
from evokernel_core.domain.errors import CaptureError
from evokernel_core.domain.serial import to_data
from evokernel_core.targets.ascendc.target import ASCENDC
from tests import warm

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "examples").glob("*.py"), *(ROOT / "tests/capture/models").glob("*.py")])


@pytest.fixture(scope="module")
def client() -> Iterator[AgentClient]:
    with AgentClient(warm.interpreter(), evaluation=True) as client:
        yield client


@pytest.mark.thorough
@pytest.mark.parametrize("whole", [False, True])
def test_every_captured_task_is_admitted(client: AgentClient, whole: bool) -> None:
    tasks = 0
    for file in FILES:
        try:
            regions = client.capture(file, None, covered_ops(ASCENDC), whole=whole)
        except CaptureError:  # some of the models are there to fail
            continue
        for region in regions:
            if region.task is not None:
                tasks += 1
                assert read_task(to_data(region.task)).task_id == region.task.task_id, file
    assert tasks > (10 if whole else 20)
