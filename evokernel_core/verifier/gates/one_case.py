"""One case of the correctness gate: PyTorch's result, the candidate's run, and what differs."""

from __future__ import annotations

import filecmp
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from evokernel_core.capture.reference import base_of
from evokernel_core.domain.errors import AgentFailed, CaptureError, InterpreterUnavailable, VerifierError
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.sentence import Sentence, joined
from evokernel_core.domain.task import KernelTask, Tolerance, tolerance_for
from evokernel_core.domain.verdict import (
    NUMERIC,
    Deviation,
    DrawnCase,
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
from evokernel_core.verifier.gates.compare import (
    AGREEMENT,
    FLOATS,
    OWN_ROUNDING,
    Comparison,
    Expected,
    compare,
    element_words,
    largest_rounding,
    mean_magnitude,
    own_rounding,
    words,
)
from evokernel_core.verifier.gates.parts import FLOOR
from evokernel_core.verifier.gates.slices.choice import ChosenSlices
from evokernel_core.verifier.gates.special_values import strictness
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


@frozen
class CaseFolders:
    """Where a case's files lie: PyTorch's own apart from what the run reads and writes. Cases that
    run in turn share the folders of the latter two, where ``number`` begins the names of their files."""

    reference: Path
    inputs: Path
    outputs: Path
    number: str = ""

    @classmethod
    def made_in(cls, folder: Path) -> CaseFolders:
        """The folders of a case of its own. Raises OSError."""
        made = cls(folder / "reference", folder / "inputs", folder / "outputs")
        made.inputs.mkdir()
        made.outputs.mkdir()
        return made

    def of(self, number: int) -> CaseFolders:
        """Those of one of several cases."""
        return evolve(self, reference=self.reference.with_name(str(number)), number=f"{number}-")


def reference_of(
    task: KernelTask, plan: CasePlan, runner: ReferenceRunner, folders: CaseFolders, is_last_chance: bool
) -> ReferenceCase | None:
    """The case's inputs and outputs; None for sizes that the graph itself does not accept."""
    try:
        return _computed(task, plan, runner, folders.reference)
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
    folders: CaseFolders,
    choice: ChosenSlices | None = None,
) -> tuple[GateResult | None, Execution]:
    """The result of one case, None where the kernel may and does decline its sizes, and the run. The
    reference is that of the chosen slices where there is a choice."""
    case = case_of(task, plan, reference, folders, choice)
    execution = judges.backend.execute(judges.built, case)
    return judged(task, plan, reference, judges, folders, (case, execution), choice), execution


def judged(
    task: KernelTask,
    plan: CasePlan,
    reference: ReferenceCase,
    judges: Judges,
    folders: CaseFolders,
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
        rounded = _rounded(task, compared, reference, judges.reference, folders.reference / "rounded")
        problems, deviation = _differences(task, compared, rounded, case)
    if problems:
        return failed(NUMERIC, joined(problems), execution.hazards, plan)
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
    folders: CaseFolders,
    choice: ChosenSlices | None = None,
) -> Case:
    """The candidate's view: inputs in a folder without the reference's outputs."""
    number = folders.number
    inputs = tuple(link(path, folders.inputs / f"{number}{i}.bin") for i, path in enumerate(reference.inputs))
    sizes = dict(plan.sizes)
    _, output_bytes = tensor_bytes(task, sizes)
    tensors = [operand.spec for operand in task.graph.inputs if operand.kind is not InputKind.SCALAR]
    outputs = task.graph.output_specs()
    return Case(
        sizes=tuple(size for _, size in plan.sizes),
        scalars=reference.scalars,
        inputs=inputs,
        outputs=tuple(folders.outputs / f"{number}{i}.bin" for i in range(len(output_bytes))),
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
        return failed(errors[0].code, _hazard_words(errors), execution.hazards, plan)
    if execution.status is not RunStatus.OK:
        return failed(str(execution.status), execution.message, execution.hazards, plan)
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
    elif random and _is_apart(comparison, output):
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


def _is_apart(comparison: Comparison, output: _Output) -> bool:
    """Whether the mean difference is more than rounding: most are below what is always taken for that."""
    away = comparison.rms_ratio
    return away > AGREEMENT.get(output.dtype, 0.0) and away > agreement_of(output.right, output.dtype)


def passed(hazards: tuple[Hazard, ...], deviation: Deviation | None) -> GateResult:
    """The gate's result of a kernel that computes what PyTorch does."""
    return GateResult(GateName.CORRECTNESS, GateStatus.PASSED, hazards=hazards, deviation=deviation)


def failed(
    code: str, feedback: str, hazards: tuple[Hazard, ...] = (), plan: CasePlan | None = None
) -> GateResult:
    """The gate's result of a kernel that fails, at a case where one ran."""
    case = DrawnCase(plan.sizes, plan.distribution, plan.seed) if plan else None
    return GateResult(GateName.CORRECTNESS, GateStatus.FAILED, code, feedback, hazards=hazards, case=case)


_LONG_SUMS = frozenset(
    f"aten.{name}"
    for name in (
        "mm.default", "bmm.default", "convolution.default", "scaled_dot_product_attention.default",
        "cumsum.default", "sum.default", "sum.dim_IntList", "mean.default", "mean.dim",
        "var.correction", "var_mean.correction", "linalg_vector_norm.default", "native_layer_norm.default",
    )
)  # fmt: skip

_RESIZED = frozenset(
    f"aten.{name}.default"
    for name in (
        "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
        "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa",
    )
)  # fmt: skip
"""Sums of a few terms whose weights are differences of places, rounded as those are."""


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
    if dtype not in FLOATS or not table.rtol:
        return table
    sums = any(node.op in _LONG_SUMS for node in task.graph.nodes)
    scale = mean_magnitude(expected.precise or expected.eager, dtype)
    is_known = is_random and expected.precise is not None
    least = table.atol * (min(1.0, scale) if is_known else 1.0) * (max(1.0, scale) if sums else 1.0)
    if sums:
        most = max(least, largest_rounding(expected, dtype, table.rtol), FLOOR.get(dtype, 0.0))
        return evolve(table, atol=most)
    if not is_known:
        return evolve(table, atol=least)
    least = max(least, FLOOR.get(dtype, 0.0))
    own = least + 2 * OWN_ROUNDING * own_rounding(expected, dtype)
    if any(node.op in _RESIZED for node in task.graph.nodes):
        # Terms of all sizes cancel in some elements: what rounds most is no matter of the mean.
        own = max(own, largest_rounding(expected, dtype, table.rtol))
    return evolve(table, atol=own)


def agreement_of(expected: Expected, dtype: str) -> float:
    """The relative root-mean-square difference that is taken for rounding: the product's own for the dtype,
    or a few times that of PyTorch's result where rounding on the way weighs more."""
    if dtype not in FLOATS:
        return 0.0
    scale = mean_magnitude(expected.precise or expected.eager, dtype)
    own = OWN_ROUNDING * own_rounding(expected, dtype) / scale if scale else 0.0
    return max(AGREEMENT[dtype], own)


RANDOM = frozenset(
    """normal uniform wide ties signs scales sorted large mixed alike columns peaks zeros""".split()  # noqa: SIM905
)
"""Distributions of random values; on others the true output may be nothing but rounding noise."""


def is_random(distribution: str) -> bool:
    """Whether values are random, whatever their magnitude."""
    return base_of(distribution) in RANDOM
