"""What is judged: folders of kernels of ours, and the samples of a checkout."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from asc_samples.cmake import CMakeError, Evaluator
from asc_samples.readme import ARCHITECTURE, Readme, read_readme, recipe, steps

from vendor_headers.rewriting import rewritten
from vendor_headers.toolchain import Toolchain, Unit, cores_of

_SOURCES = {".asc", ".cpp", ".h", ".hpp", ".cc", ".inc", ".txt", ".cmake"}
_KERNEL = "op_kernel.cpp"
_ENTRY = re.compile(r'^\s*#\s*include\s+"kernel_operator\.h"', re.MULTILINE)
_OPTION = re.compile(r"-D(\w+)(?::\w+)?=(.*)")


def kernel_folders(roots: list[Path]) -> Iterator[tuple[str, Path]]:
    """Every folder with an op_kernel.cpp below the roots, in order, with a name."""
    for root in roots:
        for file in sorted(root.rglob(_KERNEL)):
            yield str(file.parent.relative_to(root.parent)), file.parent


def kernel_unit(name: str, folder: Path, number: int, toolchain: Toolchain) -> Unit:
    """A copy of a folder of ours, ready to be judged."""
    target = toolchain.copies / f"kernel{number}"
    _copy(folder, target)
    return _unit(name, target / _KERNEL, target, kernel_only=True)


def text_unit(name: str, texts: dict[str, str], toolchain: Toolchain) -> Unit:
    """A kernel that is given as texts by name of file."""
    target = toolchain.copies / name
    target.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        (target / file).write_text(rewritten(text))
    return _unit(name, target / _KERNEL, target, kernel_only=True)


def sample_units(root: Path, toolchain: Toolchain) -> Iterator[Unit]:
    """The kernels of the samples below a folder that include kernel_operator.h, whose README does not leave
    out Atlas A2 and whose build file makes a program from .asc files for it."""
    taken: list[Path] = []
    found = sorted(root.rglob("CMakeLists.txt"), key=lambda path: (len(path.parts), path))
    for number, file in enumerate(found):
        sample = file.parent
        if any(parent in taken for parent in file.parents):
            continue
        taken.append(sample)
        readme = read_readme(sample)
        if readme.names_a2() is False or not _uses_entry(sample):
            continue
        target = toolchain.copies / f"sample{number}"
        _copy(sample, target)
        yield from _programs(str(sample.relative_to(root)), target, readme)


def _uses_entry(sample: Path) -> bool:
    """Whether a sample is one of the interface that kernel_operator.h declares."""
    sources = (path for path in sample.rglob("*") if path.suffix in _SOURCES)
    return any(_ENTRY.search(path.read_text(errors="replace")) for path in sources)


def _programs(name: str, folder: Path, readme: Readme) -> Iterator[Unit]:
    """A unit for each .asc file with a kernel of a sample's programs, with its macros and include folders."""
    options = {"CMAKE_ASC_ARCHITECTURES": ARCHITECTURE}
    for step in steps(recipe(readme), {}):
        if step.words[:1] == ("cmake",):
            options |= dict(match.groups() for word in step.words if (match := _OPTION.fullmatch(word)))
    try:
        targets = Evaluator(folder, folder, options).folder(folder).executables()
    except CMakeError:
        return  # refuses this architecture
    for target in targets:
        for file in target.sources:
            if file.suffix == ".asc" and file.is_file() and "__global__" in file.read_text():
                cores = cores_of(file.read_text())
                unit_name = f"{name}/{file.relative_to(folder)}"
                includes = (file.parent, *target.includes)
                yield Unit(unit_name, file, folder, False, tuple(target.defines), includes, cores)


def _unit(name: str, file: Path, folder: Path, *, kernel_only: bool) -> Unit:
    return Unit(name, file, folder, kernel_only, cores=cores_of(file.read_text()))


def _copy(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    for file in sorted(source.rglob("*")):
        if file.suffix in _SOURCES and file.is_file():
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            text = file.read_text(errors="replace")
            copy.write_text(text if file.suffix in (".txt", ".cmake") else rewritten(text))
