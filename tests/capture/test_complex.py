"""Complex numbers: models that use them stay what they were, and their two parts compute the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from evokernel_core.capture.agent.reference import reference
from evokernel_core.compiler.ops import COMPLEX_MULTIPLY
from evokernel_core.compiler.rewrites.complexes import COMPLEX, complex_in_parts
from evokernel_core.domain.region import Region
from evokernel_core.domain.serial import to_data
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc import author
from evokernel_core.targets.ascendc.author import legalised
from tests.capture.test_full_graph import assert_same_model, model

Z = "torch.randn(4, 6, 5, dtype=torch.complex64)"
BUFFER = "self.register_buffer('w', torch.polar(torch.ones(6, 5), torch.linspace(0, 9, 30).view(6, 5)))"
PAIRS = "z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))"
X = "torch.randn(4, 6, 10)"
CHIP = load_chip("ascend910b1")


SAME = {
    "a rotary embedding": (
        BUFFER,
        f"{PAIRS}\nreturn torch.view_as_real(z * self.w).flatten(-2).type_as(x)",
        "torch.randn(4, 6, 10).half()",
    ),
    "a table that is no buffer, from a position on": (
        "self.w = torch.polar(torch.ones(9, 5), torch.rand(9, 5, generator=torch.manual_seed(0)))",
        f"{PAIRS}\nreturn torch.view_as_real(z * self.w[2 : 2 + x.shape[1]]).flatten(-2)",
        X,
    ),
    "complex arguments and results": (BUFFER, "return x * self.w + 1, (x - 2j).real", Z),
    "a conjugate argument": (BUFFER, "return x * self.w", f"{Z}.conj()"),
    "a conjugate buffer": (
        "self.register_buffer('w', torch.linspace(0, 9, 5).to(torch.complex64).mul(1j + 1).conj())",
        "return (x * self.w).abs()",
        Z,
    ),
    "conjugates": ("", "return x.conj() * x, x.conj().imag * 2, (x.conj().resolve_conj() + x).real", Z),
    "magnitudes and angles": ("", "return x.abs() * 2, x.angle(), torch.linalg.vector_norm(x, dim=-1)", Z),
    "numbers made complex": (
        "",
        "y = torch.exp(1j * x).real, torch.exp(x * (0.1 - 2j)).imag\n"
        "return *y, torch.complex(x, x + 1) / (2 + 1j), torch.polar(x, x * 2).real * 2",
        X,
    ),
    "sums and joins": (
        "",
        "y = torch.cat([x, x * 2j], 1)\n"
        "return y.sum(1), y.mean(), torch.stack([x, -x]).flip(0), x.cumsum(1)[:, -1] * 2",
        Z,
    ),
    "views": (
        "",
        "y = x.transpose(1, 2).unsqueeze(0) * 2\n"
        "return y[0, :, 1:3].flatten(1), y.expand(3, -1, -1, -1)[1] + 1",
        Z,
    ),
    "matrices": (
        "self.register_buffer('w', torch.randn(5, 7, dtype=torch.complex64))",
        "return x @ self.w, torch.einsum('bij,bkj->bik', x, x.conj())",
        Z,
    ),
    "quotients, powers and logarithms": (
        "",
        "return x / (x.conj() + 3), 1 / (x + 4), x / (x.abs() + 1), x**2 + x.pow(3), (x + 5).log()",
        Z,
    ),
    "choices": ("", "return torch.where(x.real > 0, x, 0), torch.where((x == x * 1).all(), x, -x) * 2", Z),
    "real tensors among complex ones": (
        "",
        "return x * x.real + x.abs() - x.imag.to(torch.complex64) * 2",
        Z,
    ),
    "a state of complex numbers": (
        "self.w = torch.zeros(4, 6, 5, dtype=torch.complex64)",
        "self.w = self.w * 0.5j + x\nreturn self.w.abs(), F.pad(x, (1, 2)).abs()",
        Z,
    ),
    "a cache that is written": ("", "x[:, 1:3] = x[:, :2] * 2j\nreturn x.abs()", Z),
}


def with_reshapes(graph: dict[str, Any]) -> dict[str, Any]:
    """What is a view of a kernel's contiguous results need be none of PyTorch's."""
    nodes = [
        {**node, "op": "aten.reshape.default"} if node["op"] == "aten.view.default" else node
        for node in graph["nodes"]
    ]
    return {**graph, "nodes": nodes}


def product_of_pairs(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """What the kernels' own operation computes."""
    return torch.view_as_real(torch.view_as_complex(x.contiguous()) * torch.view_as_complex(w.contiguous()))


@pytest.mark.parametrize("name", SAME)
def test_the_edited_model_computes_the_same(
    name: str, whole: Callable[[str], tuple[Region, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    init, forward, shapes = SAME[name]
    text = model(init or "self.a = 1", forward, shapes)
    regions = whole(text)
    assert len(regions) == 1, [item.reason for item in regions]
    (region,) = regions
    assert_same_model(text, region)
    assert region.task is not None
    assert "view_as" not in region.task.name
    assert all(item.spec.dtype != COMPLEX for item in region.task.graph.inputs)

    taken_apart = complex_in_parts(region.task, load_chip())
    assert all(spec.dtype != COMPLEX for node in taken_apart.graph.nodes for spec in node.outputs)
    sizes = region.task.sizes
    torch.manual_seed(0)
    inputs = {
        item.name: torch.randn(item.spec.sizes(sizes)).to(getattr(torch, item.spec.dtype))
        for item in region.task.graph.inputs
    }
    expected = reference.run(to_data(region.task.graph), inputs, sizes)
    monkeypatch.setitem(reference._RULES, COMPLEX_MULTIPLY.name, product_of_pairs)
    found = reference.run(with_reshapes(to_data(taken_apart.graph)), inputs, sizes)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)

    assert legalised(region.task, load_chip())
    author.check(region.task, CHIP)


REFUSED = [
    ("return torch.fft.fft(x.real).abs()", "a Fourier transform (aten._fft_"),
    ("return torch.fft.ifft(x).abs()", "a Fourier transform (aten._fft_c2c on complex numbers)"),
    ("return torch.sigmoid(x).real", "aten.sigmoid on complex numbers"),
    ("return (x * x.to(torch.complex128)).real.float()", "complex128"),
    ("return torch.linalg.inv(x[:, :5]).real", "solves or factors matrices"),
]


@pytest.mark.parametrize(("forward", "reason"), REFUSED)
def test_why_there_is_no_region(
    forward: str, reason: str, whole: Callable[[str], tuple[Region, ...]]
) -> None:
    regions = whole(model("self.a = 1", forward, Z))
    assert reason in " ".join(item.reason for item in regions if item.task is None)


def test_the_rest_is_planned_in_parts(whole: Callable[[str], tuple[Region, ...]]) -> None:
    forward = (
        "y = torch.view_as_real(x * 2j).flatten(-2).relu()\n"
        "z = torch.sigmoid(torch.view_as_complex(y.reshape(4, 6, 5, 2)))\nreturn (z * (1 + x)).real * 2"
    )
    found = [item for item in whole(model("self.a = 1", forward, Z)) if item.task is not None]
    assert [item.source for item in found] == [
        "torch.view_as_real(x * 2j).flatten(-2).relu()",
        "(z * (1 + x)).real * 2",
    ]
