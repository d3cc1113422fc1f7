"""Family convolution: convolutions in one to three dimensions, transposed ones and groups, as implicit
products, with what is done to each element of the result."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from evokernel_core.compiler.aten import CONVOLUTION
from evokernel_core.compiler.problems.direct_convolution import (
    DirectConvolution,
    direct_convolution_node,
    direct_convolution_of,
)
from evokernel_core.compiler.problems.reading import below_views
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.kernels.convolution import convolution_schedule as schedules
from evokernel_core.targets.triton.kernels.convolution.convolution_kernel import convolution
from evokernel_core.targets.triton.kernels.convolution.convolution_schedule import ConvolutionSchedule
from evokernel_core.targets.triton.kernels.epilogue import Epilogue, read_epilogue
from evokernel_core.targets.triton.kernels.library.library_cost import require_gain
from evokernel_core.targets.triton.kernels.names import output_names
from evokernel_core.targets.triton.kernels.searching import GpuFamily
from evokernel_core.targets.triton.kernels.text import TritonKernel


@frozen
class FusedConvolution:
    """A convolution, and what is done to its results before they are stored."""

    convolution: DirectConvolution
    epilogue: Epilogue | None


def _read(task: KernelTask, gpu: Gpu) -> FusedConvolution:
    node, graph = direct_convolution_node(task), task.graph
    problem = direct_convolution_of(task, node)
    if problem.groups > 1 and problem.channels.is_one and not problem.transposed:
        raise PlanError("A depthwise convolution is no product of matrices.")
    result = ValueRef(node.name)
    if len(graph.outputs) == 1 and below_views(graph, graph.outputs[0]) == result:
        return FusedConvolution(problem, None)
    shape = node.outputs[0].shape
    return FusedConvolution(problem, read_epilogue(task, result, shape[:2], shape[2:], gpu))


def _cost_us(
    problem: FusedConvolution, schedule: ConvolutionSchedule, sizes: Mapping[str, int], gpu: Gpu
) -> float:
    more, epilogue = 0.0, problem.epilogue
    if epilogue is not None:
        outputs, pixels, _ = problem.convolution.evaluate(sizes)
        results = problem.convolution.groups * outputs * pixels
        more = results * (epilogue.read_bytes() + epilogue.written_bytes())
    return schedules.estimate_us(problem.convolution, schedule, sizes, gpu, more)


def _live_bytes(problem: FusedConvolution, schedule: ConvolutionSchedule, sizes: Mapping[str, int]) -> int:
    behind = problem.epilogue.live_tiles() if problem.epilogue else 0
    return schedule.tile(problem.convolution.dtype).live_bytes(behind)


def _compare(task: KernelTask, problem: FusedConvolution, us: float, gpu: Gpu) -> None:
    if problem.epilogue is not None:
        require_gain(task, direct_convolution_node(task), us, gpu)


def _text(
    problem: FusedConvolution, schedule: ConvolutionSchedule, task: KernelTask, name: str
) -> TritonKernel:
    return convolution(problem.convolution, schedule, output_names(task), problem.epilogue, name)


FAMILY = GpuFamily(
    name="convolution",
    ops={CONVOLUTION: "kernel"},
    read=_read,
    schedule_of=ConvolutionSchedule.of,
    starts=lambda problem, sizes, gpu: schedules.starts(problem.convolution, sizes, gpu),
    refusal=lambda problem, schedule, sizes, gpu: schedules.refusal(
        problem.convolution, schedule, sizes, gpu
    ),
    cost_us=_cost_us,
    live_bytes=_live_bytes,
    notes=lambda problem, schedule: schedules.notes(problem.convolution, schedule),
    cell=lambda problem, schedule: schedules.cell(problem.convolution, schedule),
    text_of=_text,
    compare=_compare,
)
