"""Scaling and shifting by channel behind a convolution, folded into its weights and its bias.

A batch norm in eval mode, a product with a number or a second bias give what the convolution gives with other
weights and another bias. Those are a few numbers, the results are many: vector cores are spared a pass over
them, and where nothing else follows, the whole epilogue. In float32 only, since 16-bit weights would be
rounded once more.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from attrs import frozen

from evokernel_core.compiler.aten import CONVOLUTION
from evokernel_core.compiler.rewrites.picking import as_arg, view
from evokernel_core.compiler.rewrites.writer import GraphWriter, rewritten
from evokernel_core.compiler.shapes.sizes import extent, product
from evokernel_core.domain.graph import Arg, Node, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim
from evokernel_core.hardware.device import Device

_NUMBERS: Mapping[str, Callable[[float, float], float]] = {
    "mul": operator.mul,
    "div": operator.truediv,
    "add": operator.add,
    "sub": operator.sub,
}
_STEPS = frozenset(f"aten.{name}.Tensor" for name in _NUMBERS)
_WORTH = 2.0
"""How many times what the new weights take has to be spared: vector cores may be waiting anyway."""


@frozen
class _Chain:
    """A convolution and the steps behind it in their order, each with the place of the value among its
    arguments."""

    root: Node
    steps: tuple[tuple[Node, int], ...]

    @property
    def last(self) -> Node:
        return self.steps[-1][0]


def folded_steps(task: KernelTask, device: Device) -> KernelTask:
    """The task with convolutions that do what follows them by channel; the same task where none does."""
    chains = {chain.last.name: chain for chain in _chains(task) if _pays(task, chain, device)}
    if not chains:
        return task
    # A convolution is written where its last step was: what the steps take has been written by then.
    return rewritten(task, dict.fromkeys(_STEPS, _Fold(chains)), device)


def _chains(task: KernelTask) -> Iterator[_Chain]:
    graph = task.graph
    counts = Counter(ref for node in graph.nodes for ref in set(node.operands()))
    counts.update(graph.outputs)
    readers = {ref: node for node in graph.nodes for ref in node.operands()}
    for root in graph.nodes:
        if root.op != CONVOLUTION or root.outputs[0].dtype != "float32":
            continue
        steps: list[tuple[Node, int]] = []
        value = ValueRef(root.name)
        while counts[value] == 1 and value in readers:
            place = _place_in(task, readers[value], value, root)
            if place is None:
                break
            steps.append((readers[value], place))
            value = ValueRef(readers[value].name)
        if steps:
            yield _Chain(root, tuple(steps))


def _place_in(task: KernelTask, node: Node, value: ValueRef, root: Node) -> int | None:
    """Which argument of a step by channel is the value; None where the node is no such step."""
    if node.op not in _STEPS or len(node.args) != 2 or node.kwargs or node.args.count(value) != 1:
        return None
    place = node.args.index(value)
    if node.op == "aten.div.Tensor" and place == 1:
        return None
    if node.outputs[0] != root.outputs[0] or not _is_by_channel(task, node.args[1 - place], root):
        return None
    scales = node.op in ("aten.mul.Tensor", "aten.div.Tensor")
    is_grouped = root.args[6] is True and root.args[8] != 1
    return None if scales and is_grouped and isinstance(node.args[1 - place], ValueRef) else place


def _is_by_channel(task: KernelTask, other: Arg, root: Node) -> bool:
    """Whether an operand is a number, or one for each channel of the convolution's result."""
    if isinstance(other, (int, float)):
        return True
    if not isinstance(other, ValueRef) or task.graph.spec(other).dtype != "float32":
        return False
    made, shape = root.outputs[0].shape, task.graph.spec(other).shape
    channel = len(shape) - len(made) + 1
    return all(dim == 1 or (place == channel and dim == made[1]) for place, dim in enumerate(shape))


def _pays(task: KernelTask, chain: _Chain, device: Device) -> bool:
    """Whether the steps take longer than a launch that makes weights anew and the copies of those."""
    made = math.prod(chain.root.outputs[0].sizes(task.sizes))
    spared = device.elementwise_us(len(chain.steps) * made, "float32")
    if chain.root.args[2] is None and len(chain.steps) == 1 and _is_bias(task, chain):
        return True
    weight = chain.root.args[1]
    assert isinstance(weight, ValueRef)
    moved = 3 * task.graph.spec(weight).nbytes(task.sizes) / device.memory_bytes_us
    return spared > _WORTH * (device.launch_us + moved)


