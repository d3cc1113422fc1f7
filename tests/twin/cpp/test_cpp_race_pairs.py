"""For each hazard of synchronisation: the smallest kernel that has it and its neighbour that has not.

A case is one text of a few lines for both: ``<<faulty|correct>>`` is where they differ, ``@`` starts the line
that has to be reported.
"""

# ruff: noqa: E501 - a line of a kernel stays one line

from __future__ import annotations

import re

import numpy as np
import pytest
from attrs import frozen

PRELUDE = """using E = HardEvent;
template <E event> void Sync() { SetFlag<event>(EVENT_ID0); WaitFlag<event>(EVENT_ID0); }
struct Scene {
    LocalTensor<float> a, b, c;
    LocalTensor<half> a1, b1, a2, b2;
    LocalTensor<float> c0;
    GlobalTensor<float> x, z, w;
    GlobalTensor<half> h;
    int self = 0;
    Scene(GM_ADDR *t, GM_ADDR workspace)
        : a(TPosition::VECCALC, 0, 1024), b(TPosition::VECCALC, 4096, 1024), c(TPosition::VECCALC, 8192, 1024),
          a1(TPosition::A1, 0, 256), b1(TPosition::B1, 4096, 256), a2(TPosition::A2, 0, 256), b2(TPosition::B2, 0, 256),
          c0(TPosition::CO1, 0, 256), self(GetBlockIdx())
    {
        x.SetGlobalBuffer((__gm__ float *)t[0], 1024);
        h.SetGlobalBuffer((__gm__ half *)t[0], 2048);
        z.SetGlobalBuffer((__gm__ float *)t[1], 1024);
        w.SetGlobalBuffer((__gm__ float *)workspace, 1024);
    }
    void Fill()
    {
        Duplicate(a, 1.0f + self, 1024); Duplicate(b, 2.0f + self, 1024); Duplicate(c, 3.0f, 1024);
        PipeBarrier<PIPE_ALL>();
        if (self == 0) { DataCopy(z, c, 1024); DataCopy(w, c, 1024); PipeBarrier<PIPE_ALL>(); }
    }
    void LoadL1()
    {
        DataCopy(a1, h, Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0)); DataCopy(b1, h, Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0));
        PipeBarrier<PIPE_ALL>();
    }
    void LoadL0() { LoadL1(); Left(); Right(); PipeBarrier<PIPE_ALL>(); }
    void Product() { LoadL0(); Multiply(); PipeBarrier<PIPE_ALL>(); }
    void Left(int from = 0) { LoadData2DParams p; p.repeatTimes = 1; p.startIndex = from; LoadData(a2, a1, p); }
    void Right() { LoadData2DParams p; p.repeatTimes = 1; LoadData(b2, b1, p); }
    void Multiply() { MmadParams p; p.m = 16; p.n = 16; p.k = 16; Mmad(c0, a2, b2, p); }
    void Out() { FixpipeParamsV220 f; f.nSize = 16; f.mSize = 16; f.srcStride = 16; f.dstStride = 16; Fixpipe(z, c0, f); }
    void Clean(GlobalTensor<float> line) { DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(line); }
"""
END = "};\n"

CUBE_STEPS = {
    "Left": "LoadData2DParams p; p.repeatTimes = 1; LoadData(a2, a1, p);",
    "Multiply": "MmadParams m; m.m = 16; m.n = 16; m.k = 16; Mmad(c0, a2, b2, m);",
    "Out": "FixpipeParamsV220 f; f.nSize = 16; f.mSize = 16; f.srcStride = 16; f.dstStride = 16; Fixpipe(z, c0, f);",
    "Load": "DataCopy(a1, h[256], Nd2NzParams(1, 16, 16, 0, 16, 16, 1, 0));",
}


def cube(first: str, cure: str, second: str) -> str:
    """Two steps of a cube core with their order between."""
    return f"{CUBE_STEPS.get(first, first)}\n<<|{cure}>>\n@ {{ {CUBE_STEPS[second]} }}"


@frozen
class Case:
    """``launch``: which cores run it; ``auto_sync``: what the compiler is taken to insert in the faulty run."""

    launch: str
    code: str
    text: str
    severity: str = "error"
    auto_sync: bool = True


def one(text: str, code: str = "missing-sync", severity: str = "error", auto_sync: bool = True) -> Case:
    return Case("one", code, f"Fill();\n{text}", severity, auto_sync)


