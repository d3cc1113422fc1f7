"""The file's own sizes and ones far beyond, too large to be run with all of their data: chosen slices are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from attrs import evolve, frozen

from evokernel_core import temporary
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateResult, GateStatus
from evokernel_core.hardware.roofline import op_name
from evokernel_core.verifier.base import Timing
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates.cases import (
    FULL_LIMIT,
    MIB,
    MODEST,
    RARELY,
    SEED_BITS,
    CasePlan,
    bytes_between,
    is_heavy,
    total_bytes,
    total_products,
)
from evokernel_core.verifier.gates.in_turn import runs
from evokernel_core.verifier.gates.mixture import MIXED, magnitudes
from evokernel_core.verifier.gates.one_case import CaseFolders, Judges, reference_of, run_case
from evokernel_core.verifier.gates.slices.choice import ChosenSlices, choose
from evokernel_core.verifier.gates.slices.independence import independent_symbols
from evokernel_core.verifier.gates.slices.rules import APART
from evokernel_core.verifier.gates.special_values import distributions_for

Shapes = tuple[tuple[tuple[str, int], ...], ...]
LIGHT_PRODUCTS = 10**9
"""Multiply-adds of a full size of which many slices always run."""
FARTHEST = 64
"""How many times its size in the file a symbol may have in the case far beyond it."""
NEAREST = 8
"""The same at least: up to there cases have all of their data."""
MANY_TURNS = 16 * MIB
"""Bytes of all tensors at which each core of 48 has a third tile in the unified buffer: the case has as many
where that is nearer than ``FARTHEST``."""
FAR_BYTES = 256 * MIB
"""Bytes of all tensors of the case far beyond the file's sizes, and half of what its nodes make."""
FAR_PRODUCTS = 2 * 10**8
FAR_CHOSEN = MIB
"""Bytes of the slices that are looked at there, beyond what one slice and the weights take."""


@frozen
class FullSize:
    """What was compared at the file's own sizes, in words, why that failed, and the launch's figures."""

    words: Sentence
    failed: GateResult | None = None
    timing: Timing | None = None


def at_full_size(task: KernelTask, judges: Judges, shapes: Shapes, *, thorough: bool) -> FullSize:
    """Compares at the file's own sizes where cases mostly have less, by their bytes or their products: all
    where a case of ``shapes`` has them, else chosen slices."""
    is_large = total_bytes(task, task.sizes) > FULL_LIMIT
    if not task.symbols or not (is_large or is_heavy(task, task.sizes)):
        return FullSize(Sentence())
    if tuple(task.sizes.items()) in shapes:
        return FullSize(Sentence("all of it"))
    choice = _choice(task, judges, few=not thorough and not _takes_many(task, judges.draw))
    if isinstance(choice, str):
        return FullSize(Sentence("not compared: {choice}", choice=choice))
    plan = CasePlan(tuple(task.sizes.items()), choice.seed, _distribution(task, judges.draw))
    return _compared(task, plan, choice, judges)


def far_beyond(task: KernelTask, judges: Judges) -> GateResult | None:
    """Why the kernel is wrong at a size far beyond the file's, which it may decline; None where it is right,
    or there is no such size that runs in a moment. Tasks without slices that are known to be computed apart
    are compared in whole, at sizes that take cores several turns."""
    sizes = far_sizes(task, judges.draw)
    if sizes is None:
        return _whole_beyond(task, judges)
    far = evolve(task, symbols=tuple(evolve(s, size=sizes[s.name]) for s in task.symbols))
    choice = _choice(far, judges, FAR_CHOSEN)
    if isinstance(choice, str):
        return _whole_beyond(task, judges)
    plan = CasePlan(tuple(far.sizes.items()), choice.seed, "normal", may_decline=True)
    return _compared(far, plan, choice, judges).failed


