"""Builders of captured graphs, so that tests need no torch and no capture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve, field, frozen

from benchmarks.measuring.problems import WithoutLibraries
from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.compiler.family import Move
from evokernel_core.domain.errors import PlanError, StrategyError
from evokernel_core.domain.graph import Arg, Graph, GraphInput, InputKind, Node, ValueRef
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import Dim, TensorSpec
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.hardware.ascend.chip import Chip, load_chip
from evokernel_core.targets import author_for
from evokernel_core.targets.ascendc.author import initial, moves, write
from evokernel_core.targets.triton.audit import audit
from evokernel_core.twin.build import BuiltKernel, build_kernel
from evokernel_core.twin.run import ExitStatus, Mode, RunRequest, TensorFile, run_kernel
from tests.targets.triton.child import Child, child, run_source


class GraphBuilder:
    """Collects inputs and nodes; every method returns the name's ValueRef."""

    def __init__(self) -> None:
        self.inputs: list[GraphInput] = []
        self.nodes: list[Node] = []
        self.symbols: dict[str, int] = {}

    def input(
        self, name: str, shape: Sequence[Dim], dtype: str = "float32", parameter: bool = False
    ) -> ValueRef:
        kind = InputKind.PARAMETER if parameter else InputKind.TENSOR
        self.inputs.append(GraphInput(name, TensorSpec(shape, dtype), kind, name))
        return ValueRef(name)

    def scalar(self, name: str) -> ValueRef:
        self.inputs.append(GraphInput(name, TensorSpec((), "float32"), InputKind.SCALAR, name))
        return ValueRef(name)

    def call(
        self, op: str, *args: Arg, shape: Sequence[Dim], dtype: str = "float32", **kwargs: Arg
    ) -> ValueRef:
        """One node with a single result; ``op`` is the ATen name without ``aten.``."""
        return self.calls(op, *args, outputs=[TensorSpec(shape, dtype)], **kwargs)

    def calls(self, op: str, *args: Arg, outputs: Sequence[TensorSpec], **kwargs: Arg) -> ValueRef:
        name = f"{op.split('.', maxsplit=1)[0].lstrip('_')}_{len(self.nodes)}"
        self.nodes.append(Node(name, f"aten.{op}", args, tuple(kwargs.items()), tuple(outputs)))
        return ValueRef(name)

    def task(self, *outputs: ValueRef, symbols: Mapping[str, int] | None = None) -> KernelTask:
        graph = Graph(tuple(self.inputs), tuple(self.nodes), outputs)
        dtype = graph.output_specs()[0].dtype
        tolerance = TOLERANCES.get(dtype, TOLERANCES["float32"])
        named = tuple(Symbol(name, size) for name, size in (symbols or {}).items())
        return KernelTask("kernel", graph, named, tolerance, "elementwise")


@pytest.fixture
def builder() -> Any:
    """A fresh GraphBuilder each time it is called."""
    return GraphBuilder


@pytest.fixture(scope="session")
def chip() -> Chip:
    return load_chip("ascend910b1")


@pytest.fixture(scope="session")
def few_cores(chip: Chip) -> Chip:
    """The chip with two cube cores: at small sizes already each core takes many tiles."""
    return evolve(chip, aic=2, aiv=4, constants={**chip.constants, "chip.aic": 2, "chip.aiv": 4})


