"""Stands for the compiler of kernels in the link check: what the host sees of an op_kernel.cpp, and links.

Compiling gives an object with the one symbol that op_kernel.cpp promises the binding, ``LaunchOp`` with its
tiling by reference; an op_kernel.cpp that does not define it, or other options than those of the samples,
are errors. Linking is the host compiler's.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_LAUNCHER = re.compile(
    r'extern "C" void LaunchOp\(void \*stream, uint8_t \*const \*tensors, uint8_t \*workspace, '
    r"const OpTiling &tiling\)\s*\{"
)
_HOST_SIDE = """\
#include "tiling.h"
extern "C" void LaunchOp(void *, uint8_t *const *, uint8_t *, const OpTiling &) {}
"""
_WANTED = ("--npu-arch=dav-2201", "-std=c++17")


def main(arguments: Sequence[str]) -> int:
    """Compiles with ``-c``, links without. Returns the exit status."""
    host = [item for item in arguments if not item.startswith(("--npu-arch=", "--gcc-toolchain="))]
    compiler = os.environ["STAND_IN_HOST_COMPILER"]
    if "-c" not in arguments:
        return subprocess.run([compiler, *host], check=False).returncode
    source = Path(arguments[-1])
    missing = [option for option in _WANTED if option not in arguments]
    if missing or "-x asc" not in " ".join(arguments):
        print(f"{source} is not compiled as a kernel: {' '.join(arguments)}", file=sys.stderr)
        return 1
    if not _LAUNCHER.search(source.read_text()):
        print(f"{source} does not define LaunchOp, which op_torch.cpp calls", file=sys.stderr)
        return 1
    language = host.index("-x")
    del host[language : language + 2]
    with tempfile.TemporaryDirectory() as folder:
        stub = Path(folder) / "launch.cpp"
        stub.write_text(_HOST_SIDE)
        return subprocess.run([compiler, f"-I{source.parent}", *host[:-1], str(stub)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
