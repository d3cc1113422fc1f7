"""The CANN backend without CANN: its parsers, its commands, and its one-sentence refusals."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evokernel_core.domain.errors import UsageError, VerifierError, VerifierUnavailable
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.settings import Settings
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.twin.build import CandidateError
from evokernel_core.twin.chip import load_chip
from evokernel_core.verifier.backends import cann, cann_run
from evokernel_core.verifier.backends.cann import CannBackend, CannTools, compile_command, kernel_names
from evokernel_core.verifier.backends.cann_profile import computing_us, read_timing
from evokernel_core.verifier.base import RunStatus, TimingRequest
from evokernel_core.verifier.factory import open_backend, open_verifier
from evokernel_core.verifier.local import LocalVerifier

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


def test_a_host_without_cann_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(VerifierUnavailable, match="install CANN") as error:
        open_backend("cann", "ascend910b1")
    assert str(error.value).endswith("or use the twin.")


def test_a_python_without_torch_npu_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bisheng", "msprof"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(VerifierUnavailable, match="torch_npu"):
        cann.find_tools(sys.executable)


def test_the_compile_command_is_for_this_architecture() -> None:
    command = compile_command(CannTools("bisheng", "python"), ["op_kernel.cpp"], "kernel.so")
    assert command[:2] == ["bisheng", "-xasc"]
    assert "--npu-arch=dav-2201" in command


@pytest.mark.parametrize("name", ["add", "relu", "softmax"])
def test_the_kernels_name(name: str, source_of: Callable[[str], KernelSource]) -> None:
    assert kernel_names(source_of(name).op_kernel_cpp) == (f"{name}_kernel",)


@pytest.mark.parametrize(
    "head",
    [
        "__global__ __vector__ void",
        "__global__ __cube__ void",
        "__global__ __mix__(1, 2) void",
        "__schedmode__(1) __global__ __mix__(1, 2) void",
        "__global__ __schedmode__(1) __mix__(0, 1) void",
        "__global__ __aicore__ void",
    ],
)
def test_attributes_are_no_names(head: str) -> None:
    text = (
        f'extern "C" {head} some_kernel(GM_ADDR x) {{ }}\n__global__ __vector__ void other(GM_ADDR x) {{ }}'
    )
    assert kernel_names(text) == ("some_kernel", "other")


def test_a_file_without_a_kernel() -> None:
    with pytest.raises(CandidateError, match="__global__"):
        kernel_names("inline int Helper() { return 1; }")


def test_the_backend_says_that_it_has_not_run_on_hardware() -> None:
    backend = CannBackend(load_chip(), CannTools("bisheng", sys.executable))
    assert "not yet run on hardware" in backend.name
    assert backend.latency_source is LatencySource.MEASURED


def test_the_host_glue_compiles_and_calls_the_tiling(
    tmp_path: Path, source_of: Callable[[str], KernelSource]
) -> None:
    """The glue is plain C++17: any compiler can check it, and ctypes can call it as the script does."""
    (tmp_path / "glue.cpp").write_text(cann.GLUE)
    (tmp_path / "tiling.h").write_text(source_of("relu").tiling_h)
    (tmp_path / "op.cpp").write_text(
        '#include "tiling.h"\n'
        'extern "C" void LaunchOp(void *, uint8_t *const *, uint8_t *, const OpTiling &) {}'
    )
    command = ["g++", "-std=c++17", "-shared", "-fPIC", "-I.", "glue.cpp", "op.cpp", "-o", "kernel.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "kernel.so"))
    request: dict[str, Any] = {"sizes": [1000], "scalars": [], "cores": 48, "ub_bytes": 188416}
    planned = cann_run.compute_tiling(library, request)
    assert planned is not None
    assert ctypes.cast(planned[0], ctypes.POINTER(ctypes.c_uint32))[0] == 16
    assert planned[1] == 0


BISHENG = """\
#!/bin/sh
if grep -q Broken op_kernel.cpp; then
  echo "op_kernel.cpp:3:5: error: use of undeclared identifier 'Broken'" >&2
  exit 1
fi
touch kernel.so
"""

NPU_PYTHON = """\
#!{python}
import json, os, pathlib, sys
request = json.loads(pathlib.Path(sys.argv[2]).read_text())
assert request["cores"] == 48
if "--profile" in sys.argv:
    output = pathlib.Path(sys.argv[-1]) / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "step_trace_time.csv").write_text({steps!r})
    (output / "kernel_details.csv").write_text({kernels!r})
pathlib.Path(request["result"]).write_text(json.dumps({{"error": "", "hazards": []}}))
"""


def test_build_and_measure_speak_the_protocol(
    tmp_path: Path, source_of: Callable[[str], KernelSource]
) -> None:
    """A stand-in compiler and a stand-in Python: every command and file of ours is real."""
    compiler, python = tmp_path / "bisheng", tmp_path / "python"
    compiler.write_text(BISHENG)
    python.write_text(NPU_PYTHON.format(python=sys.executable, steps=STEPS, kernels=KERNELS))
    for tool in (compiler, python):
        tool.chmod(0o755)
    backend = CannBackend(load_chip(), CannTools(str(compiler), str(python)))
    task: Any = None
    built = backend.build(task, source_of("add"))
    assert built.library.exists()
    timing = backend.measure(built, TimingRequest((4, 4), (), (32, 32), (32,)))
    assert timing.us == pytest.approx(42.0)
    source = source_of("add")
    broken = KernelSource(source.tiling_h, "Broken", source.strategy)
    with pytest.raises(CandidateError, match=r"op_kernel\.cpp:3: use of undeclared identifier 'Broken'"):
        backend.build(task, broken)


def test_what_the_run_script_reports_becomes_hazards(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"error": "", "hazards": [["input-modified", "Changed."]]}))
    execution = cann.read_execution(tmp_path / "r.json", 1.0)
    assert execution.status is RunStatus.OK
    assert execution.hazards[0].code == "input-modified"


def test_unknown_backends_are_refused() -> None:
    with pytest.raises(UsageError, match="twin, cann"):
        open_backend("cuda", "ascend910b1")


def test_the_twin_is_the_verifier_unless_a_url_is_set(numpy_reference: Any) -> None:
    assert isinstance(open_verifier(Settings(), numpy_reference), LocalVerifier)
