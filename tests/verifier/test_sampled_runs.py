"""Sampled runs of the twin: chosen parts come out as in a run on all of the data, on every kind of core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask, Symbol
from evokernel_core.domain.tensor import Dim, TensorSpec
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.author import initial, write
from evokernel_core.targets.ascendc.backends.twin import TwinBackend
from evokernel_core.targets.ascendc.source import KERNEL, TILING, ascendc_source
from evokernel_core.targets.ascendc.target import ascendc
from evokernel_core.twin.build import BuiltKernel
from evokernel_core.twin.run import TensorPart
from evokernel_core.verifier.base import Case, Execution, RunStatus, Timing, TimingRequest
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates.cases import tensor_bytes
from evokernel_core.verifier.gates.slices import choice as choices
from tests.targets.ascendc.conftest import GraphBuilder
from tests.verifier.conftest import make_task, read_source

Shape = Sequence[Dim]
CHIP = load_chip("ascend910b1")


def _relu() -> KernelTask:
    graph = GraphBuilder()
    x = graph.input("x", ("a", "b"))
    return graph.task(graph.call("relu.default", x, shape=("a", "b")), symbols={"a": 300, "b": 4000})


def _softmax() -> KernelTask:
    graph = GraphBuilder()
    x = graph.input("x", ("a", "b"))
    made = graph.call("_softmax.default", x, -1, False, shape=("a", "b"))
    return graph.task(made, symbols={"a": 700, "b": 900})


def _sum(dim: int) -> KernelTask:
    graph = GraphBuilder()
    x = graph.input("x", ("a", "b", "c"))
    shape = tuple(name for position, name in enumerate("abc") if position != dim)
    return graph.task(
        graph.call("sum.dim_IntList", x, (dim,), False, shape=shape), symbols={"a": 40, "b": 70, "c": 300}
    )


def _layer_norm() -> KernelTask:
    graph = GraphBuilder()
    x, w, b = graph.input("x", ("a", 512)), graph.input("w", (512,)), graph.input("b", (512,))
    outputs = [TensorSpec(("a", 512), "float32"), *[TensorSpec(("a", 1), "float32")] * 2]
    return graph.task(
        graph.calls("native_layer_norm.default", x, (512,), w, b, 1e-5, outputs=outputs), symbols={"a": 900}
    )


def _pool() -> KernelTask:
    graph = GraphBuilder()
    x = graph.input("x", ("a", "c", 64, 64))
    made = graph.call(
        "avg_pool2d.default", x, (2, 2), (2, 2), (0, 0), False, True, None, shape=("a", "c", 32, 32)
    )
    return graph.task(made, symbols={"a": 20, "c": 24})


def _product() -> KernelTask:
    graph = GraphBuilder()
    x, y = graph.input("x", ("m", "k")), graph.input("y", ("k", "n"))
    return graph.task(
        graph.call("mm.default", x, y, shape=("m", "n")), symbols={"m": 500, "n": 400, "k": 130}
    )


def _products() -> KernelTask:
    graph = GraphBuilder()
    x, y = graph.input("x", ("a", "m", "k"), "float16"), graph.input("y", ("a", "k", 48), "float16")
    made = graph.call("bmm.default", x, y, shape=("a", "m", 48), dtype="float16")
    clipped = graph.call("relu.default", made, shape=("a", "m", 48), dtype="float16")
    return graph.task(clipped, symbols={"a": 60, "m": 100, "k": 64})


def _convolution() -> KernelTask:
    graph = GraphBuilder()
    x, w = graph.input("x", ("a", 16, 30, 30)), graph.input("w", (32, 16, 3, 3), parameter=True)
    made = graph.call(
        "convolution.default", x, w, None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1, shape=("a", 32, 30, 30)
    )
    return graph.task(made, symbols={"a": 24})


def _transpose() -> KernelTask:
    graph = GraphBuilder()
    x = graph.input("x", ("a", "b", "c"))
    return graph.task(
        graph.call("permute.default", x, (0, 2, 1), shape=("a", "c", "b")),
        symbols={"a": 50, "b": 90, "c": 110},
    )


def _argmax(dim: int) -> KernelTask:
    graph = GraphBuilder()
    x = graph.input("x", ("a", "b", "c"))
    shape = tuple(name for position, name in enumerate("abc") if position != dim)
    made = graph.call("argmax.default", x, dim, False, shape=shape, dtype="int64")
    return graph.task(made, symbols={"a": 30, "b": 70, "c": 299})


def _choices() -> KernelTask:
    graph = GraphBuilder()
    shape = ("a", "b")
    x, y = graph.input("x", shape), graph.input("y", shape)
    both = graph.call(
        "logical_and.default",
        graph.call("gt.Scalar", x, 0.5, shape=shape, dtype="bool"),
        graph.call("lt.Tensor", x, y, shape=shape, dtype="bool"),
        shape=shape,
        dtype="bool",
    )
    return graph.task(graph.call("where.self", both, x, y, shape=shape), symbols={"a": 300, "b": 2001})


TASKS: dict[str, Callable[[], KernelTask]] = {
    "elements": _relu,
    "rows": _softmax,
    "sums of rows": lambda: _sum(2),
    "sums of columns": lambda: _sum(1),
    "sums of the first dimension": lambda: _sum(0),
    "largest of rows": lambda: _argmax(2),
    "largest of columns": lambda: _argmax(1),
    "comparisons and choices": _choices,
    "layer norm": _layer_norm,
    "pooling": _pool,
    "product": _product,
    "products of a batch": _products,
    "convolution": _convolution,
    "transposition": _transpose,
}


@pytest.fixture(autouse=True)
def _few_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """As little of these small tensors as of large ones."""
    monkeypatch.setattr(choices, "ENOUGH", 100_000)
    monkeypatch.setattr(choices, "PLACES", 5)


def run(task: KernelTask, built: Any, files: Sequence[Path], folder: Path, chosen: Any = None) -> Execution:
    """The outputs are left in ``folder``."""
    folder.mkdir()
    specs, outputs = [item.spec for item in task.graph.inputs], task.graph.output_specs()
    case = Case(
        sizes=tuple(task.sizes.values()),
        scalars=(),
        inputs=tuple(files),
        outputs=tuple(folder / f"{i}.bin" for i in range(len(outputs))),
        output_bytes=tuple(spec.nbytes(task.sizes) for spec in outputs),
        input_parts=tuple(chosen.part(spec, task.sizes) for spec in specs) if chosen else (),
        output_parts=tuple(chosen.part(spec, task.sizes) for spec in outputs) if chosen else (),
    )
    return TwinBackend(ascendc(CHIP)).execute(built, case)


def elements(values: Any, part: TensorPart) -> Any:
    """What a part chooses of an array."""
    indices = [np.concatenate([np.arange(f, f + n) for f, n in runs]) for runs in part.runs]
    return values[np.ix_(*indices)]


def draw(task: KernelTask, folder: Path) -> list[Any]:
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(i.spec.sizes(task.sizes)).astype(i.spec.dtype) for i in task.graph.inputs]
    folder.mkdir()
    for position, array in enumerate(arrays):
        array.tofile(folder / f"{position}.bin")
    return arrays


@pytest.mark.parametrize("name", TASKS)
def test_chosen_slices_come_out_as_in_a_run_on_all_of_the_data(
    name: str, tmp_path: Path, kernel_home: Path
) -> None:
    task = TASKS[name]()
    built = TwinBackend(ascendc(CHIP)).build(task, write(task, initial(task, CHIP), CHIP))
    arrays = draw(task, tmp_path / "all")
    whole = run(task, built, sorted((tmp_path / "all").iterdir()), tmp_path / "whole")
    assert whole.status is RunStatus.OK and not whole.hazards, whole
    chosen = choices.choose(task, Draw("7" * 32))
    assert not isinstance(chosen, str), chosen
    assert dict(chosen.sizes) != task.sizes
    (tmp_path / "some").mkdir()
    for position, (array, item) in enumerate(zip(arrays, task.graph.inputs, strict=True)):
        elements(array, chosen.part(item.spec, task.sizes)).tofile(tmp_path / "some" / f"{position}.bin")
    sampled = run(task, built, sorted((tmp_path / "some").iterdir()), tmp_path / "sampled", chosen)
    assert sampled.status is RunStatus.OK and not sampled.hazards, sampled
    for position, spec in enumerate(task.graph.output_specs()):
        file = f"{position}.bin"
        everything = np.fromfile(tmp_path / "whole" / file, spec.dtype).reshape(spec.sizes(task.sizes))
        right = elements(everything, chosen.part(spec, task.sizes))
        found = np.fromfile(tmp_path / "sampled" / file, spec.dtype)
        assert np.array_equal(found, right.ravel(), equal_nan=True)
    assert sampled.us == pytest.approx(whole.us)
    assert sampled.timing == _timed(task, built)


def _timed(task: KernelTask, built: BuiltKernel) -> Timing:
    """The same launch without any data."""
    sizes = tuple(task.sizes[symbol.name] for symbol in task.symbols)
    return TwinBackend(ascendc(CHIP)).measure(
        built, TimingRequest(sizes, (), *tensor_bytes(task, task.sizes))
    )


def _changed(old: str, new: str) -> KernelSource:
    source = read_source("relu")
    assert old in source.files[KERNEL]
    return ascendc_source(source.files[TILING], source.files[KERNEL].replace(old, new), source.strategy)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("DataCopyPad(x, xGm_[offset]", "DataCopyPad(x, xGm_[0]", "output-not-written"),
        ("offset < count_;", "offset + tile_ < count_;", "output-not-written"),
        ("yGm_[offset], y", "yGm_[offset + 64], y", "out-of-bounds"),
    ],
)
def test_what_comes_from_elsewhere_or_goes_there_is_reported(
    old: str, new: str, code: str, tmp_path: Path, kernel_home: Path
) -> None:
    task = evolve(make_task("relu"), symbols=(Symbol("s0", 3_000_000),))
    built = TwinBackend(ascendc(CHIP)).build(task, _changed(old, new))
    chosen = choices.choose(task, Draw("7" * 32))
    assert not isinstance(chosen, str)
    (tmp_path / "some").mkdir()
    np.ones(dict(chosen.sizes)["s0"], "f4").tofile(tmp_path / "some" / "0.bin")
    found = run(task, built, [tmp_path / "some" / "0.bin"], tmp_path / "sampled", chosen)
    assert code in {hazard.code for hazard in found.hazards}, found


def test_a_part_that_is_none_of_its_tensor_is_refused(tmp_path: Path, kernel_home: Path) -> None:
    task = make_task("relu")
    built = TwinBackend(ascendc(CHIP)).build(task, read_source("relu"))
    part = TensorPart(4, (100_000,), (((99_000, 2000),),))
    (tmp_path / "out").mkdir()
    np.ones(2000, "f4").tofile(tmp_path / "x.bin")
    case = Case(
        (100_000,), (), (tmp_path / "x.bin",), (tmp_path / "out" / "0.bin",), (400_000,),
        input_parts=(part,), output_parts=(part,),
    )  # fmt: skip
    found = TwinBackend(ascendc(CHIP)).execute(built, case)
    assert found.status is RunStatus.ERROR and "is none of a tensor" in found.message
