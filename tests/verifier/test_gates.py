"""The gates' own arithmetic: what is compared, with which sizes, and against which bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.capture.reference import DISTRIBUTIONS, base_of
from evokernel_core.domain.errors import AgentFailed, UnsupportedRegion, UsageError, VerifierError
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask, Symbol, Tolerance
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import GateStatus, Hazard, LatencySource, Severity
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.target import ascendc
from evokernel_core.twin.build import CandidateError
from evokernel_core.verifier.base import Case, Execution, RunStatus, Timing, TimingRequest, never
from evokernel_core.verifier.draw import Draw, fresh, replay
from evokernel_core.verifier.gates import cases, compare, correctness, latency, mixture
from evokernel_core.verifier.gates.cases import CasePlan, Unverifiable, plan_cases, shrink, total_bytes
from evokernel_core.verifier.gates.correctness import Witness
from evokernel_core.verifier.gates.one_case import CaseFolders, Judges, reference_of, run_case

DRAW = Draw("5" * 32)
Tasks = Callable[[str], KernelTask]
HALF, SINGLE = Tolerance(1e-2, 1e-2), Tolerance(1e-4, 1e-4)


def compared(
    tmp_path: Path, left: Any, right: Any, dtype: str = "float32", tolerance: Tolerance = SINGLE
) -> compare.Comparison:
    for name, array in (("left", left), ("right", right)):
        (tmp_path / name).write_bytes(np.ascontiguousarray(array).tobytes())
    expected = compare.Expected(tmp_path / "right")
    return compare.compare(tmp_path / "left", expected, np.shape(right), dtype, tolerance)


@pytest.mark.parametrize(
    ("dtype", "left", "right", "element"),
    [
        ("float32", [[1.0, 2.0], [3.0, 4.5]], [[1.0, 2.0], [3.0, 4.0]], "[1, 1]: got 4.5, wanted 4"),
        ("float32", [1.0, 16777216.0], [1.0, 16777218.0], "[1]: got 16777216, wanted 16777218"),
        ("float16", [0.1, 2.0], [0.1, 2.002], "[1]: got 2, wanted 2.002"),
        ("float64", [1.0], [1.0 + 1e-15], "[0]: got 1, wanted 1.0000000000000011"),
        ("float32", [math.nan, math.inf], [1.0, -math.inf], "[0]: got nan, wanted 1"),
        ("float32", [math.inf], [-math.inf], "[0]: got inf, wanted -inf"),
        ("int64", [2**53 + 1], [2**53], "[0]: got 9007199254740993, wanted 9007199254740992"),
        ("uint8", [0, 255], [0, 254], "[1]: got 255, wanted 254"),
        ("bool", [True], [False], "[0]: got true, wanted false"),
        ("float32", 2.0, 3.0, "got 2, wanted 3"),
    ],
)
def test_the_first_wrong_element_has_both_values(
    tmp_path: Path, dtype: str, left: Any, right: Any, element: str
) -> None:
    sides = (np.asarray(side, dtype) for side in (left, right))
    found = compared(tmp_path, *sides, dtype, Tolerance(0.0, 0.0))
    said = compare.words(found, 0, np.shape(right), Tolerance(0.0, 0.0))
    assert f"First wrong element: {element}." in said


@pytest.mark.parametrize(
    ("left", "others"),
    [
        ([1, 0, 0, 0], ""),
        ([1, 0, 2, 0], "Others: [2]: got 2, wanted 0."),
        ([1, 5, 0, 2], "Others: [1]: got 5, wanted 0; [3]: got 2, wanted 0."),
        ([9, 5, 0, 2], "Others: [3]: got 2, wanted 0."),
        ([1, 3, 4, 2], "Others: [2]: got 4, wanted 0; [3]: got 2, wanted 0."),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "uint8", "int64"])
def test_the_worst_and_the_last_wrong_element_are_told_too(
    tmp_path: Path, dtype: str, left: list[int], others: str
) -> None:
    found = compared(tmp_path, np.array(left, dtype), np.zeros(4, dtype), dtype)
    said = str(compare.words(found, 0, (4,), Tolerance(0.0, 0.0)))
    assert others in said and ("Others" in said) == bool(others)


def test_the_first_wrong_element_is_of_the_first_chunk(tmp_path: Path) -> None:
    right = np.zeros(3 * compare.CHUNK, np.float32)
    left = right.copy()
    left[compare.CHUNK + 5], left[-1] = 7.0, 9.0
    found = compared(tmp_path, left, right)
    assert found.first == compare.Element((compare.CHUNK + 5,), "7", "0")
    assert found.farthest == compare.Element((right.size - 1,), "9", "0")


def test_bfloat16_is_said_as_a_number(tmp_path: Path) -> None:
    found = compared(tmp_path, np.array([0x3FC0], np.uint16), np.array([0x3F80], np.uint16), "bfloat16")
    assert found.first == compare.Element((0,), "1.5", "1")


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ([1.0], [1.0], True),
        ([1.0001], [1.0], True),
        ([1.001], [1.0], False),
        ([0.0], [1e-5], True),
        ([NAN], [NAN], True),
        ([NAN], [1.0], False),
        ([1.0], [NAN], False),
        ([INF], [INF], True),
        ([INF], [-INF], False),
        ([INF], [3e38], False),
        ([3e38], [INF], False),
        ([-0.0], [0.0], True),
    ],
)
def test_floats(left: list[float], right: list[float], equal: bool, tmp_path: Path) -> None:
    assert compared(tmp_path, np.float32(left), np.float32(right)).equal is equal


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "bool"])
def test_integers_must_be_equal(dtype: str, tmp_path: Path) -> None:
    right = np.array([0, 1, 1, 0]).astype(dtype)
    left = right.copy()
    assert compared(tmp_path, left, right, dtype).equal
    left[2] = 0
    found = compared(tmp_path, left, right, dtype, Tolerance(1.0, 1.0))
    assert (found.wrong, found.first and found.first.index, found.max_abs) == (1, (2,), 1.0)


def test_bfloat16_is_compared_by_value(tmp_path: Path) -> None:
    right = (np.float32([1.0, -2.5, 3.0]).view(np.uint32) >> 16).astype(np.uint16)
    assert compared(tmp_path, right, right, "bfloat16", HALF).equal
    assert compared(tmp_path, right + np.uint16(1), right, "bfloat16", HALF).equal
    assert compared(tmp_path, right ^ np.uint16(0x8000), right, "bfloat16", HALF).wrong == 3


@pytest.mark.parametrize(
    ("left", "eager", "precise", "equal"),
    [
        (12.0, INF, 12.0, True),
        (12.0, NAN, 12.0, True),
        (INF, INF, 12.0, True),
        (13.0, INF, 12.0, False),
        (1.0, 1.0, 1.1, True),
        (1.1, 1.0, 1.1, True),
        (1.05, 1.0, 1.1, False),
        (NAN, INF, 12.0, True),
        (-INF, NAN, -0.0, True),
        (NAN, 12.0, 12.0, False),
        (NAN, INF, INF, False),
        (INF, NAN, NAN, False),
        (NAN, 1.0, NAN, True),
        (INF, NAN, INF, True),
        (INF, NAN, 65504.0, True),
        (INF, 12.0, 65504.0, True),
    ],
)
def test_a_half_result_may_be_the_more_precise_one(
    left: float, eager: float, precise: float, equal: bool, tmp_path: Path
) -> None:
    for name, value in (("left", left), ("eager", eager), ("precise", precise)):
        (tmp_path / name).write_bytes(np.float16([value]).tobytes())
    expected = compare.Expected(tmp_path / "eager", tmp_path / "precise")
    assert compare.compare(tmp_path / "left", expected, (1,), "float16", HALF).equal is equal


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (INF, 65504.0, True),
        (65504.0, INF, True),
        (-INF, -65504.0, True),
        (-INF, 65504.0, False),
        (INF, 60000.0, False),
        (60000.0, INF, False),
        (NAN, 65504.0, False),
        (NAN, INF, False),
    ],
)
def test_a_number_next_to_the_end_of_its_type_may_have_overflowed(
    left: float, right: float, equal: bool, tmp_path: Path
) -> None:
    assert compared(tmp_path, np.float16([left]), np.float16([right]), "float16", HALF).equal is equal


def test_the_wrong_region_is_boxed_and_a_tail_is_named(tmp_path: Path) -> None:
    right = np.ones((4, 100), np.float32)
    left = right.copy()
    left[1:3, 96:] = 0
    found = compared(tmp_path, left, right)
    assert (found.wrong, found.first and found.first.index, found.box) == (8, (1, 96), ((1, 2), (96, 99)))
    words = compare.words(found, 0, (4, 100), SINGLE)
    for part in ("8 of 400", "2 %", "[1, 96]", "1:3, 96:100", "end of dimension 1", "zero"):
        assert part in words


def test_a_comparison_spans_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "CHUNK", 7)
    right = np.arange(60, dtype=np.float32).reshape(5, 12)
    left = right.copy()
    left[0, 5] += 1
    left[4, 2] = NAN
    found = compared(tmp_path, left, right)
    assert (found.wrong, found.first and found.first.index, found.box) == (2, (0, 5), ((0, 4), (2, 5)))
    assert any("NaN" in note for note in found.notes)


def test_a_scalar_and_an_empty_output(tmp_path: Path) -> None:
    assert compared(tmp_path, np.float32(2), np.float32(2)).equal
    found = compared(tmp_path, np.float32(1), np.float32(2))
    assert compare.words(found, 0, (), SINGLE).startswith("Output 0 of shape []")
    assert compared(tmp_path, np.empty((0, 3), np.float32), np.empty((0, 3), np.float32)).equal


def test_an_output_of_another_size(tmp_path: Path) -> None:
    assert "8 bytes instead of 12" in compared(tmp_path, np.float32([1, 2]), np.float32([1, 2, 3])).notes[0]


# What lies next to the end of the range may be taken for an infinity: another test tells.
INSIDE = st.floats(width=32).filter(lambda value: not 3e38 < abs(value) < float("inf"))


@given(st.lists(INSIDE, min_size=1, max_size=30), st.lists(INSIDE, min_size=1, max_size=30))
def test_comparison_agrees_with_numpy(left: list[float], right: list[float]) -> None:
    import tempfile

    size = min(len(left), len(right))
    a, b = np.float32(left[:size]), np.float32(right[:size])
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        found = compared(Path(folder), a, b)
        expected = np.isclose(a.astype(np.float64), b.astype(np.float64), 1e-4, 1e-4, equal_nan=True)
    assert found.wrong == int((~expected).sum())


# --- sizes ---


@pytest.mark.parametrize("name", ["add", "relu", "softmax"])
def test_cases_cover_tails_distributions_and_the_full_size(name: str, task_of: Tasks) -> None:
    task = task_of(name)
    plans = plan_cases(task, DRAW)
    drawn = {plan.distribution for plan in plans}
    assert {"uniform", "mixed"} <= drawn
    assert {base_of(name) for name in drawn} <= {*DISTRIBUTIONS, "nans", "infinities", "lowest"}
    assert drawn & set(mixture.WIDE)
    assert drawn & set(mixture.SHAPED)
    assert len({plan.seed for plan in plans}) == len(plans)
    assert tuple(task.sizes.items()) in {plan.sizes for plan in plans}
    assert any(size % 2 and size > 64 for plan in plans for _, size in plan.sizes)
    assert any(plan.repeat == 2 for plan in plans)


def test_cases_are_the_draws_own_and_can_be_drawn_again(task_of: Tasks) -> None:
    task = task_of("softmax")
    assert plan_cases(task, DRAW) == plan_cases(task, replay(DRAW.secret))
    others = [plan_cases(task, fresh()) for _ in range(8)]
    assert len({plans[2].sizes for plans in others}) > 1
    assert len({plan.seed for plans in others for plan in plans}) == sum(map(len, others))


@pytest.mark.parametrize("text", ["", "5" * 31, "g" * 32, "5" * 33, "../../etc/passwd"])
def test_a_draw_is_32_digits(text: str) -> None:
    with pytest.raises(UsageError):
        replay(text)


def test_over_several_draws_each_side_of_a_huge_task_is_seen_whole(task_of: Tasks) -> None:
    """A kernel that does less from some number of rows, or of columns, on does so where it is compared."""
    task = evolve(task_of("softmax"), symbols=(Symbol("s0", 65_536), Symbol("s1", 65_536)))
    last = [dict(plan_cases(task, Draw(f"{seed:032x}"))[-1].sizes) for seed in range(32)]
    assert {"s0", "s1"} == {name for sizes in last for name in sizes if sizes[name] == 65_536}
    assert all(65_536 in sizes.values() for sizes in last)


def test_a_huge_task_is_run_at_smaller_sizes(task_of: Tasks) -> None:
    task = evolve(task_of("softmax"), symbols=(Symbol("s0", 4096), Symbol("s1", 393_216)))
    assert all(total_bytes(task, dict(plan.sizes)) <= cases.FULL_LIMIT for plan in plan_cases(task, DRAW))


def test_a_task_of_many_products_is_run_at_sizes_that_the_twin_computes_in_time(task_of: Tasks) -> None:
    inputs = tuple(GraphInput(name, TensorSpec(("s0", "s0"), "float16")) for name in ("x", "y"))
    product = Node("mm", "aten.mm.default", (ValueRef("x"), ValueRef("y")), (), (inputs[0].spec,))
    graph = Graph(inputs, (product,), (ValueRef("mm"),))
    task = evolve(task_of("relu"), graph=graph, symbols=(Symbol("s0", 2048),))
    longest = max(dict(plan.sizes)["s0"] for plan in plan_cases(task, DRAW))
    assert 512 <= longest < 2048
    assert longest**3 <= cases.MOST_PRODUCTS


def test_weights_of_fixed_size_leave_room_for_many_rows(task_of: Tasks) -> None:
    task = task_of("softmax")
    weight = GraphInput("weight", TensorSpec((8192, 2048), "float32"))
    graph = evolve(task.graph, inputs=(*task.graph.inputs, weight))
    task = evolve(task, graph=graph, symbols=(Symbol("s0", 4096), Symbol("s1", 1024)))
    rows = [dict(plan.sizes)["s0"] for plan in plan_cases(task, DRAW)]
    assert max(rows) > 500
    assert any(row % 2 and row > 64 for row in rows)


def test_a_huge_task_without_symbols_cannot_be_verified(task_of: Tasks) -> None:
    task = task_of("relu")
    spec = TensorSpec((200_000_000,), "float32")
    graph = evolve(
        task.graph,
        inputs=(evolve(task.graph.inputs[0], spec=spec),),
        nodes=(evolve(task.graph.nodes[0], outputs=(spec,)),),
    )
    with pytest.raises(Unverifiable) as error:
        plan_cases(evolve(task, graph=graph, symbols=()), DRAW)
    assert error.value.result.code == "unverifiable"
    assert "512 MiB" in error.value.result.feedback


@given(
    st.integers(1, 10**6),
    st.integers(1, 10**6),
    st.integers(1, 8),
    st.integers(1, 8),
    st.integers(1000, 10**7),
)
def test_shrinking_keeps_minima_and_fits_or_is_least(s0: int, s1: int, m0: int, m1: int, limit: int) -> None:
    symbols = (Symbol("s0", max(s0, m0), m0), Symbol("s1", max(s1, m1), m1))
    task = KernelTask("t", _matrix_graph(), symbols, HALF, "elementwise")
    sizes = shrink(task, task.sizes, limit)
    assert sizes["s0"] >= m0
    assert sizes["s1"] >= m1
    least = {"s0": m0, "s1": m1}
    assert total_bytes(task, sizes) <= total_bytes(task, least) + limit or sizes == least


def _matrix_graph() -> Any:
    from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef

    spec = TensorSpec(("s0", "s1"), "float16")
    node = Node("y", "aten.relu.default", (ValueRef("x"),), (), (spec,))
    return Graph((GraphInput("x", spec),), (node,), (ValueRef("y"),))


# --- the correctness gate with a backend that answers as told ---


class FakeBackend:
    """Copies the expected outputs, or what the test says."""

    latency_source = LatencySource.MODELLED
    samples = False
    name = "fake"
    confinement = "limits only"

    def __init__(self, us: float = 50.0, hazards: tuple[Hazard, ...] = ()) -> None:
        self.author = ascendc(load_chip())
        self._us, self._hazards = us, hazards
        self.cases: list[Case] = []
        self.seen_by_candidate: set[str] = set()
        self.error: CandidateError | None = None

    def build(self, task: KernelTask, source: KernelSource) -> Any:
        return None

    def execute(self, built: Any, case: Case) -> Execution:
        self.cases.append(case)
        folders = {path.parent for path in (*case.inputs, *case.outputs)}
        self.seen_by_candidate |= {path.name for folder in folders for path in folder.iterdir()}
        for path, nbytes in zip(case.outputs, case.output_bytes, strict=True):
            right = case.inputs[0].parent.parent / "reference" / "out0.bin"
            path.write_bytes(right.read_bytes()[:nbytes])
        return Execution(RunStatus.OK, hazards=self._hazards, us=self._us)

    def measure(self, built: Any, request: TimingRequest) -> Timing:
        if self.error:
            raise self.error
        return Timing(self._us, 48, (("V", 1.0),), "V-bound", self._hazards)


def test_the_candidate_sees_no_expected_output(task_of: Tasks, numpy_reference: Any) -> None:
    backend = FakeBackend()
    checked = correctness.check(task_of("add"), None, backend, numpy_reference, never, DRAW)
    assert checked.result.status is GateStatus.PASSED
    assert backend.seen_by_candidate == {"0.bin", "1.bin"}
    assert checked.witness.us == 50.0


def test_a_warning_passes_and_is_kept_an_error_fails(task_of: Tasks, numpy_reference: Any) -> None:
    for severity, status in ((Severity.WARNING, GateStatus.PASSED), (Severity.ERROR, GateStatus.FAILED)):
        hazard = Hazard("overlap", severity, "Add overlaps.", "op_kernel.cpp", 7)
        backend = FakeBackend(hazards=(hazard,))
        result = correctness.check(task_of("add"), None, backend, numpy_reference, never, DRAW).result
        assert (result.status, result.hazards) == (status, (hazard,))
        assert status is GateStatus.PASSED or "op_kernel.cpp:7: overlap: Add overlaps." in result.feedback


class FailingReference:
    """Raises for the sizes that it is told to."""

    def __init__(self, inner: Any, error: Exception, refuse: Callable[[dict[str, int]], bool]) -> None:
        self._inner, self._error, self._refuse = inner, error, refuse

    def reference(self, task: Any, sizes: Any, seed: int, distribution: str, folder: Path, **how: Any) -> Any:
        if self._refuse(dict(sizes)):
            raise self._error
        return self._inner.reference(task, sizes, seed, distribution, folder, **how)


def test_sizes_that_pytorch_refuses_are_left_out(task_of: Tasks, numpy_reference: Any) -> None:
    error = UnsupportedRegion("no odd sizes")
    runner = FailingReference(numpy_reference, error, lambda sizes: sizes["s1"] % 2 == 1)
    checked = correctness.check(task_of("add"), None, FakeBackend(), runner, never, DRAW)
    assert checked.result.status is GateStatus.PASSED
    assert all(dict(shape)["s1"] % 2 == 0 for shape in checked.shapes)


class MovedBackend(FakeBackend):
    """Results that are a little beside the right ones."""

    def __init__(self, moved: float) -> None:
        super().__init__()
        self._moved = moved

    def execute(self, built: Any, case: Case) -> Execution:
        done = super().execute(built, case)
        for path in case.outputs:
            path.write_bytes((np.fromfile(path, np.float32) + np.float32(self._moved)).tobytes())
        return done


def _rounding(task: KernelTask) -> KernelTask:
    """The task with an operation of the same form that rounds."""
    (node,) = task.graph.nodes
    return evolve(task, graph=evolve(task.graph, nodes=(evolve(node, op="aten.gelu.default"),)))


class RoundingReference:
    """As the agent for long sums: what their rounding moves by a thousandth comes when it is asked for."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.asked: list[bool] = []

    def reference(
        self, task: Any, sizes: Any, seed: int, distribution: str, folder: Path, *, rounded: bool = False
    ) -> Any:
        self.asked.append(rounded)
        found = self._inner.reference(task, sizes, seed, distribution, folder)
        moved = folder / "rounded_0.bin"
        (np.fromfile(found.outputs[0], np.float32) + np.float32(1e-3)).tofile(moved)
        return evolve(found, precise=found.outputs, rounded=(moved,) if rounded else (), rounds=True)


