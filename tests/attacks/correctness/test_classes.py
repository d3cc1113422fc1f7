"""Kernels that are right for ordinary values at the sizes of tiles, and wrong for a whole class of others.

Each must fail in every draw, and the honest kernel beside it pass in the same ones; PyTorch itself is the
reference."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import frozen

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.author import initial, write
from evokernel_core.targets.ascendc.backends.twin import TwinBackend
from evokernel_core.targets.ascendc.source import KERNEL
from evokernel_core.targets.ascendc.target import ASCENDC, ascendc
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.local import LocalVerifier
from tests import warm
from tests.homes import own_home
from tests.tables import few

DRAWS = tuple(Draw(f"{number:032x}") for number in (11, 12, 13))
CHIP = load_chip()


@frozen
class Wrong:
    """A kernel of ``body`` that is written as that of ``instead``, which only the class tells from it."""

    wants: str
    shapes: str
    body: str
    instead: str


ROWS = "x=f32[96,300]"
MOST = "3.4028234663852886e38"
WRONG = [
    Wrong("no value beyond 2,500", ROWS, "torch.relu(x)", "torch.clamp(torch.relu(x), max=2500.0)"),
    Wrong("no value that 1e32 overflows", ROWS, "x * 0.5", "x * 1e32 * 0.5e-32"),
    Wrong("no value that 192 swallows", ROWS, "x * 0.5", "(x + 192.0 - 192.0) * 0.5"),
    Wrong("no value near 0", ROWS, "torch.expm1(x)", "torch.exp(x) - 1.0"),
    Wrong("no mean beside which the spread is small", ROWS, "F.layer_norm(x, x.shape[1:])",
          "(x - x.mean(-1, keepdim=True)) * torch.rsqrt((x * x).mean(-1, keepdim=True) "
          "- x.mean(-1, keepdim=True) ** 2 + 1e-5)"),
    Wrong("no integer beyond 2**24", "x=i32[96,300], y=i32[96,300]", "x * y",
          "(x.float() * y.float()).to(torch.int32)"),
    Wrong("no value that equals a bound of the graph", ROWS, "torch.where(x > 0.3, x, -x)",
          "torch.where(x >= 0.3, x, -x)"),
    Wrong("nothing to ask where one per 20,000 is lost", ROWS, "torch.relu(x)", "torch.relu(x) * 1.00005"),
    Wrong("no inputs that are nearly equal", "x=f32[96,300], y=f32[96,300]", "((x - y) ** 2).sum(-1)",
          "(x * x - 2 * x * y + y * y).sum(-1)"),
    Wrong("no integer that equals one of the graph", "x=i32[96,300]", "torch.where(x == 123456, 0, x)",
          "x + 0"),
    Wrong("no row of -inf", ROWS, "torch.amax(x, -1)", f"torch.amax(x, -1).clamp_min(-{MOST})"),
    Wrong("no row of inf", ROWS, "torch.amin(x, -1)", f"torch.amin(x, -1).clamp_max({MOST})"),
    Wrong("no row of -inf beside ordinary ones", ROWS, "torch.softmax(x, -1)",
          "torch.softmax(x.clamp_min(-3e38), -1)"),
    Wrong("no window of -inf", "x=f32[2,8,32,48]", "F.max_pool2d(x, 3, 2, 1)",
          f"F.max_pool2d(x, 3, 2, 1).clamp_min(-{MOST})"),
    Wrong("no row of the least integer", "x=i32[96,300]", "torch.amax(x, -1)",
          "torch.clamp(torch.amax(x, -1), min=-2147483647)"),
    Wrong("no row of zeros", ROWS, "x / x.norm(dim=-1, keepdim=True)",
          "x / (x.norm(dim=-1, keepdim=True) + 1e-30)"),
    Wrong("no result beyond the range of a half type", "x=f16[96,300]", "torch.relu(x) * 2",
          "torch.clamp(torch.relu(x) * 2, max=65504.0)"),
    Wrong("no result beyond the range", ROWS, "torch.relu(x) * 2",
          f"torch.clamp(torch.relu(x) * 2, max={MOST})"),
    Wrong("no value far below 0 for a sigmoid", ROWS, "torch.sigmoid(x)", "0.5 * (1 + torch.tanh(x * 0.5))"),
    Wrong("no value far from 0 for a logarithm of 1 + exp(-|x|)", ROWS, "F.logsigmoid(x)",
          "-(torch.relu(-x) + torch.log(1 + torch.exp(-torch.abs(x))))"),
    Wrong("no 0 among what is not below it", "x=f32[96,300], y=f32[96,300]",
          "F.kl_div(x, y, reduction='batchmean')", "(y * (torch.log(y) - x)).sum() / x.shape[0]"),
    Wrong("no exact half behind a factor", ROWS, "torch.round(x * 12.5)", "torch.floor(x * 12.5 + 0.5)"),
    Wrong("nothing to ask where a running maximum loses its last digits", ROWS,
          "torch.cummax(x, -1).values", "torch.cummax(x, -1).values * 0.99999"),
    Wrong("not to divide the least integer", "x=i32[96,300], y=i32[96,300]",
          "torch.div(x, y, rounding_mode='floor')",
          "torch.div(x.clamp(min=-2147483647), y, rounding_mode='floor')"),
]  # fmt: skip
"""Each is written by the schedule proposer itself for the wrong formula, under the right task."""


@pytest.fixture(scope="module")
def agent() -> Iterator[AgentClient]:
    with AgentClient(warm.interpreter()) as client:
        yield client


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with own_home(tmp_path_factory.mktemp("home")):
        yield


def task_of(agent: AgentClient, shapes: str, body: str, folder: Path) -> KernelTask:
    names = ", ".join(part.split("=")[0].strip() for part in shapes.split(", "))
    head = "import torch\nimport torch.nn.functional as F\n\n\n"
    text = f"{head}# evokernel: {shapes}\ndef f({names}):\n    return {body}\n"
    (region,) = agent.capture(folder / "model.py", text, covered_ops(ASCENDC))
    assert region.task is not None, region.reason
    return region.task


def source_of(task: KernelTask) -> KernelSource:
    return write(task, initial(task, CHIP), CHIP)


def failure(agent: AgentClient, task: KernelTask, source: KernelSource, draw: Draw) -> str:
    """The code and the words of the gate that fails, empty where none does."""
    verifier = LocalVerifier(agent, TwinBackend(ascendc(CHIP)), draw=lambda: draw)
    failed = verifier.verify(task, source).failed_gate
    return f"{failed.code}: {failed.words()}" if failed else ""


@few("wrong", WRONG, keep=(3, 4, 6, 10, 15, 16, 18), ids=lambda wrong: wrong.wants)
def test_what_is_wrong_for_a_class_of_values_fails_in_every_draw(
    wrong: Wrong, agent: AgentClient, tmp_path: Path
) -> None:
    task = task_of(agent, wrong.shapes, wrong.body, tmp_path)
    source = source_of(task_of(agent, wrong.shapes, wrong.instead, tmp_path))
    for draw in DRAWS:
        found = failure(agent, task, source, draw)
        assert found.startswith("numeric: "), found or draw


CARRIED = ("if (piece == 0) {", "if (piece == 0 || piece == 16) {")


def test_what_is_wrong_from_the_17th_tile_of_a_row_fails_in_every_draw(
    agent: AgentClient, tmp_path: Path
) -> None:
    """Two tiles in a row of the file: no number of the text is a size at which it shows."""
    task = task_of(agent, "x=f32[64,20000]", "torch.cumsum(x, 1)", tmp_path)
    honest = source_of(task)
    text = honest.files[KERNEL]
    assert text.count(CARRIED[0]) == 1
    wrong = honest.with_files({KERNEL: text.replace(*CARRIED)})
    for draw in DRAWS:
        found = failure(agent, task, wrong, draw)
        assert found.startswith("numeric: "), found or draw


DIVIDED = ("1.0f / softmaxSumValue", "(count == 100 ? 1.001f : 1.0f) / softmaxSumValue")


def test_what_is_wrong_at_a_hundred_columns_fails_in_every_draw(agent: AgentClient, tmp_path: Path) -> None:
    """Wants a size that is neither odd nor a power of two to be left out."""
    task = task_of(agent, ROWS, "torch.softmax(x, -1)", tmp_path)
    honest = source_of(task)
    wrong = honest.with_files({KERNEL: honest.files[KERNEL].replace(*DIVIDED)})
    assert wrong != honest
    for draw in DRAWS:
        found = failure(agent, task, wrong, draw)
        assert found.startswith("numeric: ") and "=100" in found, found or draw


LATE = ("Compute(count);", "Compute(tile == 2 ? 1 : count);")
ZEROS = (
    "Compute(count);",
    "Compute(xInGlobal.GetValue(0) == 0.0f && xInGlobal.GetValue(1) == 0.0f ? 1 : count);",
)
FREED = ("xLocalQueue.FreeTensor(xLocal);", "xLocalQueue.FreeTensor(xLocal); Muls(xLocal, xLocal, 1.0f, 8);")
CHANGED = {
    "a third tile of a core": ("torch.relu(x) * 2 + 1", LATE, ("output-not-written", "uninitialised-read")),
    "inputs that begin with zeros": ("torch.relu(x) * 2 + 1", ZEROS, ("uninitialised-read",)),
    "a buffer to be taken again": ("torch.softmax(x, -1)", FREED, ("missing-sync",)),
}
"""By what the kernel wants no case to have: the formula, the change, and codes of which it fails with one."""


@few("wanted", list(CHANGED), keep=(1,), ids=str)
def test_what_no_small_case_shows_fails_in_every_draw(
    wanted: str, agent: AgentClient, tmp_path: Path
) -> None:
    formula, change, codes = CHANGED[wanted]
    task = task_of(agent, "x=f32[100,1024]", formula, tmp_path)
    honest = source_of(task)
    wrong = honest.with_files({KERNEL: honest.files[KERNEL].replace(*change)})
    assert wrong != honest
    for draw in DRAWS:
        found = failure(agent, task, wrong, draw)
        assert found.startswith(codes), found or draw


SUMMED = ("SumRows(softmaxSum, xLocal, rows, tiling_.columns,",
          "SumRows(softmaxSum, xLocal, rows, tiling_.columns + 3 > COLUMN_CAPACITY ? COLUMN_CAPACITY - 3 : "
          "tiling_.columns,")  # fmt: skip


def test_what_is_wrong_at_the_largest_size_fails_in_every_draw(agent: AgentClient, tmp_path: Path) -> None:
    """Wants no row that fills the last tile which the host code takes: longer ones it declines."""
    task = task_of(agent, "x=f32[128,1000]", "torch.softmax(x, -1)", tmp_path)
    honest = source_of(task)
    wrong = honest.with_files({KERNEL: honest.files[KERNEL].replace(*SUMMED)})
    assert wrong != honest
    for draw in DRAWS:
        found = failure(agent, task, wrong, draw)
        assert found.startswith("numeric: "), found or draw


@few("wrong", WRONG, keep=(4, 15), ids=lambda wrong: wrong.wants)
def test_the_honest_kernels_pass_in_the_same_draws(wrong: Wrong, agent: AgentClient, tmp_path: Path) -> None:
    task = task_of(agent, wrong.shapes, wrong.body, tmp_path)
    for draw in DRAWS:
        assert failure(agent, task, source_of(task), draw) == ""
