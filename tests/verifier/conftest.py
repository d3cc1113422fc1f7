"""Tasks, hand-written kernels and a reference in numpy: the verifier without torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evokernel_core.capture.reference import ReferenceCase, base_of
from evokernel_core.domain.graph import Graph, GraphInput, InputKind, Node, ValueRef
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.targets.ascendc.source import ascendc_source
from tests.homes import own_home

DATA = Path(__file__).parent / "data"
Function = Callable[..., Any]


class NumpyReference:
    """A ReferenceRunner over functions of numpy arrays, one per task name."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions = functions
        self.calls: list[tuple[dict[str, int], int, str]] = []

    def reference(
        self,
        task: KernelTask,
        sizes: Mapping[str, int],
        seed: int,
        distribution: str,
        folder: Path,
        *,
        rounded: bool = False,
    ) -> ReferenceCase:
        self.calls.append((dict(sizes), seed, distribution))
        rng = np.random.default_rng(seed)
        tensors = [i for i in task.graph.inputs if i.kind is not InputKind.SCALAR]
        arrays = [draw(i.spec, sizes, distribution, rng) for i in tensors]
        results = self._functions[task.name](*arrays)
        results = results if isinstance(results, tuple) else (results,)
        inputs = [self._write(folder / f"in{n}.bin", array) for n, array in enumerate(arrays)]
        outputs = [self._write(folder / f"out{n}.bin", np.asarray(array)) for n, array in enumerate(results)]
        return ReferenceCase(tuple(inputs), (), tuple(outputs))

    @staticmethod
    def _write(path: Path, array: Any) -> Path:
        path.write_bytes(np.ascontiguousarray(array).tobytes())
        return path


def draw(  # noqa: PLR0912 - one case a distribution
    spec: TensorSpec, sizes: Mapping[str, int], distribution: str, rng: np.random.Generator
) -> Any:
    shape = spec.sizes(sizes)
    if "@" in distribution:
        return _near(shape, distribution, rng).astype(spec.dtype)
    if (base := base_of(distribution)) != distribution:
        return _of_magnitude(draw(spec, sizes, base, rng), distribution.removeprefix(base), spec.dtype)
    match distribution:
        case "normal" | "alike":
            values = rng.standard_normal(shape)
        case "uniform":
            values = rng.random(shape)
        case "zeros":
            values = rng.random(shape)
            values.reshape(-1)[: values.size // 3] = 0.0
        case "wide":
            values = rng.uniform(-50, 50, shape) * (rng.random(shape) > 0.05)
        case "ties":
            values = rng.integers(-4, 5, shape) / 4
        case "signs":
            values = np.abs(rng.standard_normal(shape)) * np.where(np.arange(shape[-1]) % 2, -1, 1)
        case "scales":
            values = rng.choice([-1, 1], shape) * np.exp2(rng.uniform(-10, 4, shape))
        case "sorted":
            values = np.sort(rng.standard_normal(shape), -1)
        case "large":
            values = rng.standard_normal(shape) * np.where(rng.random(shape) < 1 / 64, 500, 1)
        case "mixed":
            kinds = [draw(spec, sizes, kind, rng) for kind in ("normal", "wide", "ties", "scales", "large")]
            rows = int(np.prod(shape[:-1]))
            places, block = ((*shape[:-1], 1), max(96 // shape[-1], 1)) if rows >= 12 else (shape, 2048)
            values = np.choose(rng.integers(0, len(kinds), places), kinds)
            count = int(np.prod(places))
            is_faint = np.arange(count) // block % 12 == 11
            if 3 <= rows < 12:
                is_faint |= np.arange(count) >= count - count // rows
            values = np.where(is_faint.reshape(places), rng.standard_normal(shape) * 2.0**-12, values)
        case "rows":
            values = np.broadcast_to(rng.integers(-16, 17, (*shape[:-1], 1)) / 8, shape)
        case "structured":
            values = np.linspace(-4, 4, int(np.prod(shape))).reshape(shape)
        case "nans" | "infinities" | "lowest" | "highest":
            values = _non_finite(shape, distribution, rng)
        case _:
            raise ValueError(distribution)
    return values.astype(spec.dtype)


def _near(shape: tuple[int, ...], distribution: str, rng: np.random.Generator) -> Any:
    """Numbers that a distribution names, beside them, and twice of them."""
    numbers = [float(word) for word in distribution.partition("@")[2].split(",")]
    signs = rng.choice([-1.0, 1.0], shape) * rng.choice(
        [0.5, 1.0 - 2.0**-23, 1.0, 1.0 + 2.0**-23, 2.0], shape
    )
    return np.where(rng.random(shape) < 0.5, rng.choice(numbers, shape) * signs, rng.standard_normal(shape))


def _of_magnitude(values: Any, magnitude: str, dtype: str) -> Any:
    """Ordinary values times a power of two, or far from 0."""
    exponent = 2.0 ** int(magnitude.rpartition("^")[2])
    moved = values.astype(np.float64) * exponent if magnitude[0] == "*" else values + 1.5 * exponent
    return moved.astype(dtype)


def _non_finite(shape: tuple[int, ...], distribution: str, rng: np.random.Generator) -> Any:
    flat = rng.standard_normal(shape).ravel()
    places = rng.integers(0, flat.size, min(max(flat.size // 64, 1), 64))
    flat[places] = rng.choice([np.nan] if distribution == "nans" else [np.inf, -np.inf], places.size)
    return flat.reshape(shape)


def softmax(x: Any) -> Any:
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore"):  # of infinities NaN, as in PyTorch
        powers = np.exp(wide - wide.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)).astype(x.dtype)


FUNCTIONS: dict[str, Function] = {
    "add": lambda x, y: x + y,
    "relu": lambda x: np.maximum(x, 0),
    "softmax": softmax,
}


def make_task(name: str) -> KernelTask:
    """The task of one of the hand-written kernels: generic in every size."""
    if name == "relu":
        specs, sizes = [TensorSpec(("s0",), "float32")], {"s0": 100_000}
    else:
        specs = [TensorSpec(("s0", "s1"), "float16")] * (2 if name == "add" else 1)
        sizes = {"s0": 256, "s1": 4096}
    inputs = tuple(GraphInput("xy"[i], spec) for i, spec in enumerate(specs))
    op = {"add": "aten.add.Tensor", "relu": "aten.relu.default", "softmax": "aten._softmax.default"}[name]
    rest = (-1, False) if name == "softmax" else ()
    node = Node("z", op, (*(ValueRef(i.name) for i in inputs), *rest), (), (specs[0],))
    graph = Graph(inputs, (node,), (ValueRef("z"),))
    symbols = tuple(Symbol(symbol, size) for symbol, size in sizes.items())
    return KernelTask(name, graph, symbols, TOLERANCES[specs[0].dtype], "elementwise")


def read_source(name: str) -> KernelSource:
    """One of the hand-written kernels."""
    folder = DATA / name
    files = [(folder / file).read_text() for file in ("tiling.h", "op_kernel.cpp")]
    return ascendc_source(files[0], files[1], Strategy("hand"))


@pytest.fixture(scope="session")
def kernel_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home that the tests of a session share, so that each kernel is compiled once."""
    with own_home(tmp_path_factory.mktemp("home")) as home:
        yield home


@pytest.fixture
def numpy_reference() -> NumpyReference:
    return NumpyReference(FUNCTIONS)


@pytest.fixture
def task_of() -> Callable[[str], KernelTask]:
    return make_task


@pytest.fixture
def source_of() -> Callable[[str], KernelSource]:
    return read_source