def _is_bias(task: KernelTask, chain: _Chain) -> bool:
    """Whether the only step adds an input that has a number for each channel: a bias as it lies."""
    step, place = chain.steps[0]
    other = step.args[1 - place]
    if step.op != "aten.add.Tensor" or not isinstance(other, ValueRef):
        return False
    inputs = {operand.name for operand in task.graph.inputs}
    return other.name in inputs and _is_long(task.graph.spec(other).shape, chain.root)


def _is_long(shape: tuple[Dim, ...], root: Node) -> bool:
    return extent(root.outputs[0].shape[1]) == product(map(extent, shape))


@frozen
class _Fold:
    """The rewrite of steps: ``last`` has the chains by the names of their last ones."""

    last: Mapping[str, _Chain]

    def __call__(self, node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
        chain = self.last.get(node.name)
        if chain is None:
            return None
        written = {node.name: node for node in writer.nodes} | {node.name: node}
        operands = tuple(written[step.name].args[1 - place] for step, place in chain.steps)
        return (_folded(chain, written[chain.root.name], operands, writer),)


def _folded(chain: _Chain, root: Node, operands: tuple[Arg, ...], writer: GraphWriter) -> ValueRef:
    """The convolution with the steps in its weights and its bias."""
    by_channel = _ByChannel(writer, root.outputs[0].shape[1])
    scale: Arg = 1.0
    shift: Arg = 0.0 if root.args[2] is None else root.args[2]
    for (step, place), operand in zip(chain.steps, map(by_channel.laid_out, operands), strict=True):
        name = step.op.split(".")[1]
        if name in ("mul", "div"):
            scale, shift = by_channel(name, scale, operand), by_channel(name, shift, operand)
        elif place == 0 or name == "add":
            shift = by_channel(name, shift, operand)
        else:  # it is subtracted from the operand
            scale, shift = by_channel("mul", scale, -1.0), by_channel("sub", operand, shift)
    weight = root.args[1]
    assert isinstance(weight, ValueRef)
    args = (root.args[0], _scaled(writer, weight, scale, root), by_channel.bias(shift), *root.args[3:])
    return writer.call(CONVOLUTION, *args, shape=root.outputs[0].shape, dtype="float32")


def _scaled(writer: GraphWriter, weight: ValueRef, scale: Arg, root: Node) -> ValueRef:
    """The weights times a number, or one for each channel of results."""
    if scale == 1.0:
        return weight
    shape = writer.shape(weight)
    if isinstance(scale, ValueRef) and writer.shape(scale):
        length = writer.shape(scale)[0]
        of_results = 1 if root.args[6] is True else 0
        behind = (1,) * (len(shape) - 1 - of_results)
        scale = view(writer, scale, (*(1,) * of_results, length, *behind))
    return writer.call("aten.mul.Tensor", weight, scale, shape=shape, dtype="float32")


@frozen
class _ByChannel:
    """Arithmetic of numbers and of vectors with a number for each of ``channels``."""

    writer: GraphWriter
    channels: Dim

    def laid_out(self, operand: Arg) -> Arg:
        """An operand of a step as a vector; what is one number stays a number or a tensor of one."""
        if not isinstance(operand, ValueRef) or not self.writer.shape(operand):
            return operand
        is_one = all(dim == 1 for dim in self.writer.shape(operand))
        return view(self.writer, operand, (1,) if is_one else (self.channels,))

    def __call__(self, name: str, left: Arg, right: Arg) -> Arg:
        """``left`` and ``right`` added, subtracted, multiplied or divided."""
        neutral = 1.0 if name in ("mul", "div") else 0.0
        if isinstance(left, (int, float)) and isinstance(right, (int, float)):
            return _NUMBERS[name](float(left), float(right))
        if right == neutral or (left == 0.0 and neutral == 1.0):
            return left
        if left == neutral and name in ("mul", "add"):
            return right
        return self._call(name, self._tensor(left), right)

    def _call(self, name: str, left: ValueRef, right: Arg) -> ValueRef:
        return self.writer.call(
            f"aten.{name}.Tensor", left, right, shape=self.writer.shape(left), dtype="float32"
        )

    def _tensor(self, value: Arg) -> ValueRef:
        """A value as a vector of all channels."""
        shape = (self.channels,)
        if isinstance(value, ValueRef) and self.writer.shape(value) == shape:
            return value
        number = value if isinstance(value, (int, float)) else 0.0
        filled = self.writer.call(
            "aten.full.default", (as_arg(self.channels),), float(number), shape=shape, dtype="float32"
        )
        return self._call("add", filled, value) if isinstance(value, ValueRef) else filled

    def bias(self, value: Arg) -> ValueRef | None:
        """A vector of all channels, None for zeros."""
        return None if value == 0.0 else self._tensor(value)
