"""Which slices of a full size are looked at: as many as take a moment, where nobody can foresee."""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random

from attrs import frozen

from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.sentence import Sentence, joined
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE, TensorSpec
from evokernel_core.twin.run import Run, TensorPart
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates import cases
from evokernel_core.verifier.gates.slices.independence import independent_symbols

MIB = 1024**2
ENOUGH = 16 * MIB
"""Bytes of all chosen slices, beyond what one slice and the weights take."""
MOST = 160 * MIB
"""Bytes of the least that can be chosen: one slice and the weights."""
MOST_PRODUCTS = 2 * 10**8
MOST_BETWEEN = 64 * MIB
PLACES = 64
"""Runs of neighbouring slices along the outermost dimension that slices are chosen along."""
INNER_PLACES = (8, 1)
"""The same along each other one: as many places as leave room for the most slices."""
TOUCHED = 128 * MIB
"""Bytes that a kernel computes with where tiles of ``TILE`` bytes hold a chosen one."""
TILE = 8192
FEW_PLACES, NEIGHBOURS = 2, 16
"""Where a tile that holds a chosen slice takes long: places along the outermost dimension, and the neighbours
along each one."""
SEVERAL = 4
"""Places of which two may be known to everybody."""
SEED_BITS = 31


@frozen
class ChosenSlices:
    """Slices of a full size: by symbol the runs of indices that are looked at, and how inputs are drawn."""

    runs: tuple[tuple[str, tuple[Run, ...]], ...]
    sizes: tuple[tuple[str, int], ...]
    """The task's symbols where only what is chosen is there."""
    seed: int

    def part(self, spec: TensorSpec, sizes: Mapping[str, int]) -> TensorPart:
        """What of a tensor is chosen."""
        known = dict(self.runs)
        shape = spec.sizes(sizes)
        runs = tuple(
            known[dim] if isinstance(dim, str) and dim in known else ((0, size),) if size else ()
            for dim, size in zip(spec.shape, shape, strict=True)
        )
        return TensorPart(ITEM_SIZE[spec.dtype], shape, runs)

    def words(self, task: KernelTask) -> Sentence:
        """What is looked at, for a verdict."""
        full, chosen = task.sizes, dict(self.sizes)
        places = [
            Sentence(
                "{name} {chosen} of {size} in {count} places",
                name=name,
                chosen=chosen[name],
                size=full[name],
                count=len(runs),
            )
            for name, runs in self.runs
        ]
        return Sentence("chosen slices ({places})", places=joined(places, by=", "))


def choose(task: KernelTask, draw: Draw, enough: int = 0, *, few: bool = False) -> ChosenSlices | Sentence:
    """The slices of a draw, or why there are none; ``enough``: other bytes of them than ``ENOUGH``, beyond
    the least. ``few``: a run or two of neighbours, which lie in a few tiles, all of them secret."""
    if any(operand.kind is not InputKind.SCALAR and _is_index(operand.spec) for operand in task.graph.inputs):
        return Sentence("inputs of integers may say where others are read")
    names = independent_symbols(task)
    if not names:
        return Sentence("no dimension is known to cut its tensors into parts that are computed apart")
    least = {s.name: s.minimum if s.name in names else s.size for s in task.symbols}
    if not _is_light(task, least, MOST):
        return Sentence("the least part that is computed apart takes too long")
    numbers = draw.numbers(f"slices of {task.task_id}")
    if few:
        return _choice(task, names, _run_of_neighbours(task, names, least), 1, numbers, FEW_PLACES)
    grown = [_grown(task, names, least, places, numbers, enough or ENOUGH) for places in INNER_PLACES]
    return max(grown, key=lambda choice: math.prod(size for _, size in choice.sizes))


def _run_of_neighbours(
    task: KernelTask, names: tuple[str, ...], least: Mapping[str, int]
) -> Mapping[str, int]:
    """Up to ``NEIGHBOURS`` slices along each symbol, the innermost first, as far as that is light."""
    sizes = dict(least)
    for name in reversed(names):
        grown = {**sizes, name: max(sizes[name], min(NEIGHBOURS, task.sizes[name]))}
        sizes = grown if _is_light(task, grown, MOST) else sizes
    return sizes


