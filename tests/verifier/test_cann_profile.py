"""What torch_npu's profiler leaves, by version: tables as documented, with the quirks of recorded ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from attrs import frozen

from evokernel_core.domain.errors import VerifierError
from evokernel_core.targets.ascendc.backends.cann_profile import computing_us, read_timing
from evokernel_core.targets.ascendc.backends.cann_versions import RELEASES, Release, misfit, release_of
from evokernel_core.twin.build import CandidateError

ROOT = Path(__file__).parents[2]
STEPS = """\
Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble
0,3,41.5,0,0,0,10.0,0,0
0,4,42.5,0,0,0,11.0,0,0
0,5,42.0,0,0,0,12.0,0,0
"""

KERNELS = """\
Step Id,Name,Type,Accelerator Core,Duration(us),Block Dim,aiv_time(us),aiv_vec_time(us),aiv_scalar_time(us),\
aiv_mte2_time(us),aiv_mte3_time(us),aic_mac_time(us)
3,add_kernel,add_kernel,AI_VECTOR_CORE,41.5,48,39.0,9.0,2.0,31.0,20.0,N/A
4,add_kernel,add_kernel,AI_VECTOR_CORE,42.5,48,40.0,11.0,2.0,33.0,22.0,N/A
"""


def profiled(folder: Path, steps: str = STEPS, kernels: str = KERNELS) -> Path:
    output = folder / "host_1_20260101_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "step_trace_time.csv").write_text(steps)
    (output / "kernel_details.csv").write_text(kernels, encoding="utf-8-sig")
    return folder


def test_the_latency_is_the_mean_of_computing(tmp_path: Path) -> None:
    timing = read_timing(profiled(tmp_path), ["add_kernel"])
    assert timing.us == pytest.approx(42.0)
    assert timing.block_dim == 48
    assert dict(timing.pipes) == pytest.approx({"V": 10.0, "S": 2.0, "MTE2": 32.0, "MTE3": 21.0})
    assert timing.bottleneck == "MTE2 is busy for 32 of 42 us (76 %)."


def test_a_built_in_op_beside_the_kernel_is_a_cheat(tmp_path: Path) -> None:
    foreign = KERNELS + "5,aclnnAdd_AddAiCore_Add,Add,AI_VECTOR_CORE,5.0,48,4.0,1.0,1.0,1.0,1.0,N/A\n"
    with pytest.raises(CandidateError) as error:
        read_timing(profiled(tmp_path, kernels=foreign), ["add_kernel"])
    assert error.value.code == "foreign-kernel"
    assert "aclnnAdd" in error.value.feedback


def test_a_kernel_that_never_ran(tmp_path: Path) -> None:
    with pytest.raises(CandidateError) as error:
        read_timing(profiled(tmp_path, kernels=KERNELS.splitlines()[0] + "\n"), ["add_kernel"])
    assert error.value.code == "not-launched"


BEHIND = """\
3,scale_kernel_mix_aic,scale_kernel,MIX_AIC,10.0,20,8.0,1.0,0.5,2.0,1.0,3.0
4,scale_kernel_mix_aic,scale_kernel,MIX_AIC,10.0,20,8.0,3.0,0.5,2.0,1.0,5.0
"""


def test_the_kernels_of_a_pass_are_added_up(tmp_path: Path) -> None:
    timing = read_timing(profiled(tmp_path, kernels=KERNELS + BEHIND), ["add_kernel", "scale_kernel"])
    assert timing.block_dim == 48
    assert dict(timing.pipes) == pytest.approx({"V": 12.0, "S": 2.5, "MTE2": 34.0, "MTE3": 22.0, "M": 4.0})


def test_each_kernel_of_a_program_must_have_run(tmp_path: Path) -> None:
    with pytest.raises(CandidateError, match="no launch of scale_kernel") as error:
        read_timing(profiled(tmp_path), ["add_kernel", "scale_kernel"])
    assert error.value.code == "not-launched"


@pytest.mark.parametrize("name", ["add_kernels", "add_kernel2", "my_add_kernel", "add_kernel_grad"])
def test_a_longer_name_is_another_kernel(name: str, tmp_path: Path) -> None:
    foreign = KERNELS + BEHIND.replace("scale_kernel_mix_aic", name)
    with pytest.raises(CandidateError) as error:
        read_timing(profiled(tmp_path, kernels=foreign), ["add_kernel"])
    assert error.value.code == "foreign-kernel"


def test_both_names_of_the_cores_column_are_read(tmp_path: Path) -> None:
    new = KERNELS.replace("Block Dim", "Block Num").replace(",48,", ",40,")
    assert read_timing(profiled(tmp_path, kernels=new), ["add_kernel"]).block_dim == 40


def test_a_profile_without_cores_is_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(VerifierError, match="Block Num, Block Dim"):
        read_timing(profiled(tmp_path, kernels=KERNELS.replace("Block Dim", "Grid")), ["add_kernel"])


@pytest.mark.parametrize("steps", ["Step,Computing\n", "Step,Computing\n1,0\n", "Step\n1\n"])
def test_a_profile_without_device_time_is_no_verdict(steps: str, tmp_path: Path) -> None:
    with pytest.raises(VerifierError, match="no device time"):
        read_timing(profiled(tmp_path, steps=steps), ["add_kernel"])


def test_a_missing_file_is_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(VerifierError, match=r"step_trace_time\.csv"):
        read_timing(tmp_path, ["add_kernel"])


def test_blank_cells_are_left_out() -> None:
    assert computing_us([{"Computing": " "}, {"Computing": "3.5"}]) == 3.5


METRICS = (
    "aicore_time(us),aic_total_cycles,aic_mac_time(us),aic_mac_ratio,aic_scalar_time(us),aic_scalar_ratio,"
    "aic_mte1_time(us),aic_mte1_ratio,aic_mte2_time(us),aic_mte2_ratio,aic_fixpipe_time(us),aic_fixpipe_ratio,"
    "aic_icache_miss_rate,aiv_time(us),aiv_total_cycles,aiv_vec_time(us),aiv_vec_ratio,aiv_scalar_time(us),"
    "aiv_scalar_ratio,aiv_mte2_time(us),aiv_mte2_ratio,aiv_mte3_time(us),aiv_mte3_ratio,aiv_icache_miss_rate,"
    "cube_utilization(%)"
)
"""PipeUtilization of Atlas A2, as msprof writes it."""
MIXED = (
    "36.0,1,20.0,0.5,2.0,0.1,11.0,0.3,30.0,0.8,9.0,0.2,0.01,30.0,1,6.0,0.2,3.0,0.1,12.0,0.4,14.0,0.5,0.02,60"
)
VECTOR = "0,0,0,0,0,0,0,0,0,0,0,0,0,39.0,1,10.0,0.3,2.0,0.1,32.0,0.8,21.0,0.5,0.02,0"


def level_1(cores: str, rows: list[tuple[str, str, str, str]], steps: bool = True) -> str:
    """kernel_details.csv at the profiler's level 1. A row: step, name, kind of core with blocks, metrics."""
    head = (
        "Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),"
        f"Duration(us),Wait Time(us),{cores},Mix {cores},HF32 Eligible,Input Shapes,Input Data Types,"
        f"Input Formats,Output Shapes,Output Data Types,Output Formats,Context ID,{METRICS}"
    )
    lines = [f"Step Id,{head}" if steps else head]
    for step, name, where, metrics in rows:
        kind, *blocks = where.split()
        task = f"0,4294967295,7,2,{name},{name},N/A,{kind},1717575960208020.750\t,41.5,0.1,{','.join(blocks)}"
        line = f'{task},NO,"""8,2048;8,2048""",FLOAT16;FLOAT16,ND;ND,"""8,2048""",FLOAT16,ND,N/A,{metrics}'
        lines.append(f"{step},{line}" if steps else line)
    return "\n".join(lines) + "\n"


