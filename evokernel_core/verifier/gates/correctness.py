"""The correctness gate: the candidate runs on many cases and must match PyTorch on each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from evokernel_core import temporary
from evokernel_core.domain.errors import AgentFailed, CaptureError, InterpreterUnavailable, VerifierError
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.task import KernelTask, Tolerance, tolerance_for
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Hazard, Severity
from evokernel_core.verifier.base import (
    Backend,
    Cancelled,
    Case,
    Execution,
    ReferenceRunner,
    RunStatus,
    Timing,
)
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates import parts
from evokernel_core.verifier.gates.cases import (
    FULL_LIMIT,
    RARELY,
    CasePlan,
    Unverifiable,
    bytes_between,
    plan_cases,
    tensor_bytes,
    total_bytes,
    total_products,
)
from evokernel_core.verifier.gates.compare import (
    AGREEMENT,
    FLOATS,
    OWN_ROUNDING,
    Expected,
    compare,
    largest_rounding,
    mean_magnitude,
    own_rounding,
    words,
)
from evokernel_core.verifier.gates.indices import Indices, index_inputs
from evokernel_core.verifier.gates.slices.choice import Choice, choose
from evokernel_core.verifier.gates.special_values import strictness
from evokernel_core.verifier.references import link

if TYPE_CHECKING:
    from evokernel_core.capture.reference import ReferenceCase

Shapes = tuple[tuple[tuple[str, int], ...], ...]
MAX_FEEDBACK_HAZARDS = 5
LIGHT_PRODUCTS = 10**9
"""Multiply-adds of a full size whose chosen slices always run."""


@frozen
class Witness:
    """The last and largest case that ran: its sizes and scalars, and its modelled latency on real data.

    ``us`` is 0 where the backend models none. ``indices`` are the inputs that chose what it read.
    """

    sizes: tuple[tuple[str, int], ...] = ()
    scalars: tuple[float, ...] = ()
    us: float = 0.0
    indices: Indices = field(default=(), repr=False)


@frozen
class Checked:
    """The gate's result, the sizes that ran, and the last case as a witness for the latency gate.

    ``full_size`` says what of the file's own sizes was compared; ``timing`` are the figures of that launch
    where it had data in parts of its tensors only.
    """

    result: GateResult
    shapes: Shapes = ()
    witness: Witness = Witness()
    full_size: str = ""
    timing: Timing | None = None


@frozen
class _FullSize:
    """What was compared at the file's own sizes, in words, why that failed, and the launch's figures."""

    words: str
    failed: GateResult | None = None
    timing: Timing | None = None


def check(
    task: KernelTask,
    built: Any,
    backend: Backend,
    reference: ReferenceRunner,
    cancelled: Cancelled,
    draw: Draw,
    *,
    thorough: bool = False,
) -> Checked:
    """Runs every case of a draw until one fails. Raises VerifierError where no case can be judged."""
    try:
        plans = plan_cases(task, draw, thorough=thorough)
    except Unverifiable as error:
        return Checked(error.result)
    ran: list[tuple[tuple[str, int], ...]] = []
    witness = Witness()
    warnings: dict[tuple[str, int], Hazard] = {}
    for plan in plans:
        if cancelled():
            raise VerifierError("The verification was cancelled.")
        with temporary.folder("case") as folder:
            case_reference = _reference(task, plan, reference, Path(folder), plan is plans[-1] and not ran)
            if case_reference is None:
                continue
            outcome, execution = _run_case(task, plan, case_reference, backend, built, Path(folder))
            indices = _indices(task, plan, case_reference)
        if outcome is None:
            continue
        ran.append(plan.sizes)
        witness = Witness(plan.sizes, case_reference.scalars, execution.us, indices)
        warnings.update({(h.code, h.line): h for h in outcome.hazards})
        if outcome.status is GateStatus.FAILED:
            return Checked(outcome, tuple(dict.fromkeys(ran)), witness)
    shapes = tuple(dict.fromkeys(ran))
    full = _FullSize("")
    if total_bytes(task, task.sizes) > FULL_LIMIT and task.symbols:
        full = (
            _full_size(task, built, backend, reference, draw, shapes)
            if thorough or _samples_full_size(task, draw)
            else _FullSize(f"not compared in this draw: one of {RARELY} runs so many products")
        )
    passed = GateResult(GateName.CORRECTNESS, GateStatus.PASSED, hazards=tuple(warnings.values()))
    return Checked(full.failed or passed, shapes, witness, full.words, full.timing)


def _samples_full_size(task: KernelTask, draw: Draw) -> bool:
    """Whether a verification that need not be thorough runs the full size in slices: always where that takes
    about as long as timing it; where whole weights are multiplied by tiles that hold a chosen row, which
    takes seconds, in one draw of ``RARELY``, which no kernel can foresee."""
    is_light = total_products(task, task.sizes) <= LIGHT_PRODUCTS
    return is_light or draw.numbers(f"full size of {task.task_id}").randrange(RARELY) == 0


def _full_size(
    task: KernelTask,
    built: Any,
    backend: Backend,
    reference: ReferenceRunner,
    draw: Draw,
    shapes: Shapes,
) -> _FullSize:
    """Compares at the file's own sizes, of which all cases but one have less: all where a case has them, else
    chosen slices."""
    if tuple(task.sizes.items()) in shapes:
        return _FullSize("all of it")
    if total_bytes(task, task.sizes) > backend.chip.hbm_bytes:
        return _FullSize(f"not compared: {backend.chip.name} has less memory")
    choice = choose(task, draw) if backend.samples else f"{backend.name} runs no parts of tensors"
    if isinstance(choice, str):
        return _FullSize(f"not compared: {choice}")
    plan = CasePlan(tuple(task.sizes.items()), choice.seed, "normal")
    with temporary.folder("case") as folder:
        drawn = evolve(plan, sizes=choice.sizes)
        case_reference = _reference(task, drawn, reference, Path(folder), False)
        if case_reference is None:
            return _FullSize(f"not compared: PyTorch does not run the task at {dict(choice.sizes)}")
        outcome, execution = _run_case(task, plan, case_reference, backend, built, Path(folder), choice)
    words = choice.words(task)
    if outcome is None or outcome.status is GateStatus.PASSED:
        return _FullSize(words, timing=execution.timing)
    return _FullSize(words, evolve(outcome, feedback=f"{outcome.feedback} Compared at full size: {words}."))


def _indices(task: KernelTask, plan: CasePlan, reference: ReferenceCase) -> Indices:
    """What the case's indices were."""
    found = index_inputs(task, dict(plan.sizes))
    return tuple((position, reference.inputs[position].read_bytes()) for position, _, _ in found)


