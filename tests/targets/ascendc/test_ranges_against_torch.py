"""Every element-wise operation on the twin over wide inputs: results stay in the range of PyTorch's own, and
are NaN where PyTorch's are and nowhere else."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from evokernel_core.compiler.lowering.pointwise import POINTWISE
from evokernel_core.compiler.ops import SIZE

INF = math.inf
EDGES = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, INF, -INF, math.nan, 1e-38, -1e-38, 1e-20, -1e-20),
    *(1e-10, 1e-4, -1e-3, 3.4e38, -3.4e38, 1e30, -1e30, 1e10, -1e10, 1e6, -1e6, 65504.0, -65504.0, 2049.0),
    *(8191.5, 80.0, 88.0, 89.0, -88.0, -104.0, 0.99999994, -0.99999994, 1.0000001, math.pi, math.pi / 2),
    *(-math.pi / 2, 355.0, 710.0, 1e5, -2e7),
)


def wide(seed: int) -> torch.Tensor:
    """Numbers of all magnitudes and the edges, in an order that the seed gives."""
    rng = np.random.default_rng(seed)
    magnitudes = np.exp(rng.uniform(-85, 85, 160)) * rng.choice([-1, 1], 160)
    parts = (EDGES, magnitudes, rng.normal(size=200), rng.uniform(-1, 1, 100), rng.uniform(-2e4, 2e4, 100))
    return torch.tensor(rng.permutation(np.concatenate(parts))).float()


PLAIN = """abs acos acosh asin asinh atan atanh ceil cos cosh erf erfc erfinv exp exp2 expm1 floor gelu
    hardsigmoid hardswish isinf log log10 log1p log2 mish neg reciprocal relu relu6 round rsqrt sigmoid sign
    signbit silu sin sinh softplus sqrt square tan tanh trunc ones_like zeros_like"""
PAIRS = """atan2.default copysign.Tensor div.Tensor fmax.default fmin.default fmod.Tensor heaviside.default
    hypot.default logaddexp.default logaddexp2.default maximum.default minimum.default pow.Tensor_Tensor
    remainder.Tensor add.Tensor sub.Tensor mul.Tensor rsub.Tensor clamp_max.Tensor clamp_min.Tensor eq.Tensor
    ne.Tensor lt.Tensor le.Tensor gt.Tensor ge.Tensor"""
ARITHMETIC = ("add", "sub", "mul", "rsub", "eq", "ne", "lt", "le", "gt", "ge")
X, Y = "x", "y"
CALLS: dict[str, tuple[Any, ...]] = {
    **{f"{name}.default": (X,) for name in PLAIN.split()},
    **dict.fromkeys(PAIRS.split(), (X, Y)),
    **{f"{name}.Scalar": (X, 0.7) for name in ARITHMETIC},
    "addcdiv.default": (X, Y, X),
    "addcmul.default": (X, Y, X),
    "clamp.default": (X, -0.5, 0.75),
    "clamp.Tensor": (X, Y, X),
    "clamp_max.default": (X, 0.75),
    "clamp_min.default": (X, -0.5),
    "copysign.Scalar": (X, -2.0),
    "div.Scalar": (X, 3.7),
    "div.Tensor_mode": (X, Y),
    "elu.default": (X, 1.5, 1.1),
    "fmod.Scalar": (X, 2.3),
    "hardtanh.default": (X, -1.0, 2.0),
    "leaky_relu.default": (X, 0.02),
    "lerp.Scalar": (X, Y, 0.3),
    "lerp.Tensor": (X, Y, X),
    "pow.Scalar": (2.5, X),
    "pow.Tensor_Scalar": (X, 3),
    **{f"pow.Tensor_Scalar {exponent}": (X, exponent) for exponent in (0.3, -1.5, -2)},
    "div.Tensor_mode 2": (X, 2.0),
    "div.Tensor_mode 3": (X, 3.0),
    "gelu.default tanh": (X,),
    "remainder.Scalar": (X, -1.7),
}
"""By ATen name, and what tells several calls of it apart, the arguments."""
KEYWORDS: dict[str, dict[str, Any]] = {
    **{name: {"rounding_mode": "floor"} for name in CALLS if name.startswith("div.Tensor_mode")},
    "gelu.default tanh": {"approximate": "tanh"},
}
ELSEWHERE = frozenset(
    """bitwise_and.Tensor bitwise_not.default bitwise_or.Tensor bitwise_xor.Tensor logical_and.default
    logical_not.default logical_or.default logical_xor.default where.ScalarOther where.ScalarSelf where.Scalar
    where.self masked_fill.Scalar masked_fill.Tensor fill.Scalar full.default full_like.default
    scalar_tensor.default _to_copy.default""".split()  # noqa: SIM905
)
"""Operations that choose, or have truth values or constants; conversions have a table of their own."""
RANGES = {
    **dict.fromkeys(("cos", "sin", "tanh", "erf", "sign"), (-1.0, 1.0)),
    **dict.fromkeys(("sigmoid", "hardsigmoid"), (0.0, 1.0)),
    **dict.fromkeys(("abs", "exp", "exp2", "sqrt", "square", "relu", "hypot", "acosh", "rsqrt"), (0.0, INF)),
    **dict.fromkeys(("asin", "atan"), (-math.pi / 2, math.pi / 2)),
    "acos": (0.0, math.pi),
    "atan2": (-math.pi, math.pi),
    "cosh": (1.0, INF),
    "erfc": (0.0, 2.0),
    "expm1": (-1.0, INF),
    "gelu": (-0.17, INF),
    "mish": (-0.30885, INF),
    "relu6": (0.0, 6.0),
    "softplus": (0.0, INF),
    "elu": (-1.65, INF),
}
"""By packet, between what results lie, up to a unit in the last place of bounds that no float is."""
ZEROS = frozenset({"silu.default", "sigmoid.default"})
"""Operations that are 0 wherever PyTorch's are: what is quantised by its own largest element shows."""
UNDEFINED = {
    "gelu.default": "infinity, of which PyTorch gives inf or NaN by its place in the tensor",
    "hypot.default": "infinity beside NaN, of which PyTorch gives either by the type",
    "lerp.Tensor": "differences that overflow",
    "fmod.Tensor": "quotients beyond float32",
    "remainder.Tensor": "quotients beyond float32",
    "div.Tensor_mode": "quotients beyond float32",
    "addcdiv.default": "infinities that meet",
}
"""Operations that may give NaN where PyTorch does not, or the other way, and of what."""


