"""One kernel of each family through all gates, with the interpreter's rules of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from attrs import evolve

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.family import Family
from evokernel_core.compiler.legalise import legalised
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets import author_for
from evokernel_core.targets.triton.backends.interpreter import InterpreterBackend
from evokernel_core.targets.triton.kernels.argmax import argmax_family
from evokernel_core.targets.triton.kernels.attention import attention_family
from evokernel_core.targets.triton.kernels.convolution import convolution_family
from evokernel_core.targets.triton.kernels.gather import gather_family
from evokernel_core.targets.triton.kernels.layout import layout_family
from evokernel_core.targets.triton.kernels.matmul import matmul_family
from evokernel_core.targets.triton.kernels.pooling import pooling_family
from evokernel_core.targets.triton.kernels.scan import scan_family
from evokernel_core.targets.triton.kernels.scatter import scatter_family
from evokernel_core.targets.triton.kernels.tril import tril_family
from evokernel_core.targets.triton.target import TRITON
from evokernel_core.verifier.local import LocalVerifier
from tests import warm
from tests.tables import few
from tests.targets.ascendc.conftest import GraphBuilder
from tests.targets.ascendc.test_arg_reductions import Search
from tests.targets.ascendc.test_attention import task_of
from tests.targets.ascendc.test_depthwise import depthwise
from tests.targets.ascendc.test_epilogue import Chain
from tests.targets.ascendc.test_pooling import max_pool
from tests.targets.ascendc.windows import Axis
from tests.targets.triton.conftest import source_of
from tests.targets.triton.test_convolution import CASES as CONVOLUTIONS


def _sized(task: KernelTask, **sizes: int) -> KernelTask:
    return evolve(task, symbols=tuple(evolve(one, size=sizes[one.name]) for one in task.symbols))


def _product() -> KernelTask:
    chain = Chain(GraphBuilder(), "float32")
    chain.binary("add.Tensor", "columns")
    chain.unary("relu.default")
    return _sized(chain.task(), m=20, n=33, k=40)


def _scan() -> KernelTask:
    graph = GraphBuilder()
    x = graph.input("x", ("a", "b"))
    task: KernelTask = graph.task(
        graph.call("cumsum.default", x, 1, shape=("a", "b")), symbols={"a": 5, "b": 40}
    )
    return task


def _gather() -> KernelTask:
    graph = GraphBuilder()
    x, index = graph.input("x", ("a", "b")), graph.input("index", ("n",), "int64")
    value = graph.call("index_select.default", x, 0, index, shape=("n", "b"))
    return graph.task(value, symbols={"a": 9, "b": 33, "n": 7})


def _scatter() -> KernelTask:
    graph = GraphBuilder()
    x, index, values = (
        graph.input("x", ("a", "b")),
        graph.input("i", ("n",), "int32"),
        graph.input("v", ("n", "b")),
    )
    value = graph.call("index_put.default", x, (index,), values, False, shape=("a", "b"))
    task: KernelTask = graph.task(value, symbols={"a": 9, "b": 20, "n": 12})
    return task


def _sums() -> KernelTask:
    graph = GraphBuilder()
    x, index, values = (
        graph.input("x", ("a", 8)),
        graph.input("index", ("n", 8), "int64"),
        graph.input("v", ("n", 8)),
    )
    value = graph.call("scatter_add.default", x, 0, index, values, shape=("a", 8))
    task: KernelTask = graph.task(value, symbols={"a": 9, "n": 12})
    return task


def _layout() -> KernelTask:
    graph = GraphBuilder()
    x, y = graph.input("x", ("a", 6, "b")), graph.input("y", ("a", 3, "b"))
    joined = graph.call("cat.default", (x, y), 1, shape=("a", 9, "b"))
    value = graph.call("permute.default", joined, (2, 0, 1), shape=("b", "a", 9))
    return graph.task(value, symbols={"a": 4, "b": 35})


def _triangle() -> KernelTask:
    graph = GraphBuilder()
    x = graph.input("x", ("m", "n"))
    return graph.task(graph.call("triu.default", x, 1, shape=("m", "n")), symbols={"m": 12, "n": 20})


KERNELS: list[tuple[Family, Callable[[], KernelTask]]] = [
    (matmul_family.FAMILY, _product),
    (attention_family.FAMILY, lambda: _sized(task_of(GraphBuilder, is_causal=True), q=20, k=20)),
    (argmax_family.FAMILY, lambda: Search("max", ("a", "b", "c"), 1).task(GraphBuilder, a=3, b=9, c=17)),
    (
        pooling_family.FAMILY,
        lambda: _sized(max_pool(GraphBuilder, (Axis(3, 2, 1), Axis(3, 2, 1))), n=1, h=12, w=17),
    ),
    (
        pooling_family.FAMILY,
        lambda: _sized(depthwise(GraphBuilder, (Axis(3, 1, 1), Axis(3, 1, 1))), n=1, h=9, w=17),
    ),
    (convolution_family.FAMILY, lambda: CONVOLUTIONS[2].task(GraphBuilder)),
    (convolution_family.FAMILY, lambda: CONVOLUTIONS[5].task(GraphBuilder)),
    (scan_family.FAMILY, _scan),
    (gather_family.FAMILY, _gather),
    (scatter_family.FAMILY, _scatter),
    (layout_family.FAMILY, _layout),
    (tril_family.FAMILY, _triangle),
]


@pytest.fixture(scope="module")
def verifier() -> Iterator[LocalVerifier]:
    backend = InterpreterBackend(author_for("nvidia_h200", "triton"), wall_s=60.0)
    with AgentClient(warm.interpreter()) as agent:
        yield LocalVerifier(agent, backend)


@few(("family", "make"), KERNELS, keep=(5,))
def test_a_kernel_passes_every_gate(family: Family, make: Any, verifier: LocalVerifier, gpu: Any) -> None:
    task = make()
    inner = legalised(task, gpu, TRITON)
    kernel = source_of(family, inner, family.initial(inner, gpu), gpu)
    verdict = verifier.verify(task, kernel)
    failed = verdict.failed_gate
    assert verdict.feasible, (failed and failed.code, failed and str(failed.feedback))


@pytest.mark.thorough
def test_sums_at_indices_pass_every_gate(verifier: LocalVerifier) -> None:
    author, task = author_for("nvidia_h200", "triton"), _sums()
    verdict = verifier.verify(task, author.write(task, author.initial(task)))
    failed = verdict.failed_gate
    assert verdict.feasible, (failed and failed.code, failed and str(failed.feedback))
