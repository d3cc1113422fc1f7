"""Family recurrent: all steps of a layer of LSTM, GRU or plain RNN in one launch for each direction.

A program has one sequence. In each step it multiplies the sequence's hidden state with the weights of some
units at a time; the states that it makes lie in memory, from where all its threads take them in the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated

from attrs import frozen

from evokernel_core.compiler.ops import RECURRENCE, categories
from evokernel_core.compiler.problems.recurrent import Recurrence, read_recurrence
from evokernel_core.compiler.schedule import Range, Scaled, Schedule
from evokernel_core.compiler.shapes.sizes import Extent, product
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Overlap, Split
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.expressions import next_power_of_2
from evokernel_core.targets.triton.kernels import tiles
from evokernel_core.targets.triton.kernels.function import JitFunction, expression
from evokernel_core.targets.triton.kernels.names import free_name, output_names
from evokernel_core.targets.triton.kernels.searching import GpuFamily, always
from evokernel_core.targets.triton.kernels.text import DTYPES, TritonKernel
from evokernel_core.targets.triton.launch import Launch, Scratch

_MOST_HIDDEN = 8192
"""Units of a state that a program holds whole."""
_TILE_US = 0.7
"""Assumed: the weights of some units from their load to the new states."""
_STEP_US = 0.5
"""Assumed: a step's own, the barrier and the load of the state."""
_NEW_STATES: Mapping[str, tuple[str, ...]] = {
    "lstm": (
        "cell = tl.sigmoid(x_1 + h_1) * cell + tl.sigmoid(x_0 + h_0) * tanh(x_2 + h_2)",
        "state = tl.sigmoid(x_3 + h_3) * tanh(cell)",
    ),
    "gru": (
        "update = tl.sigmoid(x_1 + h_1)",
        "candidate = tanh(x_2 + tl.sigmoid(x_0 + h_0) * h_2)",
        "state = candidate + update * (old - candidate)",
    ),
    "rnn_tanh": ("state = tanh(x_0 + h_0)",),
    "rnn_relu": ("state = tl.maximum(x_0 + h_0, 0.0, propagate_nan=tl.PropagateNan.ALL)",),
}
"""The new states of some units, from their gates' shares of input and of state."""


@frozen
class RecurrentSchedule(Schedule):
    """``units`` whose weights a program multiplies at a time."""

    units: Annotated[int, Range(1, 256, power_of_two=True), Scaled("double units", "halve units")]
    warps: Annotated[int, Range(1, 16, power_of_two=True), Scaled("double warps", "halve warps")] = 8


def _read(task: KernelTask, gpu: Gpu) -> Recurrence:
    if gpu.backend == "npu":
        raise PlanError("A recurrence of many steps needs a barrier, which kernels for Ascend do not have.")
    return read_recurrence(task)


def _starts(problem: Recurrence, sizes: Mapping[str, int], gpu: Gpu) -> Iterator[RecurrentSchedule]:
    hidden = next_power_of_2(problem.hidden.evaluate(sizes))
    for warps in (16, 8, 4, 2, 1):
        for elements in (16, 8, 32):
            units = warps * gpu.threads_per_warp * elements // hidden
            yield RecurrentSchedule(min(max(units, 1), hidden, 256), warps)


def _refusal(
    problem: Recurrence, schedule: RecurrentSchedule, sizes: Mapping[str, int], gpu: Gpu
) -> str | None:
    hidden = problem.hidden.evaluate(sizes)
    if hidden > _MOST_HIDDEN:
        return Sentence("A state has more than {most} units.", most=_MOST_HIDDEN)
    if schedule.units * next_power_of_2(hidden) > 64 * schedule.warps * gpu.threads_per_warp:
        return "A tile has more elements than the registers of its threads hold."
    return None


def _cost_us(problem: Recurrence, schedule: RecurrentSchedule, sizes: Mapping[str, int], gpu: Gpu) -> float:
    steps, batch, hidden = (
        extent.evaluate(sizes) for extent in (problem.steps, problem.batch, problem.hidden)
    )
    weights = problem.gates * schedule.units * next_power_of_2(hidden) * ITEM_SIZE[problem.dtype]
    shared = min(batch, gpu.multiprocessors) * weights / gpu.l2_bytes_us
    tile = max(_TILE_US, weights / gpu.worker_bytes_us, shared)
    step = _STEP_US + tiles.covered(hidden, schedule.units) * tile
    rounds = math.ceil(batch / gpu.multiprocessors)
    return problem.chains * (rounds * steps * step + gpu.launch_us)