@pytest.mark.parametrize(
    ("moved", "passes", "is_asked"), [(0.0, True, False), (1e-3, True, True), (1.0, False, True)]
)
def test_the_rounding_of_long_sums_is_computed_where_results_differ(
    moved: float, passes: bool, is_asked: bool, task_of: Tasks, numpy_reference: Any, tmp_path: Path
) -> None:
    runner = RoundingReference(numpy_reference)
    judges = Judges(None, MovedBackend(moved), runner, DRAW)
    task, plan = _rounding(task_of("relu")), CasePlan((("s0", 100),), 3, "normal")
    folders = CaseFolders.made_in(tmp_path)
    case = reference_of(task, plan, runner, folders, True)
    outcome, _ = run_case(task, plan, case, judges, folders)
    assert outcome is not None and (outcome.status is GateStatus.PASSED) is passes
    assert runner.asked == [False, *[True] * is_asked]


@pytest.mark.parametrize("moved", [0.0, 1e-5])
def test_how_far_results_are_from_pytorchs_is_kept(
    moved: float, task_of: Tasks, numpy_reference: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordinary = tuple(CasePlan((("s0", size),), size, "normal") for size in (100, 70_000))
    monkeypatch.setattr(correctness, "plan_cases", lambda *_, **__: ordinary)
    task = _rounding(task_of("relu"))
    checked = correctness.check(task, None, MovedBackend(moved), numpy_reference, never, DRAW)
    assert checked.result.status is GateStatus.PASSED, checked.result.feedback
    deviation = checked.result.deviation
    assert deviation is not None
    assert moved <= deviation.largest * 1.001 <= 2 * moved  # float32 rounds sums of large values
    assert (deviation.relative > 0) is (moved > 0)


class SecondReference(RoundingReference):
    """As RoundingReference, whose second answer is another's: an error, or a case of other inputs."""

    def __init__(self, inner: Any, error: Exception | None) -> None:
        super().__init__(inner)
        self._error = error

    def reference(
        self, task: Any, sizes: Any, seed: int, distribution: str, folder: Path, *, rounded: bool = False
    ) -> Any:
        if rounded and self._error is not None:
            raise self._error
        return super().reference(task, sizes, seed + rounded, distribution, folder, rounded=rounded)


@pytest.mark.parametrize("error", [AgentFailed("The agent died."), None], ids=["died", "other inputs"])
def test_without_the_rounding_of_the_same_case_there_is_no_verdict(
    error: Exception | None, task_of: Tasks, numpy_reference: Any
) -> None:
    runner = SecondReference(numpy_reference, error)
    with pytest.raises(VerifierError):
        correctness.check(task_of("relu"), None, MovedBackend(1e-3), runner, never, DRAW)
    assert runner.asked[0] is False


@pytest.mark.parametrize("error", [UnsupportedRegion("no"), AgentFailed("The agent died.")])
def test_without_a_reference_there_is_no_verdict(
    error: Exception, task_of: Tasks, numpy_reference: Any
) -> None:
    runner = FailingReference(numpy_reference, error, lambda sizes: True)
    with pytest.raises(VerifierError):
        correctness.check(task_of("add"), None, FakeBackend(), runner, never, DRAW)


# --- latency ---


@pytest.mark.parametrize(
    ("us", "witness_us", "code"),
    [(50.0, 50.0, ""), (0.1, 0.1, "implausible"), (50.0, 80.0, "data-dependent"), (50.0, 0.0, "")],
)
def test_latency_has_a_floor_and_a_witness(us: float, witness_us: float, code: str, task_of: Tasks) -> None:
    task = task_of("add")
    witness = Witness(tuple(task.sizes.items()), (), witness_us)
    result, found = latency.measure(task, None, FakeBackend(us), witness)
    assert result.code == code
    assert (found is None) == bool(code)


@pytest.mark.parametrize(
    ("us", "witness_us", "found_us"), [(50.0, 55.0, 55.0), (50.0, 48.0, 50.0), (50.0, 80.0, None)]
)
def test_merges_may_take_as_long_as_their_numbers_ask(
    us: float, witness_us: float, found_us: float | None, task_of: Tasks
) -> None:
    task = task_of("add")
    witness = Witness(tuple(task.sizes.items()), (), witness_us)
    _, found = latency.measure(task, None, FakeBackend(us), witness, merging=True)
    assert (found.us if found else None) == (found_us and pytest.approx(found_us))


def test_a_candidate_that_fails_in_timing(task_of: Tasks) -> None:
    backend = FakeBackend()
    backend.error = CandidateError("timeout", "The kernel did not finish.")
    result, found = latency.measure(task_of("add"), None, backend, Witness())
    assert (result.code, found) == ("timeout", None)


def test_tensors_beyond_device_memory(task_of: Tasks) -> None:
    task = evolve(task_of("relu"), symbols=(Symbol("s0", 10**11),))
    result, _ = latency.measure(task, None, FakeBackend(), Witness())
    assert result.code == "device-memory"
