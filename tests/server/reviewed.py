"""A verified kernel and its review, for tests of what is said of them."""

from __future__ import annotations

from attrs import evolve
from evokernel_server.review.contents import File, Guard, Review, ReviewedKernel, Vendor, kernel_of

from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import (
    Deviation,
    GateName,
    GateResult,
    GateStatus,
    Latency,
    LatencySource,
    Verdict,
)
from evokernel_core.targets.ascendc.source import ascendc_source

SPEC = TensorSpec(("s0", 2048), "float16")
NODES = tuple(
    Node(name, "aten.exp.default", (ValueRef(given),), (), (SPEC,))
    for name, given in (("a", "x"), ("b", "a"))
)
TASK = KernelTask(
    "exps", Graph((GraphInput("x", SPEC, expression="self.x"),), NODES, (ValueRef("b"),)),
    (Symbol("s0", 8),), TOLERANCES["float16"], "elementwise",
)  # fmt: skip
CELL = Descriptor(Dataflow.STREAMED, algorithm=Algorithm.DIRECT)
STRATEGY = Strategy("pointwise", {"tile": 4096, "buffers": 2, "online": False}, ("Tile of 4096.",), CELL)
SOURCE = ascendc_source("// tiling", "// kernel", STRATEGY)
LATENCY = Latency(
    10.0, LatencySource.MODELLED, "ascend910b1", 40, (("V", 2.0), ("MTE2", 8.0)),
    "MTE2-bound: 80 % busy.", 5.0, 40.0,
)  # fmt: skip
SEEN = {GateName.CORRECTNESS: Deviation(2e-3, 1e-4)}
GATES = tuple(GateResult(gate, GateStatus.PASSED, deviation=SEEN.get(gate)) for gate in GateName)
VERDICT = Verdict(
    TASK.task_id, SOURCE.source_id, "twin 0.1.0", GATES, LATENCY, shapes=((("s0", 1),), (("s0", 8),))
)


def kernel(latency: Latency = LATENCY, source: KernelSource = SOURCE) -> ReviewedKernel:
    verdict = evolve(VERDICT, latency=latency, source_id=source.source_id)
    return kernel_of(source, verdict, latency, TASK)


def review(**changes: object) -> Review:
    made = Review(
        uri="file:///model.py", file="model.py", region_id="r1", name="exps_1f", title="exps in f (model.py)",
        line=3, change_line=4, version=2, before="import torch\ny = f(x)\n", after="import torch\ny = g(x)\n",
        guards=(Guard("self.x", "is float16 of s0 x 2048."),), why=("2 operations are one kernel.",),
        kernel=kernel(), installed=None, vendor=Vendor("torch_npu.npu_x", 12.0, "measured"),
        files=(File("tiling.h", "", "// tiling"), File("op_kernel.cpp", "", "// kernel")), parts=(),
    )  # fmt: skip
    return evolve(made, **changes)
