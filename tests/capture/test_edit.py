"""Edits: only the region and its imports change, and reverting gives the text back."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from textwrap import dedent
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from evokernel_core.capture.edit import minimal_edits, plan_edit, revert_edit
from evokernel_core.capture.text import TextChange, apply_change, span_of
from evokernel_core.domain.call_site import CallSite
from evokernel_core.domain.errors import EditConflict
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.region import Region, RegionStatus
from evokernel_core.domain.task import KernelTask, Tolerance
from evokernel_core.domain.tensor import TensorSpec
from tests.capture.edited import edited_text

KERNEL = "softmax_3f9a1c2b"
MODEL = '''"""A model."""
from torch import nn  # modules
import torch


class Model(nn.Module):
    def forward(self, x, größe):
        # keep   this
        h = größe * self.scale   # and this
        y = torch.exp(
            h  # inside
        )
        return torch.softmax(y, dim=1) , x


def other(x):
    return torch.softmax(x, dim=1)


def enclosed(größe, scale):
    result = torch.exp(größe * scale) + torch.ones(4)
    return result


def computed(y):
    y = torch.softmax(y.exp(), dim=1)
    return y


def computed_inside(y):
    return abs(y.exp() + y)


def computed_body(y, eps):
    d = y + 1
    return torch.sqrt(d + eps * eps)


def short(y):
    z = abs(y.sin())
    return y.cos() * 2 + z
'''


RETURN = "if {holds}:\n            return {call}\n        {original}"
EXPRESSION = "{call} if {holds} else {original}"
BLOCK = "if {holds}:\n            y = {call}\n        else:\n            {original}"


def region(text: str, source: str, parameters: Sequence[str], *, symbol: str = "Model.forward",
           **site: Any) -> Region:  # fmt: skip
    """A region on the first occurrence of ``source``; an expression unless ``site`` says otherwise."""
    spec = TensorSpec((4,), "float32")
    inputs = tuple(GraphInput(f"i{k}", spec, expression=item) for k, item in enumerate(parameters))
    node = Node("relu", "aten.relu.default", (ValueRef("i0"),), (), (spec,))
    graph = Graph(inputs, (node,), (ValueRef("relu"),))
    task = KernelTask("t", graph, (), Tolerance(1e-4, 1e-4), "activation")
    start = text.index(source)
    return Region(
        id="r", file="model.py", symbol=symbol, span=span_of(text, start, start + len(source)),
        source=source, source_hash=hashlib.sha256(source.encode()).hexdigest(),
        op_category="softmax", status=RegionStatus.CANDIDATE, task=task,
        site=CallSite(**{
            "template": EXPRESSION, "original": source, "parameters": tuple(parameters), **site}),
    )  # fmt: skip


SOFTMAX = "torch.softmax(y, dim=1)"
RUN = MODEL[MODEL.index("h = größe") : MODEL.index("        return torch")].rstrip("\n")
BODY = MODEL[MODEL.index("h = größe") : MODEL.index("\n\n\ndef other")]
INNER = RUN.replace("\n", "\n    ")
PRODUCT = "größe * scale"
COMPUTED = "d = y + 1\n    return torch.sqrt(d + eps * eps)"


def cases(text: str) -> dict[str, Region]:
    """Each form that an edit has, in a text that has the model's lines."""
    newline = "\r\n" if "\r\n" in text else "\n"
    run, body = RUN.replace("\n", newline), BODY.replace("\n", newline)
    return {
        "an expression": region(text, SOFTMAX, ["y"]),
        "an expression of another function": region(text, "torch.softmax(x, dim=1)", ["x"], symbol="other"),
        "an expression in the parentheses of a call": region(
            text, PRODUCT, ["größe", "scale"], enclosed=True, symbol="enclosed"),
        "an operand that is computed": region(
            text, "torch.softmax(y.exp(), dim=1)", ["exp"], symbol="computed",
            bindings=(("exp", "y.exp()"),), rest="return torch.softmax(exp.pop(), dim=1)"),
        "an operand that is computed, in the parentheses of a call": region(
            text, "y.exp() + y", ["y", "exp"], symbol="computed_inside", enclosed=True,
            bindings=(("exp", "y.exp()"),), rest="return exp.pop() + y"),
        "a body with an operand that is computed": region(
            text, COMPUTED.replace("\n", newline), ["y", "operand"], symbol="computed_body",
            template="if {holds}:\n        return {call}\n    {original}",
            original=COMPUTED, bindings=(("operand", "eps * eps"),),
            rest="d = y + 1\nreturn torch.sqrt(d + operand.pop())"),
        "a short expression in a larger one": region(text, "y.cos()", ["y"], symbol="short"),
        "a short expression in the parentheses of a call": region(
            text, "y.sin()", ["y"], symbol="short", enclosed=True),
        "statements": region(text, run, ["self", "größe"], template=BLOCK, original=INNER),
        "a whole body": region(text, body, ["self", "x", "größe"], template=RETURN, original=BODY),
    }  # fmt: skip


