"""The templates of families whose kernels are one shape with parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from jinja2 import Environment, FileSystemLoader

from evokernel_core.compiler.shapes.sizes import Extent
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.targets.ascendc.lowering.program import camel
from evokernel_core.templates import text_environment

RAW = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}
"""The C++ type that moves elements of so many bytes, whatever they are."""
_RESULTS = ("output",)


@cache
def _environment() -> Environment:
    here = Path(__file__).parent
    environment = text_environment(FileSystemLoader([here, here.parent / "print"]))
    environment.globals["most_of"] = most_of  # limits of instructions, from the table of the interface
    return environment


def render(template: str, **context: Any) -> str:
    """The text of a template, named by its family's folder, as ``recurrent/kernel``, or of the printer."""
    return _environment().get_template(f"{template}.jinja").render(**context)


def class_name(name: str, suffix: str = "Kernel") -> str:
    """``row_sum`` becomes ``RowSumKernel``."""
    return "".join(part.capitalize() for part in name.split("_") if part) + suffix


class Symbolic(Protocol):
    """What is written as C++ expressions over some of a task's symbols."""

    @property
    def symbols(self) -> frozenset[str]: ...


def symbols_of(task: KernelTask, written: Iterable[Symbolic]) -> list[tuple[int, str]]:
    """The symbols of what a text says, each with its place among the sizes."""
    used = frozenset().union(*(item.symbols for item in written))
    return [(i, symbol.name) for i, symbol in enumerate(task.symbols) if symbol.name in used]


def sized(
    task: KernelTask, sizes: Mapping[str, Extent | Sequence[Extent]], also: Iterable[Symbolic] = ()
) -> dict[str, Any]:
    """Sizes under their names as C++ expressions, and ``symbols`` with what these take, and what is written
    ``also``."""
    several = {key: [value] if isinstance(value, Extent) else list(value) for key, value in sizes.items()}
    texts = {
        key: value.cpp() if isinstance(value, Extent) else [each.cpp() for each in value]
        for key, value in sizes.items()
    }
    written = [each for items in several.values() for each in items]
    return {**texts, "symbols": symbols_of(task, [*written, *also])}


def tensors_of(task: KernelTask) -> list[str]:
    """The names of the inputs that a kernel takes addresses of."""
    return [operand.name for operand in task.graph.inputs if operand.kind is not InputKind.SCALAR]


def parameter(name: str, results: Sequence[str] = _RESULTS) -> str:
    """The C++ name of an input, unlike those of the results."""
    return f"{camel(name)}Input" if camel(name) in results else camel(name)


def parameters_of(task: KernelTask, results: Sequence[str] = _RESULTS) -> str:
    """The parameters of a kernel: the addresses of inputs under their own names, and of results."""
    return addresses(*(parameter(name, results) for name in tensors_of(task)), *results)


def addresses(*names: str) -> str:
    """Addresses in device memory as C++ declares parameters."""
    return ", ".join(f"GM_ADDR {name}" for name in names)
