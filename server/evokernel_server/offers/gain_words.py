"""The one grammar of what a kernel gains: ``2.3x  31 µs est.``, in hints, lenses, titles and lists.

The hover says the rest: eager with its interval, the roofline limit, the device and who verified it.
"""

from __future__ import annotations

from functools import cache

from evokernel_core.domain.verdict import Latency, LatencySource
from evokernel_core.synthesis.offers import Estimate, better_us
from evokernel_core.targets import files_of_device
from evokernel_core.vendor.rival import Rival
from evokernel_server.offers.pending import percent
from evokernel_server.texts.translations import _, marked

_MEASURED = LatencySource.MEASURED.value
_SAME = "1.0x"


def estimate_words(estimate: Estimate) -> str:
    """What a kernel that is not written yet would gain over the better of eager and the vendor's operator."""
    return _joined(estimated_ratio(estimate), _figure(estimate.after_us, estimate.source, estimate.chip))


def rival_words(estimate: Estimate, rival: Rival) -> str:
    """The vendor's operator in place of the ops, by its weightiest figure; a gain where both compare."""
    us, source = rival.figures[0]
    gain = ratio(estimate.now_us, us) if source == estimate.source else ""
    return _joined(gain, _figure(us, source, estimate.chip))


def kernel_gain_words(latency: Latency, before_us: float) -> str:
    """A verified kernel beside what it is compared with. Where that is estimated and the kernel measured, the
    gain is an estimate too."""
    untimed = _untimed(latency.chip)
    if untimed and latency.source is LatencySource.MODELLED:
        return _("{kind}, not timed (no GPU)", kind=untimed)
    gain = ratio(before_us, latency.us)
    if gain and latency.source is not latency.baseline_word and latency.source is LatencySource.MEASURED:
        gain = _("{gain} est.", gain=gain)
    return _joined(gain, _figure(latency.us, latency.source.value, latency.chip))


def ready_words(latency: Latency) -> str:
    """A kernel that is pending, in the words of its hint and lens."""
    return _("ready {what}", what=kernel_gain_words(latency, latency.baseline_us))


def estimated_ratio(estimate: Estimate) -> str:
    """The gain alone, for what stands beside another hint."""
    return ratio(better_us(estimate.now_us, estimate.rival, estimate.source), estimate.after_us)


def ratio(before_us: float, after_us: float) -> str:
    """How many times as fast, with as many digits as it deserves; empty for about as fast as before."""
    times = before_us / after_us
    words = f"{times:,.0f}x" if times >= 9.95 else f"{times:.1f}x" if times >= 0.95 else f"{times:.2f}x"
    return "" if words == _SAME else words


def speed_words(before_us: float, after_us: float) -> str:
    """The same in a sentence, where a gain too small to be told in times is told in per cent."""
    if before_us <= 0 or after_us <= 0:
        return _("no ratio")
    faster = after_us < before_us
    times = before_us / after_us if faster else after_us / before_us
    if ratio(before_us, after_us):
        words = marked("{times} times as fast") if faster else marked("{times} times as long")
        return _(words, times=_digits(times))
    share = percent(times - 1)
    if share == percent(0):
        return _("as fast")
    return _("{share} faster", share=share) if faster else _("{share} slower", share=share)


def _joined(gain: str, figure: str) -> str:
    return f"{gain}  {figure}" if gain else figure


def _figure(us: float, source: str, chip: str) -> str:
    """A latency and how it is known. A measurement names its device, without the maker's name."""
    if source != _MEASURED:
        return _("{us} µs est.", us=_digits(us))
    device = chip.partition("_")[2].upper() or chip
    return _("{us} µs measured {device}", us=_digits(us), device=device)


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}" if value >= 0.995 else f"{value:.2g}"


@cache
def _untimed(chip: str) -> str:
    """The kind of kernels for a device that no time model of its kernels stands in for; else empty."""
    files = files_of_device(chip)
    return "" if files is None or files.has_time_model else files.kind
