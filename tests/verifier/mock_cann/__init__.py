"""Mocks of CANN's programs: scripts that speak the real protocol at the edge, and are nothing more.

``install`` lays them out as CANN does. What goes wrong is said in the variable ASCEND_MOCK, a list of words.
"""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path

from tests import warm

HERE = Path(__file__).parent
COMPILERS = "compiler/ccec_compiler/bin"


def install(root: Path, version: str = "9.0.0", driver: bool = True) -> dict[str, str]:
    """A toolkit below ``root``; returns the environment of a shell that called its set_env.sh."""
    compilers, tools = root / COMPILERS, root / "tools"
    for folder in (compilers, tools, root / "lib64"):
        folder.mkdir(parents=True)
    info = root / f"{platform.machine()}-linux"
    info.mkdir()
    (info / "ascend_toolkit_install.info").write_text(
        f"package_name=Ascend-cann-toolkit\nversion={version}\narch={platform.machine()}\n"
    )
    place(HERE / "bisheng.py", compilers / "bisheng")
    place(HERE / "msprof.py", tools / "msprof")
    if driver:
        place(HERE / "npu_smi.py", tools / "npu-smi")
    path = f"{compilers}:{tools}:/usr/bin:/bin"
    return {"ASCEND_HOME_PATH": str(root), "PATH": path, "LD_LIBRARY_PATH": str(root / "lib64")}


def place(script: Path, target: Path) -> Path:
    """The script under the name of the program that it stands for."""
    target.write_text(f"#!{sys.executable} -IS\n{script.read_text()}")
    target.chmod(0o755)
    return target


def python_with_torch_npu(folder: Path) -> Path:
    (folder / "python-with-numpy").symlink_to(warm.interpreter("numpy"))
    return place(HERE / "torch_npu_python.py", folder / "python-with-torch_npu")


def remove_compiler(root: Path) -> None:
    shutil.rmtree(root / COMPILERS)
