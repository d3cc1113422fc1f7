"""Kernels that others published beside a problem's model: opened, called, judged, lost alone; on the CPU."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from benchmarks import gpu
from benchmarks.measuring import flags
from benchmarks.measuring.classes import AS_LEFT, EAGER, OURS, STRICT, TUNED
from benchmarks.measuring.files import Opened
from benchmarks.measuring.others import Other, file_of
from benchmarks.measuring.problems import _outputs
from benchmarks.measuring.timing_process import Timed
from evokernel_core.targets.triton.backends.gpu_process import JudgeLost, JudgeProcess
from tests.targets.ascendc.conftest import GraphBuilder

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def __init__(self, width, scale):
        super().__init__()
        self.linear, self.scale = torch.nn.Linear(width, 3), scale
    def forward(self, x):
        return self.linear(x) * self.scale
def get_inputs():
    return [torch.rand(4, 5)]
def get_init_inputs():
    return [5, 2.0]
"""
ALIKE = PROBLEM.replace("class Model", "class ModelNew")
NAMED = ALIKE.replace("super().__init__()", "super().__init__(); torch.rand(3)")
PLACED = NAMED.replace("linear", "layer")
OTHER_SHAPE = (
    PLACED.replace("return self.layer(x)", "return x @ self.w")
    .replace("torch.nn.Linear(width, 3)", "None")
    .replace("torch.rand(3)", "self.w = torch.nn.Parameter(torch.rand(5, 3))")
)
HALF = ALIKE.replace("self.linear(x) *", "self.linear(x).half().float() *")
STORED = ALIKE.replace(
    "return self.linear(x) * self.scale",
    """
        if not hasattr(self, "kept"):
            self.kept = self.linear(x) * self.scale
        return self.kept""",
)
IN_PLACE = ALIKE.replace(
    "return self.linear(x) * self.scale", "y = self.linear(x) * self.scale; x.zero_(); return y"
)
FLAGGED = (
    "import torch\ntorch.set_float32_matmul_precision('high')\ntorch.backends.cudnn.benchmark = True\n"
    + ALIKE
)
FUNCTION = (
    "def kernel_function(x, weight, bias, scale, out=None):\n    return (x @ weight.T + bias) * scale\n"
)
SPREAD = "def kernel_function(*args):\n    x, weight, bias = args\n    return (x @ weight.T + bias) * 2.0\n"
ENDED = "import os\nclass ModelNew:\n    def __init__(self, *args):\n        os._exit(7)\n"


@pytest.fixture(autouse=True)
def _flags() -> Any:
    yield
    flags.write(torch, flags.of_class(AS_LEFT))


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def timed(folder: Path, others: dict[str, str], **changed: Any) -> tuple[Timed, dict[str, dict[str, float]]]:
    """A problem on the CPU with others beside it, and all errors in both classes."""
    files = {name: written(folder, f"{name}.py", text) for name, text in others.items()}
    request = {
        "file": written(folder, "problem.py", PROBLEM), "inputs": [], "call": None, "double": True,
        "others": files, "tuned": False, **changed,
    }  # fmt: skip
    one = Timed(torch, SimpleNamespace(name="cpu", wait=lambda: None), None, None, request)  # type: ignore[arg-type]
    with torch.no_grad():
        one._systems[EAGER] = one._system(one._opened.model)
        one._tuned(str(folder / "lock"))
        return one, one._errors([AS_LEFT, STRICT], {EAGER: one._opened.model})[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ALIKE, "the same as drawn, by name"),
        (NAMED, "copied by name"),
        (PLACED, "copied by position"),
        (FUNCTION, "arguments by name, parameters by position"),
        (SPREAD, "arguments by name, parameters by position"),
        (IN_PLACE, "the same as drawn, by name"),
    ],
)
def test_a_kernel_of_others_computes_with_the_models_parameters(text: str, said: str, tmp_path: Path) -> None:
    one, errors = timed(tmp_path, {"adaexplore": text})
    assert one._others["adaexplore"].parameters == said
    assert errors[AS_LEFT]["adaexplore"] < 1e-6 and errors[STRICT]["adaexplore"] < 1e-6
    assert errors[STRICT][EAGER] < 1e-6  # what others do to their inputs is theirs alone


@pytest.mark.parametrize(("text", "least"), [(HALF, 1e-5), (STORED, 1e-2), (OTHER_SHAPE, 1e-2)])
def test_what_is_not_right_is_seen(text: str, least: float, tmp_path: Path) -> None:
    one, errors = timed(tmp_path, {"adaexplore": text})
    assert errors[AS_LEFT]["adaexplore"] > least
    if text is OTHER_SHAPE:
        assert one._others["adaexplore"].parameters == "no place for linear.weight, linear.bias"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "none of ModelNew, kernel_function"),
        (FUNCTION.replace("out=None", "out"), "missing 1 required"),
    ],
)
def test_what_fails_is_lost_alone_with_its_reason(text: str, said: str, tmp_path: Path) -> None:
    one, errors = timed(tmp_path, {"kernelagent": text, "adaexplore": ALIKE})
    assert said in one._why["kernelagent"] and "kernelagent" not in one._systems
    assert set(errors[AS_LEFT]) == {EAGER, "adaexplore"}


def test_flags_that_a_file_switches_on_are_its_own(tmp_path: Path) -> None:
    before = torch.backends.cuda.matmul.fp32_precision
    one, _ = timed(tmp_path, {"adaexplore": FLAGGED})
    on = {"tf32_matmul": True, "cudnn_benchmark": True}
    assert one._flags("adaexplore", STRICT) == {**flags.of_class(STRICT), **on}
    assert one._flags(EAGER, AS_LEFT) == {**flags.NONE, "tf32_cudnn": True}
    flags.write(torch, one._flags("adaexplore", STRICT))
    assert flags.switched_on(torch) == on
    flags.write(torch, one._flags(EAGER, STRICT))
    assert flags.switched_on(torch) == {} and torch.backends.cuda.matmul.fp32_precision == before
    assert torch.get_float32_matmul_precision() == "highest"


