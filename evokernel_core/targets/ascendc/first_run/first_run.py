"""A first run on an Ascend host, step by step: what is there, and a kernel compiled, run, compared, profiled.

A failure skips the steps that need what it lacks, and no others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, frozen

from evokernel_core import temporary
from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.first_run import RunStep, StepState
from evokernel_core.domain.graph import Arg, Graph, GraphInput, InputKind, Node, ValueRef
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import Dim, TensorSpec
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.backends.bisheng import compile_problem
from evokernel_core.targets.ascendc.backends.cann import PROFILE, CannBackend, CannKernel
from evokernel_core.targets.ascendc.backends.cann_profile import kernel_of, read_rows, read_timing
from evokernel_core.targets.ascendc.backends.cann_tools import CannTools
from evokernel_core.targets.ascendc.first_run.first_run_host import (
    Found,
    NotOk,
    NpuHost,
    failed,
    needed,
)
from evokernel_core.targets.ascendc.target import ascendc
from evokernel_core.verifier.base import Case, RunStatus, TimingRequest

ROWS = 130
"""Not a multiple of any tile."""
COLUMNS = 256
_SEED = 7


@frozen
class Probe:
    """A task and what it computes, in numpy."""

    name: str
    task: KernelTask
    expected: Callable[..., Any]

    @property
    def sizes(self) -> dict[str, int]:
        return self.task.sizes

    def source(self, author: KernelAuthor) -> KernelSource:
        """The kernel as the schedule proposer drafts it."""
        return author.plan(self.task).write()

    def inputs(self) -> list[Any]:
        """Whole numbers so small that float32 holds every sum of their products exactly."""
        rng = np.random.default_rng(_SEED)
        shapes = [operand.spec.sizes(self.sizes) for operand in self.task.graph.inputs]
        return [rng.integers(-4, 5, shape).astype(np.float32) for shape in shapes]


def probes() -> tuple[Probe, ...]:
    """The kernels in the order in which they run."""
    return (
        Probe("add", _add(), lambda x, y: x + y),
        Probe("linear", _linear(), lambda x, weight, bias: np.maximum(x @ weight.T + bias, 0) * bias),
    )


def _add() -> KernelTask:
    shape: tuple[Dim, ...] = ("rows", COLUMNS)
    node = _node("add.Tensor", ValueRef("x"), ValueRef("y"), shape=shape)
    return _task("first_add", [_input("x", *shape), _input("y", *shape)], [node])


def _linear() -> KernelTask:
    inputs = [
        _input("x", "rows", COLUMNS),
        _input("weight", COLUMNS, COLUMNS, parameter=True),
        _input("bias", COLUMNS, parameter=True),
    ]
    shape: tuple[Dim, ...] = ("rows", COLUMNS)
    nodes = [
        _node("t.default", ValueRef("weight"), shape=(COLUMNS, COLUMNS)),
        _node("mm.default", ValueRef("x"), ValueRef("t"), shape=shape),
        _node("add.Tensor", ValueRef("mm"), ValueRef("bias"), shape=shape),
        _node("relu.default", ValueRef("add"), shape=shape),
        _node("mul.Tensor", ValueRef("relu"), ValueRef("bias"), shape=shape),  # by vector cores
    ]
    return _task("first_linear", inputs, nodes)


def _node(op: str, *args: Arg, shape: Sequence[Dim]) -> Node:
    name = op.partition(".")[0]
    return Node(name, f"aten.{op}", args, (), (TensorSpec(tuple(shape), "float32"),))


def _input(name: str, *shape: Dim, parameter: bool = False) -> GraphInput:
    kind = InputKind.PARAMETER if parameter else InputKind.TENSOR
    return GraphInput(name, TensorSpec(shape, "float32"), kind, name)


def _task(name: str, inputs: Sequence[GraphInput], nodes: Sequence[Node]) -> KernelTask:
    graph = Graph(tuple(inputs), tuple(nodes), (ValueRef(nodes[-1].name),))
    return KernelTask(name, graph, (Symbol("rows", ROWS),), TOLERANCES["float32"], "other")


MOST_ROWS = 12
"""Rows of a profile that a report holds: those of the passes and some more."""
SEND = "Send this report."
Action = Callable[[], Found]


def first_run(python: str) -> Iterator[RunStep]:
    """Every step in order; ``python`` is the interpreter with torch_npu."""
    host = NpuHost(python)
    yield _step("toolkit", host.find_toolkit)
    yield _step("driver", host.ask_driver)
    yield _step("torch_npu", host.ask_torch_npu)
    yield _step("versions", host.compare_versions)
    with temporary.folder("first-run") as folder:
        for probe in probes():
            kernel = _Kernel(host, probe, Path(folder) / probe.name)
            for word, action in kernel.steps():
                yield _step(f"{word} ({probe.name})", action)


def _step(name: str, action: Action) -> RunStep:
    started = time.monotonic()
    try:
        message, details = action()
        step = RunStep(name, StepState.OK, message, details=details)
    except NotOk as end:
        step = RunStep(name, end.state, end.found, end.advice, details=end.details)
    except (EvoKernelError, OSError, ValueError) as error:
        step = RunStep(name, StepState.FAILED, str(error), SEND)
    return evolve(step, seconds=round(time.monotonic() - started, 2))


class _Kernel:
    """One probe on its way through the host."""

    def __init__(self, host: NpuHost, probe: Probe, folder: Path) -> None:
        self._host, self._probe, self._folder = host, probe, folder
        self._built: CannKernel | None = None
        self._outputs: tuple[Any, Any] | None = None
        """As computed on the NPU, and as expected."""
        self._profiled: Path | None = None

    def steps(self) -> Iterator[tuple[str, Action]]:
        self._folder.mkdir()
        yield "compile", self._compile
        yield "run", self._run
        yield "compare", self._compare
        yield "profile", self._profile
        yield "read profile", self._read_profile

    def _need(self, value: Any, step: str) -> Any:
        return needed(value, f"{step} ({self._probe.name})")

    def _backend(self, chip: Chip) -> CannBackend:
        toolkit = needed(self._host.toolkit, "toolkit")
        return CannBackend(ascendc(chip), CannTools(toolkit, self._host.python))

    def _compile(self) -> Found:
        toolkit = needed(self._host.toolkit, "toolkit")
        chip = self._host.any_chip()
        source = self._probe.source(ascendc(chip))
        if problem := compile_problem(toolkit, source.files):
            raise failed("bisheng refuses the kernel", SEND, output=problem)
        self._built = self._backend(chip).build(self._probe.task, source)
        return "bisheng compiles and links it", {}

    def _run(self) -> Found:
        built: CannKernel = self._need(self._built, "compile")
        backend = self._backend(self._host.chip())
        inputs = self._probe.inputs()
        expected = self._probe.expected(*inputs)
        case = self._case(inputs, expected.nbytes)
        execution = backend.execute(built, case)
        words = [execution.message, *(hazard.message for hazard in execution.hazards)]
        if execution.status is not RunStatus.OK or execution.hazards:
            raise failed(" ".join(filter(None, words)), SEND)
        self._outputs = np.fromfile(case.outputs[0], np.float32).reshape(expected.shape), expected
        return f"ran in {execution.seconds:.1f} s with its process", {}

    def _compare(self) -> Found:
        written, expected = self._need(self._outputs, "run")
        wrong = np.argwhere(~np.equal(written, expected))
        if len(wrong):
            first = tuple(int(index) for index in wrong[0])
            values = {"index": first, "got": float(written[first]), "expected": float(expected[first])}
            result = f"{len(wrong)} of {expected.size} elements differ, the first at {list(first)}"
            raise failed(result, SEND, **values)
        return f"all {expected.size} elements are equal", {}

    def _profile(self) -> Found:
        self._need(self._outputs, "run")
        built: CannKernel = self._need(self._built, "compile")
        task, sizes = self._probe.task, self._probe.sizes
        inputs = tuple(operand.spec.nbytes(sizes) for operand in task.graph.inputs)
        outputs = tuple(spec.nbytes(sizes) for spec in task.graph.output_specs())
        request = TimingRequest(tuple(sizes.values()), (), inputs, outputs)
        self._backend(self._host.chip()).profile(built, request, self._folder)
        self._profiled = self._folder / PROFILE
        files = sorted(path.name for path in self._profiled.rglob("*.csv"))
        return f"torch_npu's profiler left {len(files)} tables", {"files": files}

    def _read_profile(self) -> Found:
        folder: Path = self._need(self._profiled, "profile")
        built: CannKernel = self._need(self._built, "compile")
        tables = _tables(folder, built.kernels)
        try:
            timing = read_timing(folder, built.kernels)
        except EvoKernelError as error:
            raise failed(str(error), f"{SEND[:-1]}: it has the profiler's rows.", **tables) from error
        result = f"measured {timing.us:.3g} us on {timing.block_dim} cores. {timing.bottleneck}"
        figures = {"measured_us": timing.us, "cores": timing.block_dim, "pipes": dict(timing.pipes)}
        return result, {**figures, **tables}

    def _case(self, inputs: Sequence[Any], nbytes: int) -> Case:
        read, written = self._folder / "in", self._folder / "out"
        read.mkdir()
        written.mkdir()
        paths = [read / f"{number}.bin" for number in range(len(inputs))]
        for path, array in zip(paths, inputs, strict=True):
            path.write_bytes(np.ascontiguousarray(array).tobytes())
        sizes = tuple(self._probe.sizes.values())
        return Case(sizes, (), tuple(paths), (written / "output.bin",), (nbytes,), repeat=2)


def _tables(folder: Path, kernels: Sequence[str]) -> dict[str, Any]:
    """The profiler's rows as they are: with them, whoever gets the report can correct what reads them."""
    result: dict[str, Any] = {}
    for name in ("kernel_details.csv", "step_trace_time.csv"):
        try:
            rows = read_rows(folder, name)
        except EvoKernelError:
            continue
        result[name] = [dict(row) for row in rows[:MOST_ROWS]]
        if name.startswith("kernel"):
            result["own_rows"] = sum(bool(kernel_of(row.get("Name", ""), kernels)) for row in rows)
    return result
