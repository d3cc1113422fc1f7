"""Loops whose first turn is loaded before them, sections that share a method, and floats."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.domain.errors import PlanError
from evokernel_core.targets.ascendc.ir.builder import Builder, at, whole
from evokernel_core.targets.ascendc.ir.expr import U64, Constant, Expr, Size, Var, ceil_div, least
from evokernel_core.targets.ascendc.ir.floats import (
    FLOAT,
    Arithmetic,
    AsFloat,
    CallScalar,
    Inverse,
    Least,
    Literal,
    Negative,
    negated,
)
from evokernel_core.targets.ascendc.ir.legality import broken_rules
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Kernel
from evokernel_core.targets.ascendc.print.vector_kernel import stage_text

TILE, TILES = Constant("TILE", 64), Constant("TILES_OF_ROW", 3)
GAP = Buffer("gap", "uint8_t", 1, Constant("GAP_BYTES", 256), idle=True)


def twice_read(*, late: bool = False) -> Kernel:
    """Rows of three tiles: each tile less the first number of the tiles' sum. ``late``: what the second loop
    loads follows from a number that is read."""
    k = Builder("Rows that are read twice.")
    x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
    count = k.param("count", Size(extent("n")))
    rows = k.param("rows", ceil_div(count, TILE * TILES))
    source, result = (Buffer(name, "float", 4, TILE, 2) for name in ("source", "result"))
    total = Buffer("total", "float", 4, TILE)
    k.lay_out(source, GAP, total)

    def load(first: Expr, tile: Var) -> Var:
        start = k.let("start", first + tile * TILE, U64)
        length = k.let("length", least(count - start, TILE))
        k.load(source, x, start, length)
        return length

    def copy(places: Any, numbers: Any) -> None:
        k.call("Adds", places[0], places[1], Literal(0.0), numbers[0], repeats=1)

    with k.cores("row", rows, run=k.param("run", ceil_div(rows, 2))) as row:
        first = k.let("first", row * (TILE * TILES), U64)
        k.call("Duplicate", total, Literal(0.0), TILE, repeats=1)
        with k.loop("tile", TILES, U64, preloaded=True) as tile:
            k.call("Add", total, total, source, load(first, tile), repeats=1)
        number = k.get("number", at(total, 0), 0, FLOAT)
        moved = k.let("moved", number, U64) if late else 0
        with k.loop("tile", TILES, U64, preloaded=True) as tile:
            length = load(first + moved, tile)
            k.routine("CopyLanes", {"to": whole(result), "lanes": whole(source)}, {"width": length}, copy)
            k.routine("CopyLanes", {"to": whole(result), "lanes": whole(result)}, {"width": length}, copy)
            k.call("Adds", result, result, Negative(number), length, repeats=1)
            k.store(y, first + tile * TILE, result, length)
    return k.kernel()


def test_the_first_tile_of_each_loop_travels_before_it(on_kernel: Any) -> None:
    x = np.random.default_rng(3).normal(size=5 * 192).astype(np.float32)
    parts = x.reshape(5, 3, 64)
    expected = parts - parts.sum(1)[:, :1, None]
    np.testing.assert_allclose(on_kernel(twice_read(), x), expected.ravel(), 1e-5, 1e-5)


def test_loads_are_written_once_in_front_and_behind_each_loop(builder: Any, chip: Any) -> None:
    graph = builder()
    task = graph.task(graph.call("relu.default", graph.input("x", ("n",)), shape=("n",)), symbols={"n": 960})
    text = stage_text(twice_read(), task, "built").kernel
    process = text[text.index("void Process()") : text.index("private:")]
    order = [line.strip() for line in process.splitlines() if "CopyIn" in line]
    assert order == [
        "CopyIn(GetBlockIdx() * tiling_.run, 0);",
        "CopyIn(row, tile + 1);",
        "CopyIn2(row, 0);",
        "CopyIn2(row, tile + 1);",
        "CopyIn(row + 1, 0);",
    ]
    assert text.count("void CopyLanes(") == 1
    assert text.count("CopyLanes(result, ") == 2
    assert list(broken_rules(twice_read(), chip, {"n": 960})) == []


def test_what_is_preloaded_is_known_in_the_turn_before(chip: Any) -> None:
    broken = [one.rule for one in broken_rules(twice_read(late=True), chip, {"n": 960})]
    assert broken == ["preload"]


def test_routines_of_one_name_do_the_same(builder: Any) -> None:
    k = Builder("Two routines.")
    y = k.output("y", "output", "float", 4)
    made = Buffer("made", "float", 4, TILE)
    with k.cores("row", k.param("rows", Size(extent("n")))) as row:
        for number in (1.0, 2.0):
            k.routine(
                "Fill",
                {"to": whole(made)},
                {},
                lambda places, _, n=number: k.call("Duplicate", places[0], Literal(n), TILE, repeats=1),
            )
        k.store(y, row, made, 1)
    graph = builder()
    task = graph.task(graph.call("relu.default", graph.input("x", ("n",)), shape=("n",)), symbols={"n": 4})
    with pytest.raises(ValueError, match="Two routines are called Fill"):
        stage_text(k.kernel(), task, "built")


def test_floats_as_text() -> None:
    x, n = Var("x", FLOAT), Var("n")
    texts = {
        Literal(0.1).cpp(): "0.100000001f",
        Literal(3.0).cpp(): "3.0f",
        Literal(1e39).cpp(): "INFINITE",
        Literal(-math.inf).cpp(): "-INFINITE",
        Arithmetic("-", x, Arithmetic("*", x, Literal(2.0))).cpp(): "(x - (x * 2.0f))",
        Negative(Arithmetic("+", x, AsFloat(n + 1))).cpp(): "-(x + static_cast<float>(n + 1))",
        Inverse(x).cpp(): "1.0f / x",
        Negative(Inverse(x)).cpp(): "-(1.0f / x)",
        Least(x, Literal(1.0)).cpp(): "x < 1.0f ? 1.0f : x",
        negated(Literal(2.0)).cpp(): "-2.0f",
        negated(Negative(x)).cpp(): "x",
        negated(x).cpp(): "-x",
    }
    for written, expected in texts.items():
        assert written == expected
    with pytest.raises(PlanError, match="NaN"):
        Literal(math.nan)
    with pytest.raises(TypeError, match="ComputeTiling"):
        CallScalar(0).cpp()