def test_folders_of_all_layouts_are_read(tmp_path: Path) -> None:
    for place in ("level2/7.py", "L2/8_Thing/kernel_code.py", "L3/9_Net/final_kernel.py"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).touch()
    found = [
        file_of(tmp_path, level, name)
        for level, name in ((2, "7_A"), (2, "8_Thing"), (3, "9_Net"), (2, "9_Net"))
    ]
    assert [file and file.name for file in found] == ["7.py", "kernel_code.py", "final_kernel.py", None]


def test_a_process_that_a_kernel_ends_says_so_and_a_good_one_is_called(tmp_path: Path) -> None:
    script = str(Path(gpu.__file__).parent / "measuring" / "warming.py")
    process = JudgeProcess([sys.executable, script, str(tmp_path), str(tmp_path / "lock"), "cpu"])
    try:
        process.ready()
        problem = written(tmp_path, "problem.py", PROBLEM)
        asked = {"file": problem, "other": written(tmp_path, "good.py", ALIKE)}
        assert set(process.ask(asked, 100.0)) == {"seconds"}
        with pytest.raises(JudgeLost):
            process.ask({**asked, "other": written(tmp_path, "ended.py", ENDED)}, 100.0)
    finally:
        process.close()


def test_a_request_is_tried_without_each_system_and_without_all() -> None:
    request = {"others": {"a": "a.py", "b": "b.py"}, "tuned": True, "call": {}}
    tried = gpu.combinations_of(request)
    every = ("a", "b", TUNED)
    assert tried == [("a",), ("b",), (TUNED,), (OURS,), every, (*every, OURS)]
    fewer = gpu.without(request, ("a", OURS))
    assert fewer == {"others": {"b": "b.py"}, "tuned": True, "call": None}
    assert gpu.combinations_of(gpu.without(request, tried[-1])) == []


def test_a_crash_costs_the_row_of_the_system_that_caused_it(monkeypatch: pytest.MonkeyPatch) -> None:
    run = object.__new__(gpu.Run)
    crashing = {"error": "an illegal memory access"}
    monkeypatch.setattr(
        run,
        "_asked",
        lambda request: crashing if "b" in request["others"] else {"classes": {}},
        raising=False,
    )
    request = {"others": {"a": "a.py", "b": "b.py"}, "tuned": False, "call": {}}
    assert run._with_fewer(request, crashing) == ({"classes": {}}, {"b": "an illegal memory access"})


def test_the_draw_is_of_all_that_are_asked_for_and_its_seed_repeats_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "level2").mkdir()
    for number in range(1, 21):
        (tmp_path / "level2" / f"{number}_A.py").touch()
        (tmp_path / f"level2-{number}_A.json").touch()
    args = Namespace(
        suite=tmp_path, tasks=tmp_path, levels="2", numbers=range(1, 11), others={"adaexplore": tmp_path},
        max_autotune=4, seed=3,
    )  # fmt: skip
    drawn = [one.number for one in gpu.asked_of(args) if one.tuned]
    assert len(drawn) == 4 and max(drawn) <= 10
    assert drawn == [one.number for one in gpu.asked_of(args) if one.tuned]
    assert gpu.asked_of(args)[0].others == {"adaexplore": tmp_path / "level2" / "1_A.py"}


def test_arguments_are_named_as_the_model_names_them(tmp_path: Path) -> None:
    opened = Opened(torch, written(tmp_path, "problem.py", PROBLEM), "cpu")
    assert opened.arguments() == {"width": 5, "scale": 2.0}
    other = Other(torch, written(tmp_path, "other.py", ALIKE), opened)
    assert other.call is not opened.model and torch.equal(other.results(), opened.model(*opened.inputs))


BOUND = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.kind = torch.randn(4, 3), torch.float32
        self.register_buffer("calls", torch.zeros(1))
    def forward(self, x):
        self.calls += 1
        self.hidden = torch.tanh(x + self.hidden)
        return 2 * self.hidden
def get_inputs():
    return [torch.rand(4, 3)]
def get_init_inputs():
    return []
"""


def test_state_that_a_call_binds_anew_is_a_result_and_comes_back(tmp_path: Path) -> None:
    one, errors = timed(tmp_path, {}, file=written(tmp_path, "bound.py", BOUND))
    assert errors[STRICT][EAGER] < 1e-6
    for _ in range(2):
        doubled, calls, hidden = one._results(one._opened.model)
        assert torch.equal(doubled, 2 * hidden) and calls == 1
    assert torch.equal(one._opened.model.hidden, one._before[".hidden"])


def test_outputs_that_lie_permuted_are_judged_as_the_caller_sees_them(tmp_path: Path) -> None:
    graph = GraphBuilder()
    x = graph.input("x", (2, 3, 4))
    task = graph.task(graph.call("permute.default", x, (2, 0, 1), shape=(4, 2, 3)), x)
    outputs = _outputs(task)
    assert [one["order"] for one in outputs] == [[1, 2, 0], [0, 1, 2]]
    values = torch.arange(24.0).view(2, 3, 4)
    kept = {"output_0": values.permute(2, 0, 1).contiguous(), "output_1": values}
    one, _ = timed(tmp_path, {}, outputs=outputs)
    one._systems[OURS] = SimpleNamespace(
        stage=lambda: None, go=lambda: None, tensor=lambda name: kept[name].flatten().view(torch.uint8)
    )
    assert all(torch.equal(result, values) for result in one._our_results())
