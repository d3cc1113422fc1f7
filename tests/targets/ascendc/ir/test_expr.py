"""Integer expressions: what is written for the compiler is what is computed here."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.targets.ascendc.ir.expr import (
    Choice,
    Constant,
    Expr,
    Function,
    Int,
    Param,
    Side,
    Size,
    Var,
    binary,
    ceil_div,
    expr,
    greatest,
    least,
)

VALUES = {"a": 7, "b": 3, "n": 12}
LEAVES: tuple[Expr, ...] = (
    Int(0),
    Int(1),
    Int(5),
    Constant("TILE", 4),
    Var("a"),
    Var("b"),
    Size(extent("n * 2")),
    Param("count", Size(extent("n"))),
)
_PYTHON = {"TILE": 4, "tiling_": type("Tiling", (), {"count": 12})(), **VALUES}


def computed(text: str) -> int:
    """The value of C++ text over non-negative integers, as Python computes it."""
    return int(eval(re.sub(r"static_cast<\w+>", "", text).replace("/", "//"), {}, _PYTHON))


expressions = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: (
        st.builds(binary, st.sampled_from(["+", "*"]), inner, inner)
        | st.builds(binary, st.sampled_from(["/", "%"]), inner, st.sampled_from([2, 3, 5]))
        | st.builds(binary, st.sampled_from(["<<", ">>"]), inner, st.sampled_from([0, 1, 4]))
    ),
    max_leaves=8,
)


@given(expressions)
def test_text_and_value_agree(item: Expr) -> None:
    assert computed(item.cpp()) == item.evaluate(VALUES)


@given(expressions, expressions)
def test_choices(left: Expr, right: Expr) -> None:
    assert least(left, right).evaluate(VALUES) == min(left.evaluate(VALUES), right.evaluate(VALUES))
    item = Choice(left, ">", right, Int(1), Int(2))
    assert item.evaluate(VALUES) == (1 if left.evaluate(VALUES) > right.evaluate(VALUES) else 2)
    assert item.cpp(tightness=1).startswith("(")


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (Var("a") - (Var("b") - 1), "a - (b - 1)"),
        ((Var("a") + 1) * 2 // 3, "(a + 1) * 2 / 3"),
        ((Var("a") << Var("b") % 2) + 1, "(a << (b % 2)) + 1"),
        (Var("a") * (Var("b") // 2), "a * (b / 2)"),
        (Var("a") // (Var("b") * 2), "a / (b * 2)"),
        (least(Var("a"), 5) * 2, "(a < 5 ? a : 5) * 2"),
        (ceil_div(Var("a"), Constant("TILE", 4)), "(a + TILE - 1) / TILE"),
        (Param("count", Int(3)) % 2, "tiling_.count % 2"),
        (Var("a") * 1 + 0, "a"),
        (expr(3) * 4 + Var("a"), "12 + a"),
    ],
)
def test_parentheses_stand_where_they_are_needed(item: Expr, text: str) -> None:
    assert item.cpp() == text


def test_the_host_names_its_own_tiling() -> None:
    assert Param("count", Int(3)).cpp(Side.HOST) == "tiling.count"


def test_a_function_is_called_and_computed() -> None:
    word = Var("word")
    row = Function("RowOf", (word,), word // Constant("ITEM", 2) + word % 2)
    assert row(Var("a") + 1).cpp() == "RowOf(a + 1)"
    assert row(Var("a")).evaluate(VALUES) == 7 // 2 + 1
    assert Constant("ITEM", 2) in row(Var("a")).walk()
    with pytest.raises(TypeError, match="takes 1 arguments"):
        row(1, 2)


def test_a_choice_within_a_choice_stands_in_parentheses() -> None:
    """C++ reads ``a < b ? a : b < 4 ? ..`` otherwise."""
    a, b = Var("a"), Var("b")
    assert least(greatest(a, b), 4).cpp() == "(a > b ? a : b) < 4 ? (a > b ? a : b) : 4"
    assert greatest(4, least(a, b)).cpp() == "4 > (a < b ? a : b) ? 4 : (a < b ? a : b)"
