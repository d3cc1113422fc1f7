"""Names of a kernel's inputs: those of the code, but for words that C++ keeps or the verifier refuses."""

from __future__ import annotations

import pytest

from evokernel_core.capture.agent.graph.names import input_name
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.task import TOLERANCES, KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.audit.words import FORBIDDEN
from evokernel_core.targets.ascendc.author import initial, write

LIBRARY = ("time", "read", "signal", "exit", "system", "printf", "half", "float", "std", "AscendC")
WORDS = sorted({*FORBIDDEN, *LIBRARY})
SPEC = TensorSpec((64, 128), "float32")
TOGETHER = 8
"""Words that are arguments of one kernel."""


@pytest.mark.parametrize(
    "expression", ["x", "self.weight", "hidden_states", "timestep", "self.time_embedding"]
)
def test_names_are_those_of_the_code(expression: str) -> None:
    assert input_name(expression, set()) == expression.removeprefix("self.")


def test_no_argument_has_a_name_that_the_audit_refuses() -> None:
    """``time`` of a diffusion model is the example that cost its kernel."""
    chip = load_chip()
    for words in (WORDS[first : first + TOGETHER] for first in range(0, len(WORDS), TOGETHER)):
        task = product_of(words)
        result = audit(task, write(task, initial(task, chip), chip))
        assert result.code == "", (words, result.feedback)


def product_of(words: list[str]) -> KernelTask:
    """The product of arguments that the code calls by these words."""
    taken: set[str] = set()
    inputs: list[GraphInput] = []
    for word in words:
        inputs.append(GraphInput(input_name(word, taken), SPEC, expression=word))
        taken.add(inputs[-1].name)
    names = [item.name for item in inputs]
    nodes = []
    for place, name in enumerate(names):
        others = (ValueRef(nodes[-1].name if nodes else name), ValueRef(name))
        nodes.append(Node(f"mul_{place}", "aten.mul.Tensor", others, (), (SPEC,)))
    graph = Graph(tuple(inputs), tuple(nodes), (ValueRef(nodes[-1].name),))
    return KernelTask("product", graph, (), TOLERANCES["float32"], "elementwise")
