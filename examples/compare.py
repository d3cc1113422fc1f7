"""Run two versions of a model file on the same inputs and compare what they compute: once as this machine
runs them, where without an NPU no guard holds, and once with EVOKERNEL_EMULATE=1, where kernels take part.

Usage: python compare.py ORIGINAL EDITED. What runs is the file's model on its get_inputs(), or, in a
file without get_inputs(), every function with an `# evokernel:` comment on inputs of those shapes.
Raises AssertionError where an output differs (by more than 1e-6, absolute and relative, without kernels; by
more than PyTorch's own tolerance of the dtype with them) or a kernel did not run, and whatever torch.export
raises where it refuses the edited code.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from evokernel_core.capture.annotation import TensorShape, parse_annotation
from evokernel_core.capture.finder import Document, find


class AsModule(torch.nn.Module):
    """A plain function in the clothes that torch.export wants."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def load(path: Path, name: str) -> ModuleType:
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def model_of(module: ModuleType) -> torch.nn.Module:
    """An instance of the class ``Model``, or of the last module class that the file defines."""
    classes = [
        item
        for item in vars(module).values()
        if inspect.isclass(item) and issubclass(item, torch.nn.Module) and item.__module__ == module.__name__
    ]
    chosen = next((item for item in classes if item.__name__ == "Model"), classes[-1])
    torch.manual_seed(0)
    model: torch.nn.Module = chosen(*module.get_init_inputs())
    return model.eval()


def cases(path: Path, original: ModuleType, edited: ModuleType) -> Iterator[tuple[Any, Any, tuple[Any, ...]]]:
    """What runs before, what runs after, and the inputs of both."""
    torch.manual_seed(1)
    if hasattr(original, "get_inputs"):
        yield model_of(original), model_of(edited), tuple(original.get_inputs())
        return
    for definition in find(Document(path.read_text())):
        if definition.kind == "function" and definition.annotation:
            values = parse_annotation(definition.annotation).values()
            inputs = tuple(
                torch.randn(*value.shape, dtype=getattr(torch, value.dtype))
                if isinstance(value, TensorShape)
                else value
                for value in values
            )
            name = definition.qualname
            yield AsModule(getattr(original, name)), AsModule(getattr(edited, name)), inputs


def kernels_of(module: ModuleType) -> set[str]:
    """The names of the kernels that a file imports."""
    return {name for name, value in vars(module).items() if hasattr(value, "holds") and hasattr(value, "run")}


def compare(path: Path, edited: Path, *, emulated: bool) -> None:
    module = load(edited, "edited")
    tolerance = {} if emulated else {"rtol": 1e-6, "atol": 1e-6}
    with torch.no_grad():
        for before, after, inputs in cases(path, load(path, "original"), module):
            expected = before(*inputs)
            torch.testing.assert_close(after(*inputs), expected, **tolerance)
            exported = torch.export.export(after, inputs).module()
            torch.testing.assert_close(exported(*inputs), expected, **tolerance)
    if emulated:
        ran = sys.modules["evokernel_kernels"].calls()
        idle = ", ".join(sorted(kernels_of(module) - set(ran)))
        assert not idle, f"The guards of {idle} held in no call."


def main() -> None:
    path, edited = Path(sys.argv[1]), Path(sys.argv[2])
    emulated = os.environ.get("EVOKERNEL_EMULATE") == "1"
    compare(path, edited, emulated=emulated)
    if not emulated:
        again = {**os.environ, "EVOKERNEL_EMULATE": "1"}
        sys.exit(subprocess.run([sys.executable, *sys.argv], env=again, check=False).returncode)


if __name__ == "__main__":
    main()
