"""Synchronisation between cores: what it orders, what it costs, and what goes wrong without it."""

from __future__ import annotations

import numpy as np
import pytest

from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.twin.run import Mode

PRELUDE = """
struct Cell {
    TPipe pipe; TBuf<TPosition::VECCALC> buffer; LocalTensor<int32_t> ub; GlobalTensor<int32_t> gm;
    Cell(GM_ADDR address) {
        pipe.InitBuffer(buffer, 16384);
        ub = buffer.Get<int32_t>();
        gm.SetGlobalBuffer((__gm__ int32_t *)address);
    }
    void Put(int slot, int32_t value) {
        Duplicate(ub, value, 8); PipeBarrier<PIPE_ALL>();
        DataCopy(gm[slot * 8], ub, 8); PipeBarrier<PIPE_ALL>();
    }
    int32_t Get(int slot) {
        PipeBarrier<PIPE_ALL>(); DataCopy(ub, gm[slot * 8], 8);
        PipeBarrier<PIPE_ALL>(); return ub.GetValue(0);
    }
};
"""
"""A slot of 32 bytes for each core in the first output."""

START = """
Cell cell(t[1]);
GlobalTensor<int32_t> work; work.SetGlobalBuffer((__gm__ int32_t *)t[0], 2048);
LocalTensor<int32_t> spare = cell.ub[64];
int32_t self = GetBlockIdx(), cores = GetBlockNum() * GetTaskRatio();
if (self == 0) {
    Duplicate(spare, 0, 2048); PipeBarrier<PIPE_ALL>(); DataCopy(work, spare, 2048);
}
cell.Put(self, 0);
SyncAll();
"""
"""Every body finds zeros in the first output, ``work``, and in its slot of the second."""

SHIFT = """
    cell.Put(self, 100 + self); {before}
    int32_t next = cell.Get((self + 1) % cores); {after}
    cell.Put(self, next);
"""
"""Every core takes over its neighbour's slot: right only with a barrier before and after."""

CASES = {
    "hardware barrier": SHIFT.format(before="SyncAll();", after="SyncAll();"),
    "flags of mode 0": SHIFT.format(
        before="CrossCoreSetFlag<0, PIPE_MTE3>(3); CrossCoreWaitFlag(3);",
        after="CrossCoreSetFlag<0, PIPE_MTE2>(3); CrossCoreWaitFlag<0, PIPE_MTE2>(3);",
    ),
    "barrier in memory": SHIFT.format(before="SyncAll(work, spare);", after="SyncAll(work, spare);"),
    "one after another": """
        InitDetermineComputeWorkspace(work, spare);
        for (int round = 0; round < 3; ++round) {
            WaitPreBlock(work, spare);
            int32_t turn = cell.Get(0);
            cell.Put(0, turn + 1);
            if (round == 2 && self > 0) cell.Put(self, turn);
            NotifyNextBlock(work, spare);
        }
    """,
    "flags in memory": """
        int32_t sum = 1;
        if (self < cores - 1) { IBWait(work, spare, self + 1, 0); sum += cell.Get(self + 1); }
        cell.Put(self, sum);
        if (self > 0) IBSet(work, spare, self, 0);
    """,
    "polling": """
        using Line = CacheLine;
        for (int32_t seen = 0; self > 0 && seen != self; seen = work.GetValue((self - 1) * 16)) {
            auto flag = work[(self - 1) * 16];
            DataCacheCleanAndInvalid<int32_t, Line::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(flag);
        }
        cell.Put(self, self == 0 ? 1 : cell.Get(self - 1) + 2);
        work.SetValue(self * 16, self + 1);
        DataCacheCleanAndInvalid<int32_t, Line::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(work[self * 16]);
    """,
    "polling several": """
        using Line = CacheLine;
        if (self > 0) {
            cell.Put(self, 5);
            work.SetValue(self * 16, 1);
            auto line = work[self * 16];
            DataCacheCleanAndInvalid<int32_t, Line::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(line);
        }
        for (bool ready = self > 0; !ready;) {
            ready = true;
            for (int32_t other = 1; other < cores && ready; ++other) {
                auto flag = work[other * 16];
                DataCacheCleanAndInvalid<int32_t, Line::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(flag);
                ready = flag.GetValue(0) == 1;
            }
        }
        if (self == 0) {
            int32_t sum = 0;
            for (int32_t other = 1; other < cores; ++other) { sum += cell.Get(other); }
            cell.Put(0, sum);
        }
    """,
    "group barrier": """
        GroupBarrier<PipeMode::MTE3_MODE> barrier(workspace, 3, cores - 3);
        if (self < 3) { cell.Put(self, 10 + self); barrier.Arrive(self); }
        else { barrier.Wait(self - 3); cell.Put(self, cell.Get(0) + cell.Get(1) + cell.Get(2)); }
    """,
}


