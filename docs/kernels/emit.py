"""Writes the kernels of this folder again, as the schedule proposer drafts them today, and the worked example
of docs/author.md.

python docs/kernels/emit.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from evokernel_core.compiler.lowering.plan import plan as lowered  # noqa: E402
from evokernel_core.compiler.lowering.values import Operand, Value, needed  # noqa: E402
from evokernel_core.domain.graph import Arg, Graph, GraphInput, InputKind, Node, ValueRef  # noqa: E402
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol  # noqa: E402
from evokernel_core.domain.tensor import Dim, TensorSpec  # noqa: E402
from evokernel_core.hardware.ascend.chip import load_chip  # noqa: E402
from evokernel_core.targets.ascendc.author import initial, plan, write  # noqa: E402


def _node(op: str, *args: Arg, shape: Sequence[Dim]) -> Node:
    return Node(
        op.split(".", maxsplit=1)[0].lstrip("_"), f"aten.{op}", args, (), (TensorSpec(shape, "float32"),)
    )


def _task(name: str, inputs: Sequence[GraphInput], nodes: Sequence[Node], **sizes: int) -> KernelTask:
    graph = Graph(tuple(inputs), tuple(nodes), (ValueRef(nodes[-1].name),))
    symbols = tuple(Symbol(symbol, size) for symbol, size in sizes.items())
    return KernelTask(name, graph, symbols, TOLERANCES["float32"], "other")


def _input(name: str, *shape: Dim, parameter: bool = False) -> GraphInput:
    kind = InputKind.PARAMETER if parameter else InputKind.TENSOR
    return GraphInput(name, TensorSpec(shape, "float32"), kind, name)


def softmax() -> KernelTask:
    """torch.softmax(x, 1) of [rows, columns]."""
    node = _node("_softmax.default", ValueRef("x"), 1, False, shape=("rows", "columns"))
    return _task("softmax", [_input("x", "rows", "columns")], [node], rows=4096, columns=2048)


def linear() -> KernelTask:
    """torch.relu(F.linear(x, weight, bias)) of [rows, 1024] to [rows, 4096]."""
    inputs = [_input("x", "rows", 1024), _input("weight", 4096, 1024, parameter=True),
              _input("bias", 4096, parameter=True)]  # fmt: skip
    nodes = [
        _node("t.default", ValueRef("weight"), shape=(1024, 4096)),
        _node("mm.default", ValueRef("x"), ValueRef("t"), shape=("rows", 4096)),
        _node("add.Tensor", ValueRef("mm"), ValueRef("bias"), shape=("rows", 4096)),
        _node("relu.default", ValueRef("add"), shape=("rows", 4096)),
    ]
    return _task("linear", inputs, nodes, rows=2048)


def convolution() -> KernelTask:
    """F.conv2d(x, weight) of [batch, 64, 58, 58] with 128 kernels of 3 x 3."""
    inputs = [_input("x", "batch", 64, 58, 58), _input("weight", 128, 64, 3, 3, parameter=True)]
    geometry = ((1, 1), (0, 0), (1, 1), False, (0, 0), 1)
    operands = (ValueRef("x"), ValueRef("weight"), None)
    node = _node("convolution.default", *operands, *geometry, shape=("batch", 128, 56, 56))
    return _task("convolution", inputs, [node], batch=16)


TASKS = (softmax, linear, convolution)


def texts() -> Iterator[tuple[Path, str]]:
    """Every file of this folder that is made, and its text."""
    chip = load_chip("ascend910b1")
    for make in TASKS:
        task = make()
        source = write(task, initial(task, chip), chip)
        for name, text in source.files.items():
            yield HERE / make.__name__ / name, text


PAGE = HERE.parent / "author.md"
BEGIN, END = "<!-- written by docs/kernels/emit.py -->\n", "<!-- until here -->\n"


def page() -> str:
    """docs/author.md with the example of today."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    return before + BEGIN + "\n".join(worked_example()) + "\n" + END + rest.partition(END)[2]


def worked_example() -> Iterator[str]:
    """The softmax from graph to text: each step as the code has it."""
    task, chip = softmax(), load_chip("ascend910b1")
    chosen, values = plan(task, chip), lowered(task, chip)
    strategy = chosen.strategy
    (node,) = task.graph.nodes
    yield from ("The graph, as captured:", "```")
    yield f"{node.name} = {node.op}(x, 1, False)    x: float32[rows, columns], here rows=4096, columns=2048"
    yield from ("```", "The plan: values over rows and columns, each FULL, or one a ROW:", "```")
    for value in needed([output.value for output in values.outputs]):
        args = ", ".join(map(_named, value.args)) or value.detail
        yield f"v{value.index} = {value.op}({args})".ljust(32) + value.domain.name
    yield from ("```", "The first schedule, the best estimate among the legal ones:", "```")
    yield f"family={chosen.program.kinds[0][1].name} strategy={strategy.family}"
    settings = [f"{name}={value}" for name, value in strategy.settings if value not in (False, 0)]
    yield " ".join(settings)
    (kernel,) = chosen.bounds()
    yield f"estimated {kernel.estimate_us:.1f} us, roofline limit {kernel.bound_us:.1f} us on {chip.name}"
    yield "moves: " + ", ".join(move.name for move in chosen.moves()[:6]) + ", ..."
    yield from ("```", "The text, of which this is one tile's work:", "```cpp")
    text = write(task, strategy, chip).files["op_kernel.cpp"]
    yield from _method(text, "Compute")
    yield "```"


def _named(operand: Operand) -> str:
    return f"v{operand.index}" if isinstance(operand, Value) else f"{operand:g}"


def _method(text: str, name: str) -> Iterator[str]:
    """The lines of a method of the kernel's class."""
    start = text.index(f"    __aicore__ inline void {name}(")
    for line in text[start : text.index("\n    }\n", start)].splitlines():
        yield line.removeprefix("    ")
    yield "}"


if __name__ == "__main__":
    for path, text in texts():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    PAGE.write_text(page())
