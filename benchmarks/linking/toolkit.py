"""A toolkit without code: the folders of CANN and torch_npu with headers and libraries that packages link.

The headers are the stand-ins that the tests compile bindings against. Each library exports what they
declare and no more: the platform's information is in tiling_api, streams are in torch_npu, and register and
platform, which the public samples link too, are empty.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from attrs import frozen

_PLATFORM = """\
#include <tiling/platform/platform_ascendc.h>
namespace platform_ascendc {
void PlatformAscendC::GetCoreMemSize(const CoreMemType &, uint64_t &bytes) const { bytes = 196608; }
uint32_t PlatformAscendC::GetCoreNumAiv() const { return 48; }
PlatformAscendC *PlatformAscendCManager::GetInstance() { static PlatformAscendC platform; return &platform; }
}  // namespace platform_ascendc
"""
_STREAMS = """\
#include <torch_npu/csrc/core/npu/NPUStream.h>
namespace c10_npu {
aclrtStream NPUStream::stream() const { return nullptr; }
NPUStream getCurrentNPUStream(signed char) { return {}; }
}  // namespace c10_npu
"""
_LIBRARIES = {"tiling_api": _PLATFORM, "register": "", "platform": "", "torch_npu": _STREAMS}
HERE = Path(__file__).parent
HEADERS = HERE.parents[1] / "tests" / "ascendc" / "npu_standin"


@frozen
class Toolkit:
    """``cann`` is what ASCEND_HOME_PATH names, ``packages`` where Python finds torch_npu."""

    cann: Path
    packages: Path
    compiler: str

    def environment(self) -> dict[str, str]:
        """The variables that set_env.sh and the stand-in compiler need."""
        return {
            "ASCEND_HOME_PATH": str(self.cann),
            "PYTHONPATH": str(self.packages),
            "LD_LIBRARY_PATH": f"{self.cann / 'lib64'}:{self.packages / 'torch_npu' / 'lib'}",
            "STAND_IN_ASC_COMPILER": str(self.cann / "bin" / "asc"),
            "STAND_IN_HOST_COMPILER": self.compiler,
        }


def make_toolkit(folder: Path, compiler: str) -> Toolkit:
    """Writes the toolkit below ``folder``. Raises CalledProcessError where the compiler fails."""
    cann, packages = folder / "cann", folder / "packages"
    npu = packages / "torch_npu"
    for part in (cann / "lib64", cann / "bin", npu / "lib"):
        part.mkdir(parents=True)
    (npu / "__init__.py").touch()
    for name in ("acl", "tiling"):
        shutil.copytree(HEADERS / name, cann / "include" / name)
    shutil.copytree(HEADERS / "torch_npu", npu / "include" / "torch_npu")
    script = cann / "bin" / "asc"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "asc_compiler.py"} "$@"\n')
    script.chmod(0o755)
    for name, text in _LIBRARIES.items():
        source = folder / f"{name}.cpp"
        source.write_text(text)
        place = npu / "lib" if name == "torch_npu" else cann / "lib64"
        headers = (f"-I{cann / 'include'}", f"-I{npu / 'include'}")
        flags = ("-std=c++17", "-shared", "-fPIC", "-Wl,--no-undefined", f"-Wl,-soname,lib{name}.so")
        target = ("-o", str(place / f"lib{name}.so"))
        subprocess.run([compiler, *flags, *headers, str(source), *target], check=True)
    return Toolkit(cann, packages, compiler)
