"""Kernels that others published for a suite's problems, built as a problem's own model is.

A file holds a class ``ModelNew``, with the arguments of the problem's ``Model`` (AdaExplore and whatever is
in KernelBench's form), or a function ``kernel_function`` (KernelAgent's). Runs the file: in processes of
their own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.measuring import flags
from benchmarks.measuring.files import SEED, Opened, module_of

PLACES = (
    "level{level}/{number}.py",
    "level{level}/{name}.py",
    "L{level}/{name}/composed_kernel.py",
    "L{level}/{name}/final_kernel.py",
    "L{level}/{name}/kernel_code.py",
)
"""Where a folder may have a problem's kernel: AdaExplore's layout, KernelBench's, KernelAgent's."""


def file_of(folder: Path, level: int, name: str) -> Path | None:
    """A problem's kernel, None where the folder has none."""
    number = name.split("_", maxsplit=1)[0]
    files = (folder / place.format(level=level, name=name, number=number) for place in PLACES)
    return next((file for file in files if file.exists()), None)


class Other:
    """A published kernel beside an opened problem. ``parameters`` says how it got the model's, ``flags`` has
    those of PyTorch that its file switches on, in its first call at the latest."""

    def __init__(self, torch: Any, path: str, opened: Opened) -> None:
        """Raises ValueError where the file is of no known form, and what the file raises."""
        self._torch, self._opened = torch, opened
        flags.write(torch, flags.NONE)
        module = module_of(path)
        reader = next((read for name, read in READERS.items() if hasattr(module, name)), None)
        if reader is None:
            raise ValueError(f"the file has none of {', '.join(READERS)}")
        self.call, self.parameters = reader(torch, module, opened)
        self.flags = dict[str, bool]()

    def first(self) -> None:
        """Calls it on other values than the problem's: it tunes itself, and what it stores of this call's
        results is wrong in the next."""
        self._torch.manual_seed(SEED)
        self.call(*(_rolled(self._torch, one) for one in self._opened.inputs))
        self.flags = flags.switched_on(self._torch)

    def results(self) -> Any:
        """What it returns for copies of the problem's inputs."""
        self._torch.manual_seed(SEED)
        inputs = (one.clone() if hasattr(one, "clone") else one for one in self._opened.inputs)
        return self.call(*inputs)


def _rolled(torch: Any, value: Any) -> Any:
    if not hasattr(value, "clone") or not value.dim():
        return value
    return torch.roll(value, 1, 0) if value.shape[0] > 1 else value.flip(-1)


def _model(torch: Any, module: Any, opened: Opened) -> tuple[Callable[..., Any], str]:
    model = opened.made(module.ModelNew)
    return model, adopt(torch, model, opened.model)


def adopt(torch: Any, model: Any, source: Any) -> str:
    """Gives a model the parameters and buffers of another: by name and shape; parameters that are left by
    position where all their shapes agree. Says how, or which it has no place for."""
    given, wanted = _tensors(model), _tensors(source)
    pairs = [(given.pop(name), wanted.pop(name)) for name in [*wanted] if _fits(given, wanted, name)]
    rest = [wanted[name] for name, _ in source.named_parameters() if name in wanted]
    own = [given[name] for name, _ in model.named_parameters() if name in given]
    by_position = bool(rest) and [one.shape for one in own] == [one.shape for one in rest]
    if by_position:
        pairs += zip(own, rest, strict=True)
    # what a model derived of its parameters when it was made would be stale where a copy changes them
    changed = [pair for pair in pairs if pair[0].dtype != pair[1].dtype or not torch.equal(*pair)]
    for one, other in changed:
        one.data.copy_(other.data)
    if rest and not by_position:
        names = [name for name, _ in source.named_parameters() if name in wanted]
        return f"no place for {', '.join(names)}"[:300]
    how = "by position" if by_position else "by name"
    return f"copied {how}" if changed else f"the same as drawn, {how}"


def _tensors(model: Any) -> dict[str, Any]:
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def _fits(given: Mapping[str, Any], wanted: Mapping[str, Any], name: str) -> bool:
    return name in given and given[name].shape == wanted[name].shape


def _function(torch: Any, module: Any, opened: Opened) -> tuple[Callable[..., Any], str]:
    """A function of the inputs; what it takes behind them are arguments of the model by name, and its
    parameters in their order."""
    function = module.kernel_function
    left = [one.detach().clone() for one in opened.model.parameters()]
    arguments, rest = opened.arguments(), list[Any]()
    for place, one in enumerate(inspect.signature(function).parameters.values()):
        if one.kind is one.VAR_POSITIONAL:
            rest += left
        if one.kind is not one.POSITIONAL_OR_KEYWORD:
            break
        if place < len(opened.inputs):
            continue
        if one.name not in arguments and not left:
            break
        rest.append(arguments[one.name] if one.name in arguments else left.pop(0))
    return lambda *inputs: function(*inputs, *rest), "arguments by name, parameters by position"


READERS: Mapping[str, Callable[[Any, Any, Opened], tuple[Callable[..., Any], str]]] = {
    "ModelNew": _model,
    "kernel_function": _function,
}
"""One for each form, by the name that a file of it defines."""
