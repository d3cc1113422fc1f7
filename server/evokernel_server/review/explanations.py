"""Why a kernel is faster, what binds it and what changed, in sentences. Modelled and measured figures are
never divided by each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import LatencySource
from evokernel_server.offers.evidence import CAUTION_ABOVE
from evokernel_server.offers.gain_words import speed_words
from evokernel_server.offers.pending import microseconds, percent
from evokernel_server.review.contents import ReviewedKernel, Vendor
from evokernel_server.texts.translations import _, many, marked, source_word, sourced

MODELLED = LatencySource.MODELLED.value
_PIPES: Mapping[str, str] = {
    "S": marked("the scalar unit"),
    "V": marked("the vector unit"),
    "M": marked("the matrix unit"),
    "MTE1": marked("moves from L1 to L0"),
    "MTE2": marked("loads from global memory"),
    "MTE3": marked("stores to global memory"),
    "FIX": marked("results out of L0C"),
}
_WORTH_TELLING = 0.005


def why_faster(
    kernel: ReviewedKernel, task: KernelTask, strategy: Strategy, vendor: Vendor | None
) -> tuple[str, ...]:
    """The sentences about a kernel by itself."""
    return (
        _fused(task, strategy),
        *_against_ops(kernel),
        *_against_vendor(kernel, vendor),
        *_binding(kernel),
        *_bound(kernel),
    )


def what_changed(
    old: ReviewedKernel, new: ReviewedKernel, changes: Sequence[str], steps: Sequence[str]
) -> tuple[str, ...]:
    """What differs from the installed kernel. ``changes`` are those of the strategies, ``steps`` the moves
    that led from one to the other."""
    if old.source_id == new.source_id:
        return (_("This is the accepted kernel."),)
    led, same = [], []
    if steps:
        joined = _(", then ").join(steps)
        led = [_("It came from the accepted kernel by these steps: {steps}.", steps=joined)]
    if not changes:
        same = [_("Both schedules declare the same settings; what differs stands in the files.")]
    return (_against_installed(old, new), *led, *changes, *same)


def _fused(task: KernelTask, strategy: Strategy) -> str:
    operations, kernels = len(task.graph.nodes), strategy.descriptor.kernels
    if kernels > 1:
        return many(
            "{count} operation is {kernels} kernels ({stages}).",
            "{count} operations are {kernels} kernels ({stages}).",
            operations,
            kernels=kernels,
            stages=_(strategy.descriptor.stages.value),
        )
    return many(
        "{count} operation is one kernel.",
        "{count} ops fused; intermediates stay on chip.",
        operations,
    )


def _against_ops(kernel: ReviewedKernel) -> Iterator[str]:
    told = {
        "figure": sourced(microseconds(kernel.us), kernel.source),
        "chip": kernel.chip,
        "now": sourced(microseconds(kernel.baseline_us), kernel.baseline_source),
    }
    if kernel.source != MODELLED:
        yield _(
            "A launch takes {figure} on {chip}; eager takes {now}. The two are not compared.",
            **told,
        )
        return
    times = speed_words(kernel.baseline_us, kernel.us)
    yield _("A launch takes {figure} on {chip}, eager {now}: {times}.", times=times, **told)
    if kernel.us > 0 and kernel.baseline_us / kernel.us > CAUTION_ABOVE:
        yield _("A gain above 10x deserves a second look at what is compared.")


def _against_vendor(kernel: ReviewedKernel, vendor: Vendor | None) -> Iterator[str]:
    if vendor is None:
        return
    told = {"name": vendor.name, "figure": sourced(microseconds(vendor.us), vendor.source)}
    if vendor.source != kernel.source:
        yield _(
            "{name} computes the same as one operator in {figure}; the kernel's latency is {source}, "
            "so the two are not compared.",
            source=source_word(kernel.source),
            **told,
        )
    elif vendor.us <= kernel.us:
        yield _(
            "{name} computes the same as one operator in {figure}, "
            "which is no slower than the kernel: consider that operator instead.",
            **told,
        )
    else:
        yield _(
            "{name} computes the same as one operator in {figure}: the kernel is {times}.",
            times=speed_words(vendor.us, kernel.us),
            **told,
        )


def _binding(kernel: ReviewedKernel) -> Iterator[str]:
    if kernel.bottleneck:
        what = kernel.bottleneck.rstrip(".。")
        yield _("Bottleneck ({source}): {what}.", source=source_word(kernel.source), what=what)
    told = [(pipe, share) for pipe, share in kernel.pipes.items() if share >= _WORTH_TELLING]
    if told:
        yield _(
            "Busy on the slowest core, as a share of the launch with its start ({source}): {pipes}.",
            source=source_word(kernel.source),
            pipes=", ".join(f"{_pipe(pipe)} {percent(share)}" for pipe, share in told),
        )


def _pipe(name: str) -> str:
    return _(_PIPES[name]) if name in _PIPES else name


def _bound(kernel: ReviewedKernel) -> Iterator[str]:
    figure = sourced(microseconds(kernel.bound_us), MODELLED)
    if kernel.source == MODELLED and kernel.us > 0:
        yield _(
            "{share} of the roofline limit ({figure}).",
            figure=figure,
            share=percent(kernel.bound_us / kernel.us),
        )
    else:
        yield _("Roofline limit: {figure}.", figure=figure)


def _against_installed(old: ReviewedKernel, new: ReviewedKernel) -> str:
    before, after = (sourced(microseconds(choice.us), choice.source) for choice in (old, new))
    if (old.source, old.chip) != (new.source, new.chip):
        return _(
            "Accepted: {before} on {old}; this one: {after} on {new}. The two are not compared.",
            before=before,
            old=old.chip,
            after=after,
            new=new.chip,
        )
    times = speed_words(old.us, new.us)
    return _("Accepted: {before}; this one: {after}, {times}.", before=before, after=after, times=times)
