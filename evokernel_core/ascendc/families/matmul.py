"""Family matmul: products of matrices on the cube cores, one matrix or a batch of them.

Either operand may be transposed, or lie in rows of any pitch and matrices at any distance: it is read as
it lies in memory and turned on the way into L0. Tiles of the result go round-robin over the cube cores;
panels along k pass through L1 and L0 in two slots.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from evokernel_core.ascendc.families import matmul_schedule as schedules
from evokernel_core.ascendc.families.family import Move, StageText
from evokernel_core.ascendc.families.matmul_schedule import MatmulSchedule, refusal, strategy_of
from evokernel_core.ascendc.families.products import PRODUCTS, QUANT, TRIANGLES, Product, Side, read_product
from evokernel_core.ascendc.families.rendering import render
from evokernel_core.ascendc.families.strided import SWAPS
from evokernel_core.ascendc.families.text import CPP_TYPE
from evokernel_core.ascendc.lowering_program import camel
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.twin.chip import Chip


@frozen
class MatmulFamily:
    """Basic cube instructions, without the Matmul object."""

    name: str = field(default="matmul", init=False)
    strategies: frozenset[str] = field(default=frozenset({"matmul"}), init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return dict.fromkeys(sorted(PRODUCTS | TRIANGLES), "kernel") | dict.fromkeys(sorted(SWAPS), "view")

    def check(self, task: KernelTask, chip: Chip) -> None:
        read_product(task)

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        return strategy_of(schedules.best(read_product(task), task.sizes, chip), "")

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        found, here = read_product(task), MatmulSchedule.of(strategy)
        legal = {
            item: name
            for name, item in schedules.steps(here)
            if item != here and refusal(found, item) is None
        }
        ranked = sorted(legal, key=lambda item: schedules.estimate_us(found, item, task.sizes, chip))
        return tuple(Move(legal[item], strategy_of(item, legal[item]), self.name) for item in ranked)

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        schedule = MatmulSchedule.of(strategy)
        return strategy_of(schedule, "") if refusal(read_product(task), schedule) is None else None

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        return schedules.estimate_us(read_product(task), MatmulSchedule.of(strategy), task.sizes, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> StageText:
        found = read_product(task)
        if refusal(found, MatmulSchedule.of(strategy)) is not None:
            raise PlanError("The strategy does not fit the memories of a cube core; draft it anew.")
        context = context_of(task, found, MatmulSchedule.of(strategy), name)
        return StageText(
            render("matmul_tiling", **context), render("matmul_kernel", **context), f"{name}_kernel"
        )


def context_of(task: KernelTask, found: Product, schedule: MatmulSchedule, name: str) -> dict[str, Any]:
    """What the templates of a product are filled with."""
    tensors = [camel(item.name) for item in task.graph.inputs if item.kind is not InputKind.SCALAR]
    sizes = {key: getattr(found, key).cpp() for key in ("batch", "m", "n", "k")}
    sides = {"a": side_context(found.a, "a"), "b": side_context(found.b, "b")}
    expressions = [*sizes.values(), *(side["pitch"] for side in sides.values())]
    expressions += [text for side in sides.values() for loop in side["loops"] for text in loop["sizes"]]
    words = {word for text in expressions for word in text.replace("(", " ").replace(")", " ").split()}
    return {
        "s": schedule,
        "splits": found.splits,
        "triangle": found.triangle,
        "zeros": found.splits or found.triangle,  # some results are sums over nothing
        "symbols": [(i, symbol.name) for i, symbol in enumerate(task.symbols) if symbol.name in words],
        "type": CPP_TYPE[found.dtype],
        "out_type": CPP_TYPE[found.out_dtype],
        "quant": QUANT[found.out_dtype],
        "name": name,
        "class_name": "".join(part.capitalize() for part in name.split("_") if part) + "Kernel",
        "parameters": ", ".join(f"GM_ADDR {tensor}" for tensor in (*tensors, "output")),
        **sizes,
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
            "sizes": (loop.stride.cpp(), loop.size.cpp(), loop.within.cpp()),
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