def _reference(
    task: KernelTask, plan: CasePlan, runner: ReferenceRunner, folder: Path, is_last_chance: bool
) -> ReferenceCase | None:
    """The case's inputs and outputs; None for sizes that the graph itself does not accept."""
    target = folder / "reference"
    target.mkdir()
    try:
        return runner.reference(task, dict(plan.sizes), plan.seed, plan.distribution, target)
    except (AgentFailed, InterpreterUnavailable) as error:
        raise VerifierError(f"PyTorch's result could not be computed: {error}") from error
    except CaptureError as error:
        if not is_last_chance and dict(plan.sizes) != task.sizes:
            return None
        raise VerifierError(f"PyTorch does not run the task at {dict(plan.sizes)}: {error}") from error


def _run_case(
    task: KernelTask,
    plan: CasePlan,
    reference: ReferenceCase,
    backend: Backend,
    built: Any,
    folder: Path,
    choice: Choice | None = None,
) -> tuple[GateResult | None, Execution]:
    """The result of one case, None where the kernel may and does decline its sizes, and the run. The
    reference is that of the chosen slices where there is a choice."""
    case = _case(task, plan, reference, folder, choice)
    execution = backend.execute(built, case)
    if plan.may_decline and execution.status is RunStatus.DECLINED:
        return None, execution
    failure = _execution_failure(execution, plan)
    if failure is not None:
        return failure, execution
    compared = plan if choice is None else evolve(plan, sizes=choice.sizes)
    problems = list(_differences(task, compared, reference, case))
    if problems:
        return _failed("numeric", f"{' '.join(problems)} {_where(plan)}", execution.hazards), execution
    return GateResult(GateName.CORRECTNESS, GateStatus.PASSED, hazards=execution.hazards), execution


def _case(
    task: KernelTask, plan: CasePlan, reference: ReferenceCase, folder: Path, choice: Choice | None
) -> Case:
    """The candidate's view: inputs in a folder without the reference's outputs."""
    (folder / "inputs").mkdir()
    (folder / "outputs").mkdir()
    inputs = tuple(link(path, folder / "inputs" / f"{i}.bin") for i, path in enumerate(reference.inputs))
    sizes = dict(plan.sizes)
    _, output_bytes = tensor_bytes(task, sizes)
    tensors = [item.spec for item in task.graph.inputs if item.kind is not InputKind.SCALAR]
    outputs = task.graph.output_specs()
    return Case(
        sizes=tuple(size for _, size in plan.sizes),
        scalars=reference.scalars,
        inputs=inputs,
        outputs=tuple(folder / "outputs" / f"{i}.bin" for i in range(len(output_bytes))),
        output_bytes=output_bytes,
        repeat=plan.repeat,
        products=total_products(task, sizes),
        between_bytes=bytes_between(task, sizes),
        input_parts=tuple(choice.part(spec, sizes) for spec in tensors) if choice else (),
        output_parts=tuple(choice.part(spec, sizes) for spec in outputs) if choice else (),
    )


