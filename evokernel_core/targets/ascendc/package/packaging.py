"""Packages of kernels in AscendC: a binding in C++, and the file that has CMake build a library of both."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attrs import frozen
from jinja2 import FileSystemLoader

from evokernel_core.domain.arguments import takes_lists
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.abi import FILES
from evokernel_core.package.packaging import DeviceWords, KernelGuard, PackagedKernel
from evokernel_core.package.schema import schema_arguments, schema_results
from evokernel_core.targets.ascendc.package import binding
from evokernel_core.templates import text_environment

_environment = text_environment(FileSystemLoader(Path(__file__).parent / "templates"))
WORDS = DeviceWords(
    "npu",
    one="NPU",
    kernel="an Ascend NPU kernel",
    absent="the kernel is not built (see CMakeLists.txt) or no NPU is present",
    is_there="guards.ON_NPU",
    only="the kernel runs on an Ascend NPU only",
    ready=Sentence(
        "The kernel's package is built on this machine and its files are the ones that were verified; until "
        "then your own code runs."
    ),
)


@frozen
class AscendCPackaging:
    """``package.packaging.Packaging``."""

    words: DeviceWords = WORDS
    names: tuple[str, ...] = FILES

    def packaged(
        self, name: str, task: KernelTask, source: KernelSource, beside: Iterable[str]
    ) -> PackagedKernel:
        schema = {
            "name": name,
            "lists": takes_lists(task.graph),
            "schema_arguments": schema_arguments(task),
            "schema_results": schema_results(task),
        }
        return PackagedKernel(
            {
                "op_torch.cpp": render("op_torch.cpp", **schema, **binding.context(task)),
                "CMakeLists.txt": build_file(name, beside),
            }
        )

    def guards(self, task: KernelTask, source: KernelSource) -> tuple[KernelGuard, ...]:
        return ()


def build_file(name: str, beside: Iterable[str] = ()) -> str:
    """The package's CMakeLists.txt; ``beside`` are files of a kernel in another language."""
    return render("CMakeLists.txt", name=name, beside=sorted(beside))


def render(template: str, **context: Any) -> str:
    """The text of a template of this folder."""
    return _environment.get_template(f"{template}.jinja").render(**context)