class _ChainPrinter:
    """The function of one chain: one direction of a layer."""

    def __init__(
        self, problem: Recurrence, schedule: RecurrentSchedule, chain: int, name: str, states: str
    ) -> None:
        self.problem, self.schedule, self.chain = problem, schedule, chain
        self.function = JitFunction(name)
        self.states = self.function.tensor(states)
        self.hidden = self.function.number("hidden", problem.hidden)
        self.size = self.function.number("size", product((problem.batch, problem.hidden)))
        self.carried = _carried(problem)

    def launch(self, results: Mapping[int, str]) -> Launch:
        """Writes the function; ``results`` are outputs by the number of the node's result."""
        function = self.function
        function.add("row = program.to(tl.int64)", "columns = tl.arange(0, COLUMNS)")
        function.add(f"inside = columns < {self.hidden}")
        function.add("# one half of this memory has the states of a step, the other those of the next")
        function.add(f"states = {self.states} + row * {self.hidden}")
        self._first_states()
        steps = function.number("steps", self.problem.steps)
        with function.block(f"for step in range(0, {steps}):"):
            self._step(steps, results.get(0))
        self._last_states(steps, results)
        function.constant("UNITS", self.schedule.units)
        function.constant("COLUMNS", f"next_power_of_2({expression(self.problem.hidden)})")
        return function.launch(expression(self.problem.batch), self.schedule.warps)

    def _first_states(self) -> None:
        add = self.function.add
        for number, name in enumerate(self.carried):
            value = "tl.zeros((COLUMNS,), tl.float32)"
            if name:
                own = _plus(self.problem.first + self.chain, self.size)
                at = f"{self.function.tensor(name)}{own} + row * {self.hidden} + columns"
                value = self._loaded(at, "inside")
            add(f"first_{number} = {value}")
            add(f"tl.store(states{_plus(number, self.size)} + columns, first_{number}, mask=inside)")
        add("tl.debug_barrier()")

    def _step(self, steps: str, output: str | None) -> None:
        problem, function, add = self.problem, self.function, self.function.add
        batch = function.number("batch", problem.batch)
        add(
            f"before = states + step % 2 * {self._half()}",
            f"after = states + (1 - step % 2) * {self._half()}",
        )
        add("hidden_state = tl.load(before + columns, mask=inside, other=0.0)")
        now = f"({steps} - 1 - step)" if self.chain else "step"
        add(f"place = row * {steps} + {now}" if problem.batch_first else f"place = row + {now} * {batch}")
        with function.block(f"for first in range(0, {self.hidden}, UNITS):"):
            add("units = first + tl.arange(0, UNITS)", f"here = units < {self.hidden}")
            self._shares()
            self._new_states()
            if output is not None:
                row = f"place * {_times(problem.chains, self.hidden)}"
                at = f"{function.tensor(output)} + {row}{_plus(self.chain, self.hidden)} + units"
                add(f"tl.store({at}, {self._typed('state')}, mask=here)")
        add("# all threads see the states before any reads them")
        add("tl.debug_barrier()")

    def _half(self) -> str:
        return _times(len(self.carried), self.size)

    def _shares(self) -> None:
        """``x_N`` and ``h_N``: what the input and the state give to gate N of some units."""
        problem, function, add = self.problem, self.function, self.function.add
        weights, projection = (
            function.tensor(names[self.chain]) for names in (problem.weights, problem.projections)
        )
        add(f"weights = {weights} + units[:, None] * {self.hidden} + columns[None, :]")
        add(f"projected = {projection} + place * {_times(problem.gates, self.hidden)} + units")
        add("mask = here[:, None] & inside[None, :]")
        for gate in range(problem.gates):
            own = _plus(gate, self.hidden)
            add(f"weight = {self._loaded('weights' + _plus(gate, f'{self.hidden} * {self.hidden}'), 'mask')}")
            add(f"h_{gate} = tl.sum(weight * hidden_state[None, :], 1)")
            add(f"x_{gate} = {self._loaded(f'projected{own}', 'here')}")
            for share, biases in (("x", problem.input_biases), ("h", problem.hidden_biases)):
                if biases:
                    bias = self._loaded(f"{function.tensor(biases[self.chain])}{own} + units", "here")
                    add(f"{share}_{gate} += {bias}")

    def _new_states(self) -> None:
        add, cell = self.function.add, f" + {self.size} + units"
        if self.problem.kind == "gru":
            add("old = tl.load(before + units, mask=here, other=0.0)")
        if self.problem.kind == "lstm":
            add(f"cell = tl.load(before{cell}, mask=here, other=0.0)")
        add(*_NEW_STATES[self.problem.kind])
        add("tl.store(after + units, state, mask=here)")
        if self.problem.kind == "lstm":
            add(f"tl.store(after{cell}, cell, mask=here)")

    def _last_states(self, steps: str, results: Mapping[int, str]) -> None:
        names = {number: results[1 + number] for number in range(len(self.carried)) if 1 + number in results}
        if names:
            self.function.add(f"last = states + {steps} % 2 * {self._half()}")
        for number, name in names.items():
            self.function.add(
                f"last_{number} = tl.load(last{_plus(number, self.size)} + columns, mask=inside, other=0.0)"
            )
            at = f"{self.function.tensor(name)}{_plus(self.chain, self.size)} + row * {self.hidden} + columns"
            self.function.add(f"tl.store({at}, {self._typed(f'last_{number}')}, mask=inside)")

    def _loaded(self, at: str, mask: str) -> str:
        cast = "" if self.problem.dtype == "float32" else ".to(tl.float32)"
        return f"tl.load({at}, mask={mask}, other=0.0){cast}"

    def _typed(self, value: str) -> str:
        dtype = self.problem.dtype
        return value if dtype == "float32" else f"{value}.to({DTYPES[dtype]})"


