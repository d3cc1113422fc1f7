"""The templates of families whose kernels are one shape with parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from evokernel_core.ascendc.kernels.family import KernelFacts, StageText
from evokernel_core.ascendc.lowering.program import camel
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.task import KernelTask
from evokernel_core.twin.api import most_of

RAW = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}
"""The C++ type that moves elements of so many bytes, whatever they are."""
_RESULTS = ("output",)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.globals["most_of"] = most_of  # limits of instructions, from the table of the interface
    return environment


def render(template: str, **context: Any) -> str:
    """The text of a template, named by its family's folder: ``matmul/kernel``."""
    return _environment().get_template(f"{template}.jinja").render(**context)


def kernel_text(form: str, name: str, facts: KernelFacts, **context: Any) -> StageText:
    """A kernel from its two templates: ``sort`` has ``sort/tiling`` and ``sort/kernel``, ``scan/rows`` has
    ``scan/rows_tiling`` and ``scan/rows_kernel``."""
    context = {"class_name": class_name(name), **context, "name": name}
    stem = f"{form}_" if "/" in form else f"{form}/"
    tiling, kernel = render(f"{stem}tiling", **context), render(f"{stem}kernel", **context)
    return StageText(tiling, kernel, f"{name}_kernel", facts)


def class_name(name: str, suffix: str = "Kernel") -> str:
    """``row_sum`` becomes ``RowSumKernel``."""
    return "".join(part.capitalize() for part in name.split("_") if part) + suffix


def symbols_in(task: KernelTask, texts: Iterable[str]) -> list[tuple[int, str]]:
    """The symbols that C++ expressions mention, each with its place among the sizes."""
    joined = " ".join(texts)
    words = set("".join(char if char.isalnum() or char == "_" else " " for char in joined).split())
    return [(i, symbol.name) for i, symbol in enumerate(task.symbols) if symbol.name in words]


def tensors_of(task: KernelTask) -> list[str]:
    """The names of the inputs that a kernel takes addresses of."""
    return [item.name for item in task.graph.inputs if item.kind is not InputKind.SCALAR]


def parameter(name: str, results: Sequence[str] = _RESULTS) -> str:
    """The C++ name of an input, unlike those of the results."""
    return f"{camel(name)}Input" if camel(name) in results else camel(name)


def parameters_of(task: KernelTask, results: Sequence[str] = _RESULTS) -> str:
    """The parameters of a kernel: the addresses of inputs under their own names, and of results."""
    return addresses(*(parameter(name, results) for name in tensors_of(task)), *results)


def addresses(*names: str) -> str:
    """Addresses in device memory as C++ declares parameters."""
    return ", ".join(f"GM_ADDR {name}" for name in names)
