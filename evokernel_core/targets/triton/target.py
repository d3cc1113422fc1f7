"""Triton as a target: its families, and what becomes of a planned task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve, frozen

from evokernel_core.compiler.aten import ATTENTION
from evokernel_core.compiler.family import Family, Move
from evokernel_core.compiler.fusion.cuts import recuts
from evokernel_core.compiler.fusion.program import draft, joined
from evokernel_core.compiler.fusion.records import PROGRAM, Program
from evokernel_core.compiler.planned_task import PlannedTask
from evokernel_core.compiler.rewrites.attention import rewrite_mask
from evokernel_core.compiler.rewrites.recurrent import rewrites_with
from evokernel_core.compiler.rewrites.wide_attention import in_parts, row_widths
from evokernel_core.compiler.rewrites.writer import GraphWriter
from evokernel_core.compiler.target import Passes
from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.domain.verdict import Baseline, GateResult
from evokernel_core.hardware.device import Device
from evokernel_core.hardware.gpu import eager
from evokernel_core.hardware.gpu.gpu import Gpu, gpu_of, load_gpu
from evokernel_core.hardware.gpu.gpu_files import gpu_names
from evokernel_core.targets.triton import programs
from evokernel_core.targets.triton.kernels.attention.attention_schedule import widest
from evokernel_core.targets.triton.kernels.registry import FAMILIES

_EAGER_SPREAD = (0.5, 2.0)
"""Between which factors of the modelled figure PyTorch's own time is taken to lie (assumed: nothing of that
model is fitted)."""
_MOVES_PER_KIND = 24
"""Refinement steps offered for one kernel of a program."""


def _kept(node: Node, writer: GraphWriter) -> None:
    """Convolutions stay as PyTorch has them: libraries and kernels of GPUs take no other form."""


def _one_layer(*_: object) -> int:
    """Programs of a launch do not wait for each other, as layers above each other would."""
    return 1


def _attention(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """Rows that no tile holds are two products with a softmax between them."""
    fits = max(row_widths(node, writer)) <= widest(node.outputs[0].dtype, gpu_of(writer.device))
    return (None if fits else in_parts(node, writer)) or rewrite_mask(node, writer)


_PASSES = Passes(
    rewrites={"aten.convolution.default": _kept, ATTENTION: _attention, **rewrites_with(_one_layer)}
)


@frozen(eq=False)
class Triton:
    """Kernels for GPUs, in Triton. Its devices are ``Gpu``s."""

    name: str = "triton"
    require_legal = staticmethod(programs.require_legal)
    estimate_us = staticmethod(programs.estimate_us)
    write = staticmethod(programs.write)
    lines_of_kernels = staticmethod(programs.lines_of_kernels)

    def device(self, name: str) -> Gpu:
        if name in gpu_names():
            return load_gpu(name)
        from evokernel_core.hardware.gpu.npu import npu

        return npu(name)

    def passes(self) -> Passes:
        return _PASSES

    def families(self) -> Sequence[Family]:
        return FAMILIES

    def drafts(self, name: str, task: KernelTask, program: Program, device: Device) -> Iterator[Strategy]:
        """A launch for each kernel, each with its first schedule."""
        yield _launched(task, program, device)

    def other_programs(self, task: KernelTask, program: Program, device: Device) -> Iterator[Program]:
        yield from (recut.program for recut in recuts(task, program, device, self))

    def program_moves(self, planned: PlannedTask) -> Iterator[tuple[Program, Move]]:
        """Those of the kernel that takes longest come first."""
        program, parts = planned.program, planned.schedules
        cost = [program.launches(kind) * planned.kernel_us(kind) for kind in range(len(parts))]
        for kind in sorted(range(len(parts)), key=cost.__getitem__, reverse=True):
            task, family = program.kinds[kind]
            for move in family.moves(task, parts[kind], planned.device)[:_MOVES_PER_KIND]:
                changed = (*parts[:kind], move.strategy, *parts[kind + 1 :])
                other = joined(planned.task, program, changed, move.name, one_launch=False)
                yield program, Move(move.name, other, move.family, kind)
        for recut in recuts(planned.task, program, planned.device, self):
            other = evolve(_launched(planned.task, recut.program, planned.device), move=recut.name)
            yield recut.program, Move(recut.name, other, PROGRAM)

    def audit(self, task: KernelTask, source: KernelSource) -> GateResult:
        from evokernel_core.targets.triton.audit import audit

        return audit(task, source)

    def baseline(self, task: KernelTask, device: Device) -> Baseline:
        gpu = gpu_of(device)
        if gpu.backend == "npu":
            from evokernel_core.hardware.gpu.npu import npu_baseline

            return npu_baseline(task, gpu)
        us = eager.eager_us(task, gpu)
        low, high = _EAGER_SPREAD
        return Baseline(us, low * us, high * us)

    def reachable_us(self, task: KernelTask, device: Device) -> float:
        return eager.reachable_us(task, gpu_of(device))


def _launched(task: KernelTask, program: Program, device: Device) -> Strategy:
    drafts = tuple(draft(ById(part), family, device) for part, family in program.kinds)
    return joined(task, program, drafts, "", one_launch=False)


TRITON = Triton()