CASES = list(cases(MODEL).values())
IMPORT = f"from evokernel_kernels import {KERNEL}\n"


def imported(text: str) -> str:
    return text.replace("import torch\n\n", f"import torch\n{IMPORT}\n", 1)


HOLDS = f"(False if torch.jit.is_scripting() else {KERNEL}.holds"
EDITED = {
    "an expression": (
        f"return {SOFTMAX} , x", f"return (\n            {KERNEL}.run(y)\n            if {HOLDS}(y))\n"
        f"            else {SOFTMAX}\n        ) , x"),
    "an expression of another function": (
        "return torch.softmax(x, dim=1)",
        f"return (\n        {KERNEL}.run(x)\n        if {HOLDS}(x))\n"
        "        else torch.softmax(x, dim=1)\n    )"),
    "an expression in the parentheses of a call": (
        f"torch.exp({PRODUCT})",
        f"torch.exp({KERNEL}.run(größe, scale)\n"
        f"                       if {HOLDS}(\n"
        "                           größe,\n                           scale,\n                       ))\n"
        f"                       else {PRODUCT})"),
    "an operand that is computed": (
        "y = torch.softmax(y.exp(), dim=1)",
        f"y = (\n        {KERNEL}.run(y.exp())\n        if {HOLDS}())\n"
        "        else torch.softmax(y.exp(), dim=1)\n    )"),
    "an operand that is computed, in the parentheses of a call": (
        "abs(y.exp() + y)",
        f"abs({KERNEL}.run(y, y.exp())\n               if {HOLDS}(y))\n"
        "               else y.exp() + y)"),
    "a body with an operand that is computed": (
        COMPUTED, f"if {HOLDS}(y)):\n        return {KERNEL}.run(y, eps * eps)\n    {COMPUTED}"),
    "a short expression in a larger one": (
        "y.cos() * 2",
        f"(\n        {KERNEL}.run(y)\n        if {HOLDS}(y))\n        else y.cos()\n    ) * 2"),
    "a short expression in the parentheses of a call": (
        "abs(y.sin())",
        f"abs({KERNEL}.run(y)\n            if {HOLDS}(y))\n            else y.sin())"),
    "statements": (
        RUN, f"if {HOLDS}(self, größe)):\n            y = {KERNEL}.run(self, größe)\n        else:\n"
        f"            {INNER}"),
    "a whole body": (
        BODY, f"if {HOLDS}(self, x, größe)):\n            return {KERNEL}.run(self, x, größe)\n"
        f"        {BODY}"),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITED)
def test_the_kernel_is_called_where_its_guards_hold_and_the_code_stays(name: str) -> None:
    before, after = EDITED[name]
    assert MODEL.count(before) == 1
    assert plan_edit(MODEL, cases(MODEL)[name], KERNEL) == imported(MODEL.replace(before, after))