def both(step: str) -> list[tuple[str, str, str, str]]:
    """A pass of a program of a vector kernel and a mixed one."""
    return [
        (step, "add_kernel", "AI_VECTOR_CORE 40 0", VECTOR),
        (step, "linear_kernel_0_mix_aic", "MIX_AIC 20 40", MIXED),
    ]


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.torch_npu)
def test_every_versions_table_of_several_and_mixed_kernels(release: Release, tmp_path: Path) -> None:
    rows = [row for step in ("3", "4", "5") for row in both(step)]
    folder = profiled(tmp_path, kernels=level_1(release.cores, rows))
    timing = read_timing(folder, ["add_kernel", "linear_kernel"])
    assert timing.us == pytest.approx(42.0)
    assert timing.block_dim == 40
    expected = {"V": 16.0, "S": 5.0, "MTE2": 62.0, "MTE3": 35.0, "M": 20.0, "MTE1": 11.0, "FIX": 9.0}
    assert dict(timing.pipes) == pytest.approx(expected)


@pytest.mark.parametrize("cores", ["Block Num", "Block Dim"])
def test_rows_without_steps_are_counted(cores: str, tmp_path: Path) -> None:
    """The profiler writes no step where it knows none; three are in the other table."""
    rows = [row for _ in range(3) for row in both("")]
    with_column = read_timing(
        profiled(tmp_path / "1", kernels=level_1(cores, rows)), ["add_kernel", "linear_kernel"]
    )
    without = level_1(cores, rows, steps=False)
    timing = read_timing(profiled(tmp_path / "2", kernels=without), ["add_kernel", "linear_kernel"])
    assert timing == with_column
    assert dict(timing.pipes)["V"] == pytest.approx(16.0)


