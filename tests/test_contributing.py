"""The examples of docs/contributing.md do what the page says, and it names the files that there are."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evokernel_server.documents.workspace import Document
from evokernel_server.offers.overlaps import is_offered
from lsprotocol import types

from evokernel_core.compiler.lowering.plan import plan
from evokernel_core.compiler.lowering.pointwise import POINTWISE
from evokernel_core.domain import operations
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip, load_chip, parse_chip
from evokernel_core.targets.ascendc.author import initial, legalised
from tests.server.regions import captured
from tests.targets.ascendc.conftest import GraphBuilder, TwinRunner

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "contributing.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
ALLOWED, RULE = (text for language, text in BLOCKS if "ldexp.Tensor" in text and "np." not in text)
PRINTER, FEATURE, DEVICE = (
    next(text for _, text in BLOCKS if word in text)
    for word in ("def numpy_text", "def register", "aic = 32")
)
Array = np.ndarray[Any, Any]


@pytest.fixture
def chip() -> Chip:
    return load_chip("ascend910b1")


def test_the_new_operation_is_computed(monkeypatch: pytest.MonkeyPatch, chip: Chip, tmp_path: Path) -> None:
    monkeypatch.setattr(operations, "TABLE", tmp_path / "operations.txt")
    operations.TABLE.write_text(ALLOWED)
    operations.operations.cache_clear()
    ((name, rule),) = eval(f"{{{RULE}}}", {"math": math}).items()
    try:
        assert [item.name for item in operations.operations()[name].positional] == ["self", "other"]
    finally:
        monkeypatch.undo()
        operations.operations.cache_clear()
    assert name not in POINTWISE, "the page's example exists by now: take another"
    monkeypatch.setitem(POINTWISE, name, rule)
    x = np.linspace(-3, 3, 500, dtype=np.float32)
    y = np.resize(np.arange(-20, 21), 500).astype(np.float32)
    graph = GraphBuilder()
    made = graph.call(
        name.removeprefix("aten."), graph.input("x", (500,)), graph.input("y", (500,)), shape=(500,)
    )
    (found,) = TwinRunner(chip, tmp_path)(graph.task(made), {"x": x, "y": y})
    np.testing.assert_allclose(found, np.ldexp(x, y.astype(int)), rtol=4e-6)


def _naming(pattern: str) -> set[str]:
    folders = (ROOT / "evokernel_core" / name for name in ("compiler", "targets"))
    files = ((path, path.read_text()) for folder in folders for path in folder.rglob("*.py"))
    return {str(path.relative_to(ROOT)) for path, text in files if re.search(pattern, text)}


def test_the_new_family_touches_these_files() -> None:
    listed = set(re.findall(r"^\| `(evokernel_core/[^`]+)`", PAGE, re.MULTILINE))
    assert listed == _naming(
        r"\bINTERLEAVE\b|kernels\.interleave|\bis_interleaved\b|import family as interleave"
    )


SIZES = {"n": 300, "d": 70}


def _softmax() -> KernelTask:
    graph = GraphBuilder()
    x, bias = graph.input("x", ("n", "d")), graph.input("bias", ("d",))
    moved = graph.call("add.Tensor", graph.call("relu.default", x, shape=("n", "d")), bias, shape=("n", "d"))
    return graph.task(graph.call("_softmax.default", moved, -1, False, shape=("n", "d")), symbols=SIZES)


def _variances() -> KernelTask:
    graph = GraphBuilder()
    x = graph.input("x", ("n", "d"))
    square = graph.call("mul.Tensor", x, x, shape=("n", "d"))
    return graph.task(graph.call("mean.dim", square, (0,), shape=("d",)), symbols=SIZES)


def _softmax_of(x: Array, bias: Array) -> Array:
    moved = np.exp(np.maximum(x, 0) + bias)
    return moved / moved.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("task", "expected"),
    [(_softmax(), _softmax_of), (_variances(), lambda x: (x * x).mean(axis=0))],
    ids=["softmax", "columns"],
)
def test_the_new_target_computes_plans(task: KernelTask, expected: Any, chip: Chip) -> None:
    scope: dict[str, Any] = {"np": np}
    exec(PRINTER, scope)
    assert sum(bool(line.strip()) for line in PRINTER.splitlines()) < 70
    planned = plan(legalised(task, chip), chip)
    exec(scope["numpy_text"](planned, SIZES, "kernel"), scope)
    draws = np.random.default_rng(3)
    inputs = {
        operand.name: draws.standard_normal(operand.spec.sizes(task.sizes)).astype("f4")
        for operand in task.graph.inputs
    }
    (made,) = scope["kernel"](*(inputs[name] for name, _ in planned.tensors))
    wanted = expected(*inputs.values())
    np.testing.assert_allclose(made.reshape(wanted.shape), wanted, rtol=2e-5, atol=1e-6)


def test_the_new_device_is_planned_for(tmp_path: Path) -> None:
    file = tmp_path / "ascend910x.toml"
    file.write_text(DEVICE)
    made, usual = parse_chip("ascend910x", file), load_chip("ascend910b1")
    assert (made.aic, made.parallel, made.memory.l0c_bytes) == (32, 64, 262144)
    graph = GraphBuilder()
    a, b = (graph.input(name, (4096, 4096), "float16") for name in "ab")
    task = graph.task(graph.call("mm.default", a, b, shape=(4096, 4096), dtype="float16"))
    tiles = [
        math.prod(schedule.setting(f"base_{dim}", 0) for dim in "mn")
        for schedule in (initial(task, chip) for chip in (made, usual))
    ]
    assert tiles[0] > tiles[1]


class _Host:
    """The part of the server that a feature registers with."""

    def __init__(self, document: Document) -> None:
        self.documents, self.asked = {document.uri: document}, dict[str, Any]()

    def feature(self, name: str) -> Any:
        return lambda function: self.asked.setdefault(name, function)


def test_the_new_feature_answers_of_a_document() -> None:
    scope: dict[str, Any] = {}
    exec(FEATURE, scope)
    document = captured("import torch\n\ndef f(x):\n    return torch.softmax(x, dim=0) + 1\n")
    host = _Host(document)
    scope["register"](host)
    answer = host.asked[types.TEXT_DOCUMENT_DOCUMENT_SYMBOL]
    asked = types.DocumentSymbolParams(types.TextDocumentIdentifier(document.uri))
    offered = [tracked for tracked in document.tracked or () if is_offered(document, tracked)]
    assert [symbol.name for symbol in answer(asked)] == [tracked.region.op_category for tracked in offered]
    assert offered
    assert answer(types.DocumentSymbolParams(types.TextDocumentIdentifier("file:///none.py"))) == []
