"""Family matmul: products of matrices on the cube cores, one matrix or a batch of them.

Either operand may be transposed, or lie in rows of any pitch and matrices at any distance: it is read as
it lies in memory and turned on the way into L0. Tiles of the result go round-robin over the cube cores;
panels along k pass through L1 and L0 in two slots.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from evokernel_core.ascendc.kernels.epilogue.cost import Cost, cost_of
from evokernel_core.ascendc.kernels.epilogue.tiles import Epilogue, EpilogueText, read_epilogue, write
from evokernel_core.ascendc.kernels.family import Cores, KernelFacts, Move, StageText
from evokernel_core.ascendc.kernels.matmul import schedule as schedules
from evokernel_core.ascendc.kernels.matmul.problem import (
    PRODUCTS,
    QUANT,
    TRIANGLES,
    WHOLE_PRODUCTS,
    Product,
    Side,
    product_node,
    product_of,
    read_product,
)
from evokernel_core.ascendc.kernels.matmul.schedule import MOST_HANDED, MatmulSchedule, strategy_of
from evokernel_core.ascendc.kernels.rendering import Symbolic, render, sized
from evokernel_core.ascendc.kernels.strided import FRONTS
from evokernel_core.ascendc.kernels.text import CPP_TYPE
from evokernel_core.ascendc.lowering.opset import fused_ops
from evokernel_core.ascendc.lowering.program import camel
from evokernel_core.ascendc.shapes.views import PERMUTATIONS
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import InputKind, ValueRef
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip


@frozen
class Matmul:
    """A product, and what vector cores do to its results before they are stored."""

    product: Product
    epilogue: Epilogue | None
    cost: Cost | None

    def best(self, sizes: Mapping[str, int], chip: Chip) -> MatmulSchedule:
        return schedules.best(self.product, sizes, chip, self.cost)

    def refusal(self, item: MatmulSchedule, chip: Chip) -> str | None:
        return schedules.refusal(self.product, item, chip, self.cost)

    def estimate_us(self, item: MatmulSchedule, sizes: Mapping[str, int], chip: Chip) -> float:
        return schedules.estimate_us(self.product, item, sizes, chip, self.cost)


def read_matmul(task: KernelTask, chip: Chip) -> Matmul:
    """The product of a task and what follows it. Raises PlanError where one kernel does not do both."""
    node = product_node(task)
    try:
        return Matmul(read_product(task), None, None)
    except PlanError:
        more = any(fused_ops().get(other.op, "view") != "view" for other in task.graph.nodes)
        if node.op not in WHOLE_PRODUCTS or not more:
            raise
    shape = node.outputs[0].shape
    epilogue = read_epilogue(task, ValueRef(node.name), shape[:-1], shape[-1:], chip)
    kernel = epilogue.kernel(MOST_HANDED, MOST_HANDED, chip)
    if kernel is None:
        raise PlanError("What follows the product takes more than the unified buffer of a vector core.")
    return Matmul(product_of(task, node), epilogue, cost_of(kernel, epilogue.source, chip))


@frozen
class MatmulFamily:
    """Basic cube instructions, without the Matmul object."""

    name: str = field(default="matmul", init=False)
    strategies: frozenset[str] = field(default=frozenset({"matmul"}), init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return dict.fromkeys(sorted(PRODUCTS | TRIANGLES), "kernel") | dict.fromkeys(
            sorted(PERMUTATIONS | FRONTS), "view"
        )

    def check(self, task: KernelTask, chip: Chip) -> None:
        read_matmul(task, chip)

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        return strategy_of(read_matmul(task, chip).best(task.sizes, chip), "")

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        found, here = read_matmul(task, chip), MatmulSchedule.of(strategy)
        legal = {
            item: name
            for name, item in schedules.steps(here)
            if item != here and found.refusal(item, chip) is None
        }
        ranked = sorted(legal, key=lambda item: found.estimate_us(item, task.sizes, chip))
        return tuple(Move(legal[item], strategy_of(item, legal[item]), self.name) for item in ranked)

    def why_illegal(self, task: KernelTask, strategy: Strategy, chip: Chip) -> str | None:
        return read_matmul(task, chip).refusal(MatmulSchedule.of(strategy), chip)

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        legal = self.why_illegal(task, strategy, chip) is None
        return strategy_of(MatmulSchedule.of(strategy), "") if legal else None

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        return read_matmul(task, chip).estimate_us(MatmulSchedule.of(strategy), task.sizes, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> StageText:
        found, schedule = read_matmul(task, chip), MatmulSchedule.of(strategy)
        if found.refusal(schedule, chip) is not None:
            raise PlanError("The strategy does not fit the memories of a cube core; draft it anew.")
        epilogue = epilogue_text(found, schedule, chip, name)
        context = context_of(task, found.product, schedule, name, epilogue)
        tiling, compute, kernel = (
            render(f"matmul/{part}", **context) for part in ("tiling", "compute", "kernel")
        )
        return StageText(tiling, compute, kernel, f"{name}_kernel", _facts(found.epilogue))


def _facts(epilogue: Epilogue | None) -> KernelFacts:
    """Results are handed over to the vector cores where these do something to them."""
    if epilogue is None:
        return KernelFacts(Cores.CUBE)
    return KernelFacts(Cores.BOTH, uses_workspace=True, reads_numbers=epilogue.reads_numbers)


_TAKE = """\
const uint64_t core = GetBlockIdx() / GetTaskRatio();
uint32_t count = 0;
for (uint64_t index = core; index < tiling_.tiles; index += tiling_.blockDim) {
    const Tile tile = TileAt(tiling_, index);
    const uint64_t row = tile.matrix * tiling_.m + tile.row;
    for (uint32_t column = 0; column < tile.columns; column += tiling_.partN) {
        const uint32_t columns = Part(tile.columns - column, tiling_.partN);
        const uint64_t place = count++ % HANDED * BASE_M * BASE_N;
        CrossCoreWaitFlag(RESULT_READY);
        Take(Region{row, tile.column + column, place, tile.rows, columns});
        CrossCoreSetFlag<2, PIPE_MTE2>(RESULT_TAKEN);
    }
}"""


def epilogue_text(found: Matmul, schedule: MatmulSchedule, chip: Chip, name: str) -> EpilogueText | None:
    """The class of the vector cores."""
    if found.epilogue is None:
        return None
    kernel = found.epilogue.kernel(schedule.base_m, schedule.base_n, chip)
    if kernel is None:
        raise PlanError("What follows the product takes more than the unified buffer of a vector core.")
    process = [*_TAKE.splitlines(), *(["Finish();"] if kernel.schedule.ahead else [])]
    memory = "workspace + GetBlockIdx() / GetTaskRatio() * HANDED_BYTES"
    return write(found.epilogue, kernel, f"{_class_name(name)}Epilogue", process, "tiling_.n", memory)


def _class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_") if part)


def context_of(
    task: KernelTask,
    found: Product,
    schedule: MatmulSchedule,
    name: str,
    epilogue: EpilogueText | None = None,
) -> dict[str, Any]:
    """What the templates of a product are filled with."""
    tensors = [camel(item.name) for item in task.graph.inputs if item.kind is not InputKind.SCALAR]
    tensors += epilogue.outputs if epilogue is not None else ["output"]
    sizes = {key: getattr(found, key) for key in ("batch", "m", "n", "k")}
    sides = {"a": side_context(found.a, "a"), "b": side_context(found.b, "b")}
    also: list[Symbolic] = [found.a, found.b, *([epilogue] if epilogue is not None else [])]
    return {
        "s": schedule,
        "splits": found.splits,
        "triangle": found.triangle,
        "relu": found.relu,
        "zeros": found.splits or found.triangle,  # some results are sums over nothing
        "type": CPP_TYPE[found.dtype],
        "out_type": CPP_TYPE[found.out_dtype],
        "quant": QUANT[found.out_dtype],
        "name": name,
        "class_name": f"{_class_name(name)}{'Product' if epilogue is not None else 'Kernel'}",
        "parameters": ", ".join(f"GM_ADDR {tensor}" for tensor in tensors),
        "epilogue": epilogue,
        "handed": 2 * schedule.parts,
        "out_size": ITEM_SIZE[found.out_dtype],
        **sized(task, sizes, also),
        **sides,
    }


def side_context(side: Side, letter: str) -> dict[str, Any]:
    """What templates write of one operand; ``letter`` begins the names of its numbers in the tiling."""
    loops = [
        {
            "index": index,
            "stride": loop.stride.cpp(),
            "size": loop.size.cpp(),
            "within": "" if loop.within.is_one else loop.within.cpp(),
            "wraps": loop.wraps,
        }
        for index, loop in enumerate(side.loops)
    ]
    terms = []
    for loop in loops:
        index = loop["index"]
        within = f" / tiling_.{letter}Within{index}" if loop["within"] else ""
        wraps = f" % tiling_.{letter}Count{index}" if loop["wraps"] else ""
        terms.append(f"matrix{within}{wraps} * tiling_.{letter}Stride{index}")
    return {
        "name": camel(side.name),
        "letter": letter,
        "transposed": side.transposed,
        "pitch": side.pitch.cpp(),
        "loops": loops,
        "start": " + ".join(terms),
        "at": f"StartOf{letter.upper()}(tile.matrix) + " if loops else "",
    }
