"""Whether the packages of emitted kernels build, link and load: one for each kernel family.

    python benchmarks/link_check.py [--filter GLOB] [--jobs N] [--keep DIR]

Captures benchmarks/linking/functions.py, writes each kernel's package and builds its CMakeLists.txt with
CMake and the installed torch against a toolkit without code (benchmarks/linking/toolkit.py), so that nothing
may stay undefined; then torch loads the library and must know the operator. Faults are planted each time,
libraries left out of CMakeLists.txt and a kernel file without its launcher: they must be refused.

What it shows: the build files are valid, the binding compiles against torch, every symbol that it uses of
CANN and torch_npu is in a library that the package links, and the operator registers. What it cannot show:
that the real libraries export these symbols under these names, and anything of the kernel's compilation.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attrs import frozen
from linking.toolkit import Toolkit, make_toolkit

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.verdict import Verdict
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.package.write import placed
from evokernel_core.targets.ascendc.author import initial, write
from evokernel_core.targets.ascendc.target import ASCENDC
from evokernel_core.targets.packages import write_package

HERE = Path(__file__).parent
FUNCTIONS = HERE / "linking" / "functions.py"
LIBRARY = "tiling_api"
_LOAD = """\
import sys, torch
torch.ops.load_library(sys.argv[1])
getattr(torch.ops.evokernel, sys.argv[2]).default
"""


@frozen
class Package:
    """A written package: the function that it computes, its family and its folder."""

    function: str
    family: str
    folder: Path


@frozen
class Planted:
    """A package with a fault, and what the tools must say of it."""

    package: Package
    fault: str
    expected: str


def main() -> int:
    """Prints a line for each package and each fault; the status is 1 where one is not as it must be."""
    args = _arguments()
    tools = [tool for tool in ("cmake", "make", "g++") if shutil.which(tool) is None]
    if tools:
        print(f"{', '.join(tools)} not found; install cmake, make and g++.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="evokernel-link-") as scratch:
        root = args.keep or Path(scratch)
        toolkit = make_toolkit(root / "toolkit", str(shutil.which("g++")))
        packages = [item for item in packages_of(root) if fnmatch.fnmatch(item.function, args.filter)]
        faults = list(planted(packages[0], root / "planted"))
        with ThreadPoolExecutor(max_workers=args.jobs) as pool:
            built = list(pool.map(lambda item: build(item, toolkit), packages))
            refused = list(pool.map(lambda item: build(item.package, toolkit), faults))
    wrong = 0
    for package, error in zip(packages, built, strict=True):
        print(f"{package.function:12} {package.family:16} {'links and loads' if not error else 'FAILED'}")
        wrong += bool(error)
        print(error, end="\n" if error else "")
    for fault, error in zip(faults, refused, strict=True):
        found = fault.expected in error
        print(f"planted: {fault.fault}: {'refused' if found else f'NOT SEEN {error}'}")
        wrong += not found
    print(f"{len(packages)} packages, {len(faults)} planted faults, {wrong} not as they must be")
    return int(wrong > 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--filter", default="*", metavar="GLOB", help="functions to build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="build here and leave everything")
    return parser.parse_args()


def packages_of(root: Path) -> Iterator[Package]:
    """Writes the package of each function's kernel below ``root``."""
    chip = load_chip("ascend910b1")
    with AgentClient(sys.executable, evaluation=True) as client:
        for region in client.capture(FUNCTIONS, None, covered_ops(ASCENDC), whole=True):
            if region.task is None:
                raise SystemExit(f"{region.symbol} has no kernel: {region.reason}")
            source = write(region.task, initial(region.task, chip), chip)
            verdict = Verdict(region.task.task_id, source.source_id, "link check", ())
            folder = write_package(root, region.task, placed(region), source, verdict)
            yield Package(region.symbol.partition(".")[0].lower(), source.strategy.family, folder)


def planted(package: Package, root: Path) -> Iterator[Planted]:
    """Copies of a package with a fault each."""
    edits = (
        ("CMakeLists.txt", f" {LIBRARY} ", " ", f"{LIBRARY} is not linked", "platform_ascendc::"),
        ("CMakeLists.txt", " torch_npu ", " ", "torch_npu is not linked", "c10_npu::"),
        (
            "op_kernel.cpp",
            "LaunchOp",
            "LaunchAll",
            "the launcher has another name",
            "does not define LaunchOp",
        ),
    )
    for number, (name, old, new, fault, expected) in enumerate(edits):
        folder = root / str(number) / package.folder.name
        shutil.copytree(package.folder, folder)
        text = (folder / name).read_text()
        if old not in text:
            raise SystemExit(f"{name} has no {old!r}: the planted fault is none.")
        (folder / name).write_text(text.replace(old, new))
        yield Planted(Package(package.function, package.family, folder), fault, expected)


def build(package: Package, toolkit: Toolkit) -> str:
    """Builds and loads a package; what went wrong, "" for nothing."""
    folder, target = package.folder, package.folder / "build"
    options = (
        f"-DASC_DIR={HERE / 'linking' / 'asc'}",
        f"-DPython3_EXECUTABLE={sys.executable}",
        "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,--no-undefined",
    )
    library = target / f"lib{folder.name}.so"
    for command in (
        ("cmake", "-S", str(folder), "-B", str(target), "-G", "Unix Makefiles", *options),
        ("cmake", "--build", str(target)),
        (sys.executable, "-c", _LOAD, str(library), folder.name),
    ):
        error = _run(command, toolkit)
        if error:
            return error
    return ""


def _run(command: Sequence[str], toolkit: Toolkit) -> str:
    environment = {**os.environ, **toolkit.environment(), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


if __name__ == "__main__":
    sys.exit(main())
