"""What judges kernels in AscendC: the twin everywhere, CANN where an NPU is, bisheng beside the twin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evokernel_core.compiler.author import KernelAuthor


def _twin(author: KernelAuthor, python: str) -> Any:
    """The twin, which asks bisheng too where that works."""
    from evokernel_core.targets.ascendc.backends.bisheng import WithBisheng, find_gate
    from evokernel_core.targets.ascendc.backends.twin import TwinBackend

    twin = TwinBackend(author)
    toolkit = find_gate()
    return WithBisheng(twin, toolkit) if toolkit else twin


def _cann(author: KernelAuthor, python: str) -> Any:
    from evokernel_core.targets.ascendc.backends.cann import CannBackend
    from evokernel_core.targets.ascendc.backends.cann_tools import find_tools

    return CannBackend(author, find_tools(python))


BACKENDS: Mapping[str, Callable[[KernelAuthor, str], Any]] = {"twin": _twin, "cann": _cann}


def signature(backend: str) -> str:
    """The compiler of the vendor's that judges beside the twin, where there is one."""
    from evokernel_core.targets.ascendc.backends.bisheng import find_gate, gate_name

    return gate_name(find_gate() if backend == "twin" else None)
