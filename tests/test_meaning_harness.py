"""The parts of benchmarks/meaning.py that decide what is counted."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def loaded(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def meaning() -> Any:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return loaded("meaning_benchmark", BENCHMARKS / "meaning.py")
    finally:
        sys.path.remove(str(BENCHMARKS))


compare = loaded("meaning_compare", BENCHMARKS / "corpus" / "trial" / "compare.py")


def leaf(data: torch.Tensor, **other: Any) -> dict[str, Any]:
    known = {"type": "Tensor", "dtype": str(data.dtype), "shape": tuple(data.shape), "strides": data.stride()}
    return {**known, "requires_grad": False, "data": data, **other}


def outcome(data: torch.Tensor, **other: Any) -> dict[str, Any]:
    common = {"notes": [], "precision": "torch.float32", "draws": "a", "kernels": {}, "state": {}}
    parts = {"result": [leaf(data)], "result_structure": "*", "inputs": [], "inputs_structure": "()"}
    return {**common, **parts, **other}


ONES = torch.ones(4, 4)
CASES = [
    (outcome(ONES), outcome(ONES), "same"),
    (outcome(ONES), outcome(ONES * (1 + 1e-5)), "same"),
    (outcome(ONES), outcome(ONES * 1.01), "differs"),
    (outcome(ONES.bfloat16()), outcome(ONES.bfloat16() * 1.01), "same"),
    (outcome(ONES.bfloat16()), outcome(ONES), "differs"),
    (outcome(ONES), outcome(ONES * float("nan")), "differs"),
    (outcome(ONES * float("inf")), outcome(-ONES * float("inf")), "differs"),
    (outcome(ONES), outcome(ONES, draws="b"), "differs"),
    (outcome(ONES), outcome(ONES[:2]), "differs"),
    (outcome(ONES), outcome(ONES, gradients={"w": leaf(ONES)}), "differs"),
    (outcome(ONES, gradients={"w": leaf(ONES)}), outcome(ONES, gradients={"w": leaf(ONES * 2)}), "differs"),
    (outcome(ONES), outcome(ONES, state={"mean": leaf(ONES)}), "differs"),
    (outcome(ONES), outcome(ONES, error="RuntimeError", message=""), "raised"),
    (outcome(ONES, error="RuntimeError", message=""), outcome(ONES), "differs"),
    (outcome(ONES, error="TypeError", message="a"), outcome(ONES, error="TypeError", message="b"), "same"),
    (outcome(ONES, error="TypeError", message=""), outcome(ONES, error="ValueError", message=""), "differs"),
    (outcome(ONES), outcome(ONES, error="TooLong", message=""), "timeout"),
    (outcome(ONES), None, "lost"),
]


@pytest.mark.parametrize(("before", "after", "verdict"), CASES)
def test_what_a_difference_is(before: Any, after: Any, verdict: str) -> None:
    assert compare.compared(before, after)["verdict"] == verdict


def test_other_strides_are_told_apart() -> None:
    row = compare.compared(outcome(ONES), outcome(ONES) | {"result": [leaf(ONES, strides=(1, 4))]})
    assert (row["verdict"], row["strides"]) == ("same", True)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Line 12 changes gates1_s in place: do so.", "line 7: Line 9 changes gates22_s in place: do so."),
        ("evokernel: /a/b.py cannot be read", "/other/c.py cannot be read"),
    ],
)
def test_reasons_are_counted_without_names_and_numbers(meaning: Any, first: str, second: str) -> None:
    assert meaning.normalised(first) == meaning.normalised(second)


def test_the_summary_counts_kernel_runs_and_silent_differences(meaning: Any) -> None:
    rows = [{"verdict": "same", "kernels": {"k": 2}}, {"verdict": "differs", "kernels": {}}]
    rows += [{"verdict": "skipped", "kernels": {}}, {"verdict": "lost", "kernels": {}}]
    edit = {"status": 0, "said": "", "traceback": False}
    regions = [
        {"status": "needs_shapes", "reason": "Nothing says.", "kernel_dir": None},
        {"status": "unsupported", "reason": "Line 3 is odd.", "kernel_dir": None},
    ]
    result = {"entry": "e", "project": "p", "kernels": 1, "regions": regions, "edit": edit,
              "perturbations": {"emulated": rows}}  # fmt: skip
    failed = {"entry": "f", "project": "p", "kernels": 0, "regions": [], "edit": {**edit, "traceback": True}}
    found = meaning.summarised([result, failed])
    wanted = {"files": 2, "projects": 1, "with_kernel": 1, "perturbations": 3, "kernel_runs": 1,
              "silent_differences": 1, "raised": 1, "tracebacks": 1,
              "definitions_not_called": 1, "reasons": [("is odd.", 1)]}  # fmt: skip
    assert {name: found[name] for name in wanted} == wanted


def test_only_the_edited_file_is_a_copy(meaning: Any, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "model.py").write_text("one")
    (project / "other.py").write_text("two")
    entry = meaning.Entry("e", project, "model.py", None, Path(sys.executable))
    file = meaning.edited_copy(entry, tmp_path / "edited")
    file.write_text("changed")
    assert (project / "model.py").read_text() == "one"
    assert (tmp_path / "edited" / "other.py").read_text() == "two"


def test_files_that_tell_their_inputs_are_entries(meaning: Any, tmp_path: Path) -> None:
    (tmp_path / "level").mkdir()
    (tmp_path / "level" / "softmax.py").write_text("def get_inputs():\n    return []\n")
    (tmp_path / "level" / "helper.py").write_text("x = 1\n")
    assert [entry.name for entry in meaning.entries(tmp_path, "*")] == ["level.softmax"]
