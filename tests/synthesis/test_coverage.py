"""A problem is solved by one region only if nothing is left for PyTorch to compute."""

from __future__ import annotations

import textwrap

import pytest
from attrs import evolve

from evokernel_core.domain.call_site import CallSite
from evokernel_core.domain.graph import Graph, GraphInput
from evokernel_core.domain.region import Region, RegionStatus, Span
from evokernel_core.domain.task import TOLERANCES, KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.synthesis.coverage import uncovered


def region_of(text: str, inputs: tuple[str, ...] = ("x",)) -> tuple[str, Region]:
    """The text without its two marks, and the region between them."""
    text = textwrap.dedent(text)
    start, end = text.index("«"), text.index("»") - 1
    clean = text.replace("«", "").replace("»", "")

    def place(offset: int) -> tuple[int, int]:
        before = clean[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1)

    span = Span(*place(start), *place(end))
    specs = tuple(GraphInput(name, TensorSpec((4,), "float32"), expression=name) for name in inputs)
    task = KernelTask("t", Graph(specs, (), ()), (), TOLERANCES["float32"], "other")
    region = Region(
        id="id",
        file="model.py",
        symbol="Model.forward",
        span=span,
        source="",
        source_hash="",
        op_category="other",
        status=RegionStatus.CANDIDATE,
        task=task,
        site=CallSite("{call} if {holds} else {original}", clean[start:end]),
    )
    return clean, region


def body(lines: str) -> str:
    return "class Model:\n    def forward(self, x):\n" + textwrap.indent(textwrap.dedent(lines), " " * 8)


@pytest.mark.parametrize(
    "lines",
    [
        "return «torch.relu(x)»",
        '"""What it does: ä."""\nreturn «torch.relu(x)»',
        "y = «torch.relu(x)»\nreturn y",
        "«y = x + 1\nreturn y * 2»",
        "return («x + 1»)",
        "ä = «x + 1»\nreturn ä",
    ],
)
def test_covered(lines: str) -> None:
    text, region = region_of(body(lines))
    assert uncovered(text, region) == ""


@pytest.mark.parametrize(
    "lines",
    [
        "return «torch.relu(x)» + 1",
        "x = x @ x\nreturn «torch.relu(x)»",
        "return torch.relu(«x + 1»)",
        "y = «x + 1»\nreturn y.sum()",
        "if x.shape[0]:\n    return «x + 1»",
    ],
)
def test_not_covered(lines: str) -> None:
    text, region = region_of(body(lines))
    assert "outside of the region" in uncovered(text, region)


@pytest.mark.parametrize(
    ("argument", "plain"),
    [
        ("self.norm.weight", True),
        ("x", True),
        ("self.net[0].weight", True),
        ("self.heads['left'].bias", True),
        ("getattr(self, '0').weight", True),
        ("torch.randn((x.shape[0] * 2, 4), dtype=torch.float32, device=x.device)", True),
        ("torch.nn.functional.dropout(torch.ones((x.shape[0],), device=x.device), 0.1)", True),
        ("torch.empty((3,), device=x.device).bernoulli_(0.5)", True),
        ("-torch.nn.functional.rrelu(-torch.ones((3,), device=x.device), 0.1, 0.3, True)", True),
        ("x @ y", False),
        ("f(x)", False),
        ("x[0].exp()", False),
        ("self.rows[i]", False),
        ("torch.relu(x)", False),
        ("torch.randn((x.sum(), 4))", False),
        ("torch.nn.functional.dropout(x, 0.1)", False),
        ("-torch.nn.functional.rrelu(-x, 0.1, 0.3, True)", False),
        ("torch.nn.functional.dropout(torch.ones(f(x)), 0.1)", False),
    ],
)
def test_arguments_are_plain(argument: str, plain: bool) -> None:
    text, region = region_of(body("return «x + 1»"), (argument,))
    assert (uncovered(text, region) == "") is plain


def test_an_operand_that_is_computed_in_front_of_the_call() -> None:
    text, region = region_of(body("return «torch.relu(x @ x)»"), ("operand",))
    site = CallSite("", "torch.relu(operand)", bindings=(("operand", "x @ x"),), parameters=("operand",))
    assert uncovered(text, evolve(region, site=site)) == (
        "The argument x @ x is computed outside of the region."
    )


def test_a_missing_function() -> None:
    text, region = region_of(body("return «x»"))
    assert "no function" in uncovered(text, evolve(region, symbol="Model.backward"))