def off(first: str, cure: str, second: str) -> Case:
    """Missing only where the compiler inserts nothing."""
    return one(f"{first}\n<<|{cure}>>\n@ {second}", auto_sync=False)


def many(code: str, text: str, severity: str = "error") -> Case:
    return Case("many", code, f"Fill(); SyncAll();\n{text}", severity)


CASES = {
    # The pipes of a vector core.
    "MTE2 to V": one("DataCopy(a, x, 512);\n<<|Sync<E::MTE2_V>();>>\n@ Adds(b, a, 1.0f, 512);"),
    "V to MTE3": one("Adds(b, a, 1.0f, 512);\n<<|Sync<E::V_MTE3>();>>\n@ DataCopy(z, b, 512);"),
    "V reads, MTE2 writes": one("Adds(b, a, 1.0f, 512);\n<<|Sync<E::V_MTE2>();>>\n@ DataCopy(a, x, 512);"),
    "V writes, MTE2 writes": one("Duplicate(b, 4.0f, 512);\n<<|Sync<E::V_MTE2>();>>\n@ DataCopy(b, x, 512);"),
    "MTE3 reads, V writes": one("DataCopy(z, a, 512);\n<<|Sync<E::MTE3_V>();>>\n@ Duplicate(a, 4.0f, 512);"),
    "MTE3 reads, MTE2 writes": one(
        "DataCopy(z, a, 512);\n<<|Sync<E::MTE3_MTE2>();>>\n@ DataCopy(a, x, 512);"
    ),
    "MTE2 to MTE3": one("DataCopy(a, x, 512);\n<<|Sync<E::MTE2_MTE3>();>>\n@ DataCopy(z, a, 512);"),
    "MTE3 to MTE2 by global memory": one(
        "DataCopy(w, a, 512);\n<<|Sync<E::MTE3_MTE2>();>>\n@ DataCopy(b, w, 512);"
    ),
    "MTE2 over MTE2": one("DataCopy(a, x, 512);\n<<|PipeBarrier<PIPE_MTE2>();>>\n@ DataCopy(a[504], x, 64);"),
    "MTE2 beside MTE2": one("DataCopy(a, x, 512);\n@ DataCopy(a[<<504|512>>], x, 64);"),
    "MTE3 over MTE3": one("DataCopy(z, a, 512);\n<<|PipeBarrier<PIPE_MTE3>();>>\n@ DataCopy(z[504], b, 64);"),
    "the wrong flag": one("DataCopy(a, x, 512);\nSync<E::<<MTE2_MTE3|MTE2_V>>>();\n@ Adds(b, a, 1.0f, 512);"),
    "the flag too early": one(
        "<<|DataCopy(a, x, 512);>>\nSync<E::MTE2_V>();\n<<DataCopy(a, x, 512);|>>\n@ Adds(b, a, 1.0f, 512);"
    ),
    "the same bytes twice": one(
        "DataCopy(a, x, 512);\n<<|PipeBarrier<PIPE_MTE2>();>>\n@ DataCopy(a, x, 64);", severity="warning"
    ),
    "a copy over one that nothing read": one(
        "for (int i = 0; i < 2; ++i) {\n@ DataCopy(a, x[64 * i], 64);\n<<|PipeBarrier<PIPE_MTE2>();>>\n}",
        severity="warning",
    ),
    # Where the compiler inserts nothing.
    "V to V": off("Adds(b, a, 1.0f, 512);", "PipeBarrier<PIPE_V>();", "Adds(c, b, 1.0f, 512);"),
    "V to V in place": off("Muls(b, b, 1.0f, 512);", "PipeBarrier<PIPE_V>();", "Adds(b, b, 0.0f, 512);"),
    "V to S": off("Adds(b, a, 1.0f, 512);", "Sync<E::V_S>();", "float got = b.GetValue(0); (void)got;"),
    "S to V": off("b.SetValue(0, 1.0f);", "Sync<E::S_V>();", "Adds(c, b, 1.0f, 512);"),
    "MTE2 to S": off("DataCopy(a, x, 512);", "Sync<E::MTE2_S>();", "float got = a.GetValue(0); (void)got;"),
    "S to MTE2": off("float got = a.GetValue(0); (void)got;", "Sync<E::S_MTE2>();", "DataCopy(a, x, 512);"),
    "S to MTE3": off("a.SetValue(0, 7.0f);", "Sync<E::S_MTE3>();", "DataCopy(z, a, 512);"),
    "MTE3 reads, S writes": off("DataCopy(z, a, 512);", "Sync<E::MTE3_S>();", "a.SetValue(0, 7.0f);"),
    # The pipes of a cube core.
    "MTE2 to MTE1": Case(
        "cube", "missing-sync", "LoadL1();\n" + cube("Load", "Sync<E::MTE2_MTE1>();", "Left")
    ),
    "MTE1 reads, MTE2 writes": Case(
        "cube", "missing-sync", "LoadL1();\n" + cube("Left", "Sync<E::MTE1_MTE2>();", "Load")
    ),
    "MTE1 to M": Case("cube", "missing-sync", "LoadL0();\n" + cube("Left", "Sync<E::MTE1_M>();", "Multiply")),
    "M reads, MTE1 writes": Case(
        "cube", "missing-sync", "LoadL0();\n" + cube("Multiply", "Sync<E::M_MTE1>();", "Left")
    ),
    "M to FIX": Case("cube", "missing-sync", "LoadL0();\n" + cube("Multiply", "Sync<E::M_FIX>();", "Out")),
    "FIX reads, M writes": Case(
        "cube", "missing-sync", "Product();\n" + cube("Out", "Sync<E::FIX_M>();", "Multiply")
    ),
    # Flags.
    "SetFlag without WaitFlag": one(
        "@ SetFlag<E::V_MTE3>(EVENT_ID0);\n<<|WaitFlag<E::V_MTE3>(EVENT_ID0);>>", "event-misuse"
    ),
    "WaitFlag without SetFlag": one(
        "<<|SetFlag<E::V_MTE3>(EVENT_ID0);>>\n@ WaitFlag<E::V_MTE3>(EVENT_ID0);", "event-misuse"
    ),
    "WaitFlag of another id": one(
        "SetFlag<E::V_MTE3>(EVENT_ID0);\n@ WaitFlag<E::V_MTE3>(EVENT_ID<<1|0>>);\n<<WaitFlag<E::V_MTE3>(EVENT_ID0);|>>",
        "event-misuse",
    ),
    "two SetFlag": one(
        "SetFlag<E::V_MTE3>(EVENT_ID0);\n<<|WaitFlag<E::V_MTE3>(EVENT_ID0);>>\n@ SetFlag<E::V_MTE3>(EVENT_ID0);\nWaitFlag<E::V_MTE3>(EVENT_ID0);",
        "event-misuse",
    ),
    "SetFlag of id 6": one(
        "TPipe pipe; int id = <<6|5>>;\n<<|for (int i = 0; i < 7; ++i) { id = pipe.AllocEventID<E::V_MTE3>(); }>>\n@ SetFlag<E::V_MTE3>(id); WaitFlag<E::V_MTE3>(id);",
        "event-misuse",
        "warning",
    ),
    "SetFlag of id 7": one(
        "@ SetFlag<E::MTE2_V>(EVENT_ID<<7|5>>); WaitFlag<E::MTE2_V>(EVENT_ID<<7|5>>);",
        "event-misuse",
        "warning",
    ),
    # Cores among each other.
    "two cores write": many("cross-core-race", "@ DataCopy(z[<<0|64 * self>>], a, 64);"),
    "two cores write the same": many("cross-core-race", "@ DataCopy(z[<<0|64 * self>>], c, 64);", "warning"),
    "a core reads what another writes": many(
        "cross-core-race",
        "if (self == 0) DataCopy(w, a, 64);\n<<|SyncAll();>>\n@ if (self == 1) DataCopy(b, w, 64);",
    ),
    "a core writes what another reads": many(
        "cross-core-race",
        "if (self == 0) DataCopy(b, w, 64);\n<<|SyncAll();>>\n@ if (self == 1) DataCopy(w, a, 64);",
    ),
    "a sum meets a store": many(
        "cross-core-race",
        "if (self == 0) DataCopy(z, a, 64);\n<<|SyncAll();>>\nSetAtomicAdd<float>();\n@ if (self == 1) DataCopy(z, a, 64);\nSetAtomicNone();",
    ),
    "cores do not meet": many("deadlock", "@ <<if (self == 1)|>> SyncAll();"),
    "a flag that one core does not set": many(
        "deadlock", "<<if (self == 0)|>>\nCrossCoreSetFlag<0, PIPE_MTE3>(1);\n@ CrossCoreWaitFlag(1);"
    ),
    # Data caches.
    "SetValue to one line from two cores": many(
        "cache-line-race", "int at = <<self|self * 16>>;\n@ w.SetValue(at, 1.0f);\nClean(w[at]);"
    ),
    "a copy into a line that waits in the cache": one(
        "w.SetValue(0, 1.0f);\n<<|Clean(w); PipeBarrier<PIPE_ALL>();>>\n@ DataCopy(w, a, 16);",
        "cache-line-race",
    ),
    "a copy of what waits in the cache": one(
        "w.SetValue(0, 1.0f);\n<<|Clean(w);>>\n@ DataCopy(a, w, 16);", "stale-cache"
    ),
    "a line from before another core wrote": many(
        "stale-cache",
        "float got = w.GetValue(0); SyncAll();\nif (self == 0) DataCopy(w, a, 64);\nSyncAll();\n<<|Clean(w);>>\n@ if (self == 1) got += w.GetValue(0);\nSyncAll(); b.SetValue(0, got);",
    ),
}
LAUNCHES = {"one": (1, None), "many": (2, (0, 1, "true")), "cube": (1, (1, 0, "false"))}
FIRST_LINE = 4
"""The line of the kernel's file that the prelude starts on."""