def _expected(name: str, cores: int) -> list[int]:
    if name == "one after another":
        return [3 * cores, *range(2 * cores + 1, 3 * cores)]
    if name == "flags in memory":
        return [cores - i for i in range(cores)]
    if name == "polling":
        return [1 + 2 * i for i in range(cores)]
    if name == "polling several":
        return [5 * (cores - 1), *[5] * (cores - 1)]
    if name == "group barrier":
        return [10, 11, 12, *[33] * (cores - 3)]
    return [100 + (i + 1) % cores for i in range(cores)]


CLEAN = "DataCacheCleanAndInvalid<int32_t, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(work[64]);"
POLL = f"if (self == 0) for (int seen = 0; seen == 0; seen = work.GetValue(64)) {{ {CLEAN} }}"
INIT = "InitDetermineComputeWorkspace(work, spare);"
FAULTS = {
    "a core that skips the barrier": ("if (self > 0) SyncAll();", "SyncAll();", "deadlock"),
    "a flag that one core does not set": (
        "if (self > 0) CrossCoreSetFlag<0, PIPE_MTE3>(1); CrossCoreWaitFlag(1);",
        "CrossCoreSetFlag<0, PIPE_MTE3>(1); CrossCoreWaitFlag(1);",
        "deadlock",
    ),
    "a flag that nobody waits for": (
        "CrossCoreSetFlag<0, PIPE_MTE3>(1);",
        "CrossCoreSetFlag<0, PIPE_MTE3>(1); CrossCoreWaitFlag(1);",
        "event-misuse",
    ),
    "more signals than a counter holds": (
        "for (int i = 0; i < 16; ++i) CrossCoreSetFlag<0, PIPE_MTE3>(1);"
        "for (int i = 0; i < 15; ++i) CrossCoreWaitFlag(1);",
        "for (int i = 0; i < 15; ++i) CrossCoreSetFlag<0, PIPE_MTE3>(1);"
        "for (int i = 0; i < 15; ++i) CrossCoreWaitFlag(1);",
        "event-misuse",
    ),
    "a flag beyond 15": (
        "CrossCoreSetFlag<0, PIPE_MTE3>(16); CrossCoreWaitFlag(16);",
        "CrossCoreSetFlag<0, PIPE_MTE3>(15); CrossCoreWaitFlag(15);",
        "event-misuse",
    ),
    "a mode that needs cube cores": (
        "CrossCoreSetFlag<2, PIPE_MTE3>(1);",
        "CrossCoreSetFlag<0, PIPE_MTE3>(1); CrossCoreWaitFlag(1);",
        "kernel-type",
    ),
    "a barrier over cube cores that are not there": ("SyncAll<false>();", "SyncAll();", "kernel-type"),
    "a wait that nobody ends": (
        "if (self == 0) IBWait(work, spare, 1, 0);",
        "if (self == 0) IBWait(work, spare, 1, 0); else if (self == 1) IBSet(work, spare, 1, 0);",
        "deadlock",
    ),
    "a core beyond the last": (
        "if (self == 0) IBSet(work, spare, 64, 0);",
        "if (self == 0) { IBSet(work, spare, 1, 0); IBWait(work, spare, 1, 0); }",
        "param-limit",
    ),
    "turns without their workspace": (
        "WaitPreBlock(work, spare); NotifyNextBlock(work, spare);",
        f"{INIT} WaitPreBlock(work, spare); NotifyNextBlock(work, spare);",
        "event-misuse",
    ),
    "a turn that is never passed on": (
        f"{INIT} WaitPreBlock(work, spare);",
        f"{INIT} WaitPreBlock(work, spare); NotifyNextBlock(work, spare);",
        "deadlock",
    ),
    "a barrier whose local workspace is too small": (
        "spare.SetSize(8); SyncAll(work, spare);",
        "SyncAll(work, spare);",
        "param-limit",
    ),
    "a group that nobody joins": (
        "GroupBarrier<PipeMode::MTE3_MODE> barrier(workspace, 2, 1);"
        "if (self == 0) barrier.Arrive(0); if (self == 2) barrier.Wait(0);",
        "GroupBarrier<PipeMode::MTE3_MODE> barrier(workspace, 2, 1);"
        "if (self < 2) barrier.Arrive(self); if (self == 2) barrier.Wait(0);",
        "deadlock",
    ),
    "a loop that polls what nobody writes": (
        POLL,
        POLL + "if (self == 1) { work.SetValue(64, 1);" + CLEAN + "}",
        "deadlock",
    ),
}


