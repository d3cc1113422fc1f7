"""The timeline of a verified kernel: a page of its own, made once."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from attrs import evolve

from evokernel_core.domain.errors import VerifierError
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.synthesis.session import timeline_of
from evokernel_core.targets.ascendc import author
from evokernel_core.targets.ascendc.backends.twin import TwinBackend
from evokernel_core.targets.ascendc.source import KERNEL
from evokernel_core.targets.ascendc.target import ascendc
from evokernel_core.verifier.gates.latency import captured_request

SPEC = TensorSpec(("s0", "s1"), "float16")
NODE = Node("y", "aten._softmax.default", (ValueRef("x"), -1, False), (), (SPEC,))
TASK = KernelTask(
    "softmax", Graph((GraphInput("x", SPEC),), (NODE,), (ValueRef("y"),)),
    (Symbol("s0", 128), Symbol("s1", 512)), TOLERANCES["float16"], "softmax",
)  # fmt: skip
CHIP = load_chip()


@pytest.fixture(autouse=True)
def home(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOKERNEL_HOME", str(tmp_path))


def test_the_page_shows_the_launch_that_was_timed_and_is_made_once() -> None:
    source = author.write(TASK, author.initial(TASK, CHIP), CHIP)
    made = timeline_of(TASK, source, ascendc(CHIP))
    page = made.page
    found = re.search(r'<script id="data"[^>]*>(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    (launch,) = json.loads(found[1])["launches"]
    backend = TwinBackend(ascendc(CHIP))
    timing = backend.measure(backend.build(TASK, source), captured_request(TASK))
    assert launch["us"] == pytest.approx(timing.us)
    assert page.parent.stat().st_mode & 0o077 == 0

    summary = made.summary
    assert (summary.us, summary.kernel) == (pytest.approx(timing.us), launch["kernel"])
    assert summary.bottleneck == launch["bottleneck"]
    for pipe in summary.pipes:
        assert 0 <= pipe.share <= 1 and pipe.busy_us <= summary.us
        assert pipe.busy_us + sum(pipe.waits.values()) <= summary.us * 1.001
    assert [gap.us for gap in summary.gaps] == sorted((gap.us for gap in summary.gaps), reverse=True)
    assert all(gap.start_us >= 0 and gap.start_us + gap.us <= summary.us * 1.001 for gap in summary.gaps)

    written = page.stat().st_mtime_ns
    assert timeline_of(TASK, source, ascendc(CHIP)) == made
    assert page.stat().st_mtime_ns == written
    other = evolve(TASK, symbols=(Symbol("s0", 256), Symbol("s1", 512)))
    assert timeline_of(other, source, ascendc(CHIP)).page != page


def test_a_kernel_that_does_not_run_leaves_no_page(tmp_path: Any) -> None:
    source = author.write(TASK, author.initial(TASK, CHIP), CHIP)
    broken = source.with_files({KERNEL: "no C++"})
    with pytest.raises(VerifierError, match="could not be timed again"):
        timeline_of(TASK, broken, ascendc(CHIP))
    assert not list((tmp_path / "cache" / "timelines").iterdir())
