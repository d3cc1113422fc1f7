"""The two files of a kernel from the text of its stages."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent

from evokernel_core.compiler.fusion.records import Place, Program, Slot, Stage
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.ascendc.fusion.micro_batches import Chunked
from evokernel_core.targets.ascendc.kernels.family import StageText
from evokernel_core.targets.ascendc.kernels.rendering import symbols_of
from evokernel_core.targets.ascendc.print import chunked, together
from evokernel_core.targets.ascendc.print.scheduling import batched
from evokernel_core.targets.ascendc.print.sharing import Part

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
    task: KernelTask, planned: Program, parts: Sequence[Part], name: str, *, one_launch: bool
) -> tuple[str, str]:
    """tiling.h and op_kernel.cpp of several kernels; ``parts`` has one a kind. ``one_launch``: the kernels
    are parts of one that runs them in turn."""
    bodies = _classes(parts, one_launch=one_launch)
    if not one_launch:
        blocks = ["tiling.blockDim = tiling.stage0.blockDim;"]
        return _tiling(task, planned, parts, blocks), _kernels(planned, parts, bodies)
    kernels, launches = together.launches(task, planned, parts, name)
    text = "\n".join([_KERNEL_HEAD, *bodies, kernels, f"{_LAUNCHER}{{\n{launches}\n}}\n"])
    return _tiling(task, planned, parts, together.block_dim([part.facts for part in parts])), text


def in_chunks(cut: Chunked, parts: Sequence[Part], name: str) -> tuple[str, str]:
    """tiling.h and op_kernel.cpp of several kernels that take images in chunks."""
    kernels, launch = chunked.launches(cut, parts, name)
    bodies = _classes(parts, one_launch=True)
    text = "\n".join([_KERNEL_HEAD, *bodies, kernels, f"{_LAUNCHER}{{\n{launch}\n}}\n"])
    slots = [_slot_bytes(slot) for slot in cut.planned.slots]
    body = chunked.tiling_body(cut, parts, slots, "Aligned")
    return _tiling_text(cut.planned, parts, chunked.struct_fields(cut, parts), body), text


def lines_of_classes(parts: Sequence[Part], *, one_launch: bool) -> tuple[range, ...]:
    """The lines, from 1, in which the class of each kernel stands; ``one_launch``: as parts of one kernel."""
    begin, found = 1 + _lines(_KERNEL_HEAD), {}
    owners = [part.owner for part in parts if part.owns_class]
    for owner, body in zip(owners, _classes(parts, one_launch=one_launch), strict=True):
        found[owner] = range(begin, begin + _lines(body))
        begin += _lines(body)
    return tuple(found[part.owner] for part in parts)


def _lines(text: str) -> int:
    """Those that a text takes before what is joined to it."""
    return text.count("\n") + 1


def _classes(parts: Sequence[Part], *, one_launch: bool) -> list[str]:
    text_of = together.part_text if one_launch else _batched
    return [_namespace(part.namespace, text_of(part)) for part in parts if part.owns_class]


def _batched(part: Part) -> str:
    return batched(part.text)


def _namespace(name: str, text: str) -> str:
    return f"namespace {name} {{\n\n{text}\n}} // namespace {name}\n"


def _kernels(planned: Program, parts: Sequence[Part], bodies: Sequence[str]) -> str:
    launches = [_launch(stage, parts[stage.kind]) for stage in planned.stages]
    return "\n".join([_KERNEL_HEAD, *bodies, f"{_LAUNCHER}{{\n{chr(10).join(launches)}\n}}\n"])


def _launch(stage: Stage, part: Part) -> str:
    tiling = f"tiling.stage{stage.kind}"
    passed = ", ".join(map(_place, (*stage.inputs, *stage.outputs)))
    return (
        f"    {part.entry}<<<{tiling}.blockDim, nullptr, stream>>>(\n"
        f"        {passed}, workspace + tiling.scratch, {tiling});"
    )


def _place(place: Place) -> str:
    return f"workspace + tiling.slot{place.index}" if place.in_workspace else f"tensors[{place.index}]"


def _tiling(task: KernelTask, planned: Program, parts: Sequence[Part], blocks: Sequence[str]) -> str:
    return _tiling_text(planned, parts, [], _body(task, planned, parts, blocks))


def _tiling_text(planned: Program, parts: Sequence[Part], more: Sequence[str], body: str) -> str:
    tilings = [_namespace(part.tiling_namespace, part.tiling) for part in parts]
    fields = [f"{part.namespace}::OpTiling stage{part.number};" for part in parts]
    slots = [f"uint64_t slot{i}; // {_words(slot)}" for i, slot in enumerate(planned.slots)]
    struct = ["uint32_t blockDim;", "uint64_t workspaceBytes;", *fields,
              *slots, "uint64_t scratch; // of the kernel that runs", *more]  # fmt: skip
    return f"""\
{_tiling_head([part.text for part in parts])}
{chr(10).join(tilings)}
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


def _body(task: KernelTask, planned: Program, parts: Sequence[Part], blocks: Sequence[str]) -> str:
    lines = []
    for part in parts:
        field = f"tiling.stage{part.number}"
        call = f"{part.tiling_namespace}::ComputeTiling(sizes, scalars, coreNum, ubBytes, {field})"
        lines += [f"if (!{call}) {{", "    return false;", "}"]
    sizes = [_slot_bytes(slot) for slot in planned.slots]
    lines += [f"const int64_t {name} = sizes[{i}];" for i, name in symbols_of(task, planned.slots)]
    lines.append("uint64_t offset = 0;")
    for number, text in enumerate(sizes):
        lines += [f"tiling.slot{number} = offset;", f"offset += Aligned({text});"]
    lines += ["tiling.scratch = offset;", "uint64_t scratch = 0;"]
    lines += [f"scratch = Larger(scratch, tiling.stage{kind}.workspaceBytes);" for kind in range(len(parts))]
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
