"""Libraries that stand in for CUDA's: what is linked with them loads, and finds no device."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
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
    with pytest.raises(OSError, match="libevokernel_absent"):
        ctypes.CDLL(str(user))
    _add_missing_libraries(tmp_path / "torch")
    assert ctypes.CDLL(str(user)).devices() == 100
