"""Whole networks: planned, printed and read by the audit, so that no limit shrinks below them unseen."""

from __future__ import annotations

from typing import Any

from attrs import define

from evokernel_core.compiler.fusion.program import parted
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import initial, write
from evokernel_core.targets.ascendc.source import KERNEL
from tests.tables import few


@define
class Network:
    """Layers over images of height h and width w, which ``value`` has ``channels`` of."""

    graph: Any
    value: ValueRef
    channels: int
    weights: int = 0

    @classmethod
    def of(cls, graph: Any, channels: int) -> Network:
        return cls(graph, graph.input("x", ("n", channels, "h", "w")), channels)

    def weight(self, *shape: int) -> ValueRef:
        self.weights += 1
        found: ValueRef = self.graph.input(f"w{self.weights}", shape, parameter=True)
        return found

    def convolved(self, outputs: int, kernel: int) -> None:
        edge = kernel // 2
        weight = self.weight(outputs, self.channels, kernel, kernel)
        steps = ((1, 1), (edge, edge), (1, 1), False, (0, 0), 1)
        self.channels = outputs
        self.call("convolution.default", weight, None, *steps)

    def relu(self) -> None:
        self.call("relu.default")

    def softmax(self) -> None:
        self.call("_softmax.default", 1, False)

    def call(self, op: str, *args: Any) -> None:
        """An operation on the images."""
        self.value = self.graph.call(op, self.value, *args, shape=("n", self.channels, "h", "w"))

    def joined(self, earlier: list[ValueRef], channels: int) -> None:
        self.channels = channels
        self.value = self.graph.call("cat.default", tuple(earlier), 1, shape=("n", channels, "h", "w"))

    def task(self) -> KernelTask:
        found: KernelTask = self.graph.task(self.value, symbols={"n": 2, "h": 14, "w": 14})
        return found


def residual(graph: Any) -> KernelTask:
    """Blocks of three convolutions around a shortcut, each with more channels than the one before."""
    network = Network.of(graph, 16)
    for block in range(5):
        network.convolved(32 + 16 * block, 1)
        shortcut, width = network.value, network.channels
        for outputs, kernel in ((16, 1), (16, 3), (width, 1)):
            network.softmax()
            network.convolved(outputs, kernel)
        network.call("add.Tensor", shortcut)
        network.relu()
    return network.task()


def dense(graph: Any) -> KernelTask:
    """Layers that read what all layers before them have computed."""
    network, growth = Network.of(graph, 16), 8
    found = [network.value]
    for layer in range(9):
        network.relu()
        network.convolved(growth, 3)
        found.append(network.value)
        network.joined(found, 16 + growth * (layer + 1))
    return network.task()


@few(("network", "audited"), [(residual, True), (dense, False), (dense, True)], keep=(0, 1))
def test_a_network_is_planned_and_audited_whole(network: Any, audited: bool, builder: Any, chip: Any) -> None:
    task = network(builder())
    strategy = initial(task, chip)
    source = write(task, strategy, chip)
    kinds, classes = len(parted(strategy)), source.files[KERNEL].count("\nnamespace ")
    assert kinds > 20
    assert classes <= 0.75 * kinds, "like layers share a class"
    assert not audited or audit(task, source).status is GateStatus.PASSED
