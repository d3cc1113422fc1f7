"""Transposed convolutions by their definition, for the tests of their kernels."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from attrs import frozen

from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.ascendc.kernels.conv_transpose.conv_transpose_geometry import ConvTransposeAxis


@frozen
class Layer:
    """``sizes`` are inputs to run with; the first gives the rank and the sizes in the user's file."""

    axes: tuple[ConvTransposeAxis, ...]
    kernel: tuple[int, ...]
    channels: int
    results: int
    sizes: tuple[tuple[int, ...], ...]
    groups: int = 1
    bias: bool = False
    dtype: str = "float32"


def task_of(builder: Any, layer: Layer) -> KernelTask:
    """The layer with symbols for the batch and every spatial size."""
    graph = builder()
    rank = len(layer.axes)
    spatial = [f"s{index}" for index in range(rank)]
    x = graph.input("x", ("n", layer.channels * layer.groups, *spatial), layer.dtype)
    shape = (layer.channels * layer.groups, layer.results, *layer.kernel)
    weight = graph.input("weight", shape, layer.dtype, parameter=True)
    results = layer.results * layer.groups
    bias = graph.input("bias", (results,), layer.dtype, parameter=True) if layer.bias else None
    strides, paddings, dilations, extras = (
        tuple(getattr(axis, name) for axis in layer.axes)
        for name in ("stride", "padding", "dilation", "output_padding")
    )
    outputs = [
        f"{size}*{axis.stride}+{axis.outputs(0, taps)}".replace("+-", "-")
        for size, axis, taps in zip(spatial, layer.axes, layer.kernel, strict=True)
    ]
    result = graph.call(
        "convolution.default",
        *(x, weight, bias, strides, paddings, dilations, True, extras, layer.groups),
        shape=("n", results, *outputs),
        dtype=layer.dtype,
    )
    task: KernelTask = graph.task(result, symbols=dict(zip(["n", *spatial], layer.sizes[0], strict=True)))
    return task


def values_of(layer: Layer, sizes: tuple[int, ...]) -> dict[str, Any]:
    rng = np.random.default_rng(len(sizes) + sizes[-1])
    channels, results = layer.channels * layer.groups, layer.results * layer.groups
    shapes = {"x": (sizes[0], channels, *sizes[1:]), "weight": (channels, layer.results, *layer.kernel)}
    if layer.bias:
        shapes["bias"] = (results,)
    return {name: rng.integers(-8, 9, size=shape).astype("f4") / 8 for name, shape in shapes.items()}


def expected(layer: Layer, values: dict[str, Any]) -> Any:
    """Every input adds its products with all taps to where the definition says."""
    x, weight = values["x"].astype("f8"), values["weight"].astype("f8")
    inputs = x.shape[2:]
    whole = [
        (length - 1) * axis.stride + axis.dilation * (taps - 1) + 1 + axis.output_padding + axis.padding
        for length, axis, taps in zip(inputs, layer.axes, layer.kernel, strict=True)
    ]
    total = np.zeros((x.shape[0], layer.results * layer.groups, *whole))
    for tap in itertools.product(*map(range, layer.kernel)):
        place = tuple(
            slice(t * axis.dilation, t * axis.dilation + (length - 1) * axis.stride + 1, axis.stride)
            for t, axis, length in zip(tap, layer.axes, inputs, strict=True)
        )
        for group in range(layer.groups):
            mine = slice(group * layer.channels, (group + 1) * layer.channels)
            product = np.tensordot(x[:, mine], weight[(mine, slice(None), *tap)], axes=(1, 0))
            target = slice(group * layer.results, (group + 1) * layer.results)
            total[(slice(None), target, *place)] += np.moveaxis(product, -1, 1)
    kept = tuple(
        slice(axis.padding, axis.padding + axis.outputs(length, taps))
        for length, axis, taps in zip(inputs, layer.axes, layer.kernel, strict=True)
    )
    total = total[(slice(None), slice(None), *kept)]
    if layer.bias:
        total = total + values["bias"].reshape(1, -1, *[1] * len(inputs))
    return total


def close(found: Any, expected: Any, layer: Layer) -> None:
    tolerance = 1e-4 if layer.dtype == "float32" else 1e-2
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(np.asarray(found, "f8") / scale, expected / scale, rtol=0, atol=tolerance)
