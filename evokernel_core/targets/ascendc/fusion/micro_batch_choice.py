"""When a program takes its images in chunks, with which kernels, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from attrs import evolve, frozen

from evokernel_core.compiler.family import Family
from evokernel_core.compiler.fusion.program import CHUNKS, CUT, draft, joined
from evokernel_core.compiler.fusion.records import Program, Stage
from evokernel_core.domain.errors import PlanError, StrategyError
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.fusion.launches import MOST_TOGETHER
from evokernel_core.targets.ascendc.fusion.micro_batches import (
    Batch,
    Chunked,
    batch_of,
    chunks_worth,
    groups_of,
    of_chunk,
    unshared,
)
from evokernel_core.targets.ascendc.kernels.family import Cores, KernelFacts

Facts = Callable[[Program, Sequence[Strategy]], Sequence[KernelFacts]]
"""What the kernels of a program are, with a strategy for each."""
_PART_US = 1.5
"""What a part of a launch costs beside its work: its buffers, first copies and the way to its last ones."""


@frozen
class Cut:
    """About how many ``chunks`` images come in, and how many ``stages`` that depend on them take chunks; no
    chunks: all at once."""

    chunks: int = 0
    stages: int = 0

    @staticmethod
    def of(strategy: Strategy) -> Cut:
        """Raises StrategyError where they are no numbers."""
        numbers = [strategy.setting(name, 0) for name in (CHUNKS, CUT)]
        if not all(isinstance(number, int) and number >= 0 for number in numbers):
            raise StrategyError(
                "A program's strategy has {numbers} for its chunks; draft it anew.", numbers=numbers
            )
        return Cut(*map(int, numbers))


@lru_cache(maxsize=512)
def draft_apart(key: ById, family: Family, chip: Chip) -> Strategy:
    """The first strategy of a kernel in chunks: where its cores would all wait for each other, the best of
    the steps from it in which they do not, if there is one."""
    task, start = key.task, draft(key, family, chip)

    def waits(strategy: Strategy) -> bool:
        return bool(family.text(task, strategy, chip, "kernel").facts.waits_for_all)

    if not waits(start):
        return start
    apart = (move.strategy for move in family.moves(task, start, chip) if not waits(move.strategy))
    return min(apart, key=lambda item: family.estimate_us(task, item, chip), default=start)


def tasks_of(task: KernelTask, program: Program, cut: Cut) -> tuple[KernelTask, ...]:
    """The task of each kernel of a program, with the sizes that it has in a chunk."""
    batch = batch_of(task, program, cut.stages) if cut.chunks else None
    return tuple(
        of_chunk(part, batch, cut.chunks) if batch is not None and kind in batch.kinds else part
        for kind, (part, _) in enumerate(program.kinds)
    )


def chunked(task: KernelTask, program: Program, facts: Sequence[KernelFacts], cut: Cut) -> Chunked:
    """The program in chunks. Raises PlanError where it cannot be cut."""
    batch = batch_of(task, program, cut.stages)
    if batch is None or any(fact.waits_for_all for fact in facts) or len(program.stages) > MOST_TOGETHER:
        raise PlanError("The kernels do not take images in chunks; draft the program anew.")
    if not any(facts[kind].on_cube for kind in batch.kinds):
        raise PlanError("No cube core works on the images; draft the program anew.")
    return Chunked(task, unshared(task, program), tuple(facts), batch, cut.chunks)


def is_legal(task: KernelTask, program: Program, facts: Sequence[KernelFacts], cut: Cut) -> bool:
    """Whether kernels take images in chunks: some have all cores wait for each other, and a launch each."""
    try:
        chunked(task, program, facts, cut)
    except PlanError:
        return False
    return True


def in_chunks(task: KernelTask, program: Program, facts: Facts, chip: Chip) -> Iterator[Strategy]:
    """Programs whose first stages take images in as many chunks as L2 asks for, each kernel drafted for what
    it takes."""
    if len(program.stages) > MOST_TOGETHER:
        return
    wholes = tuple(draft_apart(ById(part), family, chip) for part, family in program.kinds)
    if any(fact.waits_for_all for fact in facts(program, wholes)):
        return  # what waits for all others at full size, whatever the step, does so for every size
    for stages in range(2, len(program.stages) + 1):
        batch = batch_of(task, program, stages)
        for chunks in chunks_worth(task, program, batch, chip) if batch is not None else ():
            yield from _in_chunks(task, program, facts, chip, Cut(chunks, stages))


def alike(task: KernelTask, program: Program, facts: Facts, chip: Chip, cut: Cut) -> Iterator[Strategy]:
    """The program with its images in as many chunks as ``cut`` has, else as many as L2 asks for, in as many
    kernels as take them so."""
    for stages in range(len(program.stages), 1, -1):
        batch = batch_of(task, program, stages)
        if batch is not None:
            for chunks in (cut.chunks,) if cut.chunks else chunks_worth(task, program, batch, chip):
                yield from _in_chunks(task, program, facts, chip, Cut(chunks, stages))
            return


def _in_chunks(task: KernelTask, program: Program, facts: Facts, chip: Chip, cut: Cut) -> Iterator[Strategy]:
    """The program with each kernel drafted for the chunks that it takes, where it may be cut so."""
    batch = batch_of(task, program, cut.stages)
    made = left_by_chunks(program, batch.kinds) if batch is not None else frozenset()
    near = {stage.kind for stage in program.stages if made & set(stage.piece.inputs)}
    chosen = tuple(
        draft_apart(ById(part), family, memory_in_l2(chip) if kind in near else chip)
        for kind, (part, (_, family)) in enumerate(
            zip(tasks_of(task, program, cut), program.kinds, strict=True)
        )
    )
    if is_legal(task, program, facts(program, chosen), cut):
        yield joined(task, program, chosen, "", chunks=cut.chunks, cut=cut.stages)


def left_by_chunks(program: Program, kinds: frozenset[int]) -> frozenset[ValueRef]:
    """The values that kernels of these kinds make of a chunk, which L2 holds when the next ones read them."""
    return frozenset(ref for stage in program.stages if stage.kind in kinds for ref in stage.piece.outputs)


def estimate_us(chunked: Chunked, chosen: Sequence[Strategy], chip: Chip) -> float:
    """Modelled microseconds: in each step cube cores have one chunk and vector cores behind them another."""
    program, batch = chunked.planned, chunked.batch
    launch = chip.launch_us
    barrier = 2 * chip.sync.sync_all_cycles / chip.mhz

    def cost(stage: Stage) -> float:
        return _alone_us(chunked, stage, chosen[stage.kind], chip) + _PART_US + barrier

    groups = groups_of(program, batch, [fact.on_cube for fact in chunked.facts])
    before, first, second, after = (sum(map(cost, stages)) for stages in groups)
    around = launch + _pushed_us(chunked, chip) + before + after
    steps = -(-batch.images // -(-batch.images // chunked.chunks))
    if any(chunked.facts[stage.kind].cores is Cores.BOTH for stage in groups[1]):
        return around + steps * (first + second)  # vector cores have a share of the first
    return around + steps * max(first, second) + min(first, second)


def _pushed_us(chunked: Chunked, chip: Chip) -> float:
    """Microseconds of what chunks leave for all images together: L2 takes it in once, not for each chunk
    anew, as the estimates of the kernels have it."""
    program, batch = chunked.planned, chunked.batch
    chunk = of_chunk(chunked.task, batch, chunked.chunks).sizes
    rings = chunked.rings()
    left = sum(
        stage.piece.task.graph.spec(ref).nbytes(chunk)
        for stage in program.stages
        if stage.kind in batch.kinds
        for ref, place in zip(stage.piece.task.graph.outputs, stage.outputs, strict=True)
        if not (place.in_workspace and place.index in rings)
    )
    pushed = max(0, (chunked.chunks * min(left, chip.l2_bytes)) - chip.l2_bytes)
    return pushed * chip.gm.write_back_cost / chip.gm.memory_bytes_us


def _alone_us(chunked: Chunked, stage: Stage, chosen: Strategy, chip: Chip) -> float:
    """Microseconds of a stage beside a launch; what it reads of a chunk's earlier stages is in L2."""
    part, family = chunked.planned.kinds[stage.kind]
    if stage.kind not in chunked.batch.kinds:
        return max(0.0, family.estimate_us(part, chosen, chip) - chip.launch_us)
    part = of_chunk(part, chunked.batch, chunked.chunks)
    chunk = of_chunk(chunked.task, chunked.batch, chunked.chunks).sizes
    made = left_by_chunks(chunked.planned, chunked.batch.kinds)
    if not made & set(stage.piece.inputs):
        return max(0.0, family.estimate_us(part, chosen, chip) - chip.launch_us)
    near = memory_in_l2(chip)
    far = sum(chunked.task.graph.spec(ref).nbytes(chunk) for ref in stage.piece.inputs if ref not in made)
    slower = far / chip.gm.memory_bytes_us - far / near.gm.memory_bytes_us
    return max(0.0, family.estimate_us(part, chosen, near) - chip.launch_us) + slower


