"""Tensors that a function asks about, but whose values it does not read: ``x.to(y.dtype)``.

A kernel does not take them, so that its call must ask for all that the trace took from them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ..regions.parts import TENSOR, Leaf

Input = Mapping[str, Any]


def conditions(unread: Iterable[Input], taken: Iterable[Input], least: Mapping[str, int]) -> Iterator[str]:
    """Dtype, device and sizes. ``taken`` are the kernel's operands, whose sizes the kernel's contract asks;
    ``least`` are the least values of symbols."""
    told: dict[int | str, str] = {}
    device = ""
    for item in taken:
        device = device or f"{item['expression']}.device"
        for dim, size in enumerate(item["spec"]["shape"]):
            told.setdefault(size, f"{item['expression']}.shape[{dim}]")
    for item in unread:
        text, spec = item["expression"], item["spec"]
        yield f"{text}.dtype is torch.{spec['dtype']}"
        if device:
            yield f"{text}.device == {device}"
        yield from _sizes(text, spec["shape"], told, least)


def _sizes(
    text: str, shape: list[int | str], told: dict[int | str, str], least: Mapping[str, int]
) -> Iterator[str]:
    """Numbers, and symbols that a tensor before has told, must be those; others are as large as the trace
    assumed. ``told`` takes in what this tensor tells."""
    yield f"{text}.dim() == {len(shape)}"
    for dim, size in enumerate(shape):
        if isinstance(size, int):
            yield f"{text}.shape[{dim}] == {size}"
        elif size in told:
            yield f"{text}.shape[{dim}] == {told[size]}"
        else:
            told[size] = f"{text}.shape[{dim}]"
            if least.get(size, 1) > 1:
                yield f"{text}.shape[{dim}] >= {least[size]}"


def states(leaves: Iterable[Leaf], attributes: Collection[str]) -> Iterator[str]:
    """What no contract asks of tensors, where the code that ran names it."""
    layout = not {"is_contiguous", "stride"}.isdisjoint(attributes)
    for leaf in leaves:
        if leaf.kind != TENSOR:
            continue
        if layout:
            yield f"{leaf.expression}.is_contiguous() is {leaf.value.is_contiguous()}"
        if "requires_grad" in attributes:
            yield f"{leaf.expression}.requires_grad is {leaf.known_as.requires_grad}"
