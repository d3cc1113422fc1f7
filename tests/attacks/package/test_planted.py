"""Files beside those of a kernel package want to be imported, built or loaded; kernel.json names others."""

from __future__ import annotations

import importlib
import importlib.util
import marshal
import os
import py_compile
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from evokernel_core.foreign import read_foreign_object
from evokernel_core.package.integrity import foreign, foreign_words, sealed
from evokernel_core.package.write import place_package
from evokernel_core.targets.ascendc.package.packaging import build_file
from tests.attacks import Attack, each

NAME = "softmax_1"
FILES = {
    "__init__.py": "from .call import holds, run\n\n__all__ = ['holds', 'run']\n",
    "call.py": "def holds():\n    return True\n\n\ndef run():\n    return 'honest'\n",
    "op_kernel.cpp": "// nothing\n",
    "tiling.h": "// nothing\n",
}
EVIL = (
    "import sys\nsys.planted = True\n\n\ndef holds():\n    return True\n\n\ndef run():\n    return 'evil'\n"
)
EXTENSION = sysconfig.get_config_var("EXT_SUFFIX")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A package in a root that Python imports from; guards.py without torch."""
    found = place_package(tmp_path, NAME, {**FILES, "kernel.json": sealed({"name": NAME}, FILES)})
    (found.parent / "guards.py").write_text("def calls():\n    return {}\n")
    finders, known = list(sys.meta_path), dict(sys.modules)
    # packages of another folder, which an earlier test of this process has imported
    sys.meta_path[:] = [finder for finder in finders if not is_of_packages(type(finder).__module__)]
    for name in filter(is_of_packages, known):
        del sys.modules[name]
    sys.path.insert(0, str(tmp_path))
    importlib.invalidate_caches()
    yield found
    sys.path.remove(str(tmp_path))
    sys.meta_path[:] = finders
    for name in sys.modules.keys() - known.keys():
        del sys.modules[name]
    sys.modules.update(known)
    sys.__dict__.pop("planted", None)


def is_of_packages(module: str) -> bool:
    return module.split(".", maxsplit=1)[0] == "evokernel_kernels"


def imported() -> ModuleType:
    return importlib.import_module(f"evokernel_kernels.{NAME}")


def bytecode(file: Path, *, unchecked: bool = False) -> None:
    """The cached bytecode of another text than the file's, as Python would take it."""
    cached = Path(importlib.util.cache_from_source(str(file)))
    cached.parent.mkdir(exist_ok=True)
    code = marshal.dumps(compile(EVIL, str(file), "exec"))
    head = importlib.util.MAGIC_NUMBER
    if unchecked:
        cached.write_bytes(head + (1).to_bytes(4, "little") + b"\0" * 8 + code)
        return
    stat = file.stat()
    times = (int(stat.st_mtime) & 0xFFFFFFFF, stat.st_size & 0xFFFFFFFF)
    cached.write_bytes(head + b"\0" * 4 + b"".join(item.to_bytes(4, "little") for item in times) + code)


def legacy(folder: Path) -> None:
    py_compile.compile(str(written(folder / "evil.py")), cfile=str(folder / "call.pyc"), doraise=True)
    (folder / "evil.py").unlink()


def written(file: Path) -> Path:
    file.write_text(EVIL)
    return file


def folder_of_module(folder: Path) -> None:
    (folder / "call").mkdir()
    written(folder / "call" / "__init__.py")


def link(folder: Path) -> None:
    (folder / "call.py").unlink()
    (folder / "call.py").symlink_to(written(folder.parent / "elsewhere.py"))


PLANTED: dict[str, Callable[[Path], object]] = {
    "bytecode": lambda folder: bytecode(folder / "call.py"),
    "bytecode-of-the-package": lambda folder: bytecode(folder / "__init__.py"),
    "bytecode-that-nobody-checks": lambda folder: bytecode(folder / "__init__.py", unchecked=True),
    "bytecode-of-the-guards": lambda folder: bytecode(folder.parent / "guards.py"),
    "bytecode-in-the-modules-place": legacy,
    "library-of-a-module": lambda folder: (folder / f"call{EXTENSION}").write_bytes(b"\x7fELF"),
    "library-of-the-package": lambda folder: (folder / f"__init__{EXTENSION}").write_bytes(b"\x7fELF"),
    "library-of-the-guards": lambda folder: (folder.parent / f"guards{EXTENSION}").write_bytes(b"\x7fELF"),
    "folder-of-a-module": folder_of_module,
    "module-beside-the-package": lambda folder: written(folder.parent / f"{NAME}.py"),
    "sitecustomize": lambda folder: written(folder / "sitecustomize.py"),
    "torch": lambda folder: written(folder / "torch.py"),
}
HONEST = "the digested source alone runs"


@each([Attack(name, "to be run in the place of a module", HONEST, plant) for name, plant in PLANTED.items()])
def test_what_the_manifest_does_not_name(attack: Attack, folder: Path) -> None:
    attack.given(folder)
    assert imported().run() == "honest"
    assert not hasattr(sys, "planted")