def _execution_failure(execution: Execution, plan: CasePlan) -> GateResult | None:
    """Why the run itself fails the gate, if it does: it did not end well or broke a rule."""
    errors = [hazard for hazard in execution.hazards if hazard.severity is Severity.ERROR]
    if errors:
        return _failed(errors[0].code, f"{_hazard_words(errors)} {_where(plan)}", execution.hazards)
    if execution.status is not RunStatus.OK:
        return _failed(str(execution.status), f"{execution.message} {_where(plan)}", execution.hazards)
    return None


def _hazard_words(hazards: list[Hazard]) -> str:
    lines = [
        f"{h.file}:{h.line}: {h.code}: {h.message}" if h.line else f"{h.code}: {h.message}" for h in hazards
    ]
    rest = len(lines) - MAX_FEEDBACK_HAZARDS
    return "\n".join(lines[:MAX_FEEDBACK_HAZARDS] + ([f"(and {rest} more)"] if rest > 0 else []))


def _differences(task: KernelTask, plan: CasePlan, reference: ReferenceCase, case: Case) -> Iterator[str]:
    for index, spec in enumerate(task.graph.output_specs()):
        shape = spec.sizes(dict(plan.sizes))
        precise = reference.precise[index] if reference.precise else None
        rounded = reference.rounded[index] if reference.rounded else None
        right = Expected(reference.outputs[index], precise, rounded)
        tolerance = tolerance_of(task, right, spec.dtype, is_random=plan.distribution in RANDOM)
        how = strictness(task.graph, plan.distribution)
        found = compare(case.outputs[index], right, shape, spec.dtype, tolerance, how)
        if not found.equal:
            yield words(found, index, shape, tolerance)
        elif plan.distribution in RANDOM and found.rms_ratio > agreement_of(right, spec.dtype):
            yield (
                f"Output {index} of shape {list(shape)} is within the tolerance only because its values are "
                f"small: it is {100 * found.rms_ratio:.2g} % away from PyTorch's (root mean square)."
            )
        elif plan.distribution in RANDOM:
            part = parts.smallest_parts(case.outputs[index], right, shape, spec.dtype, tolerance)
            if part is not None:
                yield parts.words(part, index, shape)


_LONG_SUMS = frozenset(
    f"aten.{name}"
    for name in (
        "mm.default", "bmm.default", "convolution.default", "scaled_dot_product_attention.default",
        "cumsum.default", "sum.default", "sum.dim_IntList", "mean.default", "mean.dim",
        "var.correction", "var_mean.correction", "linalg_vector_norm.default", "native_layer_norm.default",
    )
)  # fmt: skip


def tolerance_of(task: KernelTask, expected: Expected, dtype: str, *, is_random: bool = False) -> Tolerance:
    """The product's for the graph, with its absolute part in units of the output's magnitude behind a long
    sum, and of small outputs where the inputs are random and a result in wider types tells how far PyTorch's
    own rounding goes.

    The terms of a long sum cancel: two right results in another order of summation then differ by
    rounding of the terms, not of the sum, which the relative part alone would measure. Where
    a clamp or a difference behind the sum hides its magnitude, the result with the sum moved as
    float32 rounds it tells what can be asked; where values are of half types, PyTorch's own result is
    the one that is rounded on the way.
    """
    table = tolerance_for(task.graph)
    if dtype not in FLOATS:
        return table
    sums = any(node.op in _LONG_SUMS for node in task.graph.nodes)
    scale = mean_magnitude(expected.precise or expected.eager, dtype)
    is_known = is_random and expected.precise is not None
    least = table.atol * (min(1.0, scale) if is_known else 1.0) * (max(1.0, scale) if sums else 1.0)
    if sums:
        return evolve(table, atol=max(least, largest_rounding(expected, dtype, table.rtol)))
    return evolve(table, atol=least + (2 * OWN_ROUNDING * own_rounding(expected, dtype) if is_known else 0.0))


def agreement_of(expected: Expected, dtype: str) -> float:
    """The relative root-mean-square difference that is taken for rounding: the product's own for the dtype,
    or a few times that of PyTorch's result where rounding on the way weighs more."""
    if dtype not in FLOATS:
        return 0.0
    scale = mean_magnitude(expected.precise or expected.eager, dtype)
    own = OWN_ROUNDING * own_rounding(expected, dtype) / scale if scale else 0.0
    return max(AGREEMENT[dtype], own)


RANDOM = frozenset(("normal", "uniform", "wide", "ties", "signs", "scales", "sorted", "large", "mixed"))
"""Distributions of random values; on others the true output may be nothing but rounding noise."""


def _where(plan: CasePlan) -> str:
    sizes = ", ".join(f"{name}={size}" for name, size in plan.sizes) or "the sizes of the file"
    return f"(with {sizes}; inputs: {plan.distribution}, seed {plan.seed})"


def _failed(code: str, feedback: str, hazards: tuple[Hazard, ...] = ()) -> GateResult:
    return GateResult(GateName.CORRECTNESS, GateStatus.FAILED, code, feedback.strip(), hazards=hazards)
