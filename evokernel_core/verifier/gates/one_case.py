"""One case of the correctness gate: PyTorch's result, the candidate's run, and what differs."""

from __future__ import annotations

import filecmp
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from evokernel_core.domain.errors import AgentFailed, CaptureError, InterpreterUnavailable, VerifierError
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.sentence import Sentence, joined
from evokernel_core.domain.task import KernelTask, Tolerance
from evokernel_core.domain.verdict import (
    NUMERIC,
    Deviation,
    GateName,
    GateResult,
    GateStatus,
    Hazard,
    Severity,
)
from evokernel_core.verifier.base import Backend, Case, Execution, ReferenceRunner, RunStatus
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates import parts
from evokernel_core.verifier.gates.cases import CasePlan, bytes_between, tensor_bytes, total_products
from evokernel_core.verifier.gates.compare import FLOATS, Comparison, Expected, compare, element_words, words
from evokernel_core.verifier.gates.slices.choice import ChosenSlices
from evokernel_core.verifier.gates.special_values import strictness
from evokernel_core.verifier.gates.tolerances import agreement_of, is_random, tolerance_of
from evokernel_core.verifier.references import link

if TYPE_CHECKING:
    from evokernel_core.capture.reference import ReferenceCase

MAX_FEEDBACK_HAZARDS = 5


@frozen
class Judges:
    """Who runs the candidate, who PyTorch, and the secret of it."""

    built: Any
    backend: Backend
    reference: ReferenceRunner
    draw: Draw


def reference_of(
    task: KernelTask, plan: CasePlan, runner: ReferenceRunner, folder: Path, is_last_chance: bool
) -> ReferenceCase | None:
    """The case's inputs and outputs; None for sizes that the graph itself does not accept."""
    try:
        return _computed(task, plan, runner, folder / "reference")
    except (AgentFailed, InterpreterUnavailable) as error:
        raise VerifierError("PyTorch's result could not be computed: {error}", error=error) from error
    except CaptureError as error:
        if not is_last_chance and dict(plan.sizes) != task.sizes:
            return None
        raise VerifierError(
            "PyTorch does not run the task at {sizes}: {error}", sizes=dict(plan.sizes), error=error
        ) from error


def _computed(
    task: KernelTask, plan: CasePlan, runner: ReferenceRunner, target: Path, *, rounded: bool = False
) -> ReferenceCase:
    target.mkdir()
    asked = (task, dict(plan.sizes), plan.seed, plan.distribution, target)
    return runner.reference(*asked, rounded=rounded)


def run_case(
    task: KernelTask,
    plan: CasePlan,
    reference: ReferenceCase,
    judges: Judges,
    folder: Path,
    choice: ChosenSlices | None = None,
) -> tuple[GateResult | None, Execution]:
    """The result of one case, None where the kernel may and does decline its sizes, and the run. The
    reference is that of the chosen slices where there is a choice."""
    case = case_of(task, plan, reference, folder, choice)
    execution = judges.backend.execute(judges.built, case)
    return judged(task, plan, reference, judges, folder, (case, execution), choice), execution


def judged(
    task: KernelTask,
    plan: CasePlan,
    reference: ReferenceCase,
    judges: Judges,
    folder: Path,
    run: tuple[Case, Execution],
    choice: ChosenSlices | None = None,
) -> GateResult | None:
    """The result of a case that ran, None where the kernel may and does decline its sizes."""
    case, execution = run
    if plan.may_decline and execution.status is RunStatus.DECLINED:
        return None
    failure = _execution_failure(execution, plan)
    if failure is not None:
        return failure
    compared = plan if choice is None else evolve(plan, sizes=choice.sizes)
    problems, deviation = _differences(task, compared, reference, case)
    if problems and reference.rounds:
        # What float32 rounds of long sums only widens what is right, and takes most of a reference's time.
        rounded = _rounded(task, compared, reference, judges.reference, folder / "rounded")
        problems, deviation = _differences(task, compared, rounded, case)
    if problems:
        return failed(NUMERIC, joined([*problems, _where(plan)]), execution.hazards)
    return passed(execution.hazards, deviation)


def _rounded(
    task: KernelTask, plan: CasePlan, reference: ReferenceCase, runner: ReferenceRunner, target: Path
) -> ReferenceCase:
    """The same case with what rounding long sums may move. Raises VerifierError where PyTorch cannot say, or
    drew other inputs: the editor's next reference may be another interpreter's, with its own PyTorch."""
    try:
        result = _computed(task, plan, runner, target, rounded=True)
    except CaptureError as error:
        raise VerifierError("PyTorch's result could not be computed: {error}", error=error) from error
    pairs = zip(reference.inputs, result.inputs, strict=True)
    if result.scalars != reference.scalars or not all(filecmp.cmp(*pair, shallow=False) for pair in pairs):
        raise VerifierError("Another PyTorch drew other inputs for the same case; verify the kernel again.")
    return result


