"""A problem's file as PyTorch runs it: its model, its inputs, and what a task's inputs are of them.

Imports torch, and runs the file: in processes of their own.
"""

from __future__ import annotations

import ast
import contextlib
import fcntl
import gc
import importlib.util
import inspect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

SEED = 1234
THREADS = 1
"""Of PyTorch on the host, in every process: torch.compile looks its cache up by them."""
_NUMBERS = itertools.count()


class Opened:
    """The model of a file on a device, with the inputs of one call; no gradients."""

    def __init__(self, torch: Any, path: str, device: str) -> None:
        """Raises what the file raises, and torch's errors."""
        self.torch, self._device = torch, device
        self._module = module_of(path)
        self.model = self.made(self._module.Model)
        with torch.device(device):
            self.inputs = [_moved(one, device) for one in self._module.get_inputs()]

    def made(self, kind: Any) -> Any:
        """A model of a class, from the arguments and the seed of the file's own. Raises what it raises."""
        self.torch.manual_seed(SEED)
        with self.torch.device(self._device):
            return kind(*self._module.get_init_inputs()).to(self._device)

    def arguments(self) -> dict[str, Any]:
        """What the file's model is made with, by name."""
        given = self._module.get_init_inputs()
        return dict(inspect.signature(self._module.Model).bind(*given).arguments)

    def names(self) -> dict[str, Any]:
        """What the expressions of a task's inputs are made of."""
        bound = inspect.signature(self.model.forward).bind(*self.inputs)
        bound.apply_defaults()
        return {**bound.arguments, "self": self.model, "torch": self.torch}

    def value(self, expression: str) -> Any:
        """An input of the task. Raises what evaluating it raises."""
        self.torch.manual_seed(SEED)
        return eval(expression, self.names())  # of our own capture's, over the file that is run anyway


def module_of(path: str) -> Any:
    """A file, run as a module of its own. Raises what it raises."""
    spec = importlib.util.spec_from_file_location(f"problem_{next(_NUMBERS)}", Path(path))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _moved(value: Any, device: str) -> Any:
    return value.to(device) if hasattr(value, "to") else value


def is_drawn(expression: str) -> bool:
    """Whether an input is no tensor that the caller has, but one that is made for the call."""
    return any(isinstance(node, ast.Call) for node in ast.walk(ast.parse(expression, mode="eval")))


def scalars(opened: Opened, inputs: Sequence[Mapping[str, Any]]) -> list[float]:
    """The run-time numbers of a task, in its order."""
    return [float(opened.value(one["expression"])) for one in inputs if one["kind"] == "scalar"]


def forget(torch: Any) -> None:
    """Gives back the memory of what nobody has any more, and what was compiled."""
    torch._dynamo.reset()
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@contextlib.contextmanager
def alone(path: str) -> Iterator[TextIO]:
    """While nobody else who asks for it has the device; what ``lent`` takes."""
    with Path(path).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


@contextlib.contextmanager
def lent(held: TextIO) -> Iterator[None]:
    """While others may have the device that ``alone`` holds."""
    fcntl.flock(held, fcntl.LOCK_UN)
    try:
        yield
    finally:
        fcntl.flock(held, fcntl.LOCK_EX)
