"""What a kernel is run with: sizes, seeds and distributions that leave a wrong one nowhere to hide."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from attrs import frozen

from evokernel_core.capture.reference import SPECIAL
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask, Symbol
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus
from evokernel_core.hardware.products import multiply_adds
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates.mixture import (
    LARGEST_WHOLE,
    MILD,
    MIXED,
    ORDERS,
    PEAKS,
    ROUND,
    SHAPED,
    WIDE,
    even_size,
    magnitudes,
)
from evokernel_core.verifier.gates.special_values import MOVES, distributions_for

MIB = 1024**2
FULL_LIMIT = 64 * MIB
"""Bytes up to which the sizes in the user's file are run too, where the task is generic in sizes."""
RUN_LIMIT = 512 * MIB
"""Bytes beyond which nothing is run."""
SPECIAL_LIMIT = 16 * MIB
"""Bytes up to which a task of fixed sizes is also run with NaN or infinities."""
RARELY = 8
LARGE = 8 * MIB
"""Bytes of the largest case where the sizes in the user's file are beyond that limit, on top of what
the least sizes take: weights of fixed size must not leave room for a single row only."""
WHOLE_ROWS = 12 * MIB
"""The same where all sizes but one are those in the user's file."""
MODEST = MIB
"""Bytes of a case that is there for its odd sizes, on top of what the least sizes take."""
BEYOND = 2 * MIB
"""The same for one of sizes beyond those in the user's file."""
LIGHT = 4 * MIB
"""Bytes up to which the file's own sizes are run with several distributions."""
MOST_PRODUCTS = 10**9
"""Multiply-adds of one case: the twin checks some hundred million a second."""
MOST_BETWEEN = 128 * MIB
"""The most ``bytes_between`` of one case."""
REPEAT_LIMIT = MIB // 4
"""Bytes up to which most cases are run twice to see whether outputs are the same; the first one always is."""

SMALL = (3, 17, 5, 7, 11, 13)
POWERS = (2, 4, 8, 16, 32, 64)
SHORT = (1, 2, 3, 4, 6, 8, 9, 12, 15, 16, 24, 31, 32, 33, 48, 63)
"""Sizes of a side that is shorter than a vector or a tile."""
MULTIPLES = (48, 48, 80, 96, 112)
"""Of 16, and no powers of two."""
SHORT_OTHERS = (2, 5)
"""Sizes of the other sides where one is long."""
LONG_LIMIT = 2 * MIB
"""Bytes that such a case may take on top of what the least sizes take."""
MOST_BATCHED = 4096
"""Rows of batched products that it may have."""
OCTAVES = 3
"""How many powers of two below a size in the file are drawn."""
SEED_BITS = 31
OFTEN_NORMAL = ("normal", "normal", "normal", MIXED)
"""The same where inputs are large: values of all magnitudes take longer, to draw and in wider types."""
OFTEN_LARGER = 3
"""In one of so many draws all sizes are beyond the file's, else one of them is."""


@frozen
class CasePlan:
    """One run: a binding of the symbols, how inputs are drawn, and how often it runs. A kernel
    ``may_decline`` sizes beyond those in the user's file, where the original code then runs."""

    sizes: tuple[tuple[str, int], ...]
    seed: int
    distribution: str
    repeat: int = 1
    may_decline: bool = False


class Unverifiable(Exception):
    """The task cannot be run at any size; carries the gate's result."""

    def __init__(self, template: str, /, **values: object) -> None:
        feedback = Sentence(template, **values)
        super().__init__(feedback)
        self.result = GateResult(GateName.CORRECTNESS, GateStatus.FAILED, "unverifiable", feedback)


