"""The CANN backend without CANN: its parsers, its commands, and its one-sentence refusals."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evokernel_core.domain.errors import UsageError, VerifierUnavailable
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.settings import Settings
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.backends import cann, cann_run, cann_tools
from evokernel_core.targets.ascendc.backends.cann import CannBackend, kernel_names
from evokernel_core.targets.ascendc.backends.cann_tools import CannTools, Toolkit, compile_command
from evokernel_core.targets.ascendc.source import KERNEL, TILING, ascendc_source
from evokernel_core.targets.ascendc.target import ascendc
from evokernel_core.twin.build import CandidateError
from evokernel_core.verifier.base import RunStatus, TimingRequest
from evokernel_core.verifier.factory import open_backend, open_verifier
from evokernel_core.verifier.local import LocalVerifier

STEPS = """\
Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble
0,3,41.5,0,0,0,10.0,0,0
0,4,42.5,0,0,0,11.0,0,0
"""

KERNELS = """\
Step Id,Name,Type,Accelerator Core,Duration(us),Block Num,aiv_time(us),aiv_vec_time(us)
3,add_kernel,add_kernel,AI_VECTOR_CORE,41.5,48,39.0,9.0
4,add_kernel,add_kernel,AI_VECTOR_CORE,42.5,48,40.0,11.0
"""


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without CANN."""
    monkeypatch.setattr(cann_tools, "_SYSTEM", tmp_path / "usr-local")
    for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", cann_tools.SWITCH):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")


@pytest.mark.usefixtures("bare")
def test_a_host_without_cann_is_refused_in_one_sentence() -> None:
    with pytest.raises(VerifierUnavailable, match="install CANN") as error:
        open_backend("cann", "ascend910b1")
    assert str(error.value).endswith("or use the twin.")


@pytest.mark.usefixtures("bare")
def test_a_python_without_torch_npu_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bisheng", "msprof"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(VerifierUnavailable, match="torch_npu"):
        cann_tools.find_tools(sys.executable)


def test_the_compile_command_is_for_this_architecture() -> None:
    command = compile_command(Toolkit(Path("bisheng"), None, ""), ["op_kernel.cpp"], "kernel.so")
    assert command[:2] == ["bisheng", "-xasc"]
    assert "--npu-arch=dav-2201" in command


@pytest.mark.parametrize("name", ["add", "relu", "softmax"])
def test_the_kernels_name(name: str, source_of: Callable[[str], KernelSource]) -> None:
    assert kernel_names(source_of(name).files[KERNEL]) == (f"{name}_kernel",)


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
    backend = CannBackend(ascendc(load_chip()), CannTools(Toolkit(Path("bisheng"), None, ""), sys.executable))
    assert "not yet run on hardware" in backend.name
    assert backend.latency_source is LatencySource.MEASURED


def test_the_host_glue_compiles_and_calls_the_tiling(
    tmp_path: Path, source_of: Callable[[str], KernelSource]
) -> None:
    """The glue is plain C++17: any compiler can check it, and ctypes can call it as the script does."""
    (tmp_path / "glue.cpp").write_text(cann.GLUE)
    (tmp_path / "tiling.h").write_text(source_of("relu").files[TILING])
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
assert request["inputs"][0] == [None, 32]
assert pathlib.Path(request["inputs"][1][0]).read_bytes() == b"places"
assert "/sbin-of-cann" in os.environ["PATH"] and "EVOKERNEL_API_KEY" not in os.environ
if "--profile" in sys.argv:
    output = pathlib.Path(sys.argv[-1]) / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "step_trace_time.csv").write_text({steps!r})
    (output / "kernel_details.csv").write_text({kernels!r})
pathlib.Path(request["result"]).write_text(json.dumps({{"error": "", "hazards": []}}))
"""


def test_build_and_measure_speak_the_protocol(
    tmp_path: Path, source_of: Callable[[str], KernelSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in compiler and a stand-in Python: every command and file of ours is real."""
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/sbin-of-cann")  # where the profiler finds msprof
    monkeypatch.setenv("EVOKERNEL_API_KEY", "secret")
    compiler, python = tmp_path / "bisheng", tmp_path / "python"
    compiler.write_text(BISHENG)
    python.write_text(NPU_PYTHON.format(python=sys.executable, steps=STEPS, kernels=KERNELS))
    for tool in (compiler, python):
        tool.chmod(0o755)
    backend = CannBackend(ascendc(load_chip()), CannTools(Toolkit(compiler, None, ""), str(python)))
    task: Any = None
    built = backend.build(task, source_of("add"))
    assert built.library.exists()
    timing = backend.measure(built, TimingRequest((4, 4), (), (32, 32), (32,), ((1, b"places"),)))
    assert timing.us == pytest.approx(42.0)
    source = source_of("add")
    broken = ascendc_source(source.files[TILING], "Broken", source.strategy)
    with pytest.raises(CandidateError, match=r"op_kernel\.cpp:3: use of undeclared identifier 'Broken'"):
        backend.build(task, broken)


def test_what_the_run_script_reports_becomes_hazards(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"error": "", "hazards": [["input-modified", 0]]}))
    execution = cann.read_execution(tmp_path / "r.json", 1.0)
    assert execution.status is RunStatus.OK
    assert execution.hazards[0].code == "input-modified"


@pytest.mark.parametrize(("declined", "status"), [(True, RunStatus.DECLINED), (False, RunStatus.ERROR)])
def test_sizes_are_declined_by_a_status_and_not_by_words(
    declined: bool, status: RunStatus, tmp_path: Path
) -> None:
    told = {"declined": declined, "error": "ComputeTiling returned false.", "hazards": []}
    (tmp_path / "r.json").write_text(json.dumps(told))
    assert cann.read_execution(tmp_path / "r.json", 1.0).status is status


def test_unknown_backends_are_refused() -> None:
    with pytest.raises(UsageError, match="twin, cann"):
        open_backend("rocm", "ascend910b1")


def test_the_twin_is_the_verifier_unless_a_url_is_set(numpy_reference: Any) -> None:
    assert isinstance(open_verifier(Settings(), numpy_reference), LocalVerifier)
