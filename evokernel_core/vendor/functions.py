"""The table of functions of ``torch_npu`` that a region may be.

Limits are those of Ascend's PyTorch documentation, "Custom APIs", for Atlas A2; where pages of several
releases differ, the narrower holds.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from attrs import frozen

from evokernel_core.vendor import compositions
from evokernel_core.vendor.compositions import Composition

FLOATS = ("float16", "bfloat16", "float32")
HALVES = ("float16", "bfloat16")
_BOUNDS = ("", "-128.0 127.0", "-127.0 127.0")
_ROTARY = (
    "{input}.shape[-1] < 896 and {input}.shape[-1] == {r1}.shape[-1] and {r1}.shape == {r2}.shape",
    "''.join('1n'[n > 1] for n in {r1}.shape[:3]) in ('11n', '1n1', 'n11', 'n1n', 'nn1', 'nnn')",
    "sum(n >= 1000 for n in {input}.shape[:3]) < 2",
    "all(n < 1000 or n == m for n, m in zip({input}.shape[:3], {r1}.shape[:3]))",
)
"""Pages npu_rotary_mul: an even last axis below 896, fewer than 1000 batches and heads; the factors have the
tokens' axis, and where they have the heads' they have all."""


_ATTENTION = (
    "{query}.shape[-1] % 16 == 0 and {query}.shape[-1] <= 512 and {query}.shape[-1] == {value}.shape[-1]",
    "{query}.shape[0] <= 2048 and {query}.shape[1] <= 256",
)
"""Pages npu_fusion_attention: features in sixteens up to 512, alike in all three, 256 heads, 2048 batches."""


class ParameterKind(StrEnum):
    TENSOR = "tensor"
    OPTIONAL = "optional"
    """A tensor that may be left out."""
    NUMBER = "number"
    CHOICE = "choice"
    """One of a few values."""
    AXIS = "axis"
    """An axis of the first tensor, counted from the end."""
    AXES = "axes"
    """How many axes at the end."""
    GROUPS = "groups"
    """A divisor of the second axis."""
    SPELLING = "spelling"
    """One of a few ways to write the same, and no argument of the function."""


@frozen
class VendorParameter:
    """``least`` and ``most`` axes of a tensor. ``name`` is that of the function's argument and of the
    composition's."""

    name: str
    kind: ParameterKind = ParameterKind.TENSOR
    choices: tuple[Any, ...] = ()
    least: int = 1
    most: int = 8


@frozen
class VendorFunction:
    """``call``: the arguments as text, with the parameters' names in braces. ``results``: their dtypes, ""
    for the first tensor's. ``marks``: kinds of terms without which no graph is this function. ``limits``:
    conditions on operands, as Python, that hold in each call. ``several``: it gives more results
    than these, which stand in front. ``operator``: CANN's own name where published
    rows have it."""

    name: str
    composition: Composition
    parameters: tuple[VendorParameter, ...]
    call: str
    results: tuple[str, ...]
    marks: frozenset[str]
    dtypes: tuple[str, ...] = FLOATS
    limits: tuple[str, ...] = ()
    operator: str = ""
    several: bool = False


def _tensor(name: str, least: int = 1, most: int = 8) -> VendorParameter:
    return VendorParameter(name, least=least, most=most)


def _optional(name: str) -> VendorParameter:
    return VendorParameter(name, ParameterKind.OPTIONAL)


def _number(name: str) -> VendorParameter:
    return VendorParameter(name, ParameterKind.NUMBER)


def _choice(name: str, *values: Any) -> VendorParameter:
    return VendorParameter(name, ParameterKind.CHOICE, values)


