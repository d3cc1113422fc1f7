"""A kernel in Triton as its author writes it: jit functions, what they share, and their launches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve, field, frozen

from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.kernels.function import JitText
from evokernel_core.targets.triton.kernels.helpers import closed, helpers_of
from evokernel_core.targets.triton.launch import Launch, LibraryCall, Scratch
from evokernel_core.targets.triton.source import HEADER

DTYPES: Mapping[str, str] = {
    "float64": "tl.float64",
    "float32": "tl.float32",
    "float16": "tl.float16",
    "bfloat16": "tl.bfloat16",
    "int64": "tl.int64",
    "int32": "tl.int32",
    "int16": "tl.int16",
    "int8": "tl.int8",
    "uint8": "tl.uint8",
    "bool": "tl.int1",
}
"""A tensor's dtype in Triton's words."""


@frozen
class TritonKernel:
    """One kernel of a program. ``functions``: its jit functions.
    ``helpers``: names of functions of ``helpers.py`` that they call. ``launches`` speak of the part's own
    inputs, outputs and symbols; ``scratch`` is its own memory; ``requires`` the sizes that it takes."""

    functions: tuple[JitText, ...]
    launches: tuple[Launch | LibraryCall, ...]
    helpers: frozenset[str] = frozenset()
    scratch: tuple[Scratch, ...] = ()
    requires: tuple[str, ...] = field(default=())

    def renamed(self, tensors: Mapping[str, str]) -> TritonKernel:
        """The same with other names of tensors and scalars in its launches."""
        scratch = tuple(evolve(one, name=tensors.get(one.name, one.name)) for one in self.scratch)
        launches = tuple(_renamed(launch, tensors) for launch in self.launches)
        return evolve(self, scratch=scratch, launches=launches)


def _renamed(launch: Launch | LibraryCall, tensors: Mapping[str, str]) -> Launch | LibraryCall:
    if isinstance(launch, LibraryCall):
        return launch.renamed(tensors)
    return evolve(launch, arguments=tuple(tensors.get(word, word) for word in launch.arguments))


def kernel_text(summary: str, helpers: Iterable[str], functions: Iterable[JitText], gpu: Gpu) -> str:
    """The file ``kernel.py``: what it computes in a line, its imports, helpers and functions."""
    known = helpers_of(gpu)
    texts = [*(known[name] for name in closed(helpers)), *(function.text for function in functions)]
    parts = [f'"""{summary}"""\n\n{HEADER}', *dict.fromkeys(texts)]
    return "\n\n".join(part.strip("\n") + "\n" for part in parts)


def on_device(kernel: TritonKernel, gpu: Gpu) -> TritonKernel:
    """The kernel in launches of as many programs as a device takes, each of which does the work of several
    then."""
    if not gpu.programs:
        return kernel
    launches = (
        _few(launch, gpu.programs) if isinstance(launch, Launch) else launch for launch in kernel.launches
    )
    functions = tuple(function.in_loop() for function in kernel.functions)
    return evolve(kernel, functions=functions, launches=tuple(launches))


def _few(launch: Launch, most: int) -> Launch:
    (programs,) = launch.grid
    return evolve(launch, grid=(f"min({programs}, {most})",), arguments=(*launch.arguments, programs))