def groups(size: int = 12) -> list[tuple[str, ...]]:
    names = sorted(CALLS)
    return [tuple(names[start : start + size]) for start in range(0, len(names), size)]


def test_every_operation_has_a_row() -> None:
    written = {name.removeprefix("aten.") for name in POINTWISE if name != SIZE.name}
    assert written == {name.partition(" ")[0] for name in CALLS} | ELSEWHERE


def results(names: tuple[str, ...], dtype: str, builder: Any, on_twin: Any) -> Any:
    """For each operation its name, PyTorch's result and the kernel's in float64; and the inputs."""
    given = {X: wide(1).to(getattr(torch, dtype)), Y: wide(2).to(getattr(torch, dtype))}
    graph, wanted, calls = builder(), [], []
    refs = {name: graph.input(name, [len(value)], dtype) for name, value in given.items()}
    for name in names:
        operation = name.partition(" ")[0]
        packet, overload = operation.split(".")
        function = getattr(getattr(torch.ops.aten, packet), overload)
        values = [given.get(arg, arg) if isinstance(arg, str) else arg for arg in CALLS[name]]
        result = function(*values, **KEYWORDS.get(name, {}))
        args = [refs.get(arg, arg) if isinstance(arg, str) else arg for arg in CALLS[name]]
        kind = str(result.dtype).removeprefix("torch.")
        calls.append(graph.call(operation, *args, shape=[len(result)], dtype=kind, **KEYWORDS.get(name, {})))
        wanted.append(result.double().numpy())
    raw = {
        name: value.float().numpy() if dtype == "bfloat16" else value.numpy() for name, value in given.items()
    }
    found = on_twin.tolerant(graph.task(*calls), raw)
    return given, list(zip(names, wanted, (np.asarray(item, "f8") for item in found), strict=True))


def check(names: tuple[str, ...], dtype: str, builder: Any, on_twin: Any) -> None:
    given, found = results(names, dtype, builder, on_twin)
    for name, want, got in found:
        args = [given[arg].double().numpy() for arg in CALLS[name] if arg in (X, Y)]
        strange = np.isnan(got) != np.isnan(want)
        if name in UNDEFINED:
            strange &= np.all([np.abs(arg) < 1e15 for arg in args], axis=0)
            strange &= np.all([np.abs(arg) > 1e-15 for arg in args], axis=0)
        assert not strange.any(), (name, [arg[strange][:3] for arg in args], want[strange][:3])
        if name in ZEROS:
            assert not got[want == 0.0].any(), (name, [arg[(want == 0.0) & (got != 0.0)][:3] for arg in args])
        least, most = RANGES.get(name.split(".")[0], (-INF, INF))
        slack = {"float32": 1.2e-7, "float16": 1e-3, "bfloat16": 8e-3}[dtype]
        exact = {0.0, 1.0, -1.0, 6.0}
        least -= 0.0 if least in exact else slack * abs(least) if least > -INF else 0.0
        most += 0.0 if most in exact else slack * abs(most) if most < INF else 0.0
        outside = ((got < least) | (got > most)) & (want >= least) & (want <= most)
        assert not outside.any(), (name, [arg[outside][:3] for arg in args], got[outside][:3])


@pytest.mark.parametrize("names", groups(), ids=lambda names: names[0])
def test_results_stay_in_the_range_of_float32(names: tuple[str, ...], builder: Any, on_twin: Any) -> None:
    check(names, "float32", builder, on_twin)


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("names", groups(), ids=lambda names: names[0])
def test_results_stay_in_the_range_of_16_bits(
    names: tuple[str, ...], dtype: str, builder: Any, on_twin: Any
) -> None:
    check(names, dtype, builder, on_twin)
