"""References are computed once for a task, and each caller has files of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from evokernel_core.capture.reference import ReferenceCase
from evokernel_core.domain.graph import Graph
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.verifier import references
from evokernel_core.verifier.references import KeptReferences


class Counting:
    """Writes one input and one output, and counts how often it was asked."""

    def __init__(self) -> None:
        self.calls = 0

    def reference(
        self, task: KernelTask, sizes: Mapping[str, int], seed: int, distribution: str, folder: Path
    ) -> ReferenceCase:
        self.calls += 1
        for name in ("in.bin", "out.bin"):
            (folder / name).write_text(f"{task.name} {dict(sizes)} {seed} {distribution} {name}")
        return ReferenceCase((folder / "in.bin",), (1.5,), (folder / "out.bin",))


def task(name: str) -> KernelTask:
    return KernelTask(name, Graph((), (), ()), (Symbol(name, 3),), TOLERANCES["float32"], "other")


def ask(kept: KeptReferences, folder: Path, name: str = "a", seed: int = 0) -> ReferenceCase:
    folder.mkdir()
    return kept.reference(task(name), {name: 3}, seed, "normal", folder)


def test_the_same_case_is_computed_once(tmp_path: Path) -> None:
    runner = Counting()
    kept = KeptReferences(runner)
    first = ask(kept, tmp_path / "1")
    text = first.outputs[0].read_text()
    for path in (*first.inputs, *first.outputs):
        path.unlink()  # a caller removes its folder
    again = ask(kept, tmp_path / "2")
    assert runner.calls == 1
    assert (again.outputs[0].read_text(), again.scalars) == (text, (1.5,))
    assert again.outputs[0].parent == tmp_path / "2"
    ask(kept, tmp_path / "3", seed=1)
    assert runner.calls == 2


def test_only_the_last_tasks_are_kept(tmp_path: Path) -> None:
    runner = Counting()
    kept = KeptReferences(runner)
    for place, name in enumerate("abcabc"):
        assert name in ask(kept, tmp_path / str(place), name).inputs[0].read_text()
    assert runner.calls == 6


def test_large_cases_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "MOST_BYTES", 10)
    runner = Counting()
    kept = KeptReferences(runner)
    ask(kept, tmp_path / "1")
    ask(kept, tmp_path / "2")
    assert runner.calls == 2