def test_python_itself_would_run_them(folder: Path) -> None:
    """No attack: without our finder the planted bytecode does run, so that the others mean something."""
    bytecode(folder / "call.py")
    (folder.parent / "__init__.py").write_text("")
    assert imported().run() == "evil"


CHANGED: dict[str, Callable[[Path], object]] = {
    "other-text": lambda folder: written(folder / "call.py"),
    "other-package": lambda folder: written(folder / "__init__.py"),
    "link": link,
    "no-manifest": lambda folder: (written(folder / "__init__.py"), (folder / "kernel.json").unlink()),
    "pipe": lambda folder: ((folder / "call.py").unlink(), os.mkfifo(folder / "call.py")),
    "manifest-pipe": lambda folder: ((folder / "kernel.json").unlink(), os.mkfifo(folder / "kernel.json")),
    "no-file": lambda folder: (folder / "call.py").unlink(),
    "deep-manifest": lambda folder: (
        written(folder / "__init__.py"),
        (folder / "kernel.json").write_text("[" * 100_000),
    ),
}


@each(
    [
        Attack(name, "to be run though it was changed", "it is refused", plant)
        for name, plant in CHANGED.items()
    ]
)
def test_a_changed_package_is_refused_before_it_runs(attack: Attack, folder: Path) -> None:
    """The package's own check is not asked: it is what was changed."""
    attack.given(folder)
    with pytest.warns(UserWarning, match="was changed after it was verified"):
        found = imported()
    assert found.holds(1, 2) is False
    assert not hasattr(sys, "planted")


IN_ITS_PLACE: dict[str, Callable[[Path], object]] = {
    "module": lambda folder: written(folder.parent / f"{NAME}.py"),
    "bytecode": lambda folder: py_compile.compile(
        str(written(folder.parent / "evil.py")), cfile=str(folder.parent / f"{NAME}.pyc"), doraise=True
    ),
    "library": lambda folder: (folder.parent / f"{NAME}{EXTENSION}").write_bytes(b"\x7fELF"),
    "link-to-nothing": lambda folder: (written(folder.parent / f"{NAME}.py"), folder.symlink_to("nowhere")),
}


@each(
    [
        Attack(name, "to be taken for the package that was deleted", "there is no such package", plant)
        for name, plant in IN_ITS_PLACE.items()
    ]
)
def test_what_lies_where_a_package_was(attack: Attack, folder: Path) -> None:
    shutil.rmtree(folder)
    attack.given(folder)
    with pytest.raises(ModuleNotFoundError, match="There is no kernel package"):
        imported()
    assert not hasattr(sys, "planted")


@pytest.mark.parametrize("name", ["evil", "test_op", "sitecustomize"])
def test_a_module_that_the_manifest_does_not_name(name: str, folder: Path) -> None:
    """Wants to be imported by its name."""
    written(folder / f"{name}.py")
    imported()
    with pytest.raises(ModuleNotFoundError, match="is not part of the package"):
        importlib.import_module(f"evokernel_kernels.{NAME}.{name}")
    assert not hasattr(sys, "planted")


def test_a_file_that_changes_while_it_is_imported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wants to be another one between the look at its digest and its compilation."""
    importlib.import_module("evokernel_kernels")
    root = sys.modules["evokernel_kernels"]
    monkeypatch.setattr(root, "digests", lambda _: (written(folder / "__init__.py"), SEALED)[1])
    with pytest.raises(ImportError, match="changed while it was imported"):
        imported()
    assert not hasattr(sys, "planted")


SEALED = {"__init__.py": "0" * 64}


def test_what_is_foreign_is_named(folder: Path) -> None:
    """Wants to lie there unseen."""
    manifest = read_foreign_object(folder / "kernel.json")
    assert foreign_words(folder, manifest) == ""
    (folder / "build").mkdir()
    (folder / "__pycache__").mkdir()
    (folder / "evil.so").write_bytes(b"")
    (folder / "\x1b[31m").symlink_to("/etc/passwd")
    assert set(foreign(folder, manifest)) == {"__pycache__", "evil.so", "\x1b[31m"}
    said = foreign_words(folder, manifest)
    assert "softmax_1/evil.so" in said and said.startswith("Not part of the package: ") and said.isprintable()


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
@pytest.mark.parametrize("planted", ["kernel_operator.h", "ATen", "evil.cpp", ""])
def test_a_header_beside_the_kernel_is_not_built(planted: str, folder: Path, tmp_path: Path) -> None:
    """Wants to be taken for one of CANN's; the build must say so, and nothing of it without one."""
    (folder / "CMakeLists.txt").write_text(build_file(NAME))
    (folder / "__pycache__").mkdir()
    (folder / "build").mkdir()
    if planted:
        (folder / planted).mkdir() if planted == "ATen" else (folder / planted).write_text("#error evil\n")
    ran = subprocess.run(
        ["cmake", "-S", str(folder), "-B", str(folder / "build")], capture_output=True, text=True, check=False
    )
    assert ran.returncode  # there is no compiler of CANN here
    assert ("Not part of the package" in ran.stderr) is bool(planted)
    assert planted in ran.stderr
