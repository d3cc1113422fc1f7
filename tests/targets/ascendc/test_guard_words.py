"""The guards of a call as sentences: forms that the agent writes have words, any other is shown as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.domain.call_site import CallSite, Guard
from evokernel_core.domain.graph import Graph, GraphInput, InputKind, Node, ValueRef
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.package.guard_words import _CALLS, ELSE, guard_words
from evokernel_core.targets.ascendc.package.packaging import WORDS

AGENT = Path(__file__).parents[3] / "evokernel_core" / "capture" / "agent"
SPEC = TensorSpec(("s0", 2048), "float16")
GRAPH = Graph(
    (
        GraphInput("x", SPEC, expression="x"),
        GraphInput("w", TensorSpec((2048,), "float16", contiguous=False), expression="self.weight"),
        GraphInput("eps", TensorSpec((), "float32"), InputKind.SCALAR, "self.eps", 1e-6),
    ),
    (Node("y", "aten.mul.Tensor", (ValueRef("x"), ValueRef("w")), (), (SPEC,)),),
    (ValueRef("y"),),
)
TASK = KernelTask("scale", GRAPH, (Symbol("s0", 8, 2),), TOLERANCES["float16"], "elementwise")
SITE = CallSite("{call} if {holds} else {original}", "x * self.weight", parameters=("self", "x"))

CONDITIONS = {
    "guards.equal(self.eps, 1e-06)": "self.eps is 1e-06, of the same type.",
    "self.training is False": "self.training is False.",
    "self.mode is None": "self.mode is None.",
    'guards.entry(self.kind, "Kind.FAST")': "self.kind is Kind.FAST.",
    'guards.named(self.act, "torch.nn.functional.gelu")': "self.act is torch.nn.functional.gelu.",
    'guards.builtin(guards.module(__name__).HOME, "abs", "len")': (
        "What the code uses of Python is Python's own: abs, len."
    ),
    'guards.defined(self.act, "model.py:act")': "self.act is the function model.py:act.",
    'guards.function(math.sqrt, "sqrt")': "math.sqrt is the function sqrt.",
    'guards.named(type(self.cfg), "Config")': "type(self.cfg) is Config.",
    'guards.of(type(self.cfg), "Config", "model.py")': "type(self.cfg) is the class Config of model.py.",
    "guards.inherits(type(self), 'act', -3, 'model.py:Base.act')": (
        "type(self).act is the function model.py:Base.act."
    ),
    "guards.inherits(guards.module('ops'), 'forward.__func__', -5, 'ops.py:Fn.forward', path='Fn')": (
        "Fn.forward.__func__ is the function ops.py:Fn.forward."
    ),
    "guards.shown(self.steps, 'range(0, 3)')": "self.steps is range(0, 3).",
    "guards.holders(type(self), 'act', (-3,))": "No other base of type(self) defines act.",
    "guards.holds_value(type(self), 'gain', -3, 2.0)": "type(self).gain is 2.0, of the same type.",
    "guards.plain(self.norm, torch.nn.LayerNorm)": (
        "self.norm is a torch.nn.LayerNorm with its own forward and without hooks."
    ),
    "guards.originals('torch.relu', 'torch.Tensor.__mul__', 'torch.nn.Module.__call__=_wrapped_call_impl')": (
        "What the code calls of torch is torch's own: torch.relu."
    ),
    "guards.originals('torch.Tensor.__mul__')": "What the code calls of torch is torch's own.",
    'guards.plain(self.block, "Block", "model.py")': (
        "self.block is a Block with its own forward and without hooks."
    ),
    'not hasattr(self, "bias")': "self has no bias.",
    "len(self.layers) == 3": "self.layers has 3 entries.",
    "list(self._modules) == ['a', 'b']": "self holds the layers ['a', 'b'].",
    "list(self.table) == ['k']": "self.table has the keys ['k'].",
    "n == 4": "n equals 4.",
    "n % 2 == 0 and n > 3": "n % 2 == 0 and n > 3 holds.",
}


def words_of(*conditions: str) -> tuple[str, ...]:
    guards = tuple(Guard("", text) for text in conditions)
    return guard_words(TASK, evolve(SITE, guards=guards), WORDS)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_is_a_sentence(condition: str) -> None:
    assert CONDITIONS[condition] in words_of(condition)


def test_operands_sizes_and_what_runs_otherwise_are_said() -> None:
    words = words_of()
    assert words[:5] == (
        "x is float16 of s0 x 2048 (8 x 2048 when it was captured).",
        "self.weight is float16 of 2048.",
        "self.eps is a Python float, of any value (1e-06 when it was captured).",
        "s0: any size from 2 on that the kernel takes.",
        "Contiguous in memory: x.",
    )
    assert words[-1] == ELSE


def test_a_whole_number_is_an_operand_of_its_type() -> None:
    words = tuple(map(str, guard_words(TASK, evolve(SITE, whole_numbers=("self.eps",)), WORDS)))
    assert "self.eps is a Python int, of any value." in words
    assert not any("float," in text or text.startswith("type(") for text in words)


def test_what_the_code_calls_and_the_default_dtype_are_said() -> None:
    site = evolve(SITE, code=(("model.py:helper", "1f"),), default_dtype="float16")
    words = guard_words(TASK, site, WORDS)
    assert "So is the code of what it calls: helper." in words
    assert "The default dtype is torch.float16, and no global module hooks are set." in words


def test_an_operand_that_is_computed_is_called_by_its_source() -> None:
    """Its name stands in the package alone."""
    item = evolve(GRAPH.inputs[0], expression="scores")
    task = evolve(TASK, graph=evolve(GRAPH, inputs=(item, *GRAPH.inputs[1:])))
    site = evolve(SITE, bindings=(("scores", "q @ k"),), rest="return scores.pop() * self.weight",
                  guards=(Guard("", "scores.stride(0) == 8"),))  # fmt: skip
    words = guard_words(task, site, WORDS)
    assert words[0] == "q @ k is float16 of s0 x 2048 (8 x 2048 when it was captured)."
    assert "q @ k.stride(0) equals 8." in words
    assert any(text.startswith("The call computes q @ k, once.") for text in words)
    assert words[-1] == ELSE


def test_every_function_that_conditions_call_has_words() -> None:
    """Those of the agent's texts that say what a value should be."""
    texts = "".join(path.read_text() for path in AGENT.rglob("*.py"))
    parts = {"guards.module", "guards.environment", "guards.member"}
    called = set(re.findall(r"(?<![\w.])guards\.[a-z_]+(?=\()", texts)) - parts
    asked = {f"guards.{name}" for name in re.findall(r'\.asks\(\s*"([a-z_]+)"', texts)}
    assert called | asked == set(_CALLS)


@given(st.text(max_size=400))
def test_any_condition_is_one_sentence(text: str) -> None:
    added = [item for item in words_of(text) if item not in words_of()]
    assert len(added) <= 1
    assert all(len(item) < 600 for item in added)
