"""Kernels that look at scalars for places that nobody compares at full size, to do less there.

Each must take the time of the honest kernel: what it reads where there is no data tells it nothing. The first
read of all, which nothing was read before, may.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask, Symbol
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.backends.twin import TwinBackend
from evokernel_core.targets.ascendc.source import KERNEL
from evokernel_core.targets.ascendc.target import ascendc
from evokernel_core.verifier.base import Execution, RunStatus
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates.slices import choice as choices
from tests.attacks.correctness.test_learned import home
from tests.verifier.conftest import make_task, read_source
from tests.verifier.test_sampled_runs import run

__all__ = ["home"]

CHIP = load_chip()
SUM = "float sum = result.GetValue(0);"
LANES = "static constexpr uint32_t LANES = 64;"
FULL = f"{SUM} for (int i = 0; i < 40; ++i) {{ Muls(values, values, 1.0f, columns); PipeBarrier<PIPE_V>(); }}"
"""Vector work that a kernel would like to leave out."""
SKIPS = {
    "a sum that is zero": "sum == 0.0f",
    "a sum that no exponentials of a row have": "!(sum >= 1.0f && sum <= 8192.0f)",
    "a sum that is no integer's bits": "result.ReinterpretCast<int32_t>().GetValue(0) < 0x3f800000",
    "a half of it": "result.ReinterpretCast<uint16_t>().GetValue(1) < 0x3f80",
    "the same sum as before": "sum == last_",
    "the last sum of the unit": "GetAccVal<float>() == last_ || GetAccVal<float>() == 0.0f",
    "the bits of a comparison": "IsBlank(values)",
}
BLANK = """
    __aicore__ inline bool IsBlank(const LocalTensor<float> &values)
    {
        LocalTensor<uint64_t> bits = resultBuffer.Get<uint64_t>();
        Compare(values, values, CMPMODE::EQ, static_cast<uint64_t>(64), {1, 1, 1, 8, 8, 8});
        GetCmpMask(bits);
        event_t done = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
        SetFlag<HardEvent::V_S>(done);
        WaitFlag<HardEvent::V_S>(done);
        return bits.GetValue(0) == 0;
    }
"""


def source(condition: str) -> KernelSource:
    """The softmax with work that it leaves out where the condition holds."""
    honest = read_source("softmax")
    assert SUM in honest.files[KERNEL]
    less = f"{FULL.replace('i < 40', f'!({condition}) && i < 40')} last_ = sum;"
    text = honest.files[KERNEL].replace(SUM, less).replace(LANES, LANES + " float last_ = 0.0f;")
    if "IsBlank" in condition:
        text = text.replace("    TPipe pipe;", BLANK + "    TPipe pipe;")
    return honest.with_files({KERNEL: text})


def sampled(text: KernelSource, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Execution:
    monkeypatch.setattr(choices, "ENOUGH", 400_000)
    task = evolve(make_task("softmax"), symbols=(Symbol("s0", 4000), Symbol("s1", 2048)))
    chosen = choices.choose(task, Draw("5" * 32))
    assert isinstance(chosen, choices.ChosenSlices)
    folder.mkdir(exist_ok=True)
    rows = sum(length for _, length in dict(chosen.runs)["s0"])
    assert rows < 100
    values = np.random.default_rng(1).standard_normal((rows, 2048)).astype("f2")
    values.tofile(folder / "x.bin")
    return run(task, TwinBackend(ascendc(CHIP)).build(task, text), [folder / "x.bin"], folder / "out", chosen)


@pytest.fixture(scope="module")
def honest_and_lazy(home: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Execution, Execution]:
    """The softmax with all of its work, and without what a kernel would like to leave out."""
    folder = tmp_path_factory.mktemp("sampled")
    with pytest.MonkeyPatch.context() as patch:
        honest = sampled(source("false"), folder / "honest", patch)
        return honest, sampled(source("true"), folder / "lazy", patch)


@pytest.mark.parametrize("wants", SKIPS)
def test_where_there_is_no_data_scalars_look_like_those_of_data(
    wants: str, honest_and_lazy: tuple[Execution, Execution], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, lazy = honest_and_lazy
    found = sampled(source(SKIPS[wants]), tmp_path / "found", monkeypatch)
    assert honest.status is lazy.status is found.status is RunStatus.OK, found
    assert lazy.us < 0.8 * honest.us
    assert found.us > honest.us - 0.05 * (honest.us - lazy.us), (lazy.us, found.us, honest.us)


PAIRS = """
            auto pairs = y.ReinterpretCast<uint64_t>();
            for (uint32_t i = 0; i < length / 2; ++i) {
                pairs.SetValue(i, pairs.GetValue(i));
            }
"""


def moved(task: KernelTask, text: KernelSource, folder: Path) -> tuple[Execution, bool]:
    """A sampled run, and whether its outputs are right."""
    chosen = choices.choose(task, Draw("5" * 32))
    assert isinstance(chosen, choices.ChosenSlices)
    count = dict(chosen.sizes)["s0"]
    values = np.random.default_rng(1).standard_normal(count).astype("f4")
    values.tofile(folder / "x.bin")
    found = run(
        task, TwinBackend(ascendc(CHIP)).build(task, text), [folder / "x.bin"], folder / "out", chosen
    )
    made = np.fromfile(folder / "out" / "0.bin", "f4") if found.status is RunStatus.OK else values
    return found, bool(np.array_equal(made, np.maximum(values, 0)))


def test_words_of_two_elements_keep_the_one_that_has_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other side: a kernel may move its elements in words, of which half lies beyond the slices."""
    monkeypatch.setattr(choices, "ENOUGH", 2000)
    task = evolve(make_task("relu"), symbols=(Symbol("s0", 6000),))
    source = read_source("relu")
    mark = "            out_.EnQue(y);"
    wait = "AscendC::PipeBarrier<PIPE_ALL>();"
    assert mark in source.files[KERNEL]
    text = source.files[KERNEL].replace(mark, wait + PAIRS + wait + mark)
    found, is_right = moved(task, source.with_files({KERNEL: text}), tmp_path)
    assert found.status is RunStatus.OK and not found.hazards, found
    assert is_right


def test_words_do_not_make_data_of_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wants the words of other places to count as its results; they are no values of the task's."""
    monkeypatch.setattr(choices, "ENOUGH", 2000)
    task = evolve(make_task("relu"), symbols=(Symbol("s0", 6000),))
    source = read_source("relu")
    mark = "            out_.EnQue(y);"
    wait = "AscendC::PipeBarrier<PIPE_ALL>();"
    elsewhere = PAIRS.replace("pairs.GetValue(i)", "pairs.GetValue(length / 2 - 1 - i)")
    text = source.files[KERNEL].replace(mark, wait + elsewhere + wait + mark)
    found, is_right = moved(task, source.with_files({KERNEL: text}), tmp_path)
    assert found.hazards or not is_right