def test_long_calls_are_wrapped() -> None:
    text = MODEL.replace(
        "größe):\n        # keep", "größe, *, second_normalisation, first_attention):\n        # keep"
    )
    names = ["self", "x", "first_attention", "second_normalisation"]
    bindings = (("first_attention", "self.attention(self.first_normalisation(x), self.first_mask)"),)
    case = region(text, SOFTMAX, names, bindings=bindings, rest="return 0", carried=("carried_beside_them",))
    edited = plan_edit(text, case, KERNEL)
    rows = ["self", "x", "second_normalisation", "carried_beside_them", bindings[0][1]]
    given = "".join(f"                {row},\n" for row in rows)
    assert f"            {KERNEL}.run(\n{given}            )\n            if {HOLDS}" in edited
    rows = ["self", "x", "second_normalisation"]
    asked = "".join(f"                {row},\n" for row in rows)
    assert f"            if {HOLDS}(\n{asked}            ))\n            else {SOFTMAX}\n" in edited
    assert revert_edit(edited, case, KERNEL) == text


def earlier_edit() -> tuple[Region, str]:
    """An edit of an earlier version: its guard computed operands, which the code behind it named."""
    before = f"if {KERNEL}.holds(y, operand := eps * eps):\n        return {KERNEL}.run(y, operand)\n    "
    original = COMPUTED.replace("eps * eps", "operand")
    case = region(MODEL, COMPUTED, ["y", "operand"], symbol="computed_body", original=original,
                  template=RETURN, bindings=(("operand", "eps * eps"),))  # fmt: skip
    return case, imported(MODEL.replace(COMPUTED, before + original))


def test_an_edit_of_an_earlier_version_is_reverted() -> None:
    case, edited = earlier_edit()
    assert revert_edit(edited, case, KERNEL) == MODEL


@pytest.mark.parametrize("name", EDITED)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("head", ["", "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n"])
def test_apply_then_revert_is_the_identity(name: str, newline: str, head: str) -> None:
    text = (head + MODEL).replace("\n", newline)
    case = cases(text)[name]
    edited = plan_edit(text, case, KERNEL)
    assert edited != text
    assert "\n" not in edited.replace(newline, "")
    compile(edited, "model.py", "exec")
    assert plan_edit(edited, case, KERNEL) == edited
    assert revert_edit(edited, case, KERNEL) == text


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_edits_of_one_file_are_reverted_in_any_order(newline: str) -> None:
    text = MODEL.replace("\n", newline)
    found = [item for name, item in cases(text).items() if name != "a whole body"]
    edited = text
    for number, case in enumerate(found):
        edited = plan_edit(edited, case, f"kernel_{number}")
    compile(edited, "model.py", "exec")
    for number, case in enumerate(found):
        edited = revert_edit(edited, case, f"kernel_{number}")
    assert edited == text


LINES = st.sampled_from(["", "# note", "import math", "x = 1", "def added(a):\n    return a", "'''text'''"])


@settings(deadline=None)
@given(st.lists(LINES, max_size=6), st.lists(LINES, max_size=6), st.sampled_from(CASES))
def test_regions_are_found_where_they_moved_to(before: list[str], after: list[str], case: Region) -> None:
    docstring, rest = MODEL.split("\n", 1)
    text = "\n".join([docstring, *before, rest, *after])
    edited = plan_edit(text, case, KERNEL)
    assert revert_edit(edited, case, KERNEL) == text


@pytest.mark.parametrize("header", ["import torch as th\nfrom torch import nn\n", "from torch import nn\n"])
def test_torch_is_imported_where_its_name_is_missing(header: str) -> None:
    text = header + "\n\ndef f(x):\n    return nn.functional.silu(x)\n"
    case = region(text, "nn.functional.silu(x)", ["x"], symbol="f")
    edited = plan_edit(text, case, KERNEL)
    assert "\nimport torch  # for evokernel_kernels\n" in edited
    assert revert_edit(edited, case, KERNEL) == text


