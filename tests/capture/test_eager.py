"""The user's own code beside the captured graph: each function of a table means the same as its graph, or
what differs is found; and whatever the code does, nothing of it stays."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from evokernel_core.capture import client
from evokernel_core.capture.agent.eager.compare import Wanted, compare_draws
from evokernel_core.capture.agent.eager.judge import CodeAndGraph, difference, noise_of, otherwise_in_memory
from evokernel_core.capture.agent.inputs.trials import Known
from evokernel_core.capture.agent.loading import devices
from evokernel_core.capture.agent.loading.imports import Imports
from evokernel_core.capture.agent.regions.capture import Asked, capture
from evokernel_core.capture.client import AgentClient, CaptureWay
from evokernel_core.capture.regions import Outline
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.eager import DRAWS, EagerComparison
from evokernel_core.domain.region import Region
from evokernel_core.targets.ascendc.target import ASCENDC
from tests.capture import eager_table

PARTED = {
    "expand_write": {"nan", "infinity", "extreme"},
    "expand_add": {"infinity"},
    "bce": {"normal", "nan", "infinity", "extreme"},
    "bce_sigmoid": {"normal", "nan", "infinity", "extreme"},
    "index_reduce": {"normal", "nan"},
    "var_one": {"normal", "nan"},
}
"""Functions whose graphs are not what they mean, and draws at which that is seen: a sum with a difference in
place of a write, values that the code refuses, and those of which it warns."""
FEW = (
    "expand_write", "expand_add", "in_place_view_of_input", "index_add", "index_copy", "index_fill",
    "index_read", "gather", "one_hot", "where_nan", "amax", "sort", "softmax_masked", "rsub_zero",
    "transposed_result", "floor_divide", "to_int", "promote_zero_dim", "bool_sum", "var_one", "empty_sum",
    "group_norm", "gelu_half", "bce_logits", "bce",
)  # fmt: skip
"""Of the table in every run; all of it takes a minute."""


@pytest.fixture(autouse=True)
def _no_name_for_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that torch gives its reserved device stays for good, and other tests run in this process."""
    monkeypatch.setattr(devices, "learn_npu", lambda: None)


def compared(names: Mapping[str, Any], path: Path, *, whole: bool) -> dict[str, list[dict[str, Any]]]:
    """By function, what came of each draw; a function without a region is not in it."""
    text = eager_table.text(names)
    path.write_text(text)
    subjects: list[Any] = []
    known = Known(Outline.of(text).annotations, [])
    asked = Asked(None, whole, {}, True)
    answer = capture(str(path), text, Imports(path.parent), covered_ops(ASCENDC), known, asked, subjects)
    assert not answer["defects"]
    assert not answer["problems"]
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for region, subject in subjects:
        graph, symbols = region["graph"], region["symbols"]
        wanted = Wanted(region["symbol"], region["span"], graph, symbols, 60, 1 << 32)
        compare_draws(subject, wanted, found[region["symbol"]].append, path)
    return found


def check(names: Mapping[str, Any], path: Path, *, whole: bool) -> None:
    found = compared(names, path, whole=whole)
    for name, events in found.items():
        parted = {event["draw"] for event in events if event.get("difference")}
        silent = [event for event in events if event.get("reason")]
        assert not silent, name
        assert not parted or name in PARTED, (name, events)
        assert parted >= PARTED.get(name, set()) or not whole, name
    assert len(found) > len(names) * 0.8


def test_graphs_mean_what_their_code_means(tmp_path: Path) -> None:
    check({name: eager_table.TABLE[name] for name in FEW}, tmp_path / "table.py", whole=True)


@pytest.mark.thorough
@pytest.mark.parametrize("whole", [True, False], ids=["programs", "single kernels"])
def test_all_graphs_of_the_table(whole: bool, tmp_path: Path) -> None:
    check(eager_table.TABLE, tmp_path / "table.py", whole=whole)


Compare = Callable[[str], EagerComparison]


