"""Operands that a call computes, in every form of source: the code behind the guard stays the user's text,
and each is computed once, in the order of the source, and held for no longer than the source holds it."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from evokernel_core.capture.client import AgentClient
from evokernel_core.capture.text import text_at
from evokernel_core.domain.region import Region
from tests.capture.conftest import FUSIBLE
from tests.capture.edited import edited_module, edited_text, runs, write_edited
from tests.capture.test_meaning import TRIAL, apart, loaded

Peak = loaded("trial_peak", TRIAL / "peak.py").Peak

HEAD = """
import weakref

import torch
import torch.nn.functional as F

LOG, ALIVE, MISFIT = [], [], []
SCALE = 0.5


def probe(x, name="p"):
    LOG.append(name)
    if name in MISFIT[1:]:
        raise OverflowError(name)
    result = x.flip(0)
    result = result.double() if MISFIT else result
    ALIVE.append(weakref.ref(result))
    return result


def mark(result):
    LOG.append(sum(item() is not None and item() is not result for item in ALIVE))
    return result


def pair(x):
    return probe(x, "left"), probe(x, "right")


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 0.25

    # evokernel: x=f32[64,16], y=f32[64,16]
    def forward(self, x, y):
        result = torch.exp(probe(x) * self.scale) + y
        return mark(result)


