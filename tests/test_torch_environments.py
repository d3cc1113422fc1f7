"""Libraries that stand in for CUDA's: what is linked with them loads, and finds no device."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.torch_environments import _add_missing_libraries

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("cc", "readelf"))), reason="needs a C compiler and binutils"
)
USER = "int {calls}(void);\nint devices(void) {{ return {calls}(); }}\nint (*address)(void) = {calls};\n"


def compiled(path: Path, source: str, *options: str) -> None:
    command = ["cc", "-shared", "-fPIC", f"-Wl,-soname,{path.name}", "-xc", "-", "-o", str(path), *options]
    subprocess.run(command, input=source, text=True, check=True)


def devices(library: Path) -> subprocess.CompletedProcess[str]:
    """What a fresh process counts with the library: one keeps what it has loaded, by name."""
    code = f"import ctypes; print(ctypes.CDLL({str(library)!r}).devices())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("version", ["", "libcudart.so.12", "NVSHMEM"])
def test_a_library_loads_without_what_it_is_linked_with(version: str, tmp_path: Path) -> None:
    lib = tmp_path / "torch" / "lib"
    lib.mkdir(parents=True)
    needed = lib / "libevokernel_absent.so.12"
    script = tmp_path / "versions.map"
    script.write_text(f"{version} {{ global: *; }};")
    compiled(needed, "int countDevices(void) { return 0; }\n", f"-Wl,--version-script,{script}")
    user = lib / "libuser.so"
    compiled(
        user, USER.format(calls="countDevices"), "-Wl,-rpath,$ORIGIN", "-Wl,-z,now", "-xnone", str(needed)
    )
    needed.unlink()
    assert "libevokernel_absent" in devices(user).stderr
    _add_missing_libraries(tmp_path / "torch")
    assert devices(user).stdout == "100\n"
