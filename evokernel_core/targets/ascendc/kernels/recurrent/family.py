"""Family recurrent: all steps of layers of LSTM, GRU or plain RNN in one launch.

In each step the cube cores multiply the states of the step before with weights that stay in L1 where they
fit, and the vector cores turn the sums into new states. All cores meet once a step. Both directions of a
layer go side by side, and so do layers above each other, each two steps behind the one below: while the
vector cores are at one step, the cube cores multiply what the layers take from each other in the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from evokernel_core.compiler.ops import RECURRENCE, categories
from evokernel_core.domain.descriptor import Descriptor
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.kernels.family import Beside, Cores, KernelFacts, Move, Printed, StageText
from evokernel_core.targets.ascendc.kernels.recurrent import gates
from evokernel_core.targets.ascendc.kernels.recurrent import schedule as schedules
from evokernel_core.targets.ascendc.kernels.recurrent.estimate import LAG, estimate_us
from evokernel_core.targets.ascendc.kernels.recurrent.problem import (
    Recurrence,
    RecurrentSchedule,
    read_recurrence,
)
from evokernel_core.targets.ascendc.kernels.recurrent.schedule import descriptor_of, refusal, strategy_of
from evokernel_core.targets.ascendc.kernels.rendering import (
    addresses,
    class_name,
    kernel_text,
    sized,
    tensors_of,
)
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

_RESULTS = ("outputs", "last_states", "last_cells")


@frozen
class RecurrentFamily:
    """Cube and vector cores of one layer take turns, step by step."""

    name: str = field(default="recurrent", init=False)
    strategies: frozenset[str] = field(default=frozenset({"recurrent"}), init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return categories(RECURRENCE)

    def check(self, task: KernelTask, chip: Chip) -> None:
        read_recurrence(task)

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        found = read_recurrence(task)
        return strategy_of(found, schedules.best(found, task.sizes, chip), "")

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        found, here = read_recurrence(task), RecurrentSchedule.of(strategy)
        legal: dict[RecurrentSchedule, str] = {}
        for name, item in schedules.steps(found, here, task.sizes, chip.memory):
            if item != here and refusal(found, item, chip) is None:
                legal.setdefault(item, name)
        ranked = sorted(legal, key=lambda item: estimate_us(found, item, task.sizes, chip))
        return tuple(Move(legal[item], strategy_of(found, item, legal[item]), self.name) for item in ranked)

    def why_illegal(self, task: KernelTask, strategy: Strategy, chip: Chip) -> str | None:
        return refusal(read_recurrence(task), RecurrentSchedule.of(strategy), chip)

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        found, schedule = read_recurrence(task), RecurrentSchedule.of(strategy)
        return strategy_of(found, schedule, "") if refusal(found, schedule, chip) is None else None

    def descriptor(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Descriptor:
        return descriptor_of(read_recurrence(task), RecurrentSchedule.of(strategy))

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        return estimate_us(read_recurrence(task), RecurrentSchedule.of(strategy), task.sizes, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> Beside:
        found, schedule = read_recurrence(task), RecurrentSchedule.of(strategy)
        if refusal(found, schedule, chip) is not None:
            raise PlanError("The strategy does not fit the memories of a core; draft it anew.")
        parameters = _parameters(found, task)
        context = {
            "class_name": class_name(name, ""),
            "s": schedule,
            "kind": found.kind,
            "gates": found.gates,
            "chains": found.chains,
            "stacked": found.stacked,
            "lag": LAG if found.stacked else 0,
            "type": CPP_TYPE[found.dtype],
            "item_bytes": ITEM_SIZE[found.dtype],
            "carries": found.carries,
            "batch_first": found.batch_first,
            **_sizes(found, task),
            **parameters,
        }
        # every core waits for the states of all hidden units
        facts = KernelFacts(Cores.BOTH, waits_for_all=True, uses_workspace=True)

        def around(vectors: Printed) -> StageText:
            return kernel_text("recurrent", name, facts, vectors=vectors, **context)

        return Beside(gates.build(found, schedule, parameters), class_name(name, "Gates"), around, facts)


def _sizes(found: Recurrence, task: KernelTask) -> dict[str, Any]:
    """Sizes for the templates, and the symbols that they name."""
    return sized(task, {key: getattr(found, key) for key in ("steps", "batch", "hidden")})


def _parameters(found: Recurrence, task: KernelTask) -> dict[str, Any]:
    """Operands under names that say what they are for, and which kind of core takes them."""
    carried = {"lstm": found.cell_input, "gru": found.hidden_input}.get(found.kind, "")
    roles = {
        "weight": found.weights,
        "inputWeight": found.upper,
        "projectedInput": found.projections,
        "inputBias": found.input_biases,
        "hiddenBias": found.hidden_biases,
        "hiddenInput": (found.hidden_input,),
        "cellInput": (found.cell_input,),
    }
    names = {"": ""}
    for role, operands in roles.items():
        for number, operand in enumerate(operands):
            names.setdefault(operand, f"{role}{number if len(operands) > 1 else ''}")
    results = {_RESULTS[index]: f"result{index}" for index in found.results}
    listed = [names.get(item, f"unused{index}") for index, item in enumerate(tensors_of(task))]
    listed += [results[_RESULTS[index]] for index in found.results]
    on_cube = [names[item] for item in dict.fromkeys((*found.weights, *found.upper))]
    return {
        "weights": [names[item] for item in found.weights],
        "upper": [names[item] for item in found.upper],
        "projections": [names[item] for item in found.projections],
        "input_biases": [names[item] for item in found.input_biases],
        "hidden_biases": [names[item] for item in found.hidden_biases],
        "hidden_input": names[found.hidden_input],
        "carried_input": names[carried],
        **{key: results.get(key, "") for key in _RESULTS},
        "parameters": addresses(*listed),
        "cube_parameters": addresses(*on_cube),
        "cube_arguments": ", ".join(on_cube),
    }
