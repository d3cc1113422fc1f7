"""Which knowledge a task needs: the kind of kernel that the author would launch for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from attrs import frozen

from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.products import multiply_adds
from evokernel_core.targets.ascendc.author import initial, launched
from evokernel_core.targets.ascendc.kernels.family import Cores
from evokernel_core.targets.ascendc.programs import Launched


@frozen
class KernelKind:
    """``family`` (of the schedule) and ``cores`` are those of the kernel that is hardest to write: of the
    costliest on cube cores where there is one, of the costliest otherwise. ``units`` are the cores of the
    whole launch. ``family`` is empty where the author has no kernel for the task."""

    family: str
    cores: Cores
    units: Cores


def kind_of(task: KernelTask, chip: Chip) -> KernelKind:
    """The kind of a task: what its author declares, or the cores that its operations call for where no
    family covers them."""
    return _kind_of(ById(task), chip)


@lru_cache(maxsize=64)
def _kind_of(key: ById, chip: Chip) -> KernelKind:
    task = key.task
    try:
        return _of_kernels(launched(task, initial(task, chip), chip))
    except PlanError:
        has_products = any(multiply_adds(node, task.graph, task.sizes) for node in task.graph.nodes)
        cores = Cores.BOTH if has_products else Cores.VECTOR
        return KernelKind("", cores, cores)


def _of_kernels(kernels: Sequence[Launched]) -> KernelKind:
    on_cube = [kernel for kernel in kernels if kernel.cores is not Cores.VECTOR]
    hardest = max(on_cube or kernels, key=lambda item: item.us)
    all_cores = {kernel.cores for kernel in kernels}
    units = hardest.cores if len(all_cores) == 1 else Cores.BOTH
    return KernelKind(hardest.family, hardest.cores, units)
