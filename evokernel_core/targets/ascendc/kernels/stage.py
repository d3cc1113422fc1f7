"""One kernel as a family makes it: the cores that are built in the IR, and what stands around them."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve, frozen

from evokernel_core.targets.ascendc.ir.expr import Expr
from evokernel_core.targets.ascendc.ir.nodes import Kernel
from evokernel_core.targets.ascendc.kernels.family import VECTORS_ALONE, Cores, KernelFacts


@frozen
class Added:
    """What a text beside a kernel of the IR adds to its tiling: ``constants`` of tiling.h, ``fields`` of
    OpTiling and the statements that fill them (``computed``), a condition under which ComputeTiling
    ``refuses``, where there is one, and statements behind all others (``blocks``). ``symbols``: those of the
    task that these mention."""

    constants: tuple[str, ...]
    fields: tuple[str, ...]
    computed: tuple[str, ...]
    refuses: str
    blocks: tuple[str, ...]
    symbols: frozenset[str]


@frozen
class Printed:
    """A class that is printed from the IR: its ``text``, and what its Init is given before the tiling."""

    text: str
    arguments: str


@frozen
class Texts:
    """Parts of tiling.h and the kernel as templates give them: see ``StageText``."""

    kernel: str
    settings: str = ""
    compute: str = ""


@frozen(eq=False)
class Around:
    """The cores of a stage that are text. ``text``: all of the kernel, given the class ``class_name`` of the
    cores in the IR; where something is ``added``, the tiling is that of the kernel in the IR."""

    class_name: str
    text: Callable[[Printed], Texts]
    facts: KernelFacts
    added: Added | None = None


@frozen(eq=False)
class KernelStage:
    """``cubes`` and ``vectors``: the kernels of each cube core and of each vector core, None for cores that
    do not take part, or are text ``around`` the others.

    Where both take part, vector cores take up results that cube cores hand over through rings, or make of a
    turn's results what the rest of it reads; or, where they take ``workspace_bytes`` on the host, they write,
    chunk by chunk, what all cube cores read. The fields of their tiling are among those of the cube cores.
    """

    cubes: Kernel | None = None
    vectors: Kernel | None = None
    workspace_bytes: Expr | None = None
    around: Around | None = None

    @property
    def kernel(self) -> Kernel:
        """That of the cores which decide how the work is cut: of the cube cores, where they take part."""
        kernel = self.cubes or self.vectors
        assert kernel is not None
        return kernel

    @property
    def facts(self) -> KernelFacts:
        """What its text declares, or what the nodes of the IR are."""
        if self.around is not None:
            return self.around.facts
        if self.cubes is None:
            return facts_of_vectors(self.kernel)
        if self.vectors is not None and self.workspace_bytes is None:
            headers = ("cmath",) if self.vectors.roots() else ()
            numbers = self.vectors.reads_numbers
            return KernelFacts(Cores.BOTH, False, True, numbers, headers)
        if self.vectors is not None:
            return KernelFacts(Cores.BOTH, waits_for_all=True, uses_workspace=True)
        return KernelFacts(Cores.CUBE)


def facts_of_vectors(kernel: Kernel) -> KernelFacts:
    """What the nodes of a kernel of vector cores alone are."""
    own = bool(kernel.workspaces or kernel.common)
    return evolve(
        VECTORS_ALONE, reads_numbers=kernel.reads_numbers, uses_workspace=own, waits_for_all=kernel.meets
    )


def with_vectors(cubes: Kernel, vectors: Kernel) -> KernelStage:
    """Cube cores, and vector cores with fields of their own, which come behind."""
    return KernelStage(evolve(cubes, params=(*cubes.params, *vectors.params)), vectors)
