"""The examples of docs/contributing.md do what the page says, and it names the files that there are."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.lowering.pointwise import POINTWISE
from evokernel_core.domain import operations
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip, load_chip
from evokernel_core.targets.ascendc.author import legalised
from evokernel_core.targets.ascendc.ir.nodes import Kernel
from evokernel_core.targets.ascendc.kernels.registry import FAMILIES
from evokernel_core.targets.ascendc.print.vector_kernel import stage_text
from tests.ascendc.conftest import GraphBuilder, TwinRunner

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "contributing.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
ALLOWED, RULE = (text for language, text in BLOCKS if "ldexp.Tensor" in text and "np." not in text)
LISTING = next(text for _, text in BLOCKS if "def listing" in text)


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


def _join() -> KernelTask:
    graph = GraphBuilder()
    x, y = graph.input("x", ("n", 1)), graph.input("y", ("n", 1))
    return graph.task(graph.call("cat.default", (x, y), 1, shape=("n", 2)), symbols={"n": 5000})


def test_another_printer_walks_the_same_nodes(chip: Chip) -> None:
    scope: dict[str, Any] = {}
    exec(LISTING, scope)
    task = legalised(_join(), chip)
    family = next(item for item in FAMILIES if item.name == "interleave")
    strategy = family.initial(task, chip)
    kernel = family.text(task, strategy, chip, "join")
    assert isinstance(kernel, Kernel)
    words = scope["listing"](kernel)
    text = stage_text(kernel, task, "join").kernel
    assert (words.count("load"), words.count("store")) == (1, 1)
    assert all(f"{word}<" in text or f"{word}(" in text for word in set(words) - {"load", "store"})
