"""Where the modules of this package went; it is gone with the next release.

What knows AscendC is in ``evokernel_core.targets.ascendc``, what any target needs is in
``evokernel_core.compiler`` and ``evokernel_core.package``. An import by the old name gives the module of the
new one, and says so.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

_RENAMED = {
    "print.package": "package.write",
    "kernels.matmul.problem": "compiler.problems.products",
    "kernels.convolution.geometry": "compiler.problems.convolution",
}


def new_name(name: str) -> str:
    """The name that a module of this package has now. Raises ModuleNotFoundError where there was none."""
    for place in _places(name.removeprefix(f"{__name__}.")):
        try:
            spec = find_spec(f"evokernel_core.{place}")
        except ModuleNotFoundError:
            continue
        if spec is not None:
            return spec.name
    raise ModuleNotFoundError(f"There is no module {name}.", name=name)


def _places(old: str) -> Iterator[str]:
    if old in _RENAMED:
        yield _RENAMED[old]
    yield from (f"targets.ascendc.{old}", f"compiler.{old}")
    if old.startswith("print."):
        yield f"package.{old.removeprefix('print.')}"
    if old.startswith("kernels."):
        yield f"compiler.problems.{old.removeprefix('kernels.').removesuffix('.problem')}"


class _Moved(MetaPathFinder, Loader):
    """Gives the modules of the new names under the old ones."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name.startswith(f"{__name__}.") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        new = new_name(spec.name)
        warnings.warn(f"{spec.name} is {new} now; import that.", DeprecationWarning, stacklevel=2)
        return importlib.import_module(new)

    def exec_module(self, module: ModuleType) -> None:
        """It was executed under its own name."""


sys.meta_path.insert(0, _Moved())  # in front of what would load a second module from the new place
