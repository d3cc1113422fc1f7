"""Whatever a task calls, with whatever arguments: a kernel is written, or the reason why not is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.rewrites.call_shapes import check_calls
from evokernel_core.domain.admission import admit
from evokernel_core.domain.errors import EvoKernelError, PlanError
from evokernel_core.domain.operations import operations
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.author import estimate_us, initial, write
from tests.targets.ascendc.calls import Call, random_call, shapes_of, specs_of, torch_results, values_of

pytest.importorskip("torch")

_NAMES = sorted(operations())
_FEW, _MANY = 60, 12
"""Calls of make test, and calls of each operation of make thorough."""
_LAX = frozenset({"index_put", "slice_scatter", "select_scatter", "embedding_dense_backward", "bucketize"})
"""Operations that take operands on the meta device which do not go together."""
_SHARDS = 40
"""Parts of the operations, so that one test takes seconds."""
_PLACED = frozenset({"aten.grid_sampler_2d.default", "aten.grid_sampler_3d.default"})
"""PyTorch rounds the places at which it samples images to the images' type, and may take another element than
a kernel whose places are float32."""
_TOLERANCE = {"float32": 2e-3, "float16": 2e-2, "bfloat16": 1e-1}


def _task(call: Call) -> KernelTask | None:
    """The task of a call, None where it is none that may be asked."""
    try:
        return admit(call.task(specs_of(call, torch_results(call, shapes_of(call)))))
    except EvoKernelError:
        return None


def _is_written(task: KernelTask, chip: Chip) -> bool:
    """Whether a kernel is written; any other exception than the domain's is the test's failure."""
    try:
        strategy = initial(task, chip)
        write(task, strategy, chip)
        estimate_us(task, strategy, chip)
    except EvoKernelError as error:
        assert str(error).endswith("."), error
        return False
    return True


def _ask(name: str, seed: int, chip: Chip) -> None:
    call = random_call(name, seed)
    task = _task(call)
    if task is not None:
        try:
            _is_written(task, chip)
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"{call} raised {type(error).__name__}: {error}") from error


def test_no_exception_leaves_the_author(chip: Chip) -> None:
    for index in range(_FEW):
        _ask(_NAMES[index * 5 % len(_NAMES)], index, chip)


@pytest.mark.thorough
@pytest.mark.parametrize("shard", range(_SHARDS))
def test_no_exception_leaves_the_author_for_thousands(shard: int, chip: Chip) -> None:
    for name in _NAMES[shard::_SHARDS]:
        for seed in range(_MANY):
            _ask(name, seed, chip)


@pytest.mark.parametrize("shard", range(4))
def test_what_pytorch_takes_fits_the_rules(shard: int) -> None:
    for name in _NAMES[shard::4]:
        for seed in range(3):
            call = random_call(name, seed)
            results = torch_results(call, shapes_of(call))
            if not (call.fits and results) or name.split(".")[1] in _LAX:
                continue
            if any(0 in item.shape for item in (*call.tensors, *results)):
                continue
            try:
                check_calls(call.task(specs_of(call, results)))
            except PlanError as error:
                raise AssertionError(f"{call}: {error}") from error


@pytest.mark.thorough
@pytest.mark.parametrize("name", _NAMES)
def test_a_planned_call_computes_what_pytorch_does(name: str, chip: Chip, on_twin: Any) -> None:
    for seed in range(100, 120):
        call = random_call(name, seed)
        task = _task(call)
        if not call.fits or task is None or not _is_written(task, chip):
            continue
        values = values_of(call, seed)
        expected = torch_results(call, values)
        if expected is not None:
            wide = _in_float32(call, values) if name in _PLACED else None
            _compare(task, on_twin(task, _inputs(values)), expected, wide or expected)
            return
    pytest.skip(f"No kernel was written for any of 20 calls of {name}.")


def _inputs(values: list[Any]) -> dict[str, Any]:
    import torch

    return {
        f"x{index}": (item.float() if item.dtype is torch.bfloat16 else item).numpy()
        for index, item in enumerate(values)
    }


def _in_float32(call: Call, values: list[Any]) -> list[Any] | None:
    """What PyTorch computes of the same values in float32."""
    import torch

    halves = (torch.float16, torch.bfloat16)
    return torch_results(call, [item.float() if item.dtype in halves else item for item in values])


def _compare(task: KernelTask, found: list[Any], expected: list[Any], wide: list[Any]) -> None:
    """Each element is near PyTorch's, or near its ``wide`` one, as the verifier takes it."""
    for spec, mine, theirs, wider in zip(task.graph.output_specs(), found, expected, wide, strict=True):
        wanted, value = theirs.double().numpy(), np.asarray(mine, np.float64)
        near = _TOLERANCE.get(spec.dtype, 0.0)
        scale = max(1.0, float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)))
        as_wide = np.isclose(value, wider.double().numpy(), rtol=near, atol=near * scale, equal_nan=True)
        np.testing.assert_allclose(np.where(as_wide, wanted, value), wanted, rtol=near, atol=near * scale)
