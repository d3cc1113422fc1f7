"""The two files of a kernel from the text of its stages."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent

from evokernel_core.ascendc.fusion.micro_batches import Chunked
from evokernel_core.ascendc.fusion.program import Place, Program, Slot
from evokernel_core.ascendc.kernels.family import StageText
from evokernel_core.ascendc.kernels.rendering import symbols_of
from evokernel_core.ascendc.print import chunked, together
from evokernel_core.ascendc.print.scheduling import batched
from evokernel_core.domain.task import KernelTask

_KERNEL_HEAD = """\
#include "kernel_operator.h"
#include "tiling.h"

using namespace AscendC;
"""
_LAUNCHER = """\
extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, uint8_t *workspace, const OpTiling &tiling)
"""
_ALIGNMENT = 512
"""Bytes: copies from device memory are fastest at multiples of this (hardware.md, documentation)."""


def single(stage: StageText, tensors: int) -> tuple[str, str]:
    """tiling.h and op_kernel.cpp of one kernel with that many tensors."""
    passed = ", ".join(f"tensors[{index}]" for index in range(tensors))
    launch = f"    {stage.entry}<<<tiling.blockDim, nullptr, stream>>>({passed}, workspace, tiling);"
    tiling = f"{_tiling_head([stage])}\n{stage.tiling}"
    return tiling, f"{_KERNEL_HEAD}\n{batched(stage)}\n{_LAUNCHER}{{\n{launch}\n}}\n"


def _tiling_head(stages: Sequence[StageText]) -> str:
    """The includes that the tilings need."""
    headers = sorted({"cstdint", *(name for stage in stages for name in stage.facts.tiling_headers)})
    return "".join(["#pragma once\n", *(f"#include <{name}>\n" for name in headers)])


def program(
    task: KernelTask, planned: Program, stages: Sequence[StageText], name: str, *, one_launch: bool
) -> tuple[str, str]:
    """tiling.h and op_kernel.cpp of several kernels; ``stages`` has one text a kind. ``one_launch``: the
    kernels are parts of one that runs them in turn."""
    if not one_launch:
        return _tiling(task, planned, stages, ["tiling.blockDim = tiling.stage0.blockDim;"]), _kernels(
            planned, stages
        )
    kernels, launches = together.launches(task, planned, stages, name)
    bodies = _namespaces(list(map(together.part_text, stages)))
    text = "\n".join([_KERNEL_HEAD, *bodies, kernels, f"{_LAUNCHER}{{\n{launches}\n}}\n"])
    return _tiling(task, planned, stages, together.block_dim([stage.facts for stage in stages])), text


def in_chunks(cut: Chunked, stages: Sequence[StageText], name: str) -> tuple[str, str]:
    """tiling.h and op_kernel.cpp of several kernels that take images in chunks."""
    kernels, launch = chunked.launches(cut, stages, name)
    bodies = _namespaces(list(map(together.part_text, stages)))
    text = "\n".join([_KERNEL_HEAD, *bodies, kernels, f"{_LAUNCHER}{{\n{launch}\n}}\n"])
    slots = [_slot_bytes(slot) for slot in cut.planned.slots]
    body = chunked.tiling_body(cut, slots, "Aligned")
    return _tiling_text(cut.planned, stages, chunked.struct_fields(cut), body), text


def _namespaces(texts: Sequence[str]) -> list[str]:
    return [
        f"namespace stage{kind} {{\n\n{text}\n}} // namespace stage{kind}\n"
        for kind, text in enumerate(texts)
    ]


def _kernels(planned: Program, stages: Sequence[StageText]) -> str:
    bodies = _namespaces(list(map(batched, stages)))
    launches = [_launch(planned, number, stages) for number in range(len(planned.stages))]
    return "\n".join([_KERNEL_HEAD, *bodies, f"{_LAUNCHER}{{\n{chr(10).join(launches)}\n}}\n"])


def _launch(planned: Program, number: int, stages: Sequence[StageText]) -> str:
    stage = planned.stages[number]
    tiling = f"tiling.stage{stage.kind}"
    passed = ", ".join(map(_place, (*stage.inputs, *stage.outputs)))
    entry = f"stage{stage.kind}::{stages[stage.kind].entry}"
    return (
        f"    {entry}<<<{tiling}.blockDim, nullptr, stream>>>(\n"
        f"        {passed}, workspace + tiling.scratch, {tiling});"
    )


def _place(place: Place) -> str:
    return f"workspace + tiling.slot{place.index}" if place.in_workspace else f"tensors[{place.index}]"


def _tiling(task: KernelTask, planned: Program, stages: Sequence[StageText], blocks: Sequence[str]) -> str:
    return _tiling_text(planned, stages, [], _body(task, planned, len(stages), blocks))


def _tiling_text(planned: Program, stages: Sequence[StageText], more: Sequence[str], body: str) -> str:
    parts = [
        f"namespace stage{kind} {{\n\n{stage.tiling}\n}} // namespace stage{kind}\n"
        for kind, stage in enumerate(stages)
    ]
    fields = [f"stage{kind}::OpTiling stage{kind};" for kind in range(len(stages))]
    slots = [f"uint64_t slot{i}; // {_words(slot)}" for i, slot in enumerate(planned.slots)]
    struct = ["uint32_t blockDim;", "uint64_t workspaceBytes;", *fields,
              *slots, "uint64_t scratch; // of the kernel that runs", *more]  # fmt: skip
    return f"""\
{_tiling_head(stages)}
{chr(10).join(parts)}
// The tiling of each kernel, and where in the workspace the values between them lie.
struct OpTiling {{
{indent(chr(10).join(struct), "    ")}
}};

inline uint64_t Aligned(uint64_t bytes)
{{
    return (bytes + {_ALIGNMENT - 1}) / {_ALIGNMENT} * {_ALIGNMENT};
}}

inline uint64_t Larger(uint64_t a, uint64_t b)
{{
    return a > b ? a : b;
}}

inline bool ComputeTiling(const int64_t *sizes, const float *scalars, uint32_t coreNum, uint64_t ubBytes,
                          OpTiling &tiling)
{{
{indent(body, "    ")}
}}
"""


def _words(slot: Slot) -> str:
    return ", then ".join(dict.fromkeys(name for name, _, _ in slot.values))


def _body(task: KernelTask, planned: Program, kinds: int, blocks: Sequence[str]) -> str:
    lines = []
    for kind in range(kinds):
        call = f"stage{kind}::ComputeTiling(sizes, scalars, coreNum, ubBytes, tiling.stage{kind})"
        lines += [f"if (!{call}) {{", "    return false;", "}"]
    sizes = [_slot_bytes(slot) for slot in planned.slots]
    lines += [f"const int64_t {name} = sizes[{i}];" for i, name in symbols_of(task, planned.slots)]
    lines.append("uint64_t offset = 0;")
    for number, text in enumerate(sizes):
        lines += [f"tiling.slot{number} = offset;", f"offset += Aligned({text});"]
    lines += ["tiling.scratch = offset;", "uint64_t scratch = 0;"]
    lines += [f"scratch = Larger(scratch, tiling.stage{kind}.workspaceBytes);" for kind in range(kinds)]
    lines += [
        "tiling.workspaceBytes = offset + scratch;",
        *blocks,
        "return true;",
    ]
    return "\n".join(lines)


def _slot_bytes(slot: Slot) -> str:
    texts = list(
        dict.fromkeys(f"static_cast<uint64_t>({size.cpp()}) * {width}" for _, width, size in slot.values)
    )
    text = texts[0]
    for other in texts[1:]:
        text = f"Larger({text}, {other})"
    return text