PRESENT = {
    "none": ("", "from evokernel_kernels import relu_1\n"),
    "one": ("from evokernel_kernels import softmax_2\n", "from evokernel_kernels import relu_1, softmax_2\n"),
    "one before": ("from evokernel_kernels import exp_1\n", "from evokernel_kernels import exp_1, relu_1\n"),
    "with what stands beside": (
        "from evokernel_kernels import a; import math  # both\n",
        "from evokernel_kernels import a, relu_1; import math  # both\n",
    ),
    "as long as a line may be": (
        f"from evokernel_kernels import {'x' * 62}\n",
        f"from evokernel_kernels import relu_1, {'x' * 62}\n",
    ),
    "longer": (
        f"from evokernel_kernels import {'x' * 63}\n",
        f"from evokernel_kernels import (\n    relu_1,\n    {'x' * 63},\n)\n",
    ),
    "a name a line by choice": (
        "from evokernel_kernels import (\n    exp_1,\n    softmax_2,\n)\n",
        "from evokernel_kernels import (\n    exp_1,\n    relu_1,\n    softmax_2,\n)\n",
    ),
    "with a note": (
        "from evokernel_kernels import (\n    exp_1,  # ours\n)\n",
        "from evokernel_kernels import (\n    exp_1,  # ours\n)\nfrom evokernel_kernels import relu_1\n",
    ),
    "under another name": (
        "from evokernel_kernels import exp_1 as e\n",
        "from evokernel_kernels import exp_1 as e\nfrom evokernel_kernels import relu_1\n",
    ),
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("name", PRESENT)
def test_kernels_have_one_import_which_is_sorted(name: str, newline: str) -> None:
    body = "\n\ndef f(x):\n    return torch.relu(x)\n"
    before, after = (f"import torch\n{head}{body}".replace("\n", newline) for head in PRESENT[name])
    case = region(before, "torch.relu(x)", ["x"], symbol="f")
    edited = plan_edit(before, case, "relu_1")
    assert edited[: len(after) - len(body)] == after[: len(after) - len(body)]
    assert plan_edit(edited, case, "relu_1") == edited
    assert revert_edit(edited, case, "relu_1") == before


@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize(
    "head", ["", "from evokernel_kernels import a\n", f"from evokernel_kernels import {'x' * 63}\n"]
)
def test_equal_code_is_told_apart_behind_an_import_that_grew(head: str, turn: int) -> None:
    text = (
        f"import torch\n{head}\n\ndef f(x):\n    a = torch.relu(x)\n    b = torch.relu(x)\n    return a, b\n"
    )
    first = region(text, "torch.relu(x)", ["x"], symbol="f")
    at = text.rindex("torch.relu(x)")
    second = evolve(first, span=span_of(text, at, at + len("torch.relu(x)")))
    both = [(first, "k_1"), (second, "k_2")][::turn]
    edited = text
    for case, name in both:
        edited = plan_edit(edited, case, name)
    lines = edited.splitlines()
    assert [[name in line for name in ("k_1.run", "k_2.run")] for line in lines if "torch.relu" in line] == [
        [True, False],
        [False, True],
    ]


@pytest.mark.parametrize("turn", [1, -1])
def test_two_uses_share_the_import(turn: int) -> None:
    text = "import torch\n\n\ndef f(x):\n    a = torch.relu(x)\n    return a, torch.relu(x)\n"
    first = region(text, "torch.relu(x)", ["x"], symbol="f")
    second = evolve(first, span=span_of(text, text.rindex("torch.relu"), len(text) - 1))
    both = plan_edit(plan_edit(text, second, KERNEL), first, KERNEL)
    assert both.count(f"from evokernel_kernels import {KERNEL}\n") == 1
    assert both.count(f"{KERNEL}.run(x)\n") == both.count(f"if {HOLDS}(x))\n") == 2
    one, other = (first, second)[::turn]
    left = revert_edit(both, one, KERNEL)
    assert left.count(f"{KERNEL}.run(x)") == left.count(f"from evokernel_kernels import {KERNEL}\n") == 1
    assert revert_edit(left, other, KERNEL) == text


def test_a_reformatted_call_is_reverted() -> None:
    edited = plan_edit(MODEL, CASES[0], KERNEL)
    reformatted = edited.replace(f"{KERNEL}.run(y)", f"{KERNEL}.run(\n            y,\n        )")
    assert reformatted != edited
    assert revert_edit(reformatted, CASES[0], KERNEL) == MODEL


@pytest.mark.parametrize(
    "text",
    [
        MODEL.replace(SOFTMAX, "torch.softmax(y, dim=0)"),
        MODEL.replace("def forward", "\n    def backward"),
        MODEL.replace("def forward(self, x, größe):", "def forward(self"),
        "\n" + MODEL.replace("# keep   this", f"z = {SOFTMAX}"),
    ],
)
def test_a_changed_text_is_a_conflict(text: str) -> None:
    with pytest.raises(EditConflict):
        plan_edit(text, CASES[0], KERNEL)


@pytest.mark.parametrize(
    ("source", "longer"),
    [
        ("return x.exp()", "return x.exp() * 2"),
        ("y = x.exp()\n    return y", "y = x.exp()\n    return y.abs()"),
        ("y = x.exp()", "y = x.exp() + x"),
        ("x + x", "x + x * 2"),
        ("x.exp()", "x.exp().abs"),
    ],
)
def test_code_that_was_only_added_to_is_a_conflict_unless_it_is_an_expression_still(
    source: str, longer: str
) -> None:
    """The kernel would leave out what was added, or take what belongs to something else."""
    site = {"template": EXPRESSION if "=" not in source and "return" not in source else RETURN}
    case = region(f"def f(x):\n    {source}\n", source, ["x"], symbol="f", **site)
    text = f"def f(x):\n    {longer}\n"
    if source == "x.exp()":
        assert f"else {source}\n    ).abs" in plan_edit(text, case, KERNEL)
        return
    with pytest.raises(EditConflict):
        plan_edit(text, case, KERNEL)


@pytest.mark.parametrize("behind", ["a whole body", "statements"])
def test_no_kernel_is_put_into_the_fallback_of_another(behind: str) -> None:
    """An inner region of a block whose kernel is in place stands there unchanged, as what runs without it."""
    inner = region(MODEL, "größe * self.scale", ["größe"])
    edited = plan_edit(MODEL, cases(MODEL)[behind], "outer")
    with pytest.raises(EditConflict):
        plan_edit(edited, inner, KERNEL)
    assert revert_edit(edited, cases(MODEL)[behind], "outer") == MODEL


@pytest.mark.parametrize(
    ("around", "left"),
    [
        ("abs({})", "abs({})"),
        ("abs(({}))", "abs({})"),
        ("abs( ( {} ) )", "abs( {} )"),
        ("(abs)({})", "(abs)({})"),
        ("[({}), x]", "[{}, x]"),
        ("({}, x)", "({}, x)"),
        ("({} # why\n    )", "({} # why\n    )"),
    ],
)
def test_a_revert_takes_the_parentheses_of_the_call_alone(around: str, left: str) -> None:
    head = f"import torch\n{IMPORT}\n\ndef f(x):\n    return "
    call = f"{KERNEL}.run(x) if {KERNEL}.holds(x) else x.cos()"
    case = region("x.cos()", "x.cos()", ["x"], symbol="f")
    reverted = revert_edit(head + around.format(call) + "\n", case, KERNEL)
    assert reverted == head.replace(IMPORT, "") + left.format("x.cos()") + "\n"


def test_what_stands_behind_a_guard_keeps_its_decorators() -> None:
    body = "@torch.no_grad()\n    def g(y):\n        return y.exp()\n    return g(x); pass"
    text = f"import torch; import math\n\n\ndef f(x):\n    {body}\n"
    template = "if {holds}:\n        return {call}\n    {original}"
    case = region(text, body, ["x"], symbol="f", template=template, original=body)
    edited = plan_edit(text, case, KERNEL)
    assert edited.startswith(f"import torch; import math\n{IMPORT}")
    assert plan_edit(edited, case, KERNEL) == edited
    assert revert_edit(edited, case, KERNEL) == text


@pytest.mark.parametrize(
    "code",
    [
        "type Pair = tuple[int, int]",
        "def first[T](items: list[T]) -> T:\n    return items[0]",
        """def name(x):\n    return f"{x["a"]}\"""",
        "def head(x):\n    return x, *[None] * 3",
        "def broken(x):\n    return (x",
    ],
)
def test_code_elsewhere_may_be_newer_than_our_python_or_half_written(code: str) -> None:
    case = CASES[0]
    text = f"{MODEL}\n\n{code}\n"
    edited = plan_edit(text, case, KERNEL)
    assert edited.endswith(f"\n\n{code}\n") and f"{KERNEL}.holds(" in edited
    assert revert_edit(edited, case, KERNEL) == text


def test_code_that_needs_the_guard_is_not_left_without_it() -> None:
    case, edited = earlier_edit()
    with pytest.raises(EditConflict, match="uses what the guard computes"):
        revert_edit(edited.replace("d = y + 1", "d = y + 2"), case, KERNEL)


def test_nothing_to_revert_is_a_conflict() -> None:
    with pytest.raises(EditConflict, match="nothing to revert"):
        revert_edit(MODEL, CASES[0], KERNEL)


@given(st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "é", ""]), max_size=12),
       st.lists(st.sampled_from(["a\n", "b\n", "x\n", "é", "𝛼"]), max_size=12))  # fmt: skip