def _switch(bodies: list[str]) -> tuple[str, str]:
    functions = "".join(
        f"__aicore__ void Body{i}(GM_ADDR *t, GM_ADDR workspace)\n{{{START}{body}}}\n"
        for i, body in enumerate(bodies)
    )
    calls = "".join(f"if (tiling.size[0] == {i}) Body{i}(t, workspace);\n" for i in range(len(bodies)))
    return PRELUDE + functions, calls


@pytest.fixture(scope="module")
def vector(compile_kernel):
    """Runs body ``number`` of CASES and FAULTS on vector cores of a mix kernel."""
    functions, calls = _switch([*CASES.values(), *(line for case in FAULTS.values() for line in case[:2])])
    blocks = "(uint32_t)sizes[1]"
    kernel = compile_kernel(
        calls,
        sizes=2,
        blocks=blocks,
        workspace=1 << 16,
        prelude=functions,
        kind=(0, 1, "tiling.size[1] != 7"),
    )

    def run(number, cores, mode=Mode.CHECK):
        return kernel.run([], [(2048, np.int32), (cores * 8, np.int32)], [number, cores], mode=mode)

    return run


@pytest.mark.parametrize("cores", [4, 48])
@pytest.mark.parametrize("name", CASES)
def test_cores_wait_for_each_other(vector, name, cores) -> None:
    ran = vector(list(CASES).index(name), cores)
    assert not ran.result.hazards
    np.testing.assert_array_equal(ran.outputs[1][::8], _expected(name, cores))


@pytest.mark.parametrize("name", FAULTS)
def test_fault_and_its_neighbour(vector, name) -> None:
    number = len(CASES) + 2 * list(FAULTS).index(name)
    code = FAULTS[name][-1]
    faulty = vector(number, 4)
    assert code in faulty.codes(), faulty.result
    assert all(h.line > 0 for h in faulty.result.hazards if h.code == code)
    correct = vector(number + 1, 4)
    assert not correct.result.hazards


def test_a_deadlock_says_who_waits_where(vector) -> None:
    ran = vector(len(CASES), 4)
    (hazard,) = ran.result.hazards
    assert "vector core 1 waits in SyncAll (line " in hazard.message
    assert "vector core 3" in hazard.message


def test_more_blocks_than_cores_cannot_meet(vector) -> None:
    """The chip runs 48 blocks at a time: a barrier over 49 never ends."""
    ran = vector(0, load_chip().aiv + 1)
    (hazard,) = (h for h in ran.result.hazards if h.code == "deadlock")
    assert "launch at most that many" in hazard.message


def test_other_kernel_types_get_a_warning(vector) -> None:
    ran = vector(0, 7)
    assert ran.codes("warning") == {"kernel-type"}
    np.testing.assert_array_equal(ran.outputs[1][::8], _expected("hardware barrier", 7))


@pytest.mark.parametrize("name", [name for name in CASES if "polling" not in name])
def test_timing_needs_no_data(vector, name) -> None:
    number = list(CASES).index(name)
    checked, timed = (vector(number, 16, mode).result for mode in (Mode.CHECK, Mode.TIME))
    assert not timed.hazards
    assert timed.latency_us == pytest.approx(checked.latency_us, rel=0.02)


def test_waiting_takes_time(vector) -> None:
    """Blocks that follow one another take as long as all of them; those that meet do not."""
    chained = list(CASES).index("flags in memory")
    together = list(CASES).index("hardware barrier")

    def growth(case: int) -> float:
        few, many = (vector(case, cores, Mode.TIME).result.latency_us for cores in (4, 32))
        return many - few

    assert growth(chained) > 3 * growth(together)


def test_timing_says_that_it_cannot_poll(vector) -> None:
    ran = vector(list(CASES).index("polling"), 4, Mode.TIME)
    (hazard,) = ran.result.hazards
    assert hazard.code == "data-dependent"
    assert hazard.line > 0
