"""Differences between versions of torch: what a trace took for granted, whatever the version calls it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sympy
import torch
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv
from torch.fx.passes.shape_prop import _extract_tensor_metadata

from evokernel_core.capture import agent
from evokernel_core.capture.agent import torch_compat
from evokernel_core.capture.agent.loading.npu import _Operations
from evokernel_core.capture.agent.torch_compat import (
    assumptions,
    captured_sizes,
    default_decompositions,
    export_program,
    output_node,
    plain_operations,
)

AGENT = Path(agent.__file__).parent
a, b = (sympy.Symbol(name, integer=True, positive=True) for name in "ab")


def environment(**fields: Any) -> Any:
    return SimpleNamespace(**{"guards": [], "deferred_runtime_asserts": {}, **fields})


def said(*expressions: Any) -> list[Any]:
    return [SimpleNamespace(expr=expression) for expression in expressions]


def test_what_is_left_to_be_checked_at_run_time_is_assumed_as_well() -> None:
    found = assumptions(
        environment(guards=said(a > 2), deferred_runtime_asserts={None: said(sympy.Eq(a, b))})
    )
    assert found == [a > 2, sympy.Eq(a, b)]


@pytest.mark.parametrize(("guard", "kept"), [(sympy.Ne(a, 2**63 - 1), False), (sympy.Ne(a, 7), True)])
def test_that_no_size_is_the_open_end_of_a_slice_is_no_assumption(guard: Any, kept: bool) -> None:
    assert assumptions(environment(guards=said(guard))) == ([guard] if kept else [])


@pytest.mark.parametrize("name", ["var_to_val", "backed_var_to_val"])
def test_captured_sizes_have_two_names(name: str) -> None:
    assert captured_sizes(environment(**{name: {a: sympy.Integer(4)}})) == {a: 4}


@pytest.mark.parametrize("asked", [False, True])
def test_what_is_compared_does_not_follow_the_format_that_is_asked_for_first(
    asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Versions whose description of a result ends with its first format, and those that go on."""
    describe = partial(_extract_tensor_metadata, include_contiguity=asked)
    monkeypatch.setattr(torch_compat, "_extract_tensor_metadata", describe)
    image = ShapeEnv(duck_shape=False)
    sizes = [
        image.create_symintnode(image.create_symbol(n, source, DimDynamic.DYNAMIC), hint=n, source=source)
        for n, source in ((8, ConstantSource("height")), (8, ConstantSource("width")))
    ]
    with FakeTensorMode(shape_env=image), plain_operations():
        make_fx(lambda x: torch.nn.functional.avg_pool2d(x, 8))(torch.empty(2, 4, *sizes))
    assert sum(isinstance(guard, sympy.Eq) for guard in assumptions(image)) >= 2


def test_no_library_of_the_host_is_asked_for_a_convolution() -> None:
    before = torch._C._select_conv_backend
    with plain_operations():
        for dimensions, name in ((4, "Slow2d"), (5, "Slow3d")):
            weight = torch.empty((1,) * dimensions)
            assert torch._C._select_conv_backend(weight, weight, bias=None).name == name
    assert torch._C._select_conv_backend is before


def test_pooling_asks_for_no_remainder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Older versions compare it with zero, which pins the size."""

    def quotient(x: Any, y: Any) -> Any:
        raise AssertionError("asked")

    monkeypatch.setattr(torch._meta_registrations, "div_rtn", quotient)
    image = torch.empty((1, 2, 9, 8), device="meta")
    with plain_operations():
        assert torch.nn.functional.avg_pool2d(image, 2).shape == (1, 2, 4, 4)
    with pytest.raises(AssertionError, match="asked"):
        torch.nn.functional.avg_pool2d(image, 2)


class _Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.layer(*inputs)


@pytest.mark.parametrize("old", [False, True])
def test_programs_are_of_composite_operations(old: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """``old``: torch has the names of 2.5."""
    if old:
        monkeypatch.setattr(torch.export, "export_for_training", torch.export.export, raising=False)
        monkeypatch.delattr(torch.export, "default_decompositions")
        monkeypatch.setattr(torch.export, "export", None)
        table = {torch.ops.aten.silu.default: None}
        monkeypatch.setattr(torch._decomp, "core_aten_decompositions", lambda: table)
    program = export_program(_Layer(), (torch.rand(2, 4),), ({},))
    assert "aten.linear.default" in [str(node.target) for node in program.graph.nodes]
    assert output_node(program.graph).op == "output"
    table = default_decompositions()
    for taken, kept in (("linear", "mm"), ("type_as", "view"), ("matmul", "reshape_"), ("silu", "relu_")):
        assert getattr(torch.ops.aten, taken).default in table
        assert not any(str(operation).startswith(f"aten.{kept}.") for operation in table)


def test_the_version_of_torch_is_asked_in_one_module() -> None:
    asking = ("hasattr(torch.export", "(torch.__version__", "torch.__version__.", "torch.version")
    found = {file.name for file in AGENT.rglob("*.py") if any(item in file.read_text() for item in asking)}
    assert found == {"torch_compat.py"}


def test_versions_that_look_through_all_operations_find_the_stand_ins_of_torch_npu() -> None:
    assert list(_Operations(["npu_made_by_test"])) == ["npu_made_by_test"]
    assert list(_Operations(torch.ops.npu)) == list(torch.ops.npu)