def test_rows_that_do_not_fit_the_steps_are_no_verdict(tmp_path: Path) -> None:
    rows = [row for _ in range(4) for row in both("")]
    folder = profiled(tmp_path, kernels=level_1("Block Num", rows, steps=False))
    with pytest.raises(VerifierError, match="4 rows of add_kernel for 3 steps"):
        read_timing(folder, ["add_kernel", "linear_kernel"])


def test_another_spelling_of_the_step(tmp_path: Path) -> None:
    rows = [row for step in ("3", "4", "5") for row in both(step)]
    text = level_1("Block Num", rows).replace("Step Id", "Step ID", 1)
    assert (
        dict(read_timing(profiled(tmp_path, kernels=text), ["add_kernel", "linear_kernel"]).pipes)["M"]
        == 20.0
    )


@pytest.mark.parametrize("blocks", ["0 N/A", "N/A N/A"])
def test_a_profile_of_level_0_is_no_verdict(blocks: str, tmp_path: Path) -> None:
    rows = [(step, "add_kernel", f"N/A {blocks}", VECTOR) for step in "345"]
    with pytest.raises(VerifierError, match="its profiler level is 0"):
        read_timing(profiled(tmp_path, kernels=level_1("Block Num", rows)), ["add_kernel"])


def test_a_word_in_place_of_a_number_is_no_verdict(tmp_path: Path) -> None:
    rows = [(step, "add_kernel", "AI_VECTOR_CORE many 0", VECTOR) for step in "345"]
    with pytest.raises(VerifierError, match="'many' where a number stands"):
        read_timing(profiled(tmp_path, kernels=level_1("Block Num", rows)), ["add_kernel"])


def test_a_cpu_operator_beside_the_kernel_is_a_cheat(tmp_path: Path) -> None:
    rows = [*both("3"), ("3", "aclnnCumsum_CumsumAiCpu_Cumsum", "AI_CPU 1 0", VECTOR)]
    with pytest.raises(CandidateError) as error:
        read_timing(profiled(tmp_path, kernels=level_1("Block Num", rows)), ["add_kernel", "linear_kernel"])
    assert error.value.code == "foreign-kernel"


@pytest.mark.parametrize(
    ("package", "row"),
    [
        ("2.7.1", "2.7.1"),
        ("2.7.1.post3", "2.7.1.post2"),
        ("2.9.0.post8", "2.9.0.post6"),
        ("2.12.0.post3", "2.12.0"),
        ("2.10.0rc2", "2.10.0"),
        ("2.13.0+gitabc", "2.13.0"),
        ("2.6.0", None),
        ("2.15.0", None),
    ],
)
def test_the_row_of_a_package(package: str, row: str | None) -> None:
    found = release_of(package)
    assert (found.torch_npu if found else None) == row


@pytest.mark.parametrize(
    ("torch", "torch_npu", "cann", "words"),
    [
        ("2.9.0+cpu", "2.9.0", "8.5.0", ""),
        ("2.7.1", "2.7.1", "8.3.RC1", ""),
        ("2.12.0", "2.12.0", "9.1.1", ""),
        ("2.13.0", "2.13.0", "9.1.0", ""),
        ("2.12.0", "2.12.0", "", ""),
        ("2.8.0", "2.9.0", "8.5.0", "Install torch 2.9.0."),
        ("2.9.0", "2.9.0", "9.0.0", "Install CANN 8.5.0, or the torch_npu that goes with 9.0.0."),
        ("2.6.0", "2.6.0", "8.5.0", "Install one of torch_npu 2.7.1 to 2.14.0."),
    ],
)
def test_what_does_not_go_together(torch: str, torch_npu: str, cann: str, words: str) -> None:
    found = misfit(torch, torch_npu, cann)
    assert (found.advice if found else "") == words


