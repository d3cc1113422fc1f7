"""What a call asks before a kernel stands for the code: everything that the trace took from Python."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest
import torch

from evokernel_core.domain.region import Region
from tests.capture.edited import edited_module, runs
from tests.capture.test_full_graph import assert_same_model

Whole = Callable[[str], tuple[Region, ...]]
FILE = """
import math
import types
import torch
from torch import nn
import torch.nn.functional as F

LIMIT = 6.0

class Config:
    def __init__(self):
        self.scale, self.act, self.sizes = 0.5, F.gelu, (1, 2)

class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.eps = 1e-6
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}
    def forward(self, x, y):
        {forward}

def get_inputs():
    c = torch.randn(4, 6)
    return [torch.randn(4, 6), {second}]
"""
ROWS = {
    "a divisor made of an integer": ("self.dim = 64", "return x / math.sqrt(self.dim)",
                                     "guards.equal(self.dim, 64)"),
    "a global": ("pass", "return x.clamp(max=LIMIT)", "guards.equal(LIMIT, 6.0)"),
    "an object": ("self.config = Config()", "return self.config.act(x)",
                  'guards.named(self.config.act, "torch._C._nn.gelu")'),
    "a namespace": ("self.config = types.SimpleNamespace(n=3)", "return x * self.config.n",
                    "guards.equal(self.config.n, 3)"),
    "a layer": ("self.act = nn.GELU('tanh')", "return self.act(x)", "guards.plain(self.act, torch.nn.GELU)"),
    "a layer's setting": ("self.act = nn.GELU('tanh')", "return self.act(x)",
                          "guards.equal(self.act.approximate, 'tanh')"),
    "a module of the file": ("self.norm = Norm()", "return self.norm(x)",
                             'guards.plain(self.norm, "Norm", "model.py")'),
    "a forward called by name": ("self.norm = Norm()", "return self.norm.forward(x)",
                                 'guards.defined(self.norm.forward, "model.py:Norm.forward")'),
    "a setting in a closure": ("scale = 0.5; self.scaled = lambda x: x * scale", "return self.scaled(x) + y",
                               "guards.equal(self.scaled.__closure__[0].cell_contents, 0.5)"),
    "the mode": ("self.drop = nn.Dropout(0.5)", "return self.drop(x)", "self.drop.training is True"),
    "how many layers": ("self.layers = nn.ModuleList([nn.ReLU(), nn.Tanh()])",
                        "for layer in self.layers:\n    x = layer(x)\nreturn x",
                        "list(self.layers._modules) == ['0', '1']"),
    "what is not there": ("pass", "return x * getattr(self, 'gain', 2.0)", 'not hasattr(self, "gain")'),
    "sizes of a tensor that no kernel takes": ("pass", "return F.pad(x, [0, y.shape[1] - 3])",
                                               "y.shape[1] == 6"),
}  # fmt: skip


def text(init: str, forward: str, second: str = "c") -> str:
    body = dedent(forward).replace("\n", "\n        ")
    return FILE.format(init=init, forward=body, second=second)


@pytest.mark.parametrize("name", ROWS)
def test_what_was_read_is_asked(name: str, whole: Whole) -> None:
    init, forward, expected = ROWS[name]
    (region,) = whole(text(init, forward))
    assert region.site is not None, region.reason
    assert expected in [guard.condition for guard in region.site.guards]


def test_an_eps_is_an_operand_and_no_guard(whole: Whole) -> None:
    (region,) = whole(text("self.norm = Norm()", "return self.norm(x)"))
    assert region.task is not None and region.site is not None
    assert ("self.norm.eps", 1e-6) in [(item.expression, item.value) for item in region.task.graph.inputs]
    assert not any("eps" in guard.condition for guard in region.site.guards)


@pytest.mark.parametrize("forward", ["return x * self.s if self.s < 1 else x", "return x * self.s ** 2"])
def test_a_number_that_the_code_looks_at_is_a_guard(forward: str, whole: Whole) -> None:
    (region,) = whole(text("self.s = 0.25", forward))
    assert region.site is not None, region.reason
    assert "guards.equal(self.s, 0.25)" in [guard.condition for guard in region.site.guards]


def test_a_tensor_that_is_passed_twice_is_two_operands(whole: Whole) -> None:
    (region,) = whole(text("pass", "cos, sin = y\nreturn x * cos + x.exp() * sin", "(c, c)"))
    assert region.task is not None, region.reason
    assert {item.expression for item in region.task.graph.inputs} == {"x", "y[0]", "y[1]"}


def test_the_code_of_functions_that_are_called_has_a_digest(whole: Whole) -> None:
    one, other = (
        whole(text("self.norm = Norm()", "return self.norm(x)").replace(".pow(2)", power))[0]
        for power in (".pow(2)", ".pow(4)")
    )
    assert one.site is not None and other.site is not None
    ((place, digest),), ((_, changed),) = one.site.code, other.site.code
    assert place == "model.py:Norm.forward"
    assert digest != changed


HELPED = FILE.replace("class Config", "def gated(x):\n    return x * x.sigmoid()\n\nclass Config")


@pytest.mark.parametrize("replaced", [{}, {"gated": lambda x: x + 1}, {"LIMIT": 0.5}])
def test_globals_that_are_replaced(whole: Whole, replaced: dict[str, Any]) -> None:
    source = HELPED.replace("{init}", "pass").replace("{forward}", "return gated(x).clamp(max=LIMIT) * y")
    (region,) = whole(dedent(source.replace("{second}", "c")))
    assert region.site is not None, region.reason
    assert region.site.parameters == ("x", "y")
    assert region.site.module_names == ("gated", "LIMIT")
    module = edited_module(dedent(source.replace("{second}", "c")), region)
    vars(module).update(replaced)
    x, y = torch.randn(4, 6), torch.randn(4, 6)
    gated, limit = vars(module)["gated"], vars(module)["LIMIT"]
    torch.testing.assert_close(module.Model()(x, y), gated(x).clamp(max=limit) * y)
    assert runs(module) == (not replaced)


LAYERS = "nn.ModuleDict({'up': nn.Linear(6, 6), '0': nn.GELU()})"
CLOSURE = "self.made = lambda x: m['0'](m.up(x))"


@torch.no_grad()
def test_layers_that_a_lambda_keeps(whole: Whole) -> None:
    source = text(f"m = self.mlp = {LAYERS}; {CLOSURE}", "return self.made(x) * y")
    (region,) = whole(source)
    assert region.task is not None, region.reason
    assert "self.mlp['up'].weight" in {item.expression for item in region.task.graph.inputs}
    module = edited_module(source, region)
    x, y = torch.randn(4, 6), torch.randn(4, 6)
    model, other = module.Model(), module.Model()
    torch.testing.assert_close(model(x, y), model.made(x) * y)
    assert runs(module) == 1
    model.made = other.made  # whose layers are not those of model.mlp
    torch.testing.assert_close(model(x, y), other.made(x) * y)
    assert runs(module) == 1


def test_layers_that_no_attribute_reaches_are_refused(whole: Whole) -> None:
    (region,) = whole(text(f"m = {LAYERS}; {CLOSURE}", "return self.made(x) * y"))
    assert region.task is None and "which a call cannot pass" in region.reason


@pytest.mark.parametrize("changed", ["x * 3 + x", "x * 2 + x"])
def test_a_lambda_whose_body_changes(changed: str, whole: Whole) -> None:
    source = text("self.made = lambda x: x * 2 + x", "return self.made(x) * y")
    (region,) = whole(source)
    assert region.site is not None, region.reason
    assert [place for place, _ in region.site.code] == ["model.py:Model.__init__.<lambda 0>"]
    module = edited_module(source.replace("x * 2 + x", changed), region)
    x, y = torch.randn(4, 6), torch.randn(4, 6)
    torch.testing.assert_close(module.Model()(x, y), eval(changed) * y)
    assert runs(module) == (changed == "x * 2 + x")


@pytest.mark.parametrize("forward", [
    "double = lambda a: a * 2\nreturn double(x) + y",
    "return torch.exp((lambda a: a * 2)(x)) + y",
])  # fmt: skip
def test_a_lambda_in_the_function_itself(forward: str, whole: Whole) -> None:
    source = text("pass", forward)
    (region,) = whole(source)
    assert region.site is not None, region.reason
    module = edited_module(source, region)
    module.Model()(torch.randn(4, 6), torch.randn(4, 6))
    assert runs(module) == 1


ODD = """
from typing import overload
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.odd = nn.Sequential()
        self.odd.add_module("2", nn.Linear(6, 6))
        self.odd.add_module("0", nn.Linear(6, 6))

    @overload
    def forward(self, x: None) -> None: ...

    @overload
    def forward(self, x: torch.Tensor) -> torch.Tensor: ...

    def forward(self, x):
        return self.odd(x).relu() + 1

def get_inputs():
    return [torch.randn(4, 6)]
"""


def test_numbers_that_are_no_places_and_overloads(whole: Whole) -> None:
    """``odd[0]`` is the layer called "2", and the text of forward stands in the file three times."""
    (region,) = whole(ODD)
    assert_same_model(ODD, region)
