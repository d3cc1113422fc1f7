"""Statements that move a kernel's data: into queues, out of them, and to single numbers."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent

from evokernel_core.compiler.lowering.plan import PlanInput, PlanOutput
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.targets.ascendc.kernels.conv_transpose import piece_places as places
from evokernel_core.targets.ascendc.kernels.fused import access
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE
from evokernel_core.targets.ascendc.lowering.program import camel


def method(name: str, parameters: str, lines: Sequence[str], result: str = "void") -> str:
    """A method of the kernel class."""
    body = indent("\n".join(lines), "    ")
    return f"__aicore__ inline {result} {name}({parameters})\n{{\n{body}\n}}\n"


def read_numbers(kernel: Kernel) -> tuple[list[str], list[str]]:
    """Statements that read single numbers: those read once, and those read for each row."""
    once: list[str] = []
    each: list[str] = []
    for number in kernel.numbers:
        line = read_number(kernel, number)
        (each if access.varies(number) else once).append(line)
    return once, each


def read_number(kernel: Kernel, plan_input: PlanInput) -> str:
    """The statement that reads a single number."""
    return f"{camel(plan_input.name)}Value = {places.read_number(kernel.plan, plan_input, kernel.form)};"


def copy_in(kernel: Kernel, inputs: Sequence[PlanInput]) -> list[str]:
    """Statements that fetch the inputs of a tile with all channels."""
    lines: list[str] = []
    for operand in inputs:
        stem, cpp_type = camel(operand.name), CPP_TYPE[operand.dtype]
        start = places.offset(kernel.plan, operand, kernel.form)
        lines += [
            f"LocalTensor<{cpp_type}> {stem}Local = {stem}Queue.AllocTensor<{cpp_type}>();",
            *_copy_call(f"{stem}Local", f"{stem}Global[{start}]", _shape("Of", operand), cpp_type),
            f"{stem}Queue.EnQue({stem}Local);",
        ]
    return lines


def copy_out(kernel: Kernel, outputs: Sequence[PlanOutput]) -> list[str]:
    """Statements that store the outputs of a tile with all channels."""
    lines: list[str] = []
    for output in outputs:
        stem, cpp_type = camel(output.name), CPP_TYPE[output.dtype]
        start = places.output_offset(kernel.plan, output, kernel.form)
        lines += [
            f"LocalTensor<{cpp_type}> {stem}Local = {stem}Queue.DeQue<{cpp_type}>();",
            *_copy_call(f"{stem}Global[{start}]", f"{stem}Local", _shape("To", output)),
            f"{stem}Queue.FreeTensor({stem}Local);",
        ]
    return lines


def _shape(way: str, tensor: PlanInput | PlanOutput) -> str:
    """The parameters of a copy of a part in a tile with all channels."""
    return f"Rows{way}<{CPP_TYPE[tensor.dtype]}>({_of_channels(tensor.domain)})"


def _of_channels(domain: Domain) -> str:
    """Rows, columns and the distance of rows in memory of a tensor's part in a tile with all channels."""
    if domain is Domain.FULL:
        return "rows, lanes, tiling_.columns"
    return "1, lanes, lanes" if domain is Domain.ROW else "1, rows, rows"


def _copy_call(target: str, source: str, shape: str, padded: str = "") -> list[str]:
    """A DataCopyPad; ``padded`` is the type of a copy into the core."""
    call = f"DataCopyPad({target}, {source},"
    if not padded:
        return [call, f"    {shape});"]
    return [call, f"    {shape},", f"    DataCopyPadExtParams<{padded}>{{false, 0, 0, 0}});"]


def receive(inputs: Sequence[PlanInput]) -> list[str]:
    return [
        f"LocalTensor<{CPP_TYPE[operand.dtype]}> {camel(operand.name)}Local = "
        f"{camel(operand.name)}Queue.DeQue<{CPP_TYPE[operand.dtype]}>();"
        for operand in inputs
    ]


def release(inputs: Sequence[PlanInput]) -> list[str]:
    return [f"{camel(operand.name)}Queue.FreeTensor({camel(operand.name)}Local);" for operand in inputs]


def allocate(outputs: Sequence[PlanOutput]) -> list[str]:
    return [
        f"LocalTensor<{CPP_TYPE[output.dtype]}> {camel(output.name)}Local = "
        f"{camel(output.name)}Queue.AllocTensor<{CPP_TYPE[output.dtype]}>();"
        for output in outputs
    ]


def send(outputs: Sequence[PlanOutput]) -> list[str]:
    return [f"{camel(output.name)}Queue.EnQue({camel(output.name)}Local);" for output in outputs]
