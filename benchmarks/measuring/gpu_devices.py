"""One table that says what was measured on which device, and what is still estimated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from benchmarks.measuring.gpu_truth_page import OWN, SHARED, page_figures
from evokernel_core.hardware.ascend.chip_files import chip_names
from evokernel_core.hardware.gpu.gpu import load_gpu
from evokernel_core.hardware.gpu.gpu_files import gpu_names


@frozen
class Measured:
    """What was measured on a device, of how much, and what came of it."""

    what: str
    device: str
    extent: str
    figures: str


def devices_table(rows: Sequence[Measured], truth: Mapping[str, Any] | None) -> Iterator[str]:
    """Lines of the table: what was measured, then the devices on which nothing was."""
    yield "| what | device | of | numbers |"
    yield "|---|---|---|---|"
    measured = [*([_of_truth(truth)] if truth else []), *rows]
    for row in measured:
        yield f"| {row.what} | {row.device} | {row.extent} | {row.figures} |"
    devices = tuple({row.device for row in measured})  # a driver's names are beginnings of ours
    for name in gpu_names():
        if not (title := load_gpu(name).title).startswith(devices):
            yield f"| kernels in Triton | {title} | nothing | estimated from published numbers; never run |"
    chips = ", ".join(chip_names())
    yield (
        f"| kernels in AscendC, and eager PyTorch beside them | {chips} | nothing | estimated; the model is "
        "compared with [times that others published of a 910B2](eager.md) |"
    )


def _of_truth(truth: Mapping[str, Any]) -> Measured:
    memory = SHARED if any(row["memory"] == SHARED for row in truth["self"]) else OWN
    figures = page_figures(truth, memory)
    tricks = truth["hacks"]
    extent = f"{len(truth['self']) + len(truth['planted'])} sessions, {len(tricks)} tricks"
    words = f"{figures}; {sum(row['caught'] for row in tricks)} tricks contained"
    return Measured(
        "the measurement itself ([gpu_truth](gpu_truth.md))", truth["conditions"]["device"], extent, words
    )
