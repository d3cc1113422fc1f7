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
from evokernel_core.compiler.target import Move
from evokernel_core.domain.descriptor import Descriptor
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.kernels.family import Beside, Cores, KernelFacts, Printed, StageText
from evokernel_core.targets.ascendc.kernels.recurrent import gates
from evokernel_core.targets.ascendc.kernels.recurrent import recurrent_schedule as schedules
from evokernel_core.targets.ascendc.kernels.recurrent.recurrent_estimate import LAG, estimate_us
from evokernel_core.targets.ascendc.kernels.recurrent.recurrent_problem import (
    Recurrence,
    RecurrentSchedule,
    read_recurrence,
)
from evokernel_core.targets.ascendc.kernels.recurrent.recurrent_schedule import (
    descriptor_of,
    refusal,
    strategy_of,
)
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
        problem = read_recurrence(task)
        return strategy_of(problem, schedules.best(problem, task.sizes, chip), "")

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        problem, here = read_recurrence(task), RecurrentSchedule.of(strategy)
        legal: dict[RecurrentSchedule, str] = {}
        for name, schedule in schedules.steps(problem, here, task.sizes, chip.memory):
            if schedule != here and refusal(problem, schedule, chip) is None:
                legal.setdefault(schedule, name)
        ranked = sorted(legal, key=lambda schedule: estimate_us(problem, schedule, task.sizes, chip))
        return tuple(Move(legal[item], strategy_of(problem, item, legal[item]), self.name) for item in ranked)

    def why_illegal(self, task: KernelTask, strategy: Strategy, chip: Chip) -> str | None:
        return refusal(read_recurrence(task), RecurrentSchedule.of(strategy), chip)

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        problem, schedule = read_recurrence(task), RecurrentSchedule.of(strategy)
        return strategy_of(problem, schedule, "") if refusal(problem, schedule, chip) is None else None

    def descriptor(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Descriptor:
        return descriptor_of(read_recurrence(task), RecurrentSchedule.of(strategy))

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        return estimate_us(read_recurrence(task), RecurrentSchedule.of(strategy), task.sizes, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> Beside:
        problem, schedule = read_recurrence(task), RecurrentSchedule.of(strategy)
        if refusal(problem, schedule, chip) is not None:
            raise PlanError("The strategy does not fit the memories of a core; draft it anew.")
        parameters = _parameters(problem, task)
        context = {
            "class_name": class_name(name, ""),
            "s": schedule,
            "kind": problem.kind,
            "gates": problem.gates,
            "chains": problem.chains,
            "stacked": problem.stacked,
            "lag": LAG if problem.stacked else 0,
            "type": CPP_TYPE[problem.dtype],
            "item_bytes": ITEM_SIZE[problem.dtype],
            "carries": problem.carries,
            "batch_first": problem.batch_first,
            **_sizes(problem, task),
            **parameters,
        }
        # every core waits for the states of all hidden units
        facts = KernelFacts(Cores.BOTH, waits_for_all=True, uses_workspace=True)

        def around(vectors: Printed) -> StageText:
            return kernel_text("recurrent", name, facts, vectors=vectors, **context)

        return Beside(gates.build(problem, schedule, parameters), class_name(name, "Gates"), around, facts)


def _sizes(problem: Recurrence, task: KernelTask) -> dict[str, Any]:
    """Sizes for the templates, and the symbols that they name."""
    return sized(task, {key: getattr(problem, key) for key in ("steps", "batch", "hidden")})


def _parameters(problem: Recurrence, task: KernelTask) -> dict[str, Any]:
    """Operands under names that say what they are for, and which kind of core takes them."""
    carried = {"lstm": problem.cell_input, "gru": problem.hidden_input}.get(problem.kind, "")
    roles = {
        "weight": problem.weights,
        "inputWeight": problem.upper,
        "projectedInput": problem.projections,
        "inputBias": problem.input_biases,
        "hiddenBias": problem.hidden_biases,
        "hiddenInput": (problem.hidden_input,),
        "cellInput": (problem.cell_input,),
    }
    names = {"": ""}
    for role, operands in roles.items():
        for number, operand in enumerate(operands):
            names.setdefault(operand, f"{role}{number if len(operands) > 1 else ''}")
    results = {_RESULTS[index]: f"result{index}" for index in problem.results}
    listed = [names.get(item, f"unused{index}") for index, item in enumerate(tensors_of(task))]
    listed += [results[_RESULTS[index]] for index in problem.results]
    on_cube = [names[part] for part in dict.fromkeys((*problem.weights, *problem.upper))]
    return {
        "weights": [names[weight] for weight in problem.weights],
        "upper": [names[item] for item in problem.upper],
        "projections": [names[projection] for projection in problem.projections],
        "input_biases": [names[input_bias] for input_bias in problem.input_biases],
        "hidden_biases": [names[hidden_bias] for hidden_bias in problem.hidden_biases],
        "hidden_input": names[problem.hidden_input],
        "carried_input": names[carried],
        **{key: results.get(key, "") for key in _RESULTS},
        "parameters": addresses(*listed),
        "cube_parameters": addresses(*on_cube),
        "cube_arguments": ", ".join(on_cube),
    }
