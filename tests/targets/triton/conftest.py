"""Kernels of one task in Triton's interpreter, and through Triton's compiler, each in a child process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from evokernel_core.compiler.family import Family
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.hardware.gpu.gpu import Gpu, load_gpu
from evokernel_core.hardware.gpu.npu import npu
from evokernel_core.targets.triton.audit import audit
from evokernel_core.targets.triton.kernels.text import kernel_text, on_device
from evokernel_core.targets.triton.launch import LaunchRecord, tensor_names
from evokernel_core.targets.triton.package.packaging import TritonPackaging
from evokernel_core.targets.triton.source import triton_source
from tests.targets.ascendc.conftest import GraphBuilder
from tests.targets.triton.child import Child, child, run_source, write_source

HERE = Path(__file__).parent
ROOT = HERE.parent.parent.parent


@pytest.fixture
def builder() -> Any:
    """A fresh GraphBuilder each time it is called."""
    return GraphBuilder


@pytest.fixture(scope="session", params=["gpu", pytest.param("npu", marks=pytest.mark.thorough)])
def gpu(request: pytest.FixtureRequest) -> Gpu:
    """The device that kernels are written for."""
    return load_gpu() if request.param == "gpu" else npu("ascend910b1")


def source_of(family: Family, task: KernelTask, strategy: Strategy, gpu: Gpu) -> KernelSource:
    """The files of a task that is one kernel of a family."""
    inputs, scalars, outputs = tensor_names(task)
    kernel = on_device(family.text(task, strategy, gpu, "computed_here"), gpu)
    symbols = tuple(symbol.name for symbol in task.symbols)
    record = LaunchRecord(inputs, outputs, kernel.launches, symbols, scalars, kernel.scratch, kernel.requires)
    source = triton_source(kernel_text("A test.", kernel.helpers, kernel.functions, gpu), record, strategy)
    result = audit(task, source)
    assert result.status is GateStatus.PASSED, result.feedback
    if all(any(symbol.name in one.spec.shape for one in task.graph.inputs) for symbol in task.symbols):
        assert TritonPackaging().packaged("computed_here", task, source, ()).host
    return source


@pytest.fixture(scope="session")
def interpreter() -> Iterator[Child]:
    """A child with Triton's interpreter, which one session's tests share."""
    yield from child("interpreted.py", TRITON_INTERPRET="1")


@pytest.fixture(scope="session")
def compiler() -> Iterator[Child]:
    """A child with Triton's compiler."""
    yield from child("compiled.py", TRITON_INTERPRET="0")


@pytest.fixture
def interpreted(interpreter: Child, gpu: Gpu, tmp_path: Path) -> Any:
    """Runs a task by a family's first schedule, or by another: its outputs, floats as float64."""
    count = iter(range(1_000_000))

    def run(
        family: Family,
        task: KernelTask,
        inputs: Mapping[str, Any],
        sizes: Mapping[str, int] | None = None,
        strategy: Strategy | None = None,
    ) -> list[Any]:
        source = source_of(family, task, strategy or family.initial(task, gpu), gpu)
        return run_source(interpreter, tmp_path / f"kernel_{next(count)}", task, source, inputs, sizes)

    return run


@pytest.fixture
def compiles(compiler: Child, gpu: Gpu, tmp_path: Path) -> Any:
    """Compiles a task's kernel for compute capability 90, without a GPU."""
    count = iter(range(1_000_000))

    def run(family: Family, task: KernelTask, strategy: Strategy | None = None) -> None:
        source = source_of(family, task, strategy or family.initial(task, gpu), gpu)
        folder = tmp_path / f"compiled_{next(count)}"
        write_source(source, folder)
        dtypes = {one.name: one.spec.dtype for one in task.graph.inputs}
        specs = zip(tensor_names(task)[2], task.graph.output_specs(), strict=True)
        dtypes |= {name: spec.dtype for name, spec in specs}
        compiler.ask({"folder": str(folder), "sizes": task.sizes, "dtypes": dtypes})

    return run