def test_the_documents_table_is_that_of_the_code() -> None:
    text = (ROOT / "docs" / "npu.md").read_text()
    rows = re.findall(r"^\| (2\.\S+) \| ([^|]+) \| `(Block \w+)` \|$", text, re.MULTILINE)
    said = [
        Release(npu, "" if cann.strip() == "not published" else cann.strip(), cores)
        for npu, cann, cores in rows
    ]
    assert tuple(said) == RELEASES


@frozen
class Recorded:
    """Launches that somebody else recorded on a chip and published: their rows' figures as msprof wrote them,
    from the blocks on and from the metrics on, microseconds of the launches, and what they say."""

    source: str
    cores: str
    rows: tuple[tuple[str, str, str, float], ...]
    blocks: int
    pipes: tuple[tuple[str, float], ...]


RECORDED = (
    Recorded(
        "neo-pan/ascend-msprof-skill at 8d845a46, op_summary_20260605161737.csv: a mixed kernel",
        "Block Dim",
        (
            (
                "main_kernel",
                "MIX_AIC 256 512",
                "12.716,532700,0.0,0.0,10.213,0.803,0.031,0.002,0.024,0.002,0.006,0.0,0.037,"
                "79569.043,6666439114,0.189,0.0,79457.736,0.999,0.012,0.0,0.012,0.0,0.0,0.014",
                87139.380,
            ),
            (
                "main_kernel",
                "MIX_AIC 256 512",
                "8.867,371433,0.0,0.0,8.374,0.944,0.031,0.003,0.024,0.003,0.006,0.001,0.0,"
                "79565.613,6666151685,0.189,0.0,79457.727,0.999,0.012,0.0,0.012,0.0,0.0,0.010",
                86808.420,
            ),
        ),
        256,
        (("V", 0.189), ("S", 79457.7315), ("MTE2", 0.024), ("MTE3", 0.012), ("MTE1", 0.031), ("FIX", 0.006)),
    ),
    Recorded(
        "vllm-project/vllm-ascend at 90634320, op_summary_20260823165335.csv: cubes alone",
        "Block Num",
        (
            (
                "aclnnGroupedMatmulV5_GroupedMatmul_GroupedMatmul",
                "MIX_AIC 20 0",
                "23.297,838707,0.169,0.007,6.352,0.273,0.116,0.005,10.257,0.44,8.551,0.367,0.108,"
                "0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,87.384",
                26.661,
            ),
        ),
        20,
        (("S", 6.352), ("MTE2", 10.257), ("M", 0.169), ("MTE1", 0.116), ("FIX", 8.551)),
    ),
    Recorded(
        "the same: a vector operator, whose cube columns are 0.0",
        "Block Num",
        (
            (
                "aclnnInplaceOne_OnesLikeAiCore_OnesLike",
                "AI_VECTOR_CORE 40 0",
                "0.0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,"
                "4.693,337925,0.151,0.032,0.81,0.173,0.001,0.0,0.554,0.118,0.157,0.000",
                8.060,
            ),
        ),
        40,
        (("V", 0.151), ("S", 0.81), ("MTE2", 0.001), ("MTE3", 0.554)),
    ),
)


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded.rows[0][0])
def test_recorded_launches(recorded: Recorded, tmp_path: Path) -> None:
    head = STEPS.splitlines()[0]
    steps = [f"0,{i},{us},0,0,0,10.0,0,0" for i, (*_, us) in enumerate(recorded.rows)]
    rows = [(str(i), name, where, metrics) for i, (name, where, metrics, _) in enumerate(recorded.rows)]
    tables = profiled(tmp_path, "\n".join([head, *steps]) + "\n", level_1(recorded.cores, rows))
    timing = read_timing(tables, [recorded.rows[0][0]])
    assert timing.us == pytest.approx(sum(us for *_, us in recorded.rows) / len(recorded.rows))
    assert timing.block_dim == recorded.blocks
    assert dict(timing.pipes) == pytest.approx(dict(recorded.pipes))
