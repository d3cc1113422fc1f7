"""Kernels that EvoKernel wrote and verified; one package each.

Modules of a package are compiled from the files that its kernel.json names, as they were when their digests were
checked. Nothing else in its folder runs: no cached bytecode, no library in a module's place, no other file.
"""

import json
import sys
import warnings
from hashlib import sha256
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path


class SourceOnly(SourceFileLoader):
    """Compiles the text of a file; where it is digested, only if it is that text."""

    def __init__(self, name, path, digest=None):
        super().__init__(name, path)
        self._digest = digest

    def get_code(self, fullname):
        data = self.get_data(self.path)
        if self._digest is not None and sha256(data).hexdigest() != self._digest:
            raise ImportError(f"{self.path} changed while it was imported; try again.", name=fullname)
        return self.source_to_code(data, self.path)


class Refused(SourceFileLoader):
    """The module of a package that was changed: its kernel never stands for the original code."""

    def get_code(self, fullname):
        text = "def holds(*arguments, **named):\n    return False\n\n\nrun = holds\n__all__ = ['holds', 'run']\n"
        return self.source_to_code(text, "<changed package>")


class Kernels:
    """Finds the modules of this package's packages, before anybody else does."""

    def __init__(self, name, folder):
        self.name, self.folder = name, Path(folder)

    def find_spec(self, fullname, path=None, target=None):
        root, _, below = fullname.partition(".")
        if root != self.name or not below:
            return None
        if below in ("guards", "report"):
            return _spec(fullname, self.folder / f"{below}.py", SourceOnly)
        package, _, module = below.partition(".")
        folder = self.folder / package
        if not folder.is_dir():  # a file may lie where the package was: nobody else may look for it
            raise ModuleNotFoundError(f"There is no kernel package {folder}.", name=fullname)
        files = digests(folder)
        file = f"{module or '__init__'}.py"
        if not module and file not in files:
            return _spec(fullname, folder / file, Refused, folder=folder)
        if file not in files:
            raise ModuleNotFoundError(f"{file} is not part of the package {folder}.", name=fullname)
        return _spec(fullname, folder / file, SourceOnly, files[file], folder=None if module else folder)


def _spec(fullname, file, loader, *digest, folder=None):
    places = None if folder is None else [str(folder)]
    made = loader(fullname, str(file), *digest)
    return spec_from_file_location(fullname, file, loader=made, submodule_search_locations=places)


def digests(folder):
    """The digest of each file of a package by name; of none where one is not what was verified."""
    try:
        files = json.loads(_read(folder / "kernel.json"))["files"]
        changed = [name for name, known in files.items() if not _is_same(folder / name, known)]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        changed = ["kernel.json"]
    if not changed:
        return files
    warnings.warn(
        f"{folder.name}/{changed[0]} was changed after it was verified; the original code runs: restore "
        f"the file, make the kernel again, or judge it with `evokernel verify --changed {folder}`.",
        stacklevel=2,
    )
    return {}


def _is_same(path, known):
    try:
        return sha256(_read(path)).hexdigest() == known
    except OSError:
        return False


def _read(path):
    """A file of a package's own: no link, and no pipe, for which a program would wait without end."""
    if path.is_symlink() or not path.is_file():
        raise OSError(f"{path} is no file")
    return path.read_bytes()


def _find_ours():
    """Takes the place of a finder for another folder of this name, as tests may have imported one."""
    others = [finder for finder in sys.meta_path if type(finder).__qualname__ != Kernels.__qualname__]
    sys.meta_path[:] = [Kernels(__name__, Path(__file__).parent), *others]


_find_ours()

from evokernel_kernels.guards import calls  # noqa: E402 - found by ours

__all__ = ["calls"]
