"""What a kernel is run with: sizes, seeds and distributions that leave a wrong one nowhere to hide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.task import KernelTask, Symbol
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus
from evokernel_core.twin.products import multiply_adds

MIB = 1024**2
FULL_LIMIT = 64 * MIB
"""Bytes up to which the sizes in the user's file are run too, where the task is generic in sizes."""
RUN_LIMIT = 512 * MIB
"""Bytes beyond which nothing is run."""
LARGE = 8 * MIB
"""Bytes of the largest case where the sizes in the user's file are beyond that limit, on top of what
the least sizes take: weights of fixed size must not leave room for a single row only."""
MODEST = MIB
"""Bytes of a case that is there for its odd sizes, on top of what the least sizes take."""
MOST_PRODUCTS = 10**9
"""Multiply-adds of one case: the twin checks some hundred million a second."""
MOST_BETWEEN = 128 * MIB
"""The most ``bytes_between`` of one case."""
REPEAT_LIMIT = MIB // 4
"""Bytes up to which a case is run twice to see whether its outputs are the same; the first one always is."""

SMALL = (3, 17, 5, 7, 11, 13)


@frozen
class CasePlan:
    """One run: a binding of the symbols, how inputs are drawn, and how often it runs."""

    sizes: tuple[tuple[str, int], ...]
    seed: int
    distribution: str
    repeat: int = 1


class Unverifiable(Exception):
    """The task cannot be run at any size; carries the gate's result."""

    def __init__(self, feedback: str) -> None:
        super().__init__(feedback)
        self.result = GateResult(GateName.CORRECTNESS, GateStatus.FAILED, "unverifiable", feedback)


def tensor_bytes(task: KernelTask, sizes: Mapping[str, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Bytes of each tensor or parameter input and of each output."""
    inputs = (item for item in task.graph.inputs if item.kind is not InputKind.SCALAR)
    specs = task.graph.output_specs()
    return tuple(i.spec.nbytes(sizes) for i in inputs), tuple(spec.nbytes(sizes) for spec in specs)


def total_bytes(task: KernelTask, sizes: Mapping[str, int]) -> int:
    """Bytes of all tensors of a run."""
    inputs, outputs = tensor_bytes(task, sizes)
    return sum(inputs) + sum(outputs)


def plan_cases(task: KernelTask) -> tuple[CasePlan, ...]:
    """The runs of the correctness gate, cheapest first. Raises Unverifiable."""
    least = total_bytes(task, {symbol.name: symbol.minimum for symbol in task.symbols})
    if least > RUN_LIMIT:
        raise Unverifiable(
            f"The kernel cannot be run here: its least size takes {least / MIB:.0f} MiB and the limit is "
            f"{RUN_LIMIT // MIB} MiB; capture the model with smaller inputs."
        )
    return tuple(_generic_cases(task) if task.symbols else _pinned_cases(task))


def _pinned_cases(task: KernelTask) -> Iterator[CasePlan]:
    """A task with fixed sizes: what changes is the data."""
    total = total_bytes(task, {})
    distributions = ["normal", "wide", "structured", "uniform", "normal"]
    if total > FULL_LIMIT:
        distributions = distributions[:2]
    elif total > FULL_LIMIT // 4:
        distributions = distributions[:3]
    for seed, distribution in enumerate(distributions):
        yield CasePlan((), seed, distribution, 2 if seed == 0 else 1)


def _generic_cases(task: KernelTask) -> Iterator[CasePlan]:
    seen: set[tuple[tuple[tuple[str, int], ...], str]] = set()
    for seed, (sizes, distribution) in enumerate(_bindings(task)):
        key = tuple(sizes.items())
        if (key, distribution) not in seen:
            repeat = 2 if not seen or total_bytes(task, sizes) <= REPEAT_LIMIT else 1
            seen.add((key, distribution))
            yield CasePlan(key, seed, distribution, repeat)


def _bindings(task: KernelTask) -> Iterator[tuple[dict[str, int], str]]:
    """Least sizes, small primes, odd sizes of many tiles, one long side, and the file's own sizes."""
    symbols = task.symbols
    longest = max(symbols, key=lambda symbol: symbol.size).name
    odd = {symbol.name: _odd(symbol) for symbol in symbols}
    least = {symbol.name: symbol.minimum for symbol in symbols}
    yield least, "uniform"
    small = {s.name: max(SMALL[i % len(SMALL)], s.minimum) for i, s in enumerate(symbols)}
    yield _bounded(task, shrink(task, small, MODEST)), "normal"
    yield _bounded(task, shrink(task, odd, MODEST)), "wide"
    one_long = {s.name: odd[s.name] if s.name == longest else max(3, s.minimum) for s in symbols}
    yield _bounded(task, shrink(task, one_long, MODEST)), "structured"
    fits = total_bytes(task, task.sizes) <= FULL_LIMIT
    yield _bounded(task, task.sizes if fits else shrink(task, task.sizes, LARGE)), "normal"


def _bounded(task: KernelTask, sizes: dict[str, int]) -> dict[str, int]:
    """The sizes, cut down to what the twin runs in seconds and holds in memory."""
    least = total_bytes(task, {symbol.name: symbol.minimum for symbol in task.symbols})
    while _is_heavy(task, sizes):
        smaller = shrink(task, sizes, (total_bytes(task, sizes) - least) // 2)
        if smaller == sizes:
            break
        sizes = smaller
    return sizes


def _is_heavy(task: KernelTask, sizes: Mapping[str, int]) -> bool:
    if total_products(task, sizes) > MOST_PRODUCTS:
        return True
    return bytes_between(task, sizes) > MOST_BETWEEN


def bytes_between(task: KernelTask, sizes: Mapping[str, int]) -> int:
    """Bytes of all values that the nodes of a graph make in a run."""
    return sum(spec.nbytes(sizes) for node in task.graph.nodes for spec in node.outputs)


def total_products(task: KernelTask, sizes: Mapping[str, int]) -> int:
    """Multiply-adds of all matrix products and convolutions of a run."""
    return sum(multiply_adds(node, task.graph, sizes) for node in task.graph.nodes)


def _odd(symbol: Symbol) -> int:
    """The odd number at or just below the size in the file: its last tile is cut short."""
    return max(symbol.size - 1 + symbol.size % 2, symbol.minimum)


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