def test_minimal_edits_lead_from_old_to_new(old_parts: list[str], new_parts: list[str]) -> None:
    old, new = "".join(old_parts), "".join(new_parts)
    text = old
    for change in reversed(minimal_edits(old, new)):
        text = apply_change(text, change)
    assert text == new


def test_minimal_edits_are_small() -> None:
    edited = plan_edit(MODEL, CASES[0], KERNEL)
    changes = minimal_edits(MODEL, edited)
    assert len(changes) == 2
    assert all(isinstance(change, TextChange) for change in changes)
    assert changes[1].span.line == MODEL[: MODEL.index(SOFTMAX)].count("\n") + 1


def test_an_empty_line_between_moved_statements_stays_empty(capture: Any) -> None:
    """Spaces that nobody typed would be the first thing that a review of the edit sees."""
    text = dedent("""
        import torch

        def get_inputs():
            return [torch.randn(4, 8)]

        class Model(torch.nn.Module):
            def forward(self, x):
                y = torch.sigmoid(x)

                # then another step
                z = y * x + 1.0
                return torch.topk(z, 2)
        """).lstrip("\n")
    (region,) = (item for item in capture(text) if item.task)
    edited = edited_text(text, [region])
    assert "\n\n            # then another step\n            z = y" in edited.partition("else:")[2]
    assert not [line for line in edited.splitlines() if line != line.rstrip()]


TABBED = """
import torch

def get_inputs():
\treturn [torch.randn(4, 8)]

class Model(torch.nn.Module):
\tdef forward(self, x):
\t\ty = torch.sigmoid(x)
\t\tz = y * x + 1.0
%s
""".lstrip("\n")
RESULTS = {
    "a whole body": "\t\treturn torch.relu(z)",
    "statements": "\t\treturn torch.topk(z, 2)",
    "an expression": "\t\treturn torch.topk(torch.softmax(z * 2.0,\n\t\t    dim=1), 2)",
    "a block in a block": "\t\tif True:\n\t\t\tz = z * 2.0\n\t\t\tz = z.exp()\n\t\treturn torch.topk(z, 2)",
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("result", RESULTS)
def test_a_file_that_is_indented_with_tabs_gets_its_kernels(result: str, newline: str, capture: Any) -> None:
    """The guard was indented with as many spaces as the code had tabs, and every kernel was refused."""
    text = (TABBED % RESULTS[result]).replace("\n", newline)
    found = [item for item in capture(text) if item.site is not None]
    assert found
    for item in found:
        edited = plan_edit(text, item, KERNEL)
        assert revert_edit(edited, item, KERNEL) == text
