"""What is judged: folders of kernels of ours, and the samples of a checkout."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from asc_samples.readme import read_readme

from vendor_headers.toolchain import Toolchain, Unit, cores_of, without_double_space

_SOURCES = {".asc", ".cpp", ".h", ".hpp", ".cc", ".inc"}
_KERNEL = "op_kernel.cpp"


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
        (target / file).write_text(without_double_space(text))
    return _unit(name, target / _KERNEL, target, kernel_only=True)


def sample_units(root: Path, toolchain: Toolchain) -> Iterator[Unit]:
    """The .asc files of the samples below a folder whose README lists Atlas A2."""
    taken: list[Path] = []
    found = sorted(root.rglob("CMakeLists.txt"), key=lambda path: (len(path.parts), path))
    for number, file in enumerate(found):
        sample = file.parent
        if any(parent in taken for parent in file.parents):
            continue
        taken.append(sample)
        if read_readme(sample).names_a2() is False:
            continue
        target = toolchain.copies / f"sample{number}"
        _copy(sample, target)
        for source in sorted(target.rglob("*.asc")):
            if "__global__" in source.read_text(errors="replace"):
                name = str(sample.relative_to(root) / source.relative_to(target))
                yield _unit(name, source, source.parent, kernel_only=False)


def _unit(name: str, file: Path, folder: Path, *, kernel_only: bool) -> Unit:
    return Unit(name, file, folder, kernel_only, (), cores_of(file.read_text(errors="replace")))


def _copy(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    for file in sorted(source.rglob("*")):
        if file.suffix in _SOURCES and file.is_file():
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(without_double_space(file.read_text(errors="replace")))
