"""Operations that PyTorch's CPU kernels lack in half types: computed in float32 and rounded once."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from evokernel_core.capture.agent.reference.half_precision import computed, types_that_differ  # noqa: E402

aten = torch.ops.aten


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_missing_kernel_is_replaced_by_that_of_float32(dtype: torch.dtype) -> None:
    x = torch.randn(1, 2, 4, 6, 4).to(dtype)
    with pytest.raises(NotImplementedError):
        aten.avg_pool3d.default(x, [2, 2, 2], [2, 2, 2])
    found = computed(aten.avg_pool3d.default)(x, [2, 2, 2], [2, 2, 2])
    wide = aten.avg_pool3d.default(x.float(), [2, 2, 2], [2, 2, 2])
    assert found.dtype == dtype
    assert torch.equal(found, wide.to(dtype))


def test_indices_beside_a_replaced_result_keep_their_type() -> None:
    def operator(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if x.dtype == torch.float16:
            raise NotImplementedError("\"kernel\" not implemented for 'Half'")
        return x, torch.arange(x.numel())

    values, indices = computed(operator)(torch.ones(3, dtype=torch.float16))
    assert (values.dtype, indices.dtype) == (torch.float16, torch.int64)


def test_an_operator_with_half_types_computes_as_it_does() -> None:
    x, y = torch.randn(2, 64).to(torch.bfloat16)
    assert torch.equal(computed(aten.mul.Tensor)(x, y), x * y)


def test_what_else_an_operator_lacks_is_still_an_error() -> None:
    def operator(_: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError("the operator has no kernel for this device")

    with pytest.raises(NotImplementedError, match="this device"):
        computed(operator)(torch.ones(1))


def _graph(op: str, *types: str) -> dict[str, Any]:
    names = ["a", "b", "c", "d"][: len(types)]
    inputs = [{"name": name, "spec": {"dtype": dtype}} for name, dtype in zip(names, types, strict=True)]
    args = [{"ref": name, "index": 0} for name in names]
    node = {"name": "z", "op": op, "line": 7, "args": args, "outputs": [{"dtype": types[0]}]}
    return {"inputs": inputs, "nodes": [node]}


@pytest.mark.parametrize(("op", "types", "found"), [
    ("aten.mm.default", ["float16", "float32"], "Line 7 multiplies float16 by float32"),
    ("aten.mm.default", ["bfloat16", "bfloat16"], ""),
    ("aten.convolution.default", ["float16", "float16", "float32"], "Line 7 multiplies float16 by float32"),
    ("aten.scaled_dot_product_attention.default", ["float16"] * 3 + ["float32"], ""),
    ("aten.add.Tensor", ["float16", "float32"], ""),
])  # fmt: skip
def test_products_of_two_types_are_found(op: str, types: list[str], found: str) -> None:
    assert types_that_differ(_graph(op, *types)).split(",")[0] == found
