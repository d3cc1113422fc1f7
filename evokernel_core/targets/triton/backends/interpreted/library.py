"""Stages that PyTorch's libraries compute: the same operation of PyTorch on the CPU. Needs torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from .memory import CallMemory, CallTensor


def call(memory: CallMemory, tensors: list[CallTensor], stage: dict[str, Any]) -> None:
    """Computes ``op`` of ``arguments``, ``["tensor", place, shape, strides]`` or ``["value", number]``, into
    the tensor ``result``. Raises what PyTorch raises, as for a view beyond its tensor's memory."""
    import torch

    packet, overload = stage["op"].removeprefix("aten.").split(".")
    operation = getattr(getattr(torch.ops.aten, packet), overload)
    given = [
        _view(torch, tensors[argument[1]], argument[2], argument[3])
        if argument[0] == "tensor"
        else argument[1]
        for argument in stage["arguments"]
    ]
    with torch.no_grad():
        made = operation(*given)
    result = tensors[stage["result"]]
    if list(made.shape) != list(stage["shape"]) or made.numel() > result.data.size:
        raise ValueError(f"{stage['op']} makes {list(made.shape)}, and the record says {stage['shape']}")
    data = _torch_tensor(torch, result)
    data[: made.numel()] = made.reshape(-1).to(data.dtype)
    if result.written is not None:
        result.written[: made.numel()] = True
    for argument in stage["arguments"]:
        if argument[0] == "tensor":
            tensor = tensors[argument[1]]
            memory.counts.moved(tensor, int(np.prod(argument[2])) * tensor.data.itemsize)
    memory.counts.moved(result, made.numel() * result.data.itemsize)


def _view(torch: Any, tensor: CallTensor, shape: list[int], strides: list[int]) -> Any:
    return _torch_tensor(torch, tensor).as_strided(shape, strides)


def _torch_tensor(torch: Any, tensor: CallTensor) -> Any:
    """All elements of a tensor, in its own memory."""
    data = tensor.data if tensor.data.flags.writeable else tensor.data.copy()
    return torch.from_numpy(data).view(getattr(torch, tensor.dtype))