def _choice(
    task: KernelTask,
    names: tuple[str, ...],
    sizes: Mapping[str, int],
    inner: int,
    numbers: Random,
    places: int = PLACES,
) -> ChosenSlices:
    """So many slices, anywhere."""
    runs = tuple(
        (name, _runs(task.sizes[name], sizes[name], places if name == names[0] else inner, numbers))
        for name in names
    )
    return ChosenSlices(runs, tuple(sizes.items()), numbers.getrandbits(SEED_BITS))


def _touched(task: KernelTask, choice: ChosenSlices) -> int:
    """Bytes of the tiles that hold what is chosen."""
    inputs = (operand.spec for operand in task.graph.inputs if operand.kind is not InputKind.SCALAR)
    parts = [choice.part(spec, task.sizes) for spec in (*inputs, *task.graph.output_specs())]
    pieces = [(part.nbytes, *_pieces(part)) for part in parts]
    return sum(min(nbytes, chosen + TILE * count) for nbytes, count, chosen in pieces)


def _is_index(spec: TensorSpec) -> bool:
    return spec.dtype.startswith(("int", "uint"))


def _is_light(task: KernelTask, sizes: Mapping[str, int], limit: int) -> bool:
    return (
        cases.total_bytes(task, sizes) <= limit
        and cases.total_products(task, sizes) <= MOST_PRODUCTS
        and cases.bytes_between(task, sizes) <= max(limit, MOST_BETWEEN)
    )


def _pieces(part: TensorPart) -> tuple[int, int]:
    """How many runs of neighbouring bytes a part has, and their bytes."""
    count, inner = 1, part.item_size
    is_whole = True
    for size, runs in zip(reversed(part.sizes), reversed(part.runs), strict=True):
        chosen = sum(length for _, length in runs)
        count *= 1 if is_whole and chosen == size else len(runs) if is_whole else chosen
        is_whole = is_whole and chosen == size
        inner *= chosen
    return count, inner


def _grown(
    task: KernelTask,
    names: tuple[str, ...],
    least: Mapping[str, int],
    inner: int,
    numbers: Random,
    enough: int,
) -> ChosenSlices:
    """As many slices as take a moment: first enough places along each symbol, ``inner`` along all but the
    outermost, then whatever there is room for, the innermost first, whose neighbours lie side by side."""
    choice = _choice(task, names, least, inner, numbers)
    most_chosen = cases.total_bytes(task, least) + enough
    most_touched = max(TOUCHED, 3 * _touched(task, choice) // 2)
    wanted = [(name, PLACES if name == names[0] else inner) for name in names]
    for name, most in (*wanted, *((name, task.sizes[name]) for name in reversed(names))):
        sizes = dict(choice.sizes)
        while sizes[name] < min(most, task.sizes[name]):
            sizes[name] = min(2 * sizes[name], most, task.sizes[name])
            larger = _choice(task, names, sizes, inner, numbers)
            if not _is_light(task, sizes, most_chosen) or _touched(task, larger) > most_touched:
                break
            choice = larger
    return choice


def _runs(size: int, count: int, places: int, numbers: Random) -> tuple[Run, ...]:
    """``count`` of ``size`` indices in up to so many places: one run anywhere in each equal stretch, and
    where there are several, the first and the last indices. Where runs have neighbours, one in the middle has
    half of all indices: a core computes several tiles of it, one behind the other."""
    if count >= size:
        return ((0, size),)
    places = min(places, count)
    long = count // 2 if places >= SEVERAL and count >= 2 * places else 0
    long = max(min(long, size // places - count // places - 1), 0)
    short = count - long
    lengths = [short // places + (place < short % places) for place in range(places)]
    if long:
        lengths[numbers.randrange(1, places - 1)] += long
    runs: list[Run] = []
    for place, length in enumerate(lengths):
        begin, end = size * place // places, size * (place + 1) // places
        first = begin + numbers.randrange(max(end - begin - length, 0) + 1)
        if places >= SEVERAL and place in (0, places - 1):
            first = 0 if place == 0 else size - length
        runs.append((first, length))
    return tuple(runs)
