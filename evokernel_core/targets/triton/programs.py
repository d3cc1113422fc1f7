"""The kernels of a planned task in Triton: one text, one launch record."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from attrs import evolve

from evokernel_core.compiler.family import Family
from evokernel_core.compiler.fusion.records import Place, Stage
from evokernel_core.compiler.planned_task import PlannedTask, require_schedule
from evokernel_core.compiler.shapes.sizes import extent, product
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.hardware.gpu.gpu import Gpu, gpu_of
from evokernel_core.targets.triton.kernels.function import expression
from evokernel_core.targets.triton.kernels.text import TritonKernel, kernel_text, on_device
from evokernel_core.targets.triton.launch import (
    Launch,
    LaunchRecord,
    LibraryCall,
    Scratch,
    View,
    tensor_names,
)
from evokernel_core.targets.triton.source import triton_source

_LONGEST_STEM = 36
"""Characters of a kernel's name without its number and what families put behind it: Ascend's runtime takes 49
in all."""


def write(planned: PlannedTask) -> KernelSource:
    """kernel.py and launch.json."""
    kernels = [_kernel(planned, kind) for kind in range(len(planned.program.kinds))]
    helpers = frozenset().union(*(kernel.helpers for kernel in kernels))
    functions = [function for kernel in kernels for function in kernel.functions]
    return triton_source(
        kernel_text(_summary(planned.task), helpers, functions, gpu_of(planned.device)),
        _record(planned, kernels),
        planned.strategy,
    )


def estimate_us(planned: PlannedTask) -> float:
    """Modelled microseconds, all launches included."""
    return math.fsum(planned.kernel_us(stage.kind) for stage in planned.program.stages)


def require_legal(planned: PlannedTask) -> None:
    """Raises StrategyError where a schedule makes no kernel for its part of the task."""
    for (part, family), schedule in zip(planned.program.kinds, planned.schedules, strict=True):
        require_schedule(family, part, schedule, planned.device)


def lines_of_kernels(planned: PlannedTask, source: KernelSource) -> tuple[range, ...]:
    """``Target.lines_of_kernels``, of kernel.py."""
    text = source.files.get("kernel.py", "")
    if planned.is_lone or write(planned).files["kernel.py"] != text:
        return ()
    return tuple(_lines_of(text, _kernel(planned, kind)) for kind in range(len(planned.program.kinds)))


def _lines_of(text: str, kernel: TritonKernel) -> range:
    texts = [function.text.strip("\n") for function in kernel.functions]
    starts = [text.index(one) for one in texts]
    ends = [start + len(one) for start, one in zip(starts, texts, strict=True)]
    return range(text.count("\n", 0, min(starts)) + 1, text.count("\n", 0, max(ends)) + 2)


def _summary(task: KernelTask) -> str:
    """What a kernel computes, in a line."""
    ops = dict.fromkeys(node.op.split(".")[1] for node in task.graph.nodes)
    words, line = list(ops), ", ".join(ops)
    while len(line) > 90:
        words = words[:-1]
        line = ", ".join([*words, "..."])
    return f"{line}."


def _kernel(planned: PlannedTask, kind: int) -> TritonKernel:
    part, family = planned.program.kinds[kind]
    stem = planned.name[:_LONGEST_STEM].rstrip("_")
    name = stem if planned.is_lone else f"{stem}_{kind + 1}"
    bare = evolve(planned.schedules[kind], notes=(), move="")
    return _text(ById(part), bare, name, family, gpu_of(planned.device))


@lru_cache(maxsize=512)
def _text(key: ById, strategy: Strategy, name: str, family: Family, gpu: Gpu) -> TritonKernel:
    result: TritonKernel = family.text(key.task, strategy, gpu, name)
    return on_device(result, gpu)


def _record(planned: PlannedTask, kernels: list[TritonKernel]) -> LaunchRecord:
    task = planned.task
    inputs, scalars, outputs = tensor_names(task)
    between = dict(_between(planned))
    names = {Place(False, number): name for number, name in enumerate((*inputs, *outputs))}
    launches: list[Launch | LibraryCall] = []
    scratch: dict[str, Scratch] = {one.name: one for one in between.values()}
    requires: dict[str, None] = {}
    for number, stage in enumerate(planned.program.stages):
        kernel = kernels[stage.kind]
        placed = _placed(stage, planned.program.kinds[stage.kind][0], names, between)
        own = {one.name: f"{one.name}_{number + 1}" for one in kernel.scratch}
        if planned.is_lone:
            own = {}
        symbols = _symbols(stage, planned.program.kinds[stage.kind][0])
        here = _with_sizes(kernel, _tensors(kernel, planned.program.kinds[stage.kind][0]), symbols)
        here = here.renamed(placed | own)
        launches += here.launches
        scratch |= {one.name: one for one in here.scratch}
        requires |= dict.fromkeys(here.requires)
    return LaunchRecord(
        inputs,
        outputs,
        tuple(launches),
        symbols=tuple(symbol.name for symbol in task.symbols),
        scalars=scalars,
        scratch=tuple(scratch.values()),
        requires=tuple(requires),
    )


def _between(planned: PlannedTask) -> Iterator[tuple[ValueRef, Scratch]]:
    """The tensors that one kernel hands to another, each with memory of its own: whoever allocates them
    gives it back behind their last reader."""
    task = planned.task
    inputs, scalars, outputs = tensor_names(task)
    taken = {*inputs, *scalars, *outputs, *(symbol.name for symbol in task.symbols)}
    for stage in planned.program.stages:
        for ref, place in zip(stage.piece.outputs, stage.outputs, strict=True):
            if not place.in_workspace:
                continue
            stem = re.sub(r"\W+", "_", f"{ref.name}_{ref.index}" if ref.index else ref.name)
            name, count = stem, 2
            while name in taken:
                name, count = f"{stem}_{count}", count + 1
            taken.add(name)
            spec = task.graph.spec(ref)
            yield ref, Scratch(name, spec.dtype, expression(product(map(extent, spec.shape))))


def _placed(
    stage: Stage, part: KernelTask, names: Mapping[Place, str], between: Mapping[ValueRef, Scratch]
) -> dict[str, str]:
    """The names in the part of a kernel's tensors and scalars to those in the whole."""
    inputs, scalars, outputs = tensor_names(part)
    _, given, _ = tensor_names(stage.piece.task)
    refs = (*stage.piece.inputs, *stage.piece.outputs)
    places = (*stage.inputs, *stage.outputs)
    result = dict(zip(scalars, given, strict=True))
    for name, ref, place in zip((*inputs, *outputs), refs, places, strict=True):
        result[name] = between[ref].name if place.in_workspace else names[place]
    return result


