"""Draws of one magnitude: wholly tiny, wholly large, far from 0; milder ones where PyTorch has no number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from evokernel_core.capture.agent.errors import AgentError
from evokernel_core.capture.agent.reference.magnitudes import parsed
from evokernel_core.capture.agent.reference.reference import reference

FLOAT = {"dtype": "float32", "contiguous": True}


def graph_of(*ops: tuple[str, list[Any]], shape: tuple[int, ...] = (40, 50), dtype: str = "float32") -> Any:
    """Operations of one operand, one behind the other, as the graph's JSON."""
    spec = {"shape": list(shape), "dtype": dtype, "contiguous": True}
    nodes: list[Any] = []
    name = "x"
    for number, (op, rest) in enumerate(ops):
        args = [{"ref": name, "index": 0}, *rest]
        name = f"n{number}"
        nodes.append({"name": name, "op": f"aten.{op}", "args": args, "kwargs": [], "outputs": [spec]})
    inputs = [{"name": "x", "kind": "tensor", "spec": spec}]
    return {"inputs": inputs, "nodes": nodes, "outputs": [{"ref": name, "index": 0}]}


def read(path: str, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.frombuffer(bytearray(Path(path).read_bytes()), dtype=dtype)


def run(graph: Any, distribution: str, folder: Path) -> tuple[torch.Tensor, torch.Tensor]:
    case = reference(graph, {}, 3, distribution, str(folder), rounded=False)
    return read(case["inputs"][0]), read(case["outputs"][0])


def test_all_values_have_the_magnitude(tmp_path: Path) -> None:
    relu = graph_of(("relu.default", []))
    ordinary, _ = run(relu, "normal", tmp_path)
    tiny, _ = run(relu, "normal*2^-30", tmp_path)
    large, _ = run(relu, "normal*2^40", tmp_path)
    far, _ = run(relu, "normal+2^9", tmp_path)
    assert torch.equal(tiny, ordinary * 2.0**-30)
    assert torch.equal(large, ordinary * 2.0**40)
    assert 2**9 <= far.mean().abs() <= 2**10 and 0.9 < far.std() < 1.1


@pytest.mark.parametrize(("side", "sign"), [("<", -1), (">", 1)])
def test_a_side_of_0_may_be_asked_for(side: str, sign: int, tmp_path: Path) -> None:
    for seed in range(6):
        case = reference(
            graph_of(("neg.default", [])), {}, seed, f"uniform{side}2^4", str(tmp_path), rounded=False
        )
        values = read(case["inputs"][0]) * sign
        assert values.min() >= 15 and values.max() <= 33


def test_zeros_come_first_and_nothing_is_below_0(tmp_path: Path) -> None:
    values, _ = run(graph_of(("neg.default", [])), "zeros", tmp_path)
    count = int((values == 0).sum())
    assert values.numel() // 4 <= count <= values.numel() // 2 and not values[: count - 2].any()
    assert values.min() == 0


@pytest.mark.parametrize(
    "text", ["", "normal*2^999", "normal*2", "normal<>2^4", "normal+2^-3", "normal; rm", "normal*2^-20x"]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(AgentError):
        parsed(text)


NO_NUMBERS = [("exp.default", "normal*2^40"), ("log.default", "signs+2^9"), ("sqrt.default", "normal*2^-20")]


@pytest.mark.parametrize(("op", "distribution"), NO_NUMBERS)
def test_what_is_mostly_no_number_is_drawn_again(op: str, distribution: str, tmp_path: Path) -> None:
    for seed in range(6):
        case = reference(graph_of((op, [])), {}, seed, distribution, str(tmp_path), rounded=False)
        assert read(case["outputs"][0]).isfinite().double().mean() >= 0.45


def test_what_is_mostly_rounding_is_drawn_again(tmp_path: Path) -> None:
    """x + 1e6 - 1e6: PyTorch's own result at 2**-20 has no digit, so that it can be asked for none."""
    moved = graph_of(("add.Tensor", [1e6]), ("sub.Tensor", [1e6]))
    values, result = run(moved, "normal*2^-20", tmp_path)
    assert (values - result).norm() < 0.05 * values.norm()
    assert values.abs().max() > 0.5


def test_special_values_are_drawn_once(tmp_path: Path) -> None:
    values, _ = run(graph_of(("clone.default", [])), "special", tmp_path)
    assert not values.isfinite().all()


@pytest.mark.parametrize("distribution", ["wide", "ties", "mixed"])
def test_zeros_of_both_signs(distribution: str, tmp_path: Path) -> None:
    values, _ = run(graph_of(("clone.default", [])), distribution, tmp_path)
    zeros = values[values == 0]
    assert zeros.numel() and 0 < int(zeros.signbit().sum()) < zeros.numel()


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_integers_that_floats_are_computed_from_have_all_signs_and_sizes(dtype: str, tmp_path: Path) -> None:
    graph = graph_of(("_to_copy.default", []))
    graph["inputs"][0]["spec"] = {"shape": [40, 50], "dtype": dtype, "contiguous": True}
    graph["nodes"][0]["kwargs"] = [["dtype", {"dtype": "float32"}]]
    case = reference(graph, {}, 3, "mixed", str(tmp_path), rounded=False)
    values = read(case["inputs"][0], getattr(torch, dtype))
    assert values.min() < -100 and values.max() > 100