@pytest.fixture
def compare(agent: AgentClient, tmp_path: Path) -> Compare:
    """What comes of the one program of a text, with the region that the agent captured."""

    def run(text: str) -> EagerComparison:
        path = tmp_path / "model.py"
        path.write_text(text)
        way = CaptureWay(covered_ops(ASCENDC), True)
        (region,) = (item for item in captured(agent, path, text, way) if item.task is not None)
        return agent.compare(region, text, (way,))

    return run


def captured(agent: AgentClient, path: Path, text: str, way: CaptureWay) -> tuple[Region, ...]:
    return agent.capture(path, text, way.fusible, whole=way.whole)


HEAD = "import os\nimport torch\n\n\n# evokernel: x=f32[8,16]\ndef f(x):\n    "


def test_a_difference_says_what_differs_and_at_which_draw(compare: Compare) -> None:
    body = "a = x[:, :1].clone().expand(8, 4)\n    a[:, -1] = 3.0\n    return a * 2\n"
    found = compare(HEAD + body)
    assert str(found.difference).startswith("result 1 is 6.0 at [")
    assert str(found.difference).endswith(" where the graph has nan (inputs: nan)")
    assert found.compared == ("normal",)


def test_equal_code_is_compared_at_every_draw(compare: Compare) -> None:
    found = compare(HEAD + "return x.softmax(-1) * 2\n")
    assert not found.difference
    assert not found.uncompared
    assert set(found.compared) == set(DRAWS) - {"negative_index", "index_out_of_range"}


EFFECTS = """
import os
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(16))

    def forward(self, x):
        if not torch._C._len_torch_dispatch_stack():  # as in a capture
            {effect}
        return (x + self.total).exp()


def get_inputs():
    return [torch.zeros(8, 16)]


def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("open('seen', 'a').write('x')", ""),
        ("os.remove('seen')", ""),
        ("torch.rand(3)", "it draws random numbers"),
        ("os.kill(os.getppid(), 9)", "it sends signals"),
        ("sum(len(bytearray(1 << 33)) for _ in range(3))", "it takes more memory than a comparison may"),
    ],
)
def test_what_cannot_be_compared_is_said_and_has_no_effect(
    line: str, reason: str, agent: AgentClient, compare: Compare, tmp_path: Path
) -> None:
    found = compare(EFFECTS.format(effect=line))
    assert not found.difference
    assert {str(item.reason) for item in found.uncompared} == ({reason} if reason else set())
    assert bool(found.compared) == (not reason)
    assert [path.name for path in tmp_path.iterdir()] == ["model.py"]
    assert agent.ping()["torch"] == torch.__version__


def test_results_that_are_views_of_one_output_are_compared(compare: Compare) -> None:
    found = compare(HEAD + "y = x.exp() * 2\n    return y.chunk(2, 1)\n")
    assert "nan" in found.compared
    assert not found.difference
    assert not found.uncompared


def test_code_that_does_not_end_is_stopped(
    agent: AgentClient, compare: Compare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "COMPARE_S", 4.0)
    found = compare(EFFECTS.format(effect="while True: pass"))
    assert {str(item.reason) for item in found.uncompared} == {"it takes longer than 4 s"}
    assert not found.compared
    assert agent.ping()["torch"] == torch.__version__


NORMAL = torch.tensor([[1.0, 2.0], [3.0, 4.0]])


def judged(code: torch.Tensor, graph: torch.Tensor, wide: CodeAndGraph | None = None) -> str:
    return str(difference(CodeAndGraph(code, graph), lambda: wide))


def test_values_are_judged_by_what_stays_in_float64() -> None:
    near = NORMAL * (1 + 1e-5)
    exact = CodeAndGraph(NORMAL.double(), NORMAL.double())
    assert not judged(NORMAL, NORMAL.clone())
    assert judged(NORMAL, near, exact)  # far less exact than the code
    assert not judged(near, near * (1 + 3e-6), exact)
    assert judged(NORMAL, near, CodeAndGraph(NORMAL.double(), near.double()))
    overflown = torch.tensor([math.inf, math.nan])
    finite = torch.tensor([1.0, 2.0])
    assert not judged(finite, overflown, CodeAndGraph(finite.double(), finite.double()))
    assert judged(finite, overflown, CodeAndGraph(finite.double(), overflown.double()))


def test_what_is_left_of_the_largest_numbers_depends_on_the_order_in_float64_too() -> None:
    """PyTorch's batch normalisation keeps its sums in float64 on a CPU, where the same residue stays."""
    most = torch.finfo(torch.float32).max
    values = [torch.tensor([most, -most, most / 4, -most / 4] * 16), torch.tensor(3)]
    code, graph = torch.tensor([0.646, 2.0]), torch.tensor([-3.9e19, 2.0])
    wide = CodeAndGraph(code.double(), graph.double())
    assert noise_of(values) > 3.9e19 and noise_of([torch.ones(100), None]) < 1e-12
    for pair, noise, same in (
        ((code, graph), noise_of(values), True),
        ((code, graph), 0.0, False),
        ((code, torch.tensor([math.inf, 2.0])), noise_of(values), False),
        ((code, torch.tensor([most, 2.0])), noise_of(values), False),
    ):
        assert (not difference(CodeAndGraph(*pair), lambda: wide, noise=noise)) is same


