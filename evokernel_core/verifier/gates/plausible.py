"""Whether a time can be that of the whole work: by the bytes of the task, and by what the backend counted.

Nothing here knows an algorithm. A product that takes fewer multiplications than the direct one (Winograd,
Strassen, parts of several narrow types) is as plausible as that one; a time that is shorter than the busiest
pipe was busy is not, nor a launch that stores less than its outputs, nor one that does less for each element
at full size than at the size where its results were compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask, Symbol
from evokernel_core.hardware.device import Device
from evokernel_core.hardware.roofline import moved_us, traffic
from evokernel_core.twin.run import PipeWork
from evokernel_core.verifier.base import Timing
from evokernel_core.verifier.gates.cases import bytes_between, bytes_put, total_products

SLACK = 0.98
"""A time below this share of a bound is no speed but work that was left out."""
WHOLE = 0.98
"""The share of its outputs that a launch stores at least."""
LEAST_COUNTED = 2**20
"""Bytes of outputs from which stores are counted: smaller ones may be written by the scalar unit."""
STEADY = 0.85
"""The least share of the work for each element that may be left at full size of what was counted where
results were compared. Of 17 kernels with other tiles at other sizes the least had 0.94."""
STEADY_PRODUCTS = 0.6
"""The same for products, whose last tile of an odd size is mostly empty (of 256 rows of a product of 4096,
0.69 were left)."""
PRESENT = 0.02
"""The same where the two sizes differ in short dimensions, whose vectors and tiles are mostly empty: with
fewer elements than ``LONG_SIDE`` as much less as they are fewer, for a row of few takes about the
instructions of a longer one."""
COSTLY = 8
"""How many times as much vector work for each byte values may take that do not grow with the sizes as values
that do: of a grid's two numbers for a place, thirty instructions make addresses and weights, of which each
channel takes nine."""
LONG_ROW, LONG_SIDE = 2048, 256
"""Sizes from which a dimension fills vectors (a row of 64 has four times the instructions for each element of
one of 4096), and the tiles of products."""

_STORES, _LOADS = ("MTE3", "FIX"), ("MTE2",)


def implausible(task: KernelTask, device: Device, timing: Timing) -> Sentence:
    """Why a full-size time cannot be right, empty where it can."""
    bound = moved_us(task, device)
    if timing.us < SLACK * bound:
        return Sentence(
            "{us} us is below the {bound} us that the bytes of inputs and outputs take: the kernel "
            "leaves out work at full size.",
            us=f"{timing.us:.3g}",
            bound=f"{bound:.3g}",
        )
    busiest, pipe = max(
        ((_least_us(pipe, work, device), pipe) for pipe, work in timing.work), default=(0.0, "")
    )
    if timing.us < SLACK * busiest:
        return Sentence(
            "{us} us is below the {busiest} us that {pipe} worked on each core.",
            us=f"{timing.us:.3g}",
            busiest=f"{busiest:.3g}",
            pipe=pipe,
        )
    _, written = traffic(task, task.sizes)
    stored = stored_bytes(timing)
    if timing.work and written >= LEAST_COUNTED and stored < WHOLE * written:
        return Sentence(
            "At full size the kernel stores {stored} bytes of outputs that have {written}.",
            stored=stored,
            written=written,
        )
    return Sentence()


def unsteady(task: KernelTask, full: Timing, seen: Timing, sizes: Mapping[str, int]) -> Sentence:
    """What a kernel does less of, for each element, at full size than where its results were compared, at
    ``sizes``; empty where it does not."""
    before = dict(shares(task, seen, sizes))
    least = _least_share(task, sizes)
    for what, count in shares(task, full, task.sizes):
        if what not in before:
            continue
        left = max(now / then if then else 1.0 for now, then in zip(count, before[what], strict=True))
        if left < least * (_growing(task, sizes) if what == "vector work" else 1.0):
            return Sentence(
                "For each element the kernel has {share} % of the {what} at full size that it has "
                "with {sizes}: work is skipped there.",
                share=f"{100 * left:.0f}",
                what=what,
                sizes=dict(sizes),
            )
    return Sentence()


def _least_share(task: KernelTask, sizes: Mapping[str, int]) -> float:
    """What of the work for each element must be left of what was counted at ``sizes``."""
    if _is_alike(task, sizes):
        return STEADY_PRODUCTS if total_products(task, sizes) else STEADY
    others = (sizes.get(symbol.name, symbol.size) for symbol in _differing(task, sizes))
    return PRESENT * min(1.0, *(size / LONG_SIDE for size in others))


def _growing(task: KernelTask, sizes: Mapping[str, int]) -> float:
    """How much less vector work for each byte an honest kernel may have at full size, since what was as large
    at ``sizes`` is there shared by more: a grid by more channels that are sampled by it."""
    specs = [spec for node in task.graph.nodes for spec in node.outputs]
    pairs = [(spec.nbytes(sizes), spec.nbytes(task.sizes)) for spec in specs]
    fixed = sum(now for then, now in pairs if now == then)
    then, now = (sum(pair[i] for pair in pairs if pair[0] != pair[1]) for i in (0, 1))
    if not then or not now:
        return 1.0
    most = COSTLY * fixed / (COSTLY * fixed + then)
    return (most + (1 - most) * now / then) * (fixed + then) / (fixed + now)


def _differing(task: KernelTask, sizes: Mapping[str, int]) -> list[Symbol]:
    return [symbol for symbol in task.symbols if sizes.get(symbol.name) != symbol.size]


def _is_alike(task: KernelTask, sizes: Mapping[str, int]) -> bool:
    """Whether work grows with the sizes from one to the other: they differ in the number of rows only, or in
    dimensions that are long in both."""
    products = total_products(task, sizes)
    others = _differing(task, sizes)
    if others == list(task.symbols[:1]) and not products:
        return True
    return all(sizes.get(symbol.name, 0) >= (LONG_SIDE if products else LONG_ROW) for symbol in others)


def shares(
    task: KernelTask, timing: Timing, sizes: Mapping[str, int]
) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Counted work by what of the task it grows with, by each of several where it may be any of them."""
    if not timing.work:
        return
    work = dict(timing.work)
    read, written = traffic(task, sizes)
    products = total_products(task, sizes)
    if products:
        yield "products", (work.get("M", PipeWork()).us / products,)
    elif between := bytes_between(task, sizes):
        us = work.get("V", PipeWork()).us
        put = bytes_put(task, sizes)
        yield "vector work", (us / between, us / put) if put else (us / between,)
    if read:
        yield "loads", (min(_bytes(timing, _LOADS) / read, 1.0),)
    if written:
        yield "stores", (min(_bytes(timing, _STORES) / written, 1.0),)


def _least_us(pipe: str, work: PipeWork, device: Device) -> float:
    """Microseconds of a pipe where all cores that have it share its work evenly."""
    return work.us / device.cores_of(pipe)


def stored_bytes(timing: Timing) -> int:
    """Bytes that a launch stores to global memory."""
    return _bytes(timing, _STORES)


def _bytes(timing: Timing, pipes: tuple[str, ...]) -> int:
    return sum(work.nbytes for pipe, work in timing.work if pipe in pipes)
