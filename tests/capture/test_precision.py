"""Long sums of float32 are computed again in float64, and moved as they round, where results are smaller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evokernel_core.capture.agent.reference.precision import ATTENTION, attention, convolution, rounded
from evokernel_core.capture.agent.reference.reference import reference

FLOAT = {"dtype": "float32", "contiguous": True}


def product(*behind: tuple[str, list[Any]]) -> dict[str, Any]:
    """x @ y, and unary ops behind it, as the graph's JSON."""
    specs = {"x": [16, 400], "y": [400, 24]}
    inputs = [{"name": name, "kind": "tensor", "spec": {"shape": shape, **FLOAT}}
              for name, shape in specs.items()]  # fmt: skip
    args: list[Any] = [{"ref": "x", "index": 0}, {"ref": "y", "index": 0}]
    nodes: list[dict[str, Any]] = []
    for op, rest in (("aten.mm.default", []), *behind):
        name, spec = f"n{len(nodes)}", {"shape": [16, 24], **FLOAT}
        nodes.append({"name": name, "op": op, "args": [*args, *rest], "kwargs": [], "outputs": [spec]})
        args = [{"ref": name, "index": 0}]
    return {"inputs": inputs, "nodes": nodes, "outputs": args}


def read(path: str) -> torch.Tensor:
    return torch.frombuffer(bytearray(Path(path).read_bytes()), dtype=torch.float32)


def test_a_clamp_behind_a_product_is_measured_again(tmp_path: Path) -> None:
    graph = product(("aten.clamp.default", [-1.0, 1.0]))
    case = reference(graph, {}, 0, "normal", str(tmp_path), rounded=True)
    precise, moved = read(case["precise"][0]), read(case["rounded"][0])
    torch.testing.assert_close(read(case["outputs"][0]), precise, rtol=1e-4, atol=1e-4)
    gap = (moved - precise).abs().max()
    assert 0 < gap < 1e-3


@pytest.mark.parametrize("behind", [(), (("aten.relu.default", []),)])
def test_results_as_large_as_the_sum_are_not(behind: Any, tmp_path: Path) -> None:
    case = reference(product(*behind), {}, 0, "normal", str(tmp_path), rounded=False)
    assert case["precise"] == case["rounded"] == []
    assert case["rounds"]


@pytest.mark.parametrize("one_sign", [False, True])
def test_float32_sums_in_order_stay_within_the_rounding(one_sign: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    x, y = (torch.randn(shape, generator=generator) for shape in ((16, 4000), (4000, 24)))
    if one_sign:
        x, y = x.abs(), y.abs()
    total = torch.zeros(16, 24)
    for k in range(4000):
        total += x[:, k : k + 1] * y[k : k + 1]
    exact = x.double() @ y.double()
    moved = rounded("aten.mm.default", [x.double(), y.double()], {}, exact, generator, each=False)
    assert (total - exact).abs().max() < (moved - exact).abs().max()


def test_other_ops_are_left_alone() -> None:
    x = torch.ones(3, dtype=torch.float64)
    for each in (False, True):
        assert rounded("aten.relu.default", [x], {}, x, torch.Generator(), each=each) is x
    assert rounded("aten.exp.default", [x], {}, x, torch.Generator(), each=False) is x
    assert not torch.equal(rounded("aten.exp.default", [x], {}, x, torch.Generator(), each=True), x)


@given(
    groups=st.sampled_from((1, 2, 3, 6)),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.integers(1, 2),
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    dilation=st.integers(1, 2),
    biased=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_a_convolution_in_groups_of_float64_is_pytorchs(
    groups: int,
    kernel: tuple[int, int],
    stride: int,
    padding: tuple[int, int],
    dilation: int,
    biased: bool,
) -> None:
    x = torch.randn(2, 6, 9, 8, dtype=torch.float64)
    weight = torch.randn(12, 6 // groups, *kernel, dtype=torch.float64)
    bias = torch.randn(12, dtype=torch.float64) if biased else None
    rest = ([stride] * 2, list(padding), [dilation] * 2, False, [0, 0], groups)
    expected = torch.ops.aten.convolution.default(x, weight, bias, *rest)
    torch.testing.assert_close(convolution(x, weight, bias, *rest), expected, rtol=1e-12, atol=1e-12)


@settings(max_examples=12, deadline=None)
@given(
    shared=st.sampled_from([1, 2, 4]), mask=st.sampled_from(["none", "bool", "float"]), causal=st.booleans(),
    scale=st.sampled_from([None, 0.3]),
)  # fmt: skip
def test_rounded_attention_is_pytorchs_but_for_the_rounding(
    shared: int, mask: str, causal: bool, scale: float | None
) -> None:
    generator = torch.Generator().manual_seed(shared)
    query = torch.randn(2, 4, 9, 8, generator=generator, dtype=torch.float64)
    key, value = (torch.randn(2, shared, 11, 8, generator=generator, dtype=torch.float64) for _ in range(2))
    hidden = torch.rand(9, 11, generator=generator, dtype=torch.float64)
    given_mask = {"none": None, "bool": hidden > 0.2, "float": hidden}[mask]
    options: dict[str, Any] = {"scale": scale, "enable_gqa": shared < 4}
    given_mask = None if causal else given_mask
    exact = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, given_mask, is_causal=causal, **options
    )
    moved = attention(query, key, value, given_mask, 0.0, causal, **options, generator=generator)
    torch.testing.assert_close(moved, exact, rtol=1e-4, atol=1e-5)
    assert not torch.equal(moved, exact)


def test_large_scores_show_how_far_their_rounding_moves_attention(tmp_path: Path) -> None:
    """Exponents of thousands keep few digits behind the point."""
    shape = [1, 255, 255]
    inputs = [{"name": name, "kind": "tensor", "spec": {"shape": shape, **FLOAT}} for name in "qkv"]
    args = [{"ref": name, "index": 0} for name in "qkv"]
    node = {"name": "a", "op": ATTENTION, "args": args, "kwargs": [],
            "outputs": [{"shape": shape, **FLOAT}]}  # fmt: skip
    graph = {"inputs": inputs, "nodes": [node], "outputs": [{"ref": "a", "index": 0}]}
    case = reference(graph, {}, 0, "wide", str(tmp_path), rounded=True)
    moved = read(case["rounded"][0]) - read(case["precise"][0])
    assert moved.abs().max() > 1e-2


def resized(rows: int) -> dict[str, Any]:
    """An image of 64 columns to ``rows`` of 1,024."""
    inputs = [{"name": "x", "kind": "tensor", "spec": {"shape": [1, 1, 64, 64], **FLOAT}}]
    node = {"name": "y", "op": "aten.upsample_bicubic2d.default", "kwargs": [],
            "args": [{"ref": "x", "index": 0}, [rows, 1024], True, None, None],
            "outputs": [{"shape": [1, 1, rows, 1024], **FLOAT}]}  # fmt: skip
    return {"inputs": inputs, "nodes": [node], "outputs": [{"ref": "y", "index": 0}]}


@pytest.mark.parametrize("rows", [16, 4096])
def test_weights_of_resizing_are_computed_again_however_large_the_image(rows: int, tmp_path: Path) -> None:
    """PyTorch's float32 places are rounded by up to 2^-18, and so are weights, whatever is left of terms."""
    case = reference(resized(rows), {}, 0, "normal", str(tmp_path), rounded=True)
    found, precise = read(case["outputs"][0]), read(case["precise"][0])
    gap = (found - precise).abs().max()
    assert 2.0**-22 < gap < 2.0**-14