def test_what_overflows_on_the_way_is_judged_beside_the_largest_number() -> None:
    """As a norm of the least and the largest numbers, of which float64 leaves the rounding of the mean."""
    code, graph = torch.tensor([math.nan, math.nan]), torch.tensor([8.0, 0.0])
    zero, rounded = torch.tensor([8.0, 0.0]).double(), torch.tensor([8.0, -1.6e-17]).double()
    assert not judged(code, graph, CodeAndGraph(zero, rounded))
    assert judged(code, graph, CodeAndGraph(zero, torch.tensor([8.0, 1e-6]).double()))
    assert judged(torch.tensor([8.0, 0.0]), torch.tensor([8.0, 1e-3]), CodeAndGraph(zero, rounded + 1e-3))


@pytest.mark.parametrize(
    ("code", "graph"),
    [
        (torch.tensor([0.0]), torch.tensor([-0.0])),
        (torch.tensor([math.inf]), torch.tensor([-math.inf])),
        (torch.tensor([math.nan]), torch.tensor([1.0])),
        (torch.tensor([1]), torch.tensor([2])),
        (torch.tensor([1.0]), torch.tensor([1.0], dtype=torch.float64)),
        (torch.tensor([1.0]), torch.tensor([[1.0]])),
        (torch.tensor([True]), torch.tensor([False])),
    ],
)
def test_all_but_rounding_is_exact(code: torch.Tensor, graph: torch.Tensor) -> None:
    assert judged(code, graph)
    assert judged(code, graph, CodeAndGraph(code.double(), graph.double()))
    assert not judged(code, code.clone())


def test_the_order_in_memory_is_judged() -> None:
    """Of dimensions of one element nothing is said."""
    one = torch.randn(4, 6)
    for code, graph, differs in (
        (one.t().contiguous().t(), one, True),
        (one[:1].expand(4, 6), one[:1].expand(4, 6).contiguous(), True),
        (one[:, :3], one[:, :3].contiguous(), True),
        (one[2:], one[2:].clone(), True),
        (one[None].transpose(0, 1), one[:, None], False),
        (one[:0].t().contiguous().t(), one[:0], False),
    ):
        assert bool(otherwise_in_memory(CodeAndGraph(code, graph))) == differs
        assert not difference(CodeAndGraph(code, graph), lambda: None)


def test_zeros_of_sums_have_no_sign() -> None:
    zeros = CodeAndGraph(torch.tensor([0.0, 0.0]), torch.tensor([-0.0, 0.0]))
    assert not difference(zeros, lambda: None, signed=False)
    assert difference(CodeAndGraph(zeros.code, torch.tensor([-0.0, 1.0])), lambda: None, signed=False)