class Private(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.__gain = 3.0

    # evokernel: x=f32[64,16], y=f32[64,16]
    def forward(self, x, y):
        result = torch.exp(probe(x) * self.__gain) + y
        return mark(result)


SCALED, PRIVATE = Scaled(), Private()
"""
PLAIN = {
    "names": "return torch.exp(x * 2) + y",
    "an assignment": "z = torch.exp(x * 2)  + y   # of both\nreturn mark(z)",
    "statements": "z = x * 2\n\n# then\nz = torch.exp( z )\nreturn z + y",
    "statements in the middle": "z = x * 2\nz = torch.exp( z )  # e\nq = z + y\nreturn mark(q)",
    "an attribute": "return torch.exp(x * SCALED.scale)",
    "within a larger expression": "return mark(torch.exp( x*2 ) + y)",
    "two lines": "z = mark(torch.exp(\n    x  # one\n    * 2) + y)\nreturn z",
}
COMPUTED = {
    "a call": "z = torch.exp(probe(x) * 2)\nreturn mark(z)",
    "a chain": "z = torch.tanh(torch.exp(torch.sigmoid(probe(x) * 2)))\nreturn mark(z)",
    "a binary operator": "z = torch.tanh(torch.exp((x @ y.transpose(-2, -1)) * SCALE))\nreturn mark(z)",
    "a method chain": "z = probe(x).flip(1).exp().tanh()\nreturn mark(z)",
    "a subscript": "z = torch.exp(pair(x)[1] * 2)\nreturn mark(z)",
    "two calls": "z = torch.sigmoid(probe(x, 'a')) * probe(y, 'b')\nreturn mark(z)",
    "the same call twice": "z = torch.exp(probe(x)) + probe(x) * y\nreturn mark(z)",
    "an operator twice": "z = torch.exp(x.flip(0) @ y.T) + x.flip(0) @ y.T\nreturn mark(z)",
    "return": "return torch.tanh(torch.exp(probe(x)) + y)",
    "an argument of another call": "z = mark(torch.tanh(torch.exp(probe(x) * 2)))\nreturn z",
    "several lines": "z = torch.tanh(torch.exp(  # e\n    probe(\n        x,\n    ) * 2))\nreturn mark(z)",
    "an augmented assignment": "x = mark(x)\nx += torch.exp(probe(y) * 2)\nreturn mark(x)",
    "a walrus": "if mark(z := torch.exp(probe(x) * 2)) is None:\n    return x\nreturn mark(z)",
    "a conditional": "z = torch.exp(probe(x) * 2) if y.size(0) else torch.exp(probe(y) * 2)\nreturn mark(z)",
    "unpacking": "z, w = mark(torch.exp(probe(x) * 2)), y\nreturn mark(z) + w",
    "behind another call": "z = mark(x) * torch.exp(probe(x, 'b') * 2)\nreturn mark(z)",
    "statements": "z = probe(x) * 2\nz = torch.exp(z)\nz = torch.tanh(z)\nq = z + y\nreturn mark(q)",
    "statements, of the second": "z = x * 2\nz = torch.exp(z) * probe(y)\nq = torch.tanh(z)\nreturn mark(q)",
    "statements that return": "z = probe(x) * 2\nz = torch.exp(z)\nreturn torch.tanh(z)",
    "a loop": "for i in range(3):\n    x = torch.exp(probe(x) * 0.1)\n    mark(x)\nreturn x",
    "a with block": "with torch.no_grad():\n    z = torch.tanh(torch.exp(probe(x)))\n    mark(z)\nreturn z",
    "try": "try:\n    z = torch.exp(probe(x) * 2)\nexcept OverflowError:\n    z = y * 4\nreturn mark(z)",
    "a keyword": "z = torch.clamp(probe(x) * 2, max=1.0)\nreturn mark(z)",
    "a name of the function": "import math\nk = math.pi\nz = torch.exp(probe(x) * float(k))\nreturn mark(z)",
    "a text": "z = f'{mark(torch.exp(probe(x) * 2)).shape}'\nreturn mark(x), z",
    "a lambda": "f = lambda v: torch.exp(probe(v) * 2)\nreturn f(x)",
    "a default": "def f(v=torch.exp(probe(x) * 2)):\n    return mark(v)\nreturn f()",
    "a comprehension": "return mark(sum(torch.exp(probe(v) * 2) for v in (x, y)))",
    "two statements of one tensor": (
        "z = torch.exp(probe(x, 'a') * y)\nw = torch.tanh(probe(y, 'b') * y)\nreturn mark(z) + mark(w)"
    ),
    "a name that is taken": "probe_2 = 1\nexp = 2\nz = torch.exp(probe(x) * exp) + probe_2\nreturn mark(z)",
}
NO_REGION = {"a lambda", "a comprehension", "a text", "a default"}
"""Code that runs in another scope is never looked into, and so are definitions within a function."""


def function(name: str, body: str) -> str:
    inner = body.replace("\n", "\n    ").replace("\n    \n", "\n\n")
    second = "16,64" if "@ y.T" in body and "flip" not in body else "64,16"
    return f"\n\n# evokernel: x=f32[64,16], y=f32[{second}]\ndef {name}(x, y):\n    {inner}\n"


def named(kind: str, table: dict[str, str], name: str) -> str:
    return f"{kind}_{list(table).index(name)}"


TEXT = HEAD + "".join(
    function(named(kind, table, name), body)
    for kind, table in (("plain", PLAIN), ("computed", COMPUTED))
    for name, body in table.items()
)
FUNCTIONS = {
    **{f"plain, {name}": named("plain", PLAIN, name) for name in PLAIN},
    **{f"computed, {name}": named("computed", COMPUTED, name) for name in COMPUTED},
    "computed, an attribute of self": "Scaled.forward",
    "computed, a private attribute": "Private.forward",
}
WITHOUT = {f"computed, {name}" for name in NO_REGION}


@pytest.fixture(scope="module")
def regions(agent: AgentClient, tmp_path_factory: Any) -> list[Region]:
    path = tmp_path_factory.mktemp("operands") / "model.py"
    return apart(agent.capture(path, TEXT, FUSIBLE))


@pytest.fixture(scope="module")
def original(tmp_path_factory: Any) -> ModuleType:
    path: Path = tmp_path_factory.mktemp("original") / "operands_original.py"
    path.write_text(TEXT)
    return loaded("operands_original", path)


@pytest.fixture(scope="module")
def emulated(regions: list[Region]) -> ModuleType:
    return edited_module(TEXT, *regions)


@pytest.fixture(scope="module")
def unbuilt(regions: list[Region]) -> ModuleType:
    return edited_module(TEXT, *regions, emulate=False)


def outcome(
    module: ModuleType, name: str, misfit: str = "", raises: str = "", *, measured: bool = True
) -> dict[str, Any]:
    """What a call of one function gives, did and held: where that is ``measured``, no kernel runs."""
    module.LOG.clear(), module.ALIVE.clear(), module.MISFIT.clear()
    module.MISFIT.extend([misfit or raises, raises] if misfit or raises else [])
    owner, _, method = FUNCTIONS[name].rpartition(".")
    call = getattr(module, owner.upper() or method)
    x = torch.linspace(-1, 1, 1024).reshape(64, 16)
    peak = Peak()
    with torch.no_grad(), peak if measured else nullcontext():
        try:
            result = call(x, x.clone() * 0.5)
        except OverflowError as error:
            result = str(error)
    return {"result": result, "log": list(module.LOG), "bytes": peak.bytes}


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.allclose(one, other, equal_nan=True)
    return bool(one == other)


def names(*without: str) -> list[str]:
    return [name for name in FUNCTIONS if name not in without]


@pytest.mark.parametrize("name", names())
def test_without_an_npu_the_text_runs_as_if_there_were_no_kernel(
    name: str, original: ModuleType, unbuilt: ModuleType
) -> None:
    before, after = outcome(original, name), outcome(unbuilt, name)
    assert after["log"] == before["log"] and after["bytes"] == before["bytes"]
    assert repr(after["result"]) == repr(before["result"])


@pytest.mark.parametrize("name", names(*WITHOUT))
def test_a_kernel_computes_each_operand_once(name: str, original: ModuleType, emulated: ModuleType) -> None:
    started = runs(emulated)
    before, after = (outcome(module, name, measured=False) for module in (original, emulated))
    assert runs(emulated) > started
    assert after["log"] == before["log"]
    assert repr(after["result"]) == repr(before["result"]) or same(after["result"], before["result"])


@pytest.mark.parametrize("name", [name for name in names(*WITHOUT) if name.startswith("computed")])
def test_an_operand_that_the_kernel_does_not_take_is_not_computed_again(
    name: str, original: ModuleType, emulated: ModuleType
) -> None:
    before, after = outcome(original, name, misfit="double"), outcome(emulated, name, misfit="double")
    assert after["log"] == before["log"]
    assert after["bytes"] <= before["bytes"] * 1.01
    assert same(after["result"], before["result"])  # in doubles, which no kernel gives


@pytest.mark.parametrize("name", [name for name in names(*WITHOUT) if name.startswith("computed")])
@pytest.mark.parametrize("way", ["emulated", "unbuilt"])
def test_an_operand_raises_as_in_the_source(
    name: str, way: str, original: ModuleType, request: pytest.FixtureRequest
) -> None:
    module = request.getfixturevalue(way)
    before, after = outcome(original, name, raises="p"), outcome(module, name, raises="p")
    assert after["log"] == before["log"] and type(after["result"]) is type(before["result"])


def test_every_form_has_a_kernel(regions: list[Region]) -> None:
    symbols = {region.symbol for region in regions}
    assert {name for name, symbol in FUNCTIONS.items() if symbol not in symbols} == WITHOUT


def test_the_code_behind_a_guard_is_the_text_of_the_source(regions: list[Region]) -> None:
    edited = edited_text(TEXT, regions)
    for region in regions:
        source = text_at(TEXT, region.span)
        assert region.site is not None
        assert "".join(region.site.original.split()) == "".join(source.split())
        if "else:" in region.site.template:  # a block of its own stands one level further in
            source = source.replace("\n    ", "\n        ")
        assert edited.count(source) >= 1, source
    assert ":=" not in edited.replace("mark(z :=", "")


@pytest.mark.parametrize("code", ["torch.exp(x.flip(0) * 2)", "torch.sigmoid(x.flip(0)) * x.flip(1)"])
@pytest.mark.parametrize("body", ["return {0}, {0}, {0}", "a = {0}\n    b = {0}\n    return a.T, b.T, {0}"])
def test_equal_code_keeps_its_ids_where_one_of_it_has_a_kernel(
    code: str, body: str, capture: Any, tmp_path: Path
) -> None:
    text = f"import torch\n\n\n# evokernel: x=f32[8,16]\ndef f(x):\n    {body.format(code)}\n"
    before = capture(text)
    path = write_edited(tmp_path, text, before[:1])
    after = [region.id for region in capture(path.read_text()) if region.task]
    assert len({*after}) == 2 and after == [region.id for region in before[1:]]
