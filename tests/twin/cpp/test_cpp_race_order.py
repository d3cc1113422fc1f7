"""Random programs over three pipes against an independent account of what is ordered, and single cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

STEPS = 24
TENSORS = 3
PIPES = ("MTE2", "V", "MTE3")
PAIRS = [(a, b) for a in PIPES for b in PIPES if a != b]

# One step: kind + 8 * operand. Everything expands on the line of its STEP.
KINDS = ("nothing", "load", "compute", "store", "set", "wait", "barrier", "all")
FLAG_CASES = " ".join(
    f"case {n}: {{call}}<HardEvent::{a}_{b}>({n % 2}); break;" for n, (a, b) in enumerate(PAIRS)
)
PIPE_CASES = " ".join(f"case {n}: PipeBarrier<PIPE_{p}>(); break;" for n, p in enumerate(PIPES))
STEP = (
    "#define STEP(code) switch ((code) % 8) { "
    "case 1: DataCopy(ub[(code) / 8 % 3 * 64 + (code) / 64 * 32], x, 32); break; "
    "case 2: Adds(ub[(code) / 8 % 3 * 64], ub[(code) / 8 / 3 % 3 * 64], 1.0f, 64); break; "
    "case 3: DataCopy(z[step * 64], ub[(code) / 8 % 3 * 64], 64); break; "
    f"case 4: switch ((code) / 8) {{ {FLAG_CASES.format(call='SetFlag')} }} break; "
    f"case 5: switch ((code) / 8) {{ {FLAG_CASES.format(call='WaitFlag')} }} break; "
    f"case 6: switch ((code) / 8) {{ {PIPE_CASES} }} break; "
    "case 7: PipeBarrier<PIPE_ALL>(); break; default: break; } ++step;"
)
BODY = """
    TPipe pipe; TBuf<TPosition::VECCALC> buffer; pipe.InitBuffer(buffer, 1024);
    LocalTensor<float> ub = buffer.Get<float>();
    GlobalTensor<float> x, z;
    x.SetGlobalBuffer((__gm__ float *)t[0]); z.SetGlobalBuffer((__gm__ float *)t[1]);
    Duplicate(ub, 0.0f, 192); PipeBarrier<PIPE_ALL>();
    int step = 0;
""" + "\n".join(f"STEP(tiling.size[{i}])" for i in range(STEPS))


@pytest.fixture(scope="module")
def program(compile_kernel):
    """Runs the steps; returns those at which an order is missing."""
    kernel = compile_kernel(BODY, sizes=STEPS, prelude=STEP)
    x = np.zeros(32, np.float32)
    first = []

    def lines(steps: list[int]) -> list[int]:
        codes = [*steps, *[0] * (STEPS - len(steps))]
        hazards = kernel.run([x], [(STEPS * 64, np.float32)], codes).result.hazards
        return sorted(h.line for h in hazards if h.code == "missing-sync")

    # Two loads to one place differ in no flag: the second is on the line of step 1.
    first.extend(lines([1, 1]))
    return lambda steps: [line - first[0] + 1 for line in lines(steps)]


def _touched(kind: str, operand: int) -> tuple[str, set[int], set[int]]:
    """The pipe of an instruction and the half tensors that it writes and reads."""
    whole = lambda tensor: {2 * tensor, 2 * tensor + 1}  # noqa: E731
    if kind == "load":
        return "MTE2", {2 * (operand % 3) + operand // 8}, set()
    if kind == "compute":
        return "V", whole(operand % 3), whole(operand // 3 % 3)
    return "MTE3", set(), whole(operand % 3)


def expected(steps: list[int]) -> list[int]:
    """Steps with an access that no chain of ends, flags and starts puts after the one it conflicts with."""
    after: dict[int, set[int]] = {}  # step: the instructions that are over when it begins
    places: list[tuple[int, str, set[int], set[int]]] = []
    over: dict[str, set[int]] = {pipe: set() for pipe in PIPES}
    given: dict[str, set[int]] = {pipe: set() for pipe in PIPES}  # all instructions of a pipe so far
    flags: dict[int, set[int]] = {}
    found = []
    for step, code in enumerate(steps):
        kind, operand = KINDS[code % 8], code // 8
        if kind in ("load", "compute", "store"):
            pipe, writes, reads = _touched(kind, operand)
            after[step] = set(over[pipe]) | (given["V"] if pipe == "V" else set())
            if any(
                _unordered(places, step, pipe, half, half in writes, after[step]) for half in writes | reads
            ):
                found.append(step)
            places.append((step, pipe, writes, reads))
            given[pipe].add(step)
        elif kind == "set":
            source = PAIRS[operand][0]
            flags[operand] = over[source] | given[source]
        elif kind == "wait":
            over[PAIRS[operand][1]] |= flags.pop(operand)
        elif kind == "barrier":
            over[PIPES[operand]] |= given[PIPES[operand]]
        elif kind == "all":
            for pipe in PIPES:
                over[pipe] = set().union(*given.values())
    return found


def _unordered(places, step: int, pipe: str, half: int, write: bool, over: set[int]) -> bool:
    """Whether the last write of the half tensor, or for a write a read since then, may still go on."""
    for earlier, other, writes, reads in reversed(places):
        wrote = half in writes
        conflict = wrote or (write and half in reads and other != pipe)
        if conflict and earlier not in over:
            return True
        if wrote:
            return False
    return False


@st.composite
def programs(draw) -> list[int]:
    """Steps whose flags are set once before each wait."""
    steps: list[int] = []
    raised: set[int] = set()
    for _ in range(draw(st.integers(2, STEPS))):
        kind = draw(
            st.sampled_from(["load", "compute", "store", "set", "set", "wait", "wait", "barrier", "all"])
        )
        operand = 0
        if kind == "load":
            operand = draw(st.integers(0, 2)) + 8 * draw(st.integers(0, 1))
        elif kind == "compute":
            operand = draw(st.integers(0, 8))
        elif kind in ("store", "barrier"):
            operand = draw(st.integers(0, 2))
        elif kind == "set":
            operand = draw(st.sampled_from([n for n in range(len(PAIRS)) if n not in raised] or [-1]))
            raised |= {operand}
        elif kind == "wait":
            operand = draw(st.sampled_from(sorted(raised - {-1}) or [-1]))
            raised -= {operand}
        if operand >= 0:
            steps.append(KINDS.index(kind) + 8 * operand)
    return steps


@settings(max_examples=60, deadline=None)
@given(steps=programs())
def test_reports_exactly_what_is_unordered(program, steps: list[int]) -> None:
    assert program(steps) == expected(steps)
