"""Another cut of a program: what follows a convolution element by element is done where its result is read.

A convolution's own kernel does it for free as long as vector cores have nothing else to do. Where images come
in chunks they have: the kernels behind take one chunk while cube cores compute the next, and a convolution
that leaves its epilogue to those keeps cube cores and vector cores apart. Transposed convolutions stay as
they are: vector cores lay out their inputs, and take part in each chunk anyway.
"""

from __future__ import annotations

from collections.abc import Iterator

from evokernel_core.compiler.coverage import view_ops
from evokernel_core.compiler.fusion.cuts import covered
from evokernel_core.compiler.fusion.partition import Group, pieces
from evokernel_core.compiler.fusion.records import Program
from evokernel_core.compiler.ops import CONVOLUTION
from evokernel_core.compiler.target import Target
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.device import Device
from evokernel_core.targets.ascendc.fusion.micro_batches import LEAST_SHARE


def with_later_epilogues(
    task: KernelTask, program: Program, device: Device, target: Target
) -> Program | None:
    """The program with convolutions whose epilogues are parts of the kernels that read them, or kernels of
    their own; None where there is no such program."""
    groups = program.groups
    for group in program.groups:
        if group in groups:  # else it has taken in the steps of one before it
            groups = next(_parted(task, groups, group, device, target), groups)
    return None if groups == program.groups else covered(task, groups, device, target)


def _parted(
    task: KernelTask, groups: tuple[Group, ...], group: Group, device: Device, target: Target
) -> Iterator[tuple[Group, ...]]:
    """The groups with one of them cut behind its convolution."""
    nodes = task.graph.nodes_by_name
    root = frozenset(name for name in group if nodes[name].op == CONVOLUTION.name)
    behind = group - root
    if len(root) != 1 or not behind:
        return
    (result,) = (nodes[name].outputs[0] for name in root)
    if result.nbytes(task.sizes) < device.l2_bytes // LEAST_SHARE:
        return
    reader = _only_reader(task, groups, group, view_ops(target))
    others = tuple(other for other in groups if other != group)
    if reader is not None:
        apart = tuple(other for other in others if other != reader)
        if covered(task, match := (*apart, root, behind | reader), device, target):
            yield match
    if covered(task, match := (*others, root, behind), device, target):
        yield match


def _only_reader(
    task: KernelTask, groups: tuple[Group, ...], group: Group, views: frozenset[str]
) -> Group | None:
    """The group that alone reads what another one makes, None where several do or the task returns it."""
    made = dict(zip(groups, pieces(task, groups, views), strict=True))
    outputs = set(made[group].outputs)
    if outputs & set(task.graph.outputs):
        return None
    readers = [other for other, piece in made.items() if outputs & set(piece.inputs)]
    return readers[0] if len(readers) == 1 else None
