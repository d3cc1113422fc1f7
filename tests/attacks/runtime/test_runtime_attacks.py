"""What a kernel's own process tries at run time. The audit is left out: these kernels got past it.

Each wants to pass without doing its work, or to harm the judge. Each ends in a failed run with a true
sentence, and the judge itself never crashes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import evolve, frozen

from evokernel_core.domain.verdict import Severity
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.twin.build import CandidateError, build_files, prepare
from evokernel_core.twin.judge import Sandboxes, judge_kernel
from evokernel_core.twin.run import ExitStatus, Limits, Mode, RunRequest, RunResult, TensorFile
from evokernel_core.verifier.sandbox import sandbox_prefix
from tests.homes import own_home

TILING = """#pragma once
#include <cstdint>
struct OpTiling { uint32_t blockDim; uint64_t workspaceBytes; };
void BeforeLaunch();
inline bool ComputeTiling(const int64_t *, const float *, uint32_t, uint64_t, OpTiling &tiling)
{
    tiling.blockDim = 2;
    tiling.workspaceBytes = 0;
    BeforeLaunch();
    return true;
}
"""
KERNEL = """#include "kernel_operator.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#include "tiling.h"
using namespace AscendC;
namespace twin = evokernel::twin;
%(prelude)s
void BeforeLaunch() { %(host)s }
extern "C" __global__ __vector__ void attack(GM_ADDR *t)
{
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 1024);
    LocalTensor<float> local = buffer.Get<float>();
    (void)local;
