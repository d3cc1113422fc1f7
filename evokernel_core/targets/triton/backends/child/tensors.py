"""Tensors from and to raw files, whole or in parts, and drawn ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_WORDS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64", 16: "complex128"}
"""A dtype for elements of so many bytes that are only moved."""


def filled(device: Any, tensor: Mapping[str, Any]) -> Any:
    """The bytes of an input on the device: those of its file; where only a part has data, that part, and
    zeros elsewhere."""
    torch = device.torch
    data = _read(torch, tensor["file"]).to(device.name)
    part = tensor.get("part")
    if part is None:
        return data
    whole = torch.zeros(tensor["bytes"], dtype=torch.uint8, device=device.name)
    if data.numel():
        elements, places = parts_of(torch, whole, part)
        elements[places] = data.view(elements.dtype).view([len(place.flatten()) for place in places])
    return whole


def written(torch: Any, data: Any, tensor: Mapping[str, Any]) -> None:
    """Writes an output, or the part of it that is asked for, to its file."""
    part = tensor.get("part")
    if part is not None and data.numel():
        elements, places = parts_of(torch, data, part)
        data = elements[places].contiguous().flatten().view(torch.uint8)
    Path(tensor["file"]).write_bytes(data.cpu().numpy().tobytes())


def parts_of(torch: Any, data: Any, part: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """A tensor's bytes as elements in its shape, and the places of a part along each dimension. ``part``:
    ``{"item_size", "sizes", "runs": [[[first, count]]]}``, as ``TensorPart`` has it."""
    elements = data.view(getattr(torch, _WORDS[part["item_size"]])).view(part["sizes"] or [1])
    rank = max(len(part["sizes"]), 1)
    places = []
    for dimension, runs in enumerate(part["runs"] or [[[0, 1]]]):
        chosen = torch.cat([torch.arange(first, first + count) for first, count in runs]).to(data.device)
        places.append(chosen.view([-1 if axis == dimension else 1 for axis in range(rank)]))
    return elements, tuple(places)


def drawn(device: Any, tensor: Mapping[str, Any], seed: int) -> Any:
    """The bytes of an input for a timed run: its file, where it has one, else numbers of its dtype, normal
    ones for floats."""
    torch = device.torch
    if tensor.get("file"):
        return _read(torch, tensor["file"]).to(device.name)
    dtype = getattr(torch, tensor["dtype"])
    numbers = torch.Generator(device=device.name)
    numbers.manual_seed(seed % (1 << 63))
    count = tensor["bytes"] // torch.empty(0, dtype=dtype).element_size()
    how = {"generator": numbers, "device": device.name}
    if dtype.is_floating_point or dtype.is_complex:
        real = dtype if dtype in (torch.float32, torch.float64, torch.complex64) else torch.float32
        values = torch.randn(count, dtype=real, **how).to(dtype)
    else:
        most = 2 if dtype == torch.bool else 100
        values = torch.randint(0, most, (count,), **how).to(dtype)
    return values.view(torch.uint8)


def _read(torch: Any, path: str) -> Any:
    data = Path(path).read_bytes()
    return torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