def _symbols(stage: Stage, part: KernelTask) -> dict[str, str]:
    """The names of the sizes of a kind to those of one of its stages."""
    theirs = [symbol.name for symbol in part.symbols]
    return dict(zip(theirs, (symbol.name for symbol in stage.piece.task.symbols), strict=True))


def _tensors(kernel: TritonKernel, part: KernelTask) -> frozenset[str]:
    """The arguments of a kernel's launches that are no number over the sizes."""
    inputs, scalars, outputs = tensor_names(part)
    return frozenset((*inputs, *scalars, *outputs, *(one.name for one in kernel.scratch)))


def _with_sizes(kernel: TritonKernel, tensors: frozenset[str], symbols: Mapping[str, str]) -> TritonKernel:
    """The kernel over other symbols, in whatever expressions its launches have them."""
    if all(name == other for name, other in symbols.items()):
        return kernel

    def renamed(text: str) -> str:
        return re.sub(r"[A-Za-z_]\w*", lambda word: symbols.get(word[0], word[0]), text)

    launches = tuple(_resized(launch, tensors, renamed) for launch in kernel.launches)
    scratch = tuple(evolve(one, elements=renamed(one.elements)) for one in kernel.scratch)
    return evolve(kernel, launches=launches, scratch=scratch, requires=tuple(map(renamed, kernel.requires)))


def _resized(
    launch: Launch | LibraryCall, tensors: frozenset[str], renamed: Callable[[str], str]
) -> Launch | LibraryCall:
    """A launch over other symbols."""
    if isinstance(launch, Launch):
        return evolve(
            launch,
            grid=tuple(map(renamed, launch.grid)),
            arguments=tuple(word if word in tensors else renamed(word) for word in launch.arguments),
            constants={name: renamed(text) for name, text in launch.constants.items()},
        )
    arguments = tuple(
        evolve(one, shape=tuple(map(renamed, one.shape)), strides=tuple(map(renamed, one.strides)))
        if isinstance(one, View)
        else one
        for one in launch.arguments
    )
    return evolve(launch, arguments=arguments, shape=tuple(map(renamed, launch.shape)))
