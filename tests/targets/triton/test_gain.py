"""Where a library's operation and a kernel behind it are estimated to be faster, one kernel is declined."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.task import KernelTask, Symbol
from evokernel_core.hardware.gpu.gpu import Gpu, load_gpu
from evokernel_core.targets.triton.kernels.convolution import convolution_family
from evokernel_core.targets.triton.kernels.library.library_family import LibraryFamily
from evokernel_core.targets.triton.kernels.matmul import matmul_family
from tests.targets.ascendc.test_depthwise import depthwise
from tests.targets.ascendc.test_epilogue import Chain
from tests.targets.ascendc.windows import Axis
from tests.targets.triton.test_convolution import Case


@pytest.fixture
def gpu() -> Gpu:
    """Chips of Ascend's have no such libraries."""
    return load_gpu()


def _product(builder: Any, m: int, n: int, k: int, dtype: str = "float32") -> KernelTask:
    chain = Chain(builder(), dtype)
    chain.binary("add.Tensor", "columns")
    chain.unary("tanh.default")
    return evolve(chain.task(), symbols=(Symbol("m", m), Symbol("n", n), Symbol("k", k)))


def test_a_dense_product_belongs_to_the_library(builder: Any, gpu: Any) -> None:
    with pytest.raises(PlanError, match="faster"):
        matmul_family.FAMILY.check(_product(builder, 8192, 8192, 8192, "float16"), gpu)


def test_a_dense_product_of_float32_is_three_of_tf32(builder: Any, gpu: Any) -> None:
    """Which is as exact, and faster than the vector units."""
    task = _product(builder, 8192, 8192, 8192)
    settings = dict(matmul_family.FAMILY.initial(task, gpu).settings)
    assert (settings["precision"], settings["swapped"]) == ("tf32x3", True)


def test_a_product_of_few_multiplications_is_fused(builder: Any, gpu: Any) -> None:
    matmul_family.FAMILY.check(_product(builder, 16384, 64, 32), gpu)


@pytest.mark.parametrize("op", ["triu", "tril"])
def test_a_triangle_takes_half_of_a_product(op: str, builder: Any, gpu: Any) -> None:
    """The library computes all of it, and another kernel removes half."""
    graph = builder()
    x, y = graph.input("x", (4096, 4096)), graph.input("y", (4096, 4096))
    product = graph.call("mm.default", x, y, shape=(4096, 4096))
    matmul_family.FAMILY.check(graph.task(graph.call(f"{op}.default", product, shape=(4096, 4096))), gpu)


def test_a_dense_convolution_belongs_to_the_library(builder: Any, gpu: Any) -> None:
    case = Case((128, 128), (3, 3), channels=128, outputs=128)
    LibraryFamily().check(evolve(case.task(builder), symbols=(Symbol("n", 64),)), gpu)
    graph, value = case.graph(builder)
    relu = graph.call("relu.default", value, shape=("n", 128, *case.results()))
    task = graph.task(relu, symbols={"n": 64})
    with pytest.raises(PlanError, match="faster"):
        convolution_family.FAMILY.check(task, gpu)


def test_a_depthwise_convolution_is_ours(builder: Any, gpu: Any) -> None:
    task = depthwise(builder, (Axis(3, 1, 1), Axis(3, 1, 1)))
    large = evolve(task, symbols=tuple(evolve(symbol, size=512) for symbol in task.symbols))
    with pytest.raises(PlanError, match="as fast as the library"):
        LibraryFamily().check(large, gpu)