_INPUT = _tensor("input")
_GATED = frozenset({"part", "sigmoid"})
TABLE: tuple[VendorFunction, ...] = (
    VendorFunction(
        "npu_add_rms_norm",
        compositions.add_rms_norm,
        (_tensor("x1"), _tensor("x2"), _tensor("gamma"), _number("epsilon")),
        "{x1}, {x2}, {gamma}, {epsilon}",
        ("", "float32", ""),
        frozenset({"mean", "sum", "power"}),
    ),
    VendorFunction(
        "npu_rms_norm",
        compositions.rms_norm,
        (_INPUT, _tensor("gamma"), _number("epsilon")),
        "{input}, {gamma}, epsilon={epsilon}",
        ("", "float32"),
        frozenset({"mean", "sum", "power"}),
    ),
    VendorFunction(
        "npu_layer_norm_eval",
        compositions.layer_norm,
        (
            _INPUT,
            _optional("weight"),
            _optional("bias"),
            _number("eps"),
            VendorParameter("axes", ParameterKind.AXES),
        ),
        "{input}, list({input}.shape[-{axes}:]), {weight}, {bias}, {eps}",
        ("",),
        frozenset({"mean", "sum", "power"}),
    ),
    VendorFunction(
        "npu_group_norm_silu",
        compositions.group_norm_silu,
        (
            _tensor("input", 2),
            _tensor("weight"),
            _tensor("bias"),
            _number("eps"),
            VendorParameter("group", ParameterKind.GROUPS),
            VendorParameter("flat", ParameterKind.SPELLING, (False, True)),
        ),
        "{input}, {weight}, {bias}, {group}, {eps}",
        ("",),
        frozenset({"mean", "sum", "power", "sigmoid", "reshape"}),
        operator="GroupNormSilu",
        several=True,
    ),
    VendorFunction(
        "npu_swiglu",
        compositions.swiglu,
        (_INPUT, VendorParameter("dim", ParameterKind.AXIS)),
        "{input}, dim={dim}",
        ("",),
        _GATED,
        operator="SwiGlu",
    ),
    VendorFunction(
        "npu_geglu",
        compositions.geglu,
        (
            _INPUT,
            VendorParameter("dim", ParameterKind.AXIS),
            _choice("approximate", 0, 1),
            _choice("activate_left", False, True),
        ),
        "{input}, dim={dim}, approximate={approximate}, activate_left={activate_left}",
        ("", ""),
        frozenset({"part", "sum"}),
    ),
    VendorFunction(
        "npu_rotary_mul",
        compositions.rotary_mul,
        (
            _tensor("input", 4, 4),
            _tensor("r1", 4, 4),
            _tensor("r2", 4, 4),
            _choice("rotary_mode", "half", "interleave"),
        ),
        "{input}, {r1}, {r2}, rotary_mode={rotary_mode}",
        ("",),
        frozenset({"part", "join", "sum"}),
        limits=_ROTARY,
    ),
    VendorFunction(
        "npu_dynamic_quant",
        compositions.dynamic_quant,
        (
            _tensor("input", 2),
            _optional("smooth_scales"),
            VendorParameter("clamp", ParameterKind.SPELLING, _BOUNDS),
        ),
        "{input}, smooth_scales={smooth_scales}",
        ("int8", "float32"),
        frozenset({"amax", "abs", "round", "cast"}),
        dtypes=HALVES,
        operator="DynamicQuant",
    ),
    VendorFunction(
        "npu_fusion_attention",
        compositions.attention,
        (_tensor("query", 4, 4), _tensor("key", 4, 4), _tensor("value", 4, 4), _number("scale")),
        "{query}, {key}, {value}, {query}.shape[1], 'BNSD', scale={scale}",
        ("",),
        frozenset({"attention"}),
        several=True,
        dtypes=HALVES,
        limits=_ATTENTION,
    ),
    VendorFunction(
        "npu_fast_gelu", compositions.fast_gelu, (_INPUT,), "{input}", ("",), frozenset({"sigmoid"})
    ),
    VendorFunction("npu_silu", compositions.silu, (_INPUT,), "{input}", ("",), frozenset({"sigmoid"})),
    VendorFunction(
        "npu_mish", compositions.mish, (_INPUT,), "{input}", ("",), frozenset({"tanh", "softplus"})
    ),
    VendorFunction(
        "npu_gelu",
        compositions.gelu,
        (_INPUT, _choice("approximate", "none", "tanh")),
        "{input}, approximate={approximate}",
        ("",),
        frozenset({"sum"}),
    ),
)
"""The more that a function fuses the earlier it stands: the first that a region is is taken."""