def _side(text: str, correct: bool) -> str:
    """The faulty kernel or its neighbour, each line at its place."""
    chosen = re.sub(r"<<(.*?)\|(.*?)>>", r"\2" if correct else r"\1", text)
    return chosen.replace("@ ", "")


def _sources(launch: str) -> tuple[str, dict[str, int]]:
    """The kernels of a launch, two for each case, and the line that each faulty one has to be told of."""
    text, lines = PRELUDE, {}
    for name, case in CASES.items():
        if case.launch != launch:
            continue
        number = len(lines)
        text += f"    void Body{number}() {{\n"
        lines[name] = FIRST_LINE + text.count("\n") + case.text[: case.text.index("@")].count("\n")
        text += f"{_side(case.text, False)}\n    }}\n"
        text += f"    void Body{number}Correct() {{\n{_side(case.text, True)}\n    }}\n"
    return text + END, lines


@pytest.fixture(scope="module")
def run(compile_kernel):
    """Runs the faulty kernel of a case or its neighbour."""
    kernels = {}
    x = np.random.default_rng(3).normal(size=1024).astype(np.float32)

    def go(name: str, correct: bool, auto_sync: bool):
        launch = CASES[name].launch
        text, lines = _sources(launch)
        if launch not in kernels:
            calls = "".join(
                f"case {2 * i}: scene.Body{i}(); break; case {2 * i + 1}: scene.Body{i}Correct(); break;\n"
                for i in range(len(lines))
            )
            body = f"Scene scene(t, workspace);\nswitch (tiling.size[0]) {{\n{calls}}}"
            blocks, kind = LAUNCHES[launch]
            kernels[launch] = compile_kernel(
                body, sizes=1, blocks=blocks, workspace=4096, prelude=text, kind=kind
            )
        number = 2 * list(lines).index(name) + correct
        return kernels[launch].run([x], [(1024, np.float32)], [number], auto_sync=auto_sync)

    return go


NOT_HERE = {"output-not-written"}
"""What the cases do not care about: they write as much as they need."""


@pytest.mark.parametrize("name", CASES)
def test_the_faulty_kernel_is_told_its_line(run, name: str) -> None:
    case = CASES[name]
    hazards = run(name, False, case.auto_sync).result.hazards
    found = [h for h in hazards if h.code == case.code and h.severity == case.severity]
    assert found, hazards
    assert {(h.file.rsplit("/", 1)[-1], h.line) for h in found} == {
        ("op_kernel.cpp", _sources(case.launch)[1][name])
    }
    assert {h.code for h in hazards if h.severity == "error"} - NOT_HERE <= {case.code}, hazards


@pytest.mark.parametrize("name", CASES)
def test_its_neighbour_is_not(run, name: str) -> None:
    case = CASES[name]
    hazards = run(name, True, case.auto_sync).result.hazards
    assert [h for h in hazards if h.code not in NOT_HERE] == []


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.auto_sync])
def test_the_compiler_inserts_what_the_scalar_and_vector_units_need(run, name: str) -> None:
    assert [h for h in run(name, False, True).result.hazards if h.code not in NOT_HERE] == []