def _whole_beyond(task: KernelTask, judges: Judges) -> GateResult | None:
    """Why the kernel is wrong where one size is up to eight times the file's; None where the file's own sizes
    take as much as such a case may, or it is right."""
    numbers = judges.draw.numbers(f"whole beyond {task.task_id}")
    most = total_bytes(task, {symbol.name: symbol.minimum for symbol in task.symbols}) + MODEST
    for symbol in numbers.sample(task.symbols, len(task.symbols)):
        for times in (8, 6, 4, 3, 2.5, 2, 1.5):
            size = int(times * symbol.size) - numbers.randrange(symbol.size // 8 + 1)
            sizes = {**task.sizes, symbol.name: size}
            if total_bytes(task, sizes) <= most and not is_heavy(task, sizes):
                seed = numbers.getrandbits(SEED_BITS)
                plan = CasePlan(tuple(sizes.items()), seed, "normal", may_decline=True)
                return next((case.outcome for case in runs(task, (plan,), judges) if case.failed), None)
    return None


def _takes_many(task: KernelTask, draw: Draw) -> bool:
    """Whether a verification that need not be thorough looks at many slices of the full size: always where
    that takes about as long as timing it; where whole weights are multiplied by tiles that hold a chosen row,
    which takes seconds, in one draw of ``RARELY``, which no kernel can foresee, and else at a few."""
    is_light = total_products(task, task.sizes) <= LIGHT_PRODUCTS
    return is_light or draw.numbers(f"full size of {task.task_id}").randrange(RARELY) == 0


def _distribution(task: KernelTask, draw: Draw) -> str:
    """How the inputs of the chosen slices are drawn: mostly so that rows are of several kinds. NaN comes only
    where elements do not meet: a row in which they do would have nothing else, and shows nothing."""
    numbers = draw.numbers(f"distribution of {task.task_id}")
    is_apart = all(op_name(node.op) in APART for node in task.graph.nodes)
    odd = distributions_for(task.graph)[:1] if is_apart else ()
    others = (*(odd or (MIXED,)), numbers.choice(magnitudes(task, numbers)))
    return numbers.choice(("normal", MIXED, MIXED, *others))


def far_sizes(task: KernelTask, draw: Draw) -> Mapping[str, int] | None:
    """One size far beyond the file's, of a symbol that cuts the task into slices, as far as that is light."""
    numbers = draw.numbers(f"far beyond {task.task_id}")
    names = independent_symbols(task)
    if not names:
        return None
    name = numbers.choice(names)
    many = MANY_TURNS / max(total_bytes(task, task.sizes), 1)
    nearest = many if NEAREST < many < FARTHEST else NEAREST
    octaves = numbers.uniform(math.log2(nearest), math.log2(FARTHEST))
    while octaves > 1.0:
        sizes = {**task.sizes, name: int(task.sizes[name] * 2.0**octaves) + 1}
        if _is_light(task, sizes):
            return sizes
        octaves -= 1.0
    return None


def _is_light(task: KernelTask, sizes: Mapping[str, int]) -> bool:
    return (
        total_bytes(task, sizes) <= FAR_BYTES
        and bytes_between(task, sizes) <= 2 * FAR_BYTES
        and total_products(task, sizes) <= FAR_PRODUCTS
    )


def _choice(
    task: KernelTask, judges: Judges, enough: int = 0, *, few: bool = False
) -> ChosenSlices | Sentence:
    backend = judges.backend
    if total_bytes(task, task.sizes) > backend.author.device.memory_bytes:
        return Sentence("{chip} has less memory", chip=backend.author.device.name)
    if not backend.samples:
        return Sentence("{backend} runs no parts of tensors", backend=backend.name)
    return choose(task, judges.draw, enough, few=few)


def _compared(task: KernelTask, plan: CasePlan, choice: ChosenSlices, judges: Judges) -> FullSize:
    with temporary.folder("case") as name:
        folders = CaseFolders.made_in(Path(name))
        drawn = evolve(plan, sizes=choice.sizes)
        reference = reference_of(task, drawn, judges.reference, folders, False)
        if reference is None:
            return FullSize(
                Sentence("not compared: PyTorch does not run the task at {sizes}", sizes=dict(choice.sizes))
            )
        outcome, execution = run_case(task, plan, reference, judges, folders, choice)
    words = choice.words(task)
    if outcome is None or outcome.status is GateStatus.PASSED:
        return FullSize(words, timing=execution.timing)
    told = {"feedback": outcome.feedback, "what": words}
    at_size = Sentence("{feedback} Compared at full size: {what}.", **told)
    beyond = Sentence("{feedback} Compared beyond the sizes of the file: {what}.", **told)
    return FullSize(words, evolve(outcome, feedback=beyond if plan.may_decline else at_size))
