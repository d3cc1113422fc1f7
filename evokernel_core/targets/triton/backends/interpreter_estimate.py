"""A time from what programs were counted to do, for texts that no estimator of ours knows. Modelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from evokernel_core.domain.sentence import Sentence
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.twin.run import PipeWork

_DTYPES = {"ieee": "vector", "tf32": "tf32", "tf32x3": "float32", "fp16": "float16", "bf16": "bfloat16"}
"""The dtype whose products a device does as many of, by what was counted."""


@frozen
class Counted:
    """What all programs of a launch do: bytes moved by tensor, and of outputs stored; multiply-adds by dtype,
    elements of arithmetic, and of them exponentials and their kin. ``active``: the share of lanes that masks
    let through."""

    programs: int
    moved: Mapping[str, float]
    written: float
    products: Mapping[str, float]
    elements: float
    special: float
    active: float = 1.0


def counted(told: Mapping[str, Any], programs: int) -> Counted:
    """From what some of the programs did: the others do as much."""
    share = programs / max(int(told["ran"]), 1)
    return Counted(
        programs,
        moved={str(name): share * float(nbytes) for name, nbytes in told["tensors"].items()},
        written=share * float(told["written"]),
        products={str(name): share * float(count) for name, count in told["products"].items()},
        elements=share * float(told["elements"]),
        special=share * float(told["special"]),
        active=float(told["active"]) / max(float(told["lanes"]), 1.0),
    )


def launch_us(gpu: Gpu, work: Counted, nbytes: Mapping[str, int]) -> dict[str, float]:
    """Microseconds of a launch by what takes them. What a tensor's bytes are moved more often than once comes
    from the cache."""
    total = sum(work.moved.values())
    once = sum(min(moved, nbytes[name]) for name, moved in work.moved.items())
    busy = min(work.programs, gpu.multiprocessors) or 1
    alone = gpu.multiprocessors / busy
    return {
        "memory": max(
            once / gpu.memory_bytes_us, total / gpu.l2_bytes_us, total / (busy * gpu.worker_bytes_us)
        ),
        "products": alone * sum(_product_us(gpu, name, count) for name, count in work.products.items()),
        "vector": alone
        * (gpu.elementwise_us(int(work.elements), "float32") + gpu.transcendental_us(int(work.special))),
    }


def _product_us(gpu: Gpu, name: str, multiply_adds: float) -> float:
    dtype = _DTYPES.get(name, name)
    flops = {"vector": gpu.vector_flops, "fp64": gpu.float64_flops}.get(dtype) or (
        gpu.flops.get(dtype) if dtype in gpu.flops else gpu.product_flops(dtype)
    )
    return 2 * multiply_adds / (flops or gpu.vector_flops)


@frozen
class Estimate:
    """Microseconds of all launches, and of each resource in them; ``work`` by the names that the latency gate
    looks for."""

    us: float
    pipes: tuple[tuple[str, float], ...]
    programs: int
    work: tuple[tuple[str, PipeWork], ...] = ()

    def with_libraries(self, us: float) -> Estimate:
        """The same with the products that libraries compute beside the launches."""
        pipes = dict(self.pipes)
        pipes["products"] += us
        return Estimate(self.us + us, tuple(pipes.items()), self.programs)  # nobody counted what they do

    @property
    def bottleneck(self) -> Sentence:
        """What takes the most of them, in words."""
        name, us = max(self.pipes, key=lambda pipe: pipe[1])
        launches = self.us - max(us, 0.0)
        if launches > us:
            return Sentence("launches take longer than the work in them")
        return {
            "memory": Sentence("memory traffic"),
            "products": Sentence("matrix products"),
            "vector": Sentence("vector arithmetic"),
        }[name]


def estimated(gpu: Gpu, works: Sequence[Counted], nbytes: Mapping[str, int]) -> Estimate:
    """The estimate of some launches, one behind the other."""
    parts = [launch_us(gpu, work, nbytes) for work in works]
    pipes = {name: sum(part[name] for part in parts) for name in ("memory", "products", "vector")}
    us = sum(gpu.launch_us + max(part.values()) for part in parts)
    return Estimate(us, tuple(pipes.items()), max(work.programs for work in works), _work(gpu, works, parts))


def _work(
    gpu: Gpu, works: Sequence[Counted], parts: Sequence[Mapping[str, float]]
) -> tuple[tuple[str, PipeWork], ...]:
    """Of all multiprocessors, without the lanes that masks leave out: those of a last tile are no work that a
    larger size would have too."""
    stored = sum(work.written for work in works)
    loaded = sum(sum(work.moved.values()) for work in works) - stored
    useful = [(work.active, part) for work, part in zip(works, parts, strict=True)]
    matrix, vector = (
        gpu.multiprocessors * sum(active * part[name] for active, part in useful)
        for name in ("products", "vector")
    )
    return (
        ("MTE2", PipeWork(nbytes=int(loaded))),
        ("MTE3", PipeWork(nbytes=round(stored))),
        ("V", PipeWork(us=vector)),
        ("M", PipeWork(us=matrix)),
    )