@lru_cache(maxsize=8)
def memory_in_l2(chip: Chip) -> Chip:
    """The chip as kernels find it that read what lies in L2: all of memory as fast as that."""
    gm = evolve(chip.gm, hbm_achieved_gbps=chip.gm.l2_gbps, write_back_cost=1.0)
    mte = evolve(
        chip.mte,
        load_bytes_per_cycle=chip.mte.load_hit_bytes_per_cycle,
        load_latency_cycles=chip.mte.load_hit_latency_cycles,
    )
    return evolve(chip, gm=gm, mte=mte)


def steps(cut: Cut, batch: Batch) -> Iterator[tuple[str, Cut]]:
    """Other cuts, by name: chunks of about half and double as many images, and of a few more or fewer, among
    which the rows of a kernel may divide evenly among cores."""
    now = -(-batch.images // cut.chunks)
    for name, others in (
        (Sentence("fewer images in a chunk"), (now // 2, now * 3 // 4, now - 1)),
        (Sentence("more images in a chunk"), (now + 1, now * 5 // 4, now * 3 // 2, now * 2)),
    ):
        counts = {-(-batch.images // each) for each in others if each != now and 0 < each < batch.images}
        yield from ((name, Cut(count, cut.stages)) for count in sorted(counts) if count != cut.chunks)
