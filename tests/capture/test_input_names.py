"""Names of a kernel's inputs: those of the code, but for words that C++ keeps or the verifier refuses."""

from __future__ import annotations

import pytest

from evokernel_core.ascendc.author import initial, write
from evokernel_core.capture.agent.graph.names import input_name
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.task import TOLERANCES, KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.twin.chip import load_chip
from evokernel_core.verifier.gates.audit import audit
from evokernel_core.verifier.gates.audit.words import FORBIDDEN

LIBRARY = ("time", "read", "signal", "exit", "system", "printf", "half", "float", "std", "AscendC")
WORDS = sorted({*FORBIDDEN, *LIBRARY})
SPEC = TensorSpec((64, 128), "float32")


@pytest.mark.parametrize(
    "expression", ["x", "self.weight", "hidden_states", "timestep", "self.time_embedding"]
)
def test_names_are_those_of_the_code(expression: str) -> None:
    assert input_name(expression, set()) == expression.removeprefix("self.")


def test_no_argument_has_a_name_that_the_audit_refuses() -> None:
    """``time`` of a diffusion model is the example that cost its kernel."""
    for word in WORDS:
        name = input_name(word, set())
        inputs = (GraphInput(name, SPEC, expression=word),)
        node = Node("mul", "aten.mul.Tensor", (ValueRef(name), ValueRef(name)), (), (SPEC,))
        graph = Graph(inputs, (node,), (ValueRef("mul"),))
        task = KernelTask("squared", graph, (), TOLERANCES["float32"], "elementwise")
        chip = load_chip()
        result = audit(task, write(task, initial(task, chip), chip))
        assert result.code == "", (word, result.feedback)