def _bfloat16_bits(values: Any) -> Any:
    """Raw bfloat16 of float32 numbers, to the nearest even."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def _raw(values: Any, dtype: str) -> bytes:
    if dtype == "bfloat16":
        return bytes(_bfloat16_bits(values).tobytes())
    return bytes(np.ascontiguousarray(values, dtype).tobytes())


def _read(path: Path, dtype: str, shape: tuple[int, ...]) -> Any:
    if dtype == "bfloat16":
        bits = np.fromfile(path, np.uint16).astype(np.uint32) << 16
        return bits.view(np.float32).astype(np.float64).reshape(shape)
    return np.fromfile(path, dtype).reshape(shape)


@frozen
class TwinRunner:
    """Compiles a kernel, runs it in checked mode, and gives its outputs; any hazard fails the test. A kernel
    that runs with several inputs is planned, written and compiled for the first of them alone."""

    chip: Chip
    folder: Path
    _kernels: dict[Any, tuple[KernelTask, BuiltKernel]] = field(factory=dict, init=False, eq=False)
    """By the identity of the task, which is kept so that no other task gets it, by the strategy, and by
    ``write``, in whose place some tests put what changes the text."""

    def initial(self, task: KernelTask) -> Strategy:
        """The author's first schedule."""
        return initial(task, self.chip)

    def moves(self, task: KernelTask, strategy: Strategy) -> tuple[Move, ...]:
        """The named steps from a schedule."""
        return moves(task, strategy, self.chip)

    def tolerant(self, task: KernelTask, inputs: Mapping[str, Any]) -> list[Any]:
        """The outputs for inputs that may overflow, which is the only hazard that passes."""
        return self(task, inputs, passing=frozenset({"overflow-inf"}))

    def __call__(
        self,
        task: KernelTask,
        inputs: Mapping[str, Any],
        strategy: Strategy | None = None,
        sizes: Mapping[str, int] | None = None,
        passing: frozenset[str] = frozenset(),
    ) -> list[Any]:
        sizes = dict(sizes or task.sizes)
        built = self._kernel(task, strategy)
        tensors, scalars = [], []
        for item in task.graph.inputs:
            if item.kind is InputKind.SCALAR:
                scalars.append(float(inputs[item.name]))
                continue
            path = self.folder / f"{item.name}.bin"
            path.write_bytes(_raw(inputs[item.name], item.spec.dtype))
            tensors.append(TensorFile(path, item.spec.nbytes(sizes)))
        specs = task.graph.output_specs()
        results = [
            TensorFile(self.folder / f"out{i}.bin", spec.nbytes(sizes)) for i, spec in enumerate(specs)
        ]
        request = RunRequest(
            Mode.CHECK,
            self.chip,
            sizes=tuple(sizes.values()),
            scalars=tuple(scalars),
            inputs=tuple(tensors),
            outputs=tuple(results),
            repeat=2,
        )
        run = run_kernel(built, request)
        assert run.status is ExitStatus.OK, run.message
        assert not [hazard for hazard in run.hazards if hazard.code not in passing]
        return [
            _read(file.path, spec.dtype, spec.sizes(sizes))
            for file, spec in zip(results, specs, strict=True)
            if file.path is not None
        ]

    def _kernel(self, task: KernelTask, strategy: Strategy | None) -> BuiltKernel:
        key = (id(task), strategy, write)
        if key not in self._kernels:
            chosen = strategy or initial(task, self.chip)
            self._kernels[key] = task, build_kernel(write(task, chosen, self.chip))
        return self._kernels[key][1]


@frozen
class TritonRunner:
    """The same kernels in Triton, by its interpreter. Tasks that it does not express, and schedules of
    AscendC's, are skipped by name."""

    interpreter: Child
    folder: Path
    author: KernelAuthor = field(
        factory=lambda: KernelAuthor(WithoutLibraries(), author_for("nvidia_h200", "triton").device)
    )

    @property
    def chip(self) -> Chip:
        """Tests that ask it are of AscendC's schedules."""
        pytest.skip("a test of AscendC's schedules")

    def initial(self, task: KernelTask) -> Strategy:
        """The author's first schedule."""
        return self.author.initial(task)

    def moves(self, task: KernelTask, strategy: Strategy) -> tuple[Move, ...]:
        """The named steps from a schedule."""
        return self.author.moves(task, strategy)

    def tolerant(self, task: KernelTask, inputs: Mapping[str, Any]) -> list[Any]:
        """As a TwinRunner has it."""
        return self(task, inputs)

    def __call__(
        self,
        task: KernelTask,
        inputs: Mapping[str, Any],
        strategy: Strategy | None = None,
        sizes: Mapping[str, int] | None = None,
        passing: frozenset[str] = frozenset(),
    ) -> list[Any]:
        try:
            source = self.author.write(task, strategy or self.initial(task))
        except (PlanError, StrategyError) as refused:
            pytest.skip(f"not in Triton: {refused}")
        result = audit(task, source)
        assert result.status is GateStatus.PASSED, result.feedback
        return run_source(self.interpreter, self.folder / "triton", task, source, inputs, sizes)


@pytest.fixture(params=["twin", pytest.param("triton", marks=pytest.mark.thorough)])
def on_twin(request: pytest.FixtureRequest, chip: Chip, tmp_path: Path) -> TwinRunner | TritonRunner:
    """Runs a kernel of the author's first schedule: in AscendC on the twin, in Triton by its interpreter."""
    if request.param == "twin":
        return TwinRunner(chip, tmp_path)
    return TritonRunner(request.getfixturevalue("triton_child"), tmp_path)


@pytest.fixture(scope="session")
def triton_child() -> Iterator[Child]:
    """A child with Triton's interpreter, which one session's tests share."""
    yield from child("interpreted.py", TRITON_INTERPRET="1")


@pytest.fixture
def on_few_cores(few_cores: Chip, tmp_path: Path) -> TwinRunner:
    return TwinRunner(few_cores, tmp_path)
