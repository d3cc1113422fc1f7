"""Family recurrent: all steps of layers of LSTM, GRU or plain RNN in one launch.

In each step the cube cores multiply the states of the step before with weights that stay in L1 where they
fit, and the vector cores turn the sums into new states. All cores meet once a step. Both directions of a
layer go side by side, and so do layers above each other, each two steps behind the one below: while the
vector cores are at one step, the cube cores multiply what the layers take from each other in the next.
"""

from __future__ import annotations

from typing import Any

from evokernel_core.compiler.ops import RECURRENCE, categories
from evokernel_core.compiler.problems.recurrent import Recurrence, read_recurrence
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily, on_any_chip
from evokernel_core.targets.ascendc.kernels.family import Cores, KernelFacts
from evokernel_core.targets.ascendc.kernels.recurrent import gates
from evokernel_core.targets.ascendc.kernels.recurrent import recurrent_schedule as schedules
from evokernel_core.targets.ascendc.kernels.recurrent.recurrent_estimate import LAG, estimate_us
from evokernel_core.targets.ascendc.kernels.recurrent.recurrent_settings import RecurrentSchedule
from evokernel_core.targets.ascendc.kernels.rendering import (
    addresses,
    class_name,
    render,
    sized,
    tensors_of,
)
from evokernel_core.targets.ascendc.kernels.stage import Around, KernelStage, Printed, Texts
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

_RESULTS = ("outputs", "last_states", "last_cells")


def _text(
    problem: Recurrence, schedule: RecurrentSchedule, task: KernelTask, chip: Chip, name: str
) -> KernelStage:
    if schedule.why_out_of_range() or schedules.refusal(problem, schedule, chip):
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

    def text(vectors: Printed) -> Texts:
        parts = {"class_name": class_name(name), **context, "name": name, "vectors": vectors}
        return Texts(*(render(f"recurrent/{part}", **parts) for part in ("kernel", "tiling", "compute")))

    around = Around(class_name(name, "Gates"), text, facts)
    return KernelStage(vectors=gates.build(problem, schedule, parameters), around=around)


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


FAMILY = SearchingFamily(
    name="recurrent",
    ops=categories(RECURRENCE),
    read=on_any_chip(read_recurrence),
    first=schedules.best,
    steps=lambda problem, here, sizes, chip: schedules.steps(problem, here, sizes, chip.memory),
    refusal=lambda problem, schedule, sizes, chip: schedules.refusal(problem, schedule, chip),
    cost_us=estimate_us,
    schedule_of=RecurrentSchedule.of,
    notes=schedules.notes,
    cell=schedules.descriptor_of,
    text_of=_text,
    ranks=True,
)