%(body)s
}
extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, uint8_t *, const OpTiling &tiling)
{
    attack<<<tiling.blockDim, nullptr, stream>>>(const_cast<GM_ADDR *>(tensors));
}
"""
FAKE = r"""{\"ok\": true, \"error\": \"\", \"hazards\": [], \"launches\": [], \"latency_us\": 0.1}"""
WRITE_RESULT = """
struct Forger {
    Forger()
    {
        std::string folders[] = {".", "..", "/tmp"};
        for (const std::string &folder : folders) {
            int file = open((folder + "/result.json").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
            if (file >= 0) { static_cast<void>(!write(file, FAKE, strlen(FAKE))); }
        }
    }
} forger;
""".replace("FAKE", f'"{FAKE}"')
RING = """
namespace evokernel::twin::wire {
struct Shared;
enum class Turn : uint32_t { Judge, Candidate };
void Pass(Shared &shared, Turn to);
bool Await(Shared &shared, Turn turn);
}
namespace evokernel::twin::client { wire::Shared &TheShared(); }
static void Forge(uint32_t slot, uint32_t batch, uint32_t bytes, uint32_t names, uint32_t seed)
{
    auto &shared = evokernel::twin::client::TheShared();
    auto *memory = reinterpret_cast<unsigned char *>(&shared);
    srandom(seed);
    const int most = seed == 0 ? 256 : 1 + seed % 256;
    for (uint32_t i = 0; i < 400 * 1024; ++i) { memory[4096 + i] = random() % most; }
    uint32_t head[] = {slot, batch, bytes, names};
    memcpy(memory + 16, head, sizeof(head));
    evokernel::twin::wire::Pass(shared, evokernel::twin::wire::Turn::Judge);
    evokernel::twin::wire::Await(shared, evokernel::twin::wire::Turn::Candidate);
}
"""
REF = "twin::LocalRef ref{%s}; "


@frozen
class Attack:
    """What is at namespace scope, in ComputeTiling and in the kernel; ``says`` is in the sentence."""

    body: str = ""
    host: str = ""
    prelude: str = ""
    says: str = "unwritten"
    status: ExitStatus | None = None
    wall_s: float = 20.0
    cpu_s: float = 4.0


ATTACKS = {
    "a static constructor writes the result": Attack(prelude=WRITE_RESULT),
    "the launcher writes the result": Attack(host='system("true"); ' + WRITE_RESULT.strip()),
    "hazards are cleared by dlsym": Attack(
        body='auto clear = (void (*)())dlsym(RTLD_DEFAULT, "_ZN9evokernel4twin12ClearHazardsEv"); '
        "if (clear) clear();"
    ),
    "the result is written through the runtime": Attack(
        body='auto f = dlsym(RTLD_DEFAULT, "_ZN9evokernel4twin11WriteResultERKNSt7__cxx1112basic_stringIcSt11'
        'char_traitsIcESaIcEEERKNS0_10RunOutcomeE"); if (f) abort();'
    ),
    "a pointer into the unified buffer": Attack(
        body="auto *p = (float *)local.GetPhyAddr(); p[0] = 1;", says="as a pointer", status=ExitStatus.CRASH
    ),
    "LocalAddress by hand": Attack(
        body="auto *p = (float *)twin::LocalAddress(local.Ref()); p[3] = 1;",
        says="as a pointer",
        status=ExitStatus.CRASH,
    ),
    "a pointer into an output": Attack(
        body="((float *)static_cast<void *>(t[0]))[0] = 1;", says="as a pointer", status=ExitStatus.CRASH
    ),
    "a pointer into an input": Attack(
        host="",
        body="static volatile float v; v = *(float *)t[0];",
        says="as a pointer",
        status=ExitStatus.CRASH,
    ),
    "the memory of its own process as a file": Attack(
        body='int f = open("/proc/self/mem", O_RDWR); if (f >= 0) { uint64_t z = 0; '
        "lseek(f, (off_t)(uint64_t)t[0], SEEK_SET); static_cast<void>(!write(f, &z, 8)); }"
    ),
    "the memory of other processes": Attack(
        body="for (int p = getpid() - 20; p < getpid() + 20; ++p) { if (p == getpid()) continue; int f = "
        'open(("/proc/" + std::to_string(p) + "/mem").c_str(), O_RDWR); if (f >= 0) abort(); }'
    ),
    "it exits at once": Attack(body="_exit(0);", says="exit status 0", status=ExitStatus.CRASH),
    "it exits well while it is loaded": Attack(
        prelude="struct Leave { Leave() { _exit(0); } } leave;", says="exit status 0", status=ExitStatus.CRASH
    ),
    "it exits in ComputeTiling": Attack(host="exit(0);", says="exit status 0", status=ExitStatus.CRASH),
    "it aborts": Attack(body="abort();", says="SIGABRT", status=ExitStatus.CRASH),
    "its stack runs over": Attack(
        prelude="static int Deep(int n) { volatile char room[4096]; room[n % 4096] = 1; "
        "return n < 0 ? room[0] : Deep(n + 1) + room[1]; }",
        body="if (Deep(1) == 7) abort();",
        says="stack of 1 MB is full",
        status=ExitStatus.CRASH,
    ),
    "it never answers": Attack(
        body="for (;;) { usleep(1000); }", says="did not finish", status=ExitStatus.TIMEOUT, wall_s=5.0
    ),
    "it computes for ever": Attack(
        body="for (volatile int i = 0;; i = i + 1) { }",
        says="did not finish",
        status=ExitStatus.TIMEOUT,
        cpu_s=1.0,
    ),
    "it floods with instructions": Attack(
        body="for (;;) { Adds(local, local, 1.0f, 64); }", says="", status=ExitStatus.TIMEOUT, cpu_s=1.0
    ),
    "it floods with text": Attack(
        body='for (;;) { AscendC::printf("%s", "0123456789012345678901234567890123456789"); }', says="16 MB"
    ),
    "it floods with names": Attack(
        body='for (int i = 0;; ++i) { char *n = new char[8]; snprintf(n, 8, "%d", i); twin::NoSuchFlag(n, '
        "{n, i}); }",
        says="too many names",
    ),
    "it forks": Attack(body="if (fork() == 0) { for (;;) { } }"),
    "it kills its parent": Attack(body="kill(getppid(), SIGKILL); kill(0, SIGKILL);"),
    "it resizes what it shares": Attack(
        body="for (int f = 0; f < 64; ++f) { if (ftruncate(f, 1) == 0) { } }", says=""
    ),
    "it throws": Attack(body="throw 7;", says="throws"),
    "it does nothing": Attack(),
    "an instruction in ComputeTiling": Attack(
        host="twin::Barrier(PIPE_ALL, {});", says="only a kernel may call"
    ),
    "an instruction while it is loaded": Attack(
        prelude="struct Early { Early() { twin::Barrier(PIPE_ALL, {}); } } early;",
        says="only a kernel may call",
    ),
    "a launch in a kernel": Attack(
        body='twin::LaunchBlocks("inner", 1, nullptr, [](void *) {}, nullptr);',
        says="only the launcher may call",
    ),
    "a launch with too many blocks": Attack(
        host='twin::LaunchBlocks("wide", 4000000000u, nullptr, [](void *) {}, nullptr);', says="65,535 blocks"
    ),
    "launches without end": Attack(
        host='for (;;) { twin::LaunchBlocks("again", 1, nullptr, [](void *) {}, nullptr); }', says="10,000"
    ),
    "a vector at the end of what an address can say": Attack(
        body=REF % "0xFFFFFFE0u, 0xFFFFFFFFu, 0xFFFFFFFFu, 0, 0, 9, twin::DType::F32"
        + "twin::Vector({twin::Api::Add, ref, ref, ref, {}, false}, twin::Form::Count(1 << 20), {});",
        says="",
    ),
    "a tensor whose end runs over 64 bits": Attack(
        body="twin::AllocStatic(TPosition::VECCALC, 64, ~0ull - 31, {});", says="ends after the"
    ),
    "buffers whose sum runs over 32 bits": Attack(
        body="pipe.InitBuffer(buffer, 0xFFFFFC00u); pipe.InitBuffer(buffer, 64);", says="InitBuffer asks for"
    ),
    "a vector of a huge count": Attack(
        body=REF % "0, 0xFFFFFFFFu, 0xFFFFFFFFu, 0, 0, 9, twin::DType::F32"
        + "twin::Vector({twin::Api::Add, ref, ref, ref, {}, false}, twin::Form::Count(INT64_MAX), {});",
        says="larger than any memory",
    ),
    "a position that does not exist": Attack(
        body=REF % "0, 64, 64, 0, 0, 200, twin::DType::F32"
        + "twin::Vector({twin::Api::Add, ref, ref, ref, {}, false}, twin::Form::Count(8), {});",
        says="does not exist",
    ),
    "a type that does not exist": Attack(
        body=REF % "0, 64, 64, 0, 0, 9, (twin::DType)77"
        + "twin::Vector({twin::Api::Add, ref, ref, ref, {}, false}, twin::Form::Count(8), {});",
        says="does not exist",
    ),
    "an instruction that does not exist": Attack(
        body="twin::Vector({(twin::Api)250, local.Ref(), local.Ref(), local.Ref(), {}, false}, "
        "twin::Form::Count(8), {});",
        says="no kernel's code sends",
    ),
    "a copy from an address of its own": Attack(
        body="static float mine[64]; twin::GlobalRef g; g.address = (uint8_t *)mine; "
        "twin::CopyCountIn(local.Ref(), g, 64, {});",
        says="no tensor",
    ),
    "a copy of all there is": Attack(
        body="twin::GlobalRef g; g.address = t[0]; g.bytes = ~0ull; twin::CopyOut(g, local.Ref(), "
        "{0xFFFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFFu}, {});",
        says="",
    ),
    "a scalar wider than a word": Attack(body="twin::WriteUncached(t[0], 1, 4096, {});", says="too large"),
    "tiling data larger than there are": Attack(
        body='static char all[1 << 20]; twin::ReadTiling(all, t[0], sizeof(all), "all");', says="64 KB"
    ),
    "a queue that was made up": Attack(
        body="twin::Queue queue(TPosition::VECIN, TPosition::VECIN, 64); "
        "memset((void *)&queue, 0x3F, sizeof(queue)); "
        "queue.Alloc({}); queue.Push(local.Ref(), {}); queue.Pop({}); queue.FreeAllEvents();",
        says="",
    ),
    "queues without end": Attack(
        body="for (;;) { twin::Queue q(TPosition::VECIN, TPosition::VECIN, 1); q.Prepare(255, 32, {}); }",
        says="",
        cpu_s=1.0,
    ),
    **{
        f"a forged batch {seed}": Attack(
            prelude=RING,
            body=f"Forge(GetBlockIdx(), {seed % 7}, {1 + seed * 977 % 200000}, {seed * 31}, {seed});",
            says="",
        )
        for seed in range(12)
    },
    "a batch larger than the memory": Attack(
        prelude=RING, body="Forge(0, 0, 0xFFFFFFFFu, 0, 1);", says="head"
    ),
    "names larger than the memory": Attack(prelude=RING, body="Forge(0, 0, 4, 0xFFFFFFFFu, 1);", says="head"),
    "a batch of another core": Attack(prelude=RING, body="Forge(1234567, 0, 4, 0, 1);", says="head"),
    "a way to hand over that does not exist": Attack(
        prelude=RING, body="Forge(0, 99, 4, 0, 1);", says="head"
    ),
    "the host's answer from a core": Attack(prelude=RING, body="Forge(0, 5, 17, 0, 1);", says=""),
}

UNLINKED = {
    "hazards are cleared by their mangled name": "_ZN9evokernel4twin12ClearHazardsEv",
    "the core that runs": "_ZN9evokernel4twin12current_coreE",
    "the number of instructions": "_ZN9evokernel4twin17instruction_countE",
    "global memory": "_ZN9evokernel4twin2GmEv",
    "the session": "_ZN9evokernel4twin10TheSessionEv",
    "device memory of the host's interface": "aclrtMemcpy",
}


def sources(attack: Attack) -> dict[str, str]:
    """The files of a kernel that attacks."""
    parts = {"prelude": attack.prelude, "host": attack.host, "body": attack.body}
    return {"op_kernel.cpp": KERNEL % parts, "tiling.h": TILING}


def run(attack: Attack, folder: Path, limits: Limits) -> RunResult:
    """The judged run, confined as the verifier does it."""
    built = build_files(evolve(prepare(), judged=True), sources(attack))
    sandboxes = Sandboxes(
        judge=sandbox_prefix(built.twin, [], [folder]),
        candidate=sandbox_prefix(built.twin, [built.library.parent], []),
    )
    request = RunRequest(Mode.CHECK, load_chip(), outputs=(TensorFile(folder / "y.bin", 256),))
    return judge_kernel(built, request, limits, sandboxes, folder)


@pytest.fixture(scope="module", autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with own_home(tmp_path_factory.mktemp("home")):
        yield


@pytest.mark.parametrize("name", ATTACKS)
def test_the_run_fails_with_a_true_sentence(name: str, tmp_path: Path) -> None:
    attack = ATTACKS[name]
    result = run(attack, tmp_path, Limits(wall_s=attack.wall_s, cpu_s=attack.cpu_s))
    errors = [hazard.message for hazard in result.hazards if hazard.severity is Severity.ERROR]
    sentence = " ".join([result.message, *errors])
    assert result.status is not ExitStatus.OK or errors, name
    assert sentence.strip(), name
    assert "ended the judge" not in sentence, sentence
    assert attack.says in sentence, sentence
    assert attack.status in (None, result.status), result


@pytest.mark.parametrize("name", UNLINKED)
def test_what_is_judged_by_has_no_name_to_link_with(name: str) -> None:
    symbol = UNLINKED[name]
    attack = Attack(prelude=f'extern "C" void {symbol}();', body=f"{symbol}();")
    with pytest.raises(CandidateError) as caught:
        build_files(evolve(prepare(), judged=True), sources(attack))
    assert caught.value.code == "link"


DECLINES = {
    "ends-well": "_exit(0);",
    "ends-badly": "_exit(3);",
    "crashes": "abort();",
    "is-killed": "raise(SIGKILL);",
    "throws": "throw 1;",
    "runs-on": "for (volatile int i = 0;; i = i + 1) {}",
    "says-so": 'fprintf(stderr, "ComputeTiling returned false for these sizes\\n"); _exit(0);',
    "instructs": "GM_ADDR nothing = nullptr; attack(&nothing); _exit(0);",
}


@pytest.mark.parametrize("name", DECLINES)
def test_sizes_are_declined_by_an_answer_alone(name: str, tmp_path: Path) -> None:
    """Wants to be excused from sizes that it computes wrongly by giving no answer about them. It fails: only
    the tiling's own false declines."""
    prelude = 'extern "C" void attack(GM_ADDR *t);' if name == "instructs" else ""
    result = run(Attack(host=DECLINES[name], prelude=prelude), tmp_path, Limits(wall_s=10.0, cpu_s=1.0))
    assert result.status not in (ExitStatus.OK, ExitStatus.DECLINED), result
    assert result.message


def test_an_answer_is_one(tmp_path: Path) -> None:
    """No attack: sizes are declined by a false of the tiling's."""
    files = sources(Attack())
    files["tiling.h"] = files["tiling.h"].replace("return true;", "return false;")
    built = build_files(evolve(prepare(), judged=True), files)
    sandboxes = Sandboxes(
        judge=sandbox_prefix(built.twin, [], [tmp_path]),
        candidate=sandbox_prefix(built.twin, [built.library.parent], []),
    )
    request = RunRequest(Mode.CHECK, load_chip(), outputs=(TensorFile(tmp_path / "y.bin", 256),))
    assert judge_kernel(built, request, Limits(), sandboxes, tmp_path).status is ExitStatus.DECLINED
