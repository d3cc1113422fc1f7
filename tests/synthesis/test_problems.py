"""Which input groups of a file are asked for a kernel."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest

from evokernel_core.capture.calls import FileCalls, InputGroup
from evokernel_core.domain.errors import ShapesNeeded
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.synthesis.problems import solve
from evokernel_core.synthesis.session import Session

FULL = InputGroup({"x": TensorSpec((4, 8), "float32")}, {})
EMPTY = InputGroup({"x": TensorSpec((0, 8), "float32")}, {})
NO_TENSORS = InputGroup({}, {"n": "3"})


@pytest.mark.parametrize(
    ("groups", "asked"),
    [
        ([FULL], 0),
        ([EMPTY, FULL], 1),
        ([EMPTY, EMPTY, FULL, FULL], 2),
        ([FULL, EMPTY], 0),
        ([NO_TENSORS], 0),
        ([EMPTY], 0),
        ([EMPTY, EMPTY], 0),
        ([], 0),
    ],
)
def test_the_first_group_that_computes_is_asked_first(
    groups: list[InputGroup], asked: int, tmp_path: Path
) -> None:
    """Where none does, the first one says why there is no kernel."""
    heard: list[int] = []

    def regions(file: Path, *, symbol: str, programs: bool, group: int) -> NoReturn:
        heard.append(group)
        raise ShapesNeeded(f"no shapes for group {group}: name them")

    file = tmp_path / "m.py"
    file.write_text("def f(x):\n    return x\n")
    agent: Any = SimpleNamespace(calls=lambda _: FileCalls("f", tuple(groups)))
    session = cast(Session, SimpleNamespace(agent=agent, regions=regions))
    result = solve(session, file, 1, "job")
    assert (result.feasible, result.failed_gate, heard) == (False, "capture", [asked])
    assert f"no shapes for group {asked}" in str(result.reason)
