"""Why a kernel is faster, what binds it and what changed, in sentences. Modelled and measured figures are
never divided by each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import LatencySource
from evokernel_server.offers import microseconds, percent
from evokernel_server.review import Kernel, Vendor

CAUTION_ABOVE = 10.0
"""A gain beyond this factor is shown with a word of caution."""
MODELLED = LatencySource.MODELLED.value
_PIPES: Mapping[str, str] = {
    "S": "the scalar unit",
    "V": "the vector unit",
    "M": "the matrix unit",
    "MTE1": "moves from L1 to L0",
    "MTE2": "loads from global memory",
    "MTE3": "stores to global memory",
    "FIX": "results out of L0C",
}
_WORTH_TELLING = 0.005


def why_faster(
    kernel: Kernel, task: KernelTask, strategy: Strategy, vendor: Vendor | None
) -> tuple[str, ...]:
    """The sentences about a kernel by itself."""
    return (
        _fused(task, strategy),
        *_against_ops(kernel),
        *_against_vendor(kernel, vendor),
        *_binding(kernel),
        *_bound(kernel),
    )


def what_changed(old: Kernel, new: Kernel, changes: Sequence[str], steps: Sequence[str]) -> tuple[str, ...]:
    """What differs from the installed kernel. ``changes`` are those of the strategies, ``steps`` the moves
    that led from one to the other."""
    if old.source_id == new.source_id:
        return ("This is the kernel that is installed.",)
    led = [f"It came from the installed kernel by these steps: {', then '.join(steps)}."] if steps else []
    same = (
        ["Both schedules declare the same settings; what differs stands in the files."] if not changes else []
    )
    return (_against_installed(old, new), *led, *changes, *same)


def _fused(task: KernelTask, strategy: Strategy) -> str:
    operations, kernels = len(task.graph.nodes), strategy.descriptor.kernels
    many = "1 operation is" if operations == 1 else f"{operations} operations are"
    if kernels > 1:
        return f"{many} {kernels} kernels ({strategy.descriptor.stages.value})."
    kept = "" if operations == 1 else ", so what lies between them never leaves the core"
    return f"{many} one kernel{kept}."


def _against_ops(kernel: Kernel) -> Iterator[str]:
    figure = f"A launch takes {microseconds(kernel.us)} {kernel.source} on {kernel.chip}"
    now = f"{microseconds(kernel.baseline_us)} {MODELLED}"
    if kernel.source != MODELLED:
        yield f"{figure}. Op by op the model says {now}; the two figures are not compared."
        return
    yield f"{figure}, the ops one by one {now}: {_times(kernel.baseline_us, kernel.us)}."
    if kernel.us > 0 and kernel.baseline_us / kernel.us > CAUTION_ABOVE:
        yield "A gain above 10x deserves a second look at what is compared."


def _times(before: float, after: float) -> str:
    if before <= 0 or after <= 0:
        return "no ratio"
    return f"{before / after:.1f} times as fast" if after < before else f"{after / before:.1f} times as long"


def _against_vendor(kernel: Kernel, vendor: Vendor | None) -> Iterator[str]:
    if vendor is None:
        return
    figure = f"{vendor.name} computes the same as one operator in {microseconds(vendor.us)} {vendor.source}"
    if vendor.source != kernel.source:
        yield f"{figure}; the kernel's figure is {kernel.source}, so the two are not compared."
    elif vendor.us <= kernel.us:
        yield f"{figure}, which is no slower than the kernel: consider that operator instead."
    else:
        yield f"{figure}: the kernel is {_times(vendor.us, kernel.us)}."


def _binding(kernel: Kernel) -> Iterator[str]:
    if kernel.bottleneck:
        yield f"What binds it ({kernel.source}): {kernel.bottleneck.rstrip('.')}."
    told = [(pipe, share) for pipe, share in kernel.pipes.items() if share >= _WORTH_TELLING]
    if told:
        words = ", ".join(f"{_PIPES.get(pipe, pipe)} {percent(share)}" for pipe, share in told)
        yield f"Busy on the slowest core, as a share of the launch with its start ({kernel.source}): {words}."


def _bound(kernel: Kernel) -> Iterator[str]:
    bound = f"By bytes and operations no kernel takes less than {microseconds(kernel.bound_us)} {MODELLED}"
    if kernel.source == MODELLED and kernel.us > 0:
        yield f"{bound}: {percent(kernel.bound_us / kernel.us)} of the launch."
    else:
        yield f"{bound}."


def _against_installed(old: Kernel, new: Kernel) -> str:
    before, after = (f"{microseconds(item.us)} {item.source}" for item in (old, new))
    if (old.source, old.chip) != (new.source, new.chip):
        return (
            f"Installed: {before} on {old.chip}; this one: {after} on {new.chip}. The two are not compared."
        )
    return f"Installed: {before}; this one: {after}, {_times(old.us, new.us)}."