def tensor_bytes(task: KernelTask, sizes: Mapping[str, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Bytes of each tensor or parameter input and of each output."""
    inputs = (operand for operand in task.graph.inputs if operand.kind is not InputKind.SCALAR)
    specs = task.graph.output_specs()
    return tuple(i.spec.nbytes(sizes) for i in inputs), tuple(spec.nbytes(sizes) for spec in specs)


def total_bytes(task: KernelTask, sizes: Mapping[str, int]) -> int:
    """Bytes of all tensors of a run."""
    inputs, outputs = tensor_bytes(task, sizes)
    return sum(inputs) + sum(outputs)


def plan_cases(task: KernelTask, draw: Draw, *, thorough: bool = False) -> tuple[CasePlan, ...]:
    """The runs of the correctness gate, cheapest first: sizes, seeds and distributions are those of the draw.

    Where the sizes in the user's file are beyond ``FULL_LIMIT`` they are run with data too as long as the
    twin can at all: always with ``thorough``, else in one draw of ``RARELY``, which no kernel can foresee.
    Raises Unverifiable."""
    least = total_bytes(task, {symbol.name: symbol.minimum for symbol in task.symbols})
    if least > RUN_LIMIT:
        raise Unverifiable(
            "The kernel cannot be run here: its least size takes {least} MiB and the limit is "
            "{most} MiB; capture the model with smaller inputs.",
            least=f"{least / MIB:.0f}",
            most=RUN_LIMIT // MIB,
        )
    numbers = draw.numbers(f"cases of {task.task_id}")
    if not task.symbols:
        return tuple(_pinned_cases(task, numbers))
    whole = (numbers.randrange(RARELY) == 0 or thorough) and _is_runnable(task)
    return tuple(_generic_cases(task, numbers, whole=whole))


def _is_runnable(task: KernelTask) -> bool:
    """Whether a task beyond ``FULL_LIMIT`` can be run with data in a minute."""
    sizes = task.sizes
    fits = FULL_LIMIT < total_bytes(task, sizes) <= RUN_LIMIT
    return (
        fits and total_products(task, sizes) <= MOST_PRODUCTS and bytes_between(task, sizes) <= 2 * RUN_LIMIT
    )


def _pinned_cases(task: KernelTask, numbers: Random) -> Iterator[CasePlan]:
    """A task with fixed sizes: what changes is the data."""
    total = total_bytes(task, {})
    sizes_of_values = magnitudes(task, numbers)
    numbers.shuffle(sizes_of_values)
    shaped, plain = numbers.choice(_shaped(task)), numbers.choice((*WIDE, *MILD))
    distributions = ["normal", MIXED, *sizes_of_values, numbers.choice((shaped, plain))]
    distributions += [PEAKS] * _orders(task)
    if total > FULL_LIMIT:
        distributions = distributions[:2]
    elif total > FULL_LIMIT // 4:
        distributions = distributions[:3]
    special = distributions_for(task.graph)
    if special and total <= SPECIAL_LIMIT:
        distributions.append(numbers.choice(special))
    for number, distribution in enumerate(distributions):
        yield CasePlan((), numbers.getrandbits(SEED_BITS), distribution, 2 if number == 0 else 1)


def _orders(task: KernelTask) -> bool:
    """Whether largest or least elements are looked for, so that one that is left out seldom shows."""
    return any(node.op.split(".")[1] in ORDERS for node in task.graph.nodes)


def _shaped(task: KernelTask) -> tuple[str, ...]:
    """The structured distributions; numbers that are none too where elements only change places, which every
    one of them survives."""
    moves = all(node.op.split(".")[1] in MOVES for node in task.graph.nodes)
    return (SPECIAL,) if moves else SHAPED


def _generic_cases(task: KernelTask, numbers: Random, *, whole: bool) -> Iterator[CasePlan]:
    seen: set[tuple[tuple[tuple[str, int], ...], str]] = set()
    for sizes, distribution in _bindings(task, numbers, whole=whole):
        key = tuple(sizes.items())
        if (key, distribution) not in seen:
            again = total_bytes(task, sizes) <= REPEAT_LIMIT and numbers.randrange(3) > 0
            repeat = 2 if not seen or again else 1
            seen.add((key, distribution))
            beyond = any(sizes[symbol.name] > max(symbol.size, *SMALL) for symbol in task.symbols)
            yield CasePlan(key, numbers.getrandbits(SEED_BITS), distribution, repeat, beyond)


def _bindings(task: KernelTask, numbers: Random, *, whole: bool) -> Iterator[tuple[dict[str, int], str]]:
    """Least sizes, small ones, powers of two, even ones or one short side, sizes that people write, odd sizes
    of many tiles, one long side, sizes beyond the file's, and the file's own sizes, or where those do not fit
    as much of them as does. Which of them is tiny, large, far from 0, shaped or wide is drawn too; the file's
    own sizes, or some rows of them, are tiny and large in every draw, since what long rows alone pass through
    is not in the others."""
    symbols = task.symbols
    odd = {symbol.name: _odd(symbol, numbers) for symbol in symbols}
    least = {symbol.name: symbol.minimum for symbol in symbols}
    of_values = [*magnitudes(task, numbers), numbers.choice(_shaped(task)), numbers.choice(WIDE)]
    numbers.shuffle(of_values)
    yield least, "uniform"
    tiny = numbers.sample(numbers.choice((SMALL, SMALL, POWERS)), len(SMALL))
    small = {s.name: max(tiny[i % len(tiny)], s.minimum) for i, s in enumerate(symbols)}
    yield _bounded(task, shrink(task, small, MODEST)), of_values.pop()
    even = _fitting(task, numbers, REPEAT_LIMIT)
    powers = _powers(task, numbers)
    uneven = numbers.choice((powers, powers, _one_short(task, odd, numbers), even, even))
    yield (
        (even if uneven is even else _bounded(task, shrink(task, uneven, REPEAT_LIMIT // 2))),
        of_values.pop(),
    )
    yield _round(task, numbers), of_values.pop()
    yield _bounded(task, shrink(task, odd, MODEST)), of_values.pop()
    if _orders(task):
        yield _bounded(task, shrink(task, odd, MODEST)), PEAKS
    long = max(symbols, key=lambda symbol: symbol.size * numbers.choice((1, 1, 8))).name
    one_long = {s.name: odd[s.name] if s.name == long else _short(s, numbers) for s in symbols}
    yield _bounded(task, shrink(task, one_long, MODEST)), of_values.pop()
    yield _beyond(task, numbers), MIXED
    for sizes in _each_apart(task, numbers):
        yield sizes, "normal"
    total = total_bytes(task, task.sizes)
    for special in distributions_for(task.graph):
        if total <= SPECIAL_LIMIT and numbers.randrange(2 if total <= LIGHT else RARELY) == 0:
            yield _of_file(task), special
        else:
            yield _bounded(task, shrink(task, numbers.choice((uneven, odd)), MODEST // 8)), special
    if total <= LIGHT:
        yield _of_file(task), MIXED
    for extreme in magnitudes(task, numbers)[:2]:
        yield _of_file(task) if total <= MODEST else _largest(task, numbers, MODEST), extreme
    ordinary = ("normal", "normal", numbers.choice(magnitudes(task, numbers)))
    how = numbers.choice(ordinary if total <= LIGHT else OFTEN_NORMAL)
    yield _of_file(task) if total <= FULL_LIMIT else _largest(task, numbers), how
    if whole:
        yield task.sizes, numbers.choice(OFTEN_NORMAL)


def _fitting(task: KernelTask, numbers: Random, limit: int) -> dict[str, int]:
    """Even sizes that are no powers of two, of many tiles where ``limit`` bytes on top of the least sizes
    leave room."""
    least = {symbol.name: symbol.minimum for symbol in task.symbols}
    most = total_bytes(task, least) + limit
    ends = task.sizes
    while True:
        sizes = {symbol.name: even_size(symbol, ends[symbol.name], numbers) for symbol in task.symbols}
        if total_bytes(task, sizes) <= most and not is_heavy(task, sizes):
            return sizes
        largest = max(ends, key=lambda name: ends[name] - least[name])
        if ends[largest] <= max(least[largest], 1):
            return sizes
        ends = {**ends, largest: max(ends[largest] // 2, least[largest])}


def _round(task: KernelTask, numbers: Random) -> dict[str, int]:
    """All sizes as people write them, where that is light; else one of them and small ones."""
    sizes = {symbol.name: max(ROUND, symbol.minimum) for symbol in task.symbols}
    if _is_light(task, sizes):
        return sizes
    given = numbers.choice(task.symbols).name
    small = {s.name: max(numbers.choice(SMALL), s.minimum) for s in task.symbols}
    return _bounded(task, shrink(task, {**small, given: sizes[given]}, MODEST))


def _one_short(task: KernelTask, sizes: Mapping[str, int], numbers: Random) -> dict[str, int]:
    symbol = numbers.choice(task.symbols)
    return {**sizes, symbol.name: _short(symbol, numbers)}


def _short(symbol: Symbol, numbers: Random) -> int:
    return max(numbers.choice(SHORT), symbol.minimum)


def _powers(task: KernelTask, numbers: Random) -> dict[str, int]:
    """Powers of two in each dimension, at most what it has in the file where the symbol may be so small."""
    result = {}
    for symbol in task.symbols:
        least = (symbol.minimum - 1).bit_length()
        most = max(symbol.size.bit_length() - 1, least)
        result[symbol.name] = 2 ** max(most - numbers.randrange(OCTAVES), least)
    return result


def _beyond(task: KernelTask, numbers: Random) -> dict[str, int]:
    """All sizes somewhat larger than they are in the user's file, or one up to eight times, with the others
    as they are there or small: a kernel that is generic in sizes is called with any of them. As far as that
    takes a moment."""
    if numbers.randrange(OFTEN_LARGER) == 0:
        larger = _all_beyond(task, numbers)
        if larger is not None:
            return larger
    symbol = numbers.choice(task.symbols)
    octaves = numbers.uniform(0.0, 3.0)
    small = {other.name: max(numbers.choice(SMALL), other.minimum) for other in task.symbols}
    for others in (task.sizes, small):
        for share in (1.0, 0.5, 0.25, 0.125):
            sizes = {**others, symbol.name: int(symbol.size * 2.0 ** (octaves * share)) + 1}
            if _is_light(task, sizes):
                return sizes
    return _bounded(task, shrink(task, task.sizes, MODEST))


def _each_apart(task: KernelTask, numbers: Random) -> Iterator[dict[str, int]]:
    """Each size by up to an octave beyond the file's, and a multiple of 16 that is no power of two, with the
    others as they are there: a condition on one size shows only where the others fill their tiles. Where
    that takes a fraction of a second."""
    for symbol in task.symbols if len(task.symbols) > 1 else ():
        for size in (int(symbol.size * 2.0 ** numbers.random()) + 1, numbers.choice(MULTIPLES)):
            sizes = {**task.sizes, symbol.name: max(size, symbol.minimum)}
            if _is_light(task, sizes, BEYOND // 4, 16):
                yield sizes


def _all_beyond(task: KernelTask, numbers: Random) -> dict[str, int] | None:
    """All sizes beyond the file's by up to an octave together, None where the file's own take long."""
    if total_bytes(task, task.sizes) > LARGEST_WHOLE:
        return None
    octaves = [numbers.random() for _ in task.symbols]
    for share in (1.0, 0.5, 0.25, 0.0):
        together = share / max(sum(octaves), 1.0)
        sizes = {
            symbol.name: int(symbol.size * 2.0 ** (part * together)) + 1
            for symbol, part in zip(task.symbols, octaves, strict=True)
        }
        most = max(2 * total_bytes(task, task.sizes), BEYOND)
        if total_bytes(task, sizes) <= most and not is_heavy(task, sizes):
            return sizes
    return None


def _is_light(task: KernelTask, sizes: Mapping[str, int], nbytes: int = BEYOND, products_of: int = 4) -> bool:
    """Whether a case takes up to so many bytes more than the least sizes, and one of so many parts of the
    most multiply-adds."""
    least = total_bytes(task, {symbol.name: symbol.minimum for symbol in task.symbols})
    return (
        total_bytes(task, sizes) <= least + nbytes
        and total_products(task, sizes) <= MOST_PRODUCTS // products_of
        and bytes_between(task, sizes) <= MOST_BETWEEN // 4
    )


def _largest(task: KernelTask, numbers: Random, limit: int = WHOLE_ROWS) -> dict[str, int]:
    """The file's sizes with one of them, mostly the outermost, cut down until they take ``limit`` bytes more
    than the least ones, by default so many that the twin runs them in seconds; only where that is not enough
    the others give way. Rows are as long as at full size and tiles as large, so
    that what is compared is what is timed, and a kernel that does less from some size on is seen in either.
    """
    given = numbers.choice((task.symbols[0], task.symbols[0], numbers.choice(task.symbols)))
    share = numbers.uniform(0.75, 1.0)
    least = total_bytes(task, {symbol.name: symbol.minimum for symbol in task.symbols})
    size = given.size
    while size > max(given.minimum, 1):
        size = max(given.minimum, size // 2)
        sizes = {**task.sizes, given.name: max(given.minimum, int(size * share))}
        if total_bytes(task, sizes) <= least + limit and not is_heavy(task, sizes):
            return sizes
    return _bounded(task, shrink(task, task.sizes, int(min(LARGE, limit) * share)))


def _of_file(task: KernelTask) -> dict[str, int]:
    """The file's sizes, or of those that take long less than elsewhere: slices of all of them follow."""
    return _bounded(task, task.sizes, MOST_PRODUCTS // (2 if is_heavy(task, task.sizes) else 1))


def _bounded(task: KernelTask, sizes: dict[str, int], most: int = MOST_PRODUCTS) -> dict[str, int]:
    """The sizes, cut down to what the twin runs in seconds and holds in memory."""
    least = total_bytes(task, {symbol.name: symbol.minimum for symbol in task.symbols})
    while is_heavy(task, sizes, most):
        smaller = shrink(task, sizes, (total_bytes(task, sizes) - least) // 2)
        if smaller == sizes:
            break
        sizes = smaller
    return sizes


def is_heavy(task: KernelTask, sizes: Mapping[str, int], most: int = MOST_PRODUCTS) -> bool:
    """Whether a case takes more than the twin does in seconds."""
    if total_products(task, sizes) > most:
        return True
    return bytes_between(task, sizes) > MOST_BETWEEN


def bytes_between(task: KernelTask, sizes: Mapping[str, int]) -> int:
    """Bytes of all values that the nodes of a graph make in a run."""
    return sum(spec.nbytes(sizes) for node in task.graph.nodes for spec in node.outputs)


_PUTS = ("aten.index_put.", "aten.index_add.", "aten.index_copy.", "aten.scatter")
"""Operations that copy a tensor, into which they put values where indices say so."""


def bytes_put(task: KernelTask, sizes: Mapping[str, int]) -> int:
    """The same where what is put into a copy counts, and not the copy: a kernel that looks at all indices
    has as much to do however large the tensor is; 0 where nothing is put."""
    total, puts = 0, False
    for node in task.graph.nodes:
        if node.op.startswith(_PUTS):
            puts = True
            first = next(node.operands(), None)
            total += sum(task.graph.spec(ref).nbytes(sizes) for ref in node.operands() if ref != first)
        else:
            total += sum(spec.nbytes(sizes) for spec in node.outputs)
    return total if puts else 0


def total_products(task: KernelTask, sizes: Mapping[str, int]) -> int:
    """Multiply-adds of all matrix products and convolutions of a run."""
    return sum(multiply_adds(node, task.graph, sizes) for node in task.graph.nodes)


def long_sizes(
    task: KernelTask, name: str, size: int, others: Sequence[int], *, batched: int = MOST_BATCHED
) -> dict[str, int] | None:
    """A binding in which one symbol is so long, and the others are as short as the first of ``others`` with
    which that is light; None where it is with none."""
    least = {symbol.name: symbol.minimum for symbol in task.symbols}
    for other in others:
        sizes = {**{known: max(minimum, other) for known, minimum in least.items()}, name: size}
        is_small = total_bytes(task, sizes) <= total_bytes(task, least) + LONG_LIMIT
        if is_small and not is_heavy(task, sizes) and _batched_rows(task, sizes) <= batched:
            return sizes
    return None


def _batched_rows(task: KernelTask, sizes: Mapping[str, int]) -> int:
    """Rows of the largest output of batched products, whose cores hand them over one by one."""
    if not total_products(task, sizes):
        return 0
    shapes = (spec.sizes(sizes) for spec in task.graph.output_specs())
    return max((math.prod(shape[:-1]) for shape in shapes if len(shape) > 2), default=0)


def _odd(symbol: Symbol, numbers: Random) -> int:
    """An odd number somewhat below the size in the file: its last tile is cut short."""
    size = symbol.size - numbers.randrange(symbol.size // 8 + 1)
    return max(size - 1 + size % 2, symbol.minimum)


def shrink(task: KernelTask, sizes: Mapping[str, int], limit: int) -> dict[str, int]:
    """Halves the largest symbol, odd sizes staying odd, until all tensors take at most ``limit`` bytes
    more than at the least sizes."""
    least = {symbol.name: symbol.minimum for symbol in task.symbols}
    most = total_bytes(task, least) + limit
    result = dict(sizes)
    while total_bytes(task, result) > most:
        largest = max(result, key=lambda name: result[name] - least[name])
        if result[largest] <= least[largest]:
            return result
        halved = result[largest] // 2
        result[largest] = max(halved | 1 if result[largest] % 2 and halved > 1 else halved, least[largest])
    return result
