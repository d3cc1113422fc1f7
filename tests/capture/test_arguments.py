"""What a forward is given: structures of tensors, things left out, decorators around it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.region import Region
from evokernel_core.targets.ascendc.target import ASCENDC
from tests.capture.edited import edited_module, edited_text, runs
from tests.capture.test_full_graph import HEAD, assert_same_model, executed, model

X = "torch.randn(4, 6)"
CLASSES = """
from typing import NamedTuple

class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor

class Batch:
    def __init__(self, values):
        self.values, self.gain, self.name = values, 2.0, "b"

def of_its_own(function):
    import functools

    @functools.wraps(function)
    def wrapper(self, x):
        return function(self, x * 2)

    return wrapper
"""


def file_of(init: str, forward: str, shapes: str, arguments: str = "x", decorator: str = "") -> str:
    text = model(init, forward, shapes, arguments).replace(HEAD, HEAD + CLASSES)
    definition = f"    def forward(self, {arguments}):"
    before, found, after = text.rpartition(definition)
    return f"{before}    {decorator}\n{found}{after}" if decorator else text


SAME = {
    "a dictionary": ("return batch['x'] * batch['y'].exp()", f"{{'x': {X}, 'y': {X}}}", "batch"),
    "a flag in a dictionary": (
        "return d['x'].exp() if d['twice'] else d['x'].sin()",
        f"{{'x': {X}, 'twice': True}}",
        "d",
    ),
    "tuples in a list": ("(a, b), c = x\nreturn a * b + c", f"[({X}, {X}), {X}]", "x"),
    "a named tuple": ("return x.left * x.right", f"Pair({X}, {X})", "x"),
    "an object of the file": ("return x.values.exp() * x.gain", f"Batch({X})", "x"),
    "further arguments": ("return xs[0] * xs[1].exp()", f"{X}, {X}", "*xs"),
    "an argument that only a keyword gives": ("return x.exp() * scale", X, "x, *, scale=2.0"),
    "arguments called as Python's own functions": (
        "return input.exp() * id if filter is None else input",
        f"{X}, {X}",
        "input, id, filter=None",
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_structures_of_tensors(name: str, whole: Callable[[str], tuple[Region, ...]]) -> None:
    text = file_of("self.a = 1", *SAME[name])
    (region,) = whole(text)
    assert_same_model(text, region)


@pytest.mark.parametrize(
    "decorator",
    ["@torch.no_grad()", "@torch.inference_mode()", "@torch.compile", "@torch.compile(dynamic=True)"],
)
def test_decorators_of_torch_stay(decorator: str, whole: Callable[[str], tuple[Region, ...]]) -> None:
    init = "self.linear = nn.Linear(6, 6)"
    text = file_of(init, "return self.linear(x).relu() + 1", X, decorator=decorator)
    (region,) = whole(text)
    if "compile" in decorator:
        assert region.site is not None, region.reason
        assert region.site.template == "if {holds}:\n            return {call}\n        {original}"
        assert f"    {decorator}\n    def forward" in edited_text(text, [region])
    else:
        assert_same_model(text, region)


OTHERWISE = {
    "an optional tensor": ("return x.exp() if y is None else x * y", f"{X}, {X}", "x, y=None", [(4, 6)]),
    "an optional tensor that only arithmetic reads": ("y = x if y is None else y\nreturn x * y", f"{X}, {X}",
                                                      "x, y=None", [(4, 6)]),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_is_left_out_goes_the_old_way(name: str, whole: Callable[[str], tuple[Region, ...]]) -> None:
    forward, given, arguments, shapes = OTHERWISE[name]
    text = file_of("self.a = 1", forward, given, arguments)
    (region,) = whole(text)
    assert_same_model(text, region)
    other = edited_module(text, region)
    inputs = [torch.randn(*shape) for shape in shapes]
    torch.testing.assert_close(other.Model()(*inputs), executed(text)["Model"]()(*inputs))
    assert not runs(other)


def test_another_structure_goes_the_old_way(whole: Callable[[str], tuple[Region, ...]]) -> None:
    forward = "total = 0\nfor name in d:\n    total = total + d[name].exp()\nreturn total"
    text = file_of("self.a = 1", forward, f"{{'x': {X}, 'y': {X}}}", "d")
    (region,) = whole(text)
    x = torch.randn(4, 6)
    other = edited_module(text, region)
    torch.testing.assert_close(other.Model()({"x": x, "y": x, "z": x}), 3 * x.exp())
    assert not runs(other)
    torch.testing.assert_close(other.Model()({"x": x, "y": x}), 2 * x.exp())
    assert runs(other)


def test_an_entry_that_a_dictionary_is_given_is_set(whole: Callable[[str], tuple[Region, ...]]) -> None:
    """As a cache of keys and values grows."""
    forward = "cache['k'] = torch.cat([cache['k'], x.exp()])\nreturn cache['k'] * 2"
    text = file_of("self.a = 1", forward, f"{X}, {{'k': {X}}}", "x, cache")
    (region,) = whole(text)
    x, before = torch.randn(4, 6), torch.randn(4, 6)
    cache = {"k": before}
    other = edited_module(text, region)
    with torch.no_grad():
        result = other.Model()(x, cache)
    assert runs(other)
    torch.testing.assert_close(cache["k"], torch.cat([before, x.exp()]))
    torch.testing.assert_close(result, cache["k"] * 2)


REFUSED = {
    "a decorator of the file": ("return x.exp()", X, "x", "@of_its_own", "A decorator of Model.forward"),
    "a generator": ("yield x.exp()", X, "x", "", "is a generator"),
    "a set": ("return sum(x)", "{1.0, 2.0}", "x", "", "holds a set"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_why_not(name: str, whole: Callable[[str], tuple[Region, ...]]) -> None:
    forward, shapes, arguments, decorator, reason = REFUSED[name]
    regions = whole(file_of("self.a = 1", forward, shapes, arguments, decorator))
    assert any(reason in item.reason for item in regions if item.task is None), [r.reason for r in regions]


def test_an_argument_that_hides_what_guards_need(whole: Callable[[str], tuple[Region, ...]]) -> None:
    init = "self.layers = nn.Sequential(nn.ReLU())"
    (region,) = whole(file_of(init, "return self.layers(x) * list", f"{X}, {X}", "x, list"))
    assert region.reason == "Its variable list hides what guards are made of: give it another name."


COMPARED = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        for limit in (0.25, 0.5):
            x = x + (x {sign} limit).float()
        return x

def get_inputs():
    return [torch.rand(4, 6)]
"""


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "==", "!=", "+", "/"])
def test_a_number_of_each_call(sign: str, agent: AgentClient, tmp_path: Path) -> None:
    """It was traced as a tensor, and most operations of ATen take no number in its place."""
    text = COMPARED.replace("{sign}", sign)
    regions = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC))
    (region,) = [item for item in regions if item.task]
    other = edited_module(text, region)
    x = torch.tensor([[0.25, 0.3, 0.5, 0.75]])
    torch.testing.assert_close(other.Model()(x), executed(text)["Model"]()(x))
    assert runs(other) == 2