def case_of(
    task: KernelTask,
    plan: CasePlan,
    reference: ReferenceCase,
    folder: Path,
    choice: ChosenSlices | None = None,
) -> Case:
    """The candidate's view: inputs in a folder without the reference's outputs."""
    (folder / "inputs").mkdir()
    (folder / "outputs").mkdir()
    inputs = tuple(link(path, folder / "inputs" / f"{i}.bin") for i, path in enumerate(reference.inputs))
    sizes = dict(plan.sizes)
    _, output_bytes = tensor_bytes(task, sizes)
    tensors = [operand.spec for operand in task.graph.inputs if operand.kind is not InputKind.SCALAR]
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
        return failed(errors[0].code, joined([_hazard_words(errors), _where(plan)]), execution.hazards)
    if execution.status is not RunStatus.OK:
        return failed(str(execution.status), joined([execution.message, _where(plan)]), execution.hazards)
    return None


def _hazard_words(hazards: list[Hazard]) -> Sentence:
    lines = [
        Sentence(
            "{where}: {what}", where=f"{h.file}:{h.line}: {h.code}" if h.line else h.code, what=h.message
        )
        for h in hazards[:MAX_FEEDBACK_HAZARDS]
    ]
    rest = len(hazards) - len(lines)
    return joined([*lines, *([Sentence("(and {count} more)", count=rest)] if rest > 0 else [])], "\n")


@frozen
class _Output:
    """One output of a case: what the candidate gave, and what it may be."""

    index: int
    dtype: str
    shape: tuple[int, ...]
    given: Path
    right: Expected
    tolerance: Tolerance


def _outputs(task: KernelTask, plan: CasePlan, reference: ReferenceCase, case: Case) -> Iterator[_Output]:
    for index, spec in enumerate(task.graph.output_specs()):
        precise = reference.precise[index] if reference.precise else None
        rounded = reference.rounded[index] if reference.rounded else None
        beside = tuple(side[index] for side in reference.beside)
        right = Expected(reference.outputs[index], precise, rounded, beside)
        tolerance = tolerance_of(task, right, spec.dtype, is_random=is_random(plan.distribution))
        shape = spec.sizes(dict(plan.sizes))
        yield _Output(index, spec.dtype, shape, case.outputs[index], right, tolerance)


def _differences(
    task: KernelTask, plan: CasePlan, reference: ReferenceCase, case: Case
) -> tuple[list[str], Deviation | None]:
    """What is wrong with the outputs, and how far those of floats are from PyTorch's on random inputs."""
    problems: list[str] = []
    deviation: Deviation | None = None
    how, random = strictness(task.graph, plan.distribution), is_random(plan.distribution)
    for output in _outputs(task, plan, reference, case):
        result = compare(output.given, output.right, output.shape, output.dtype, output.tolerance, how)
        problems += _wrong(output, result, random=random)
        if random and output.dtype in FLOATS:
            seen = Deviation(result.largest, result.rms_ratio)
            deviation = seen.joined(deviation) if deviation else seen
    return problems, deviation


def _wrong(output: _Output, comparison: Comparison, *, random: bool) -> Iterator[str]:
    if not comparison.equal:
        yield words(comparison, output.index, output.shape, output.tolerance)
    elif random and comparison.rms_ratio > agreement_of(output.right, output.dtype):
        yield (
            Sentence(
                "Output {output} of shape {shape} is within the tolerance only because its values "
                "are small. It is {away} % away from PyTorch's (root mean square), most at {element}.",
                output=output.index,
                shape=list(output.shape),
                away=f"{100 * comparison.rms_ratio:.2g}",
                element=element_words(comparison.farthest) if comparison.farthest else "",
            )
        )
    elif random:
        part = parts.smallest_parts(output.given, output.right, output.shape, output.dtype, output.tolerance)
        if part is not None:
            yield parts.words(part, output.index, output.shape)


def _where(plan: CasePlan) -> Sentence:
    sizes = ", ".join(f"{name}={size}" for name, size in plan.sizes) or Sentence("the sizes of the file")
    return Sentence(
        "(with {sizes}; inputs: {distribution}, seed {seed})",
        sizes=sizes,
        distribution=plan.distribution,
        seed=plan.seed,
    )


def passed(hazards: tuple[Hazard, ...], deviation: Deviation | None) -> GateResult:
    """The gate's result of a kernel that computes what PyTorch does."""
    return GateResult(GateName.CORRECTNESS, GateStatus.PASSED, hazards=hazards, deviation=deviation)


def failed(code: str, feedback: str, hazards: tuple[Hazard, ...] = ()) -> GateResult:
    return GateResult(GateName.CORRECTNESS, GateStatus.FAILED, code, feedback, hazards=hazards)