def _times(number: int, size: str) -> str:
    """So many sizes, as a factor."""
    return size if number == 1 else f"({number} * {size})"


def _plus(number: int, size: str) -> str:
    """So many sizes further on."""
    return f" + {number} * {size}" if number > 1 else f" + {size}" * number


def _carried(problem: Recurrence) -> tuple[str, ...]:
    """The states that a step hands to the next, by the inputs that have the first ones: "" for zeros."""
    both = (problem.hidden_input, problem.cell_input)
    return both if problem.kind == "lstm" else both[:1]


def _text(problem: Recurrence, schedule: RecurrentSchedule, task: KernelTask, name: str) -> TritonKernel:
    states = free_name(task, "states")
    results = dict(zip(problem.results, output_names(task), strict=True))
    halves = Extent(2 * len(_carried(problem)))
    functions, launches = [], []
    for chain in range(problem.chains):
        own = name if problem.chains == 1 else f"{name}_{'forward' if not chain else 'backward'}"
        printer = _ChainPrinter(problem, schedule, chain, own, states)
        launches.append(printer.launch(results))
        functions.append(printer.function.jit_text())
    elements = expression(product((halves, problem.batch, problem.hidden)))
    return TritonKernel(
        tuple(functions),
        tuple(launches),
        helpers=frozenset() if problem.kind == "rnn_relu" else frozenset({"tanh"}),
        scratch=(Scratch(states, "float32", elements),),
        requires=() if problem.hidden.constant else (f"{expression(problem.hidden)} <= {_MOST_HIDDEN}",),
    )


FAMILY = GpuFamily(
    name="recurrent",
    ops=categories(RECURRENCE),
    read=_read,
    schedule_of=RecurrentSchedule.of,
    starts=_starts,
    refusal=_refusal,
    cost_us=_cost_us,
    notes=always((Sentence("One sequence a program; weights of {units} units at a time, {warps} warps."),)),
    cell=always(Descriptor(Dataflow.STREAMED, "L2", Split.ROWS, Algorithm.RECURRENCE, Overlap.NONE)),
    text_of=_text,
)
