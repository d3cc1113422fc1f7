"""Rules on the launch record: it speaks of the task's tensors and sizes, and of functions of the file."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.triton.audit.allowed import MOST_LAUNCHES, MOST_SCRATCH
from evokernel_core.targets.triton.audit.functions import is_constexpr
from evokernel_core.targets.triton.audit.problems import of_record
from evokernel_core.targets.triton.expressions import evaluate
from evokernel_core.targets.triton.kernels.text import DTYPES
from evokernel_core.targets.triton.launch import Launch, LaunchRecord, LibraryCall, tensor_names
from evokernel_core.targets.triton.library import OPERATIONS

WARPS = (1, 2, 4, 8, 16, 32)
MOST_STAGES = 8


def check_record(
    task: KernelTask, record: LaunchRecord, functions: Mapping[str, ast.FunctionDef]
) -> Iterator[Finding]:
    """What of a launch record does not fit the task and the functions of ``kernel.py``."""
    yield from _check_names(task, record)
    if len(record.launches) > MOST_LAUNCHES or len(record.scratch) > MOST_SCRATCH or not record.kernels:
        yield of_record(
            Sentence("launch.json launches no kernel, or more than {most}; give some.", most=MOST_LAUNCHES)
        )
        return
    yield from _check_sizes(task, record)
    for launch in record.kernels:
        yield from _check_launch(task, record, launch, functions)
    for call in record.library_calls:
        yield from _check_call(task, record, call)
    passed = {argument for launch in record.kernels for argument in launch.arguments}
    passed |= {call.result for call in record.library_calls}
    for name in record.outputs:
        if name not in passed:
            yield of_record(Sentence("No launch has the output {name}; pass it to one.", name=name))


def _check_names(task: KernelTask, record: LaunchRecord) -> Iterator[Finding]:
    inputs, scalars, outputs = tensor_names(task)
    symbols = tuple(symbol.name for symbol in task.symbols)
    for what, given, right in (
        (Sentence("inputs"), record.inputs, inputs),
        (Sentence("scalars"), record.scalars, scalars),
        (Sentence("outputs"), record.outputs, outputs),
        (Sentence("symbols"), record.symbols, symbols),
    ):
        if given != right:
            yield of_record(
                Sentence(
                    "launch.json has the {what} {given}; the task has {right}.",
                    what=what,
                    given=list(given),
                    right=list(right),
                )
            )
    for scratch in record.scratch:
        if scratch.dtype not in DTYPES:
            yield of_record(
                Sentence(
                    "The scratch {name} has the dtype {dtype}; use one of: {known}.",
                    name=scratch.name,
                    dtype=repr(scratch.dtype)[:40],
                    known=", ".join(DTYPES),
                )
            )


def _check_sizes(task: KernelTask, record: LaunchRecord) -> Iterator[Finding]:
    try:
        if not record.takes(task.sizes):
            yield of_record(Sentence("launch.json declines the sizes of the file; take these at least."))
            return
        for name, count in record.scratch_elements(task.sizes).items():
            if count < 0:
                yield of_record(Sentence("The scratch {name} has fewer than no elements.", name=name))
    except UsageError as error:
        yield of_record(error.sentence)


def _check_launch(
    task: KernelTask, record: LaunchRecord, launch: Launch, functions: Mapping[str, ast.FunctionDef]
) -> Iterator[Finding]:
    function = functions.get(launch.kernel)
    if function is None:
        yield of_record(
            Sentence(
                "launch.json launches {kernel}, which is no function of kernel.py.", kernel=launch.kernel[:60]
            )
        )
        return
    yield from _check_parameters(launch, function)
    if launch.warps not in WARPS or not 1 <= launch.stages <= MOST_STAGES:
        yield of_record(
            Sentence(
                "{kernel} has {warps} warps and {stages} stages; give {known} warps and 1 to {most} stages.",
                kernel=launch.kernel,
                warps=launch.warps,
                stages=launch.stages,
                known=", ".join(map(str, WARPS)),
                most=MOST_STAGES,
            )
        )
    named = {*record.tensors(), *record.scalars}
    try:
        launch.programs(task.sizes)
        launch.constants_at(task.sizes)
        for argument in launch.arguments:
            if argument not in named:
                evaluate(argument, task.sizes)
    except UsageError as error:
        yield of_record(error.sentence)


def _check_call(task: KernelTask, record: LaunchRecord, call: LibraryCall) -> Iterator[Finding]:
    """A library computes what the task itself has, of tensors that the record knows, within their memory."""
    if call.op not in OPERATIONS or all(node.op != call.op for node in task.graph.nodes):
        yield of_record(
            Sentence("launch.json calls {op}, which is none of the task's operations.", op=repr(call.op)[:60])
        )
        return
    known = {*record.outputs, *(scratch.name for scratch in record.scratch)}
    if call.result not in known or not {view.tensor for view in call.operands} <= {*record.tensors()}:
        yield of_record(Sentence("{op} reads or makes a tensor that the record does not have.", op=call.op))
        return
    try:
        for view in call.operands:
            shape, strides = view.at(task.sizes)
            if len(shape) != len(strides) or min((*shape, *strides), default=0) < 0:
                yield of_record(Sentence("An operand of {op} has no shape of its strides.", op=call.op))
        for text in call.shape:
            evaluate(text, task.sizes)
    except UsageError as error:
        yield of_record(error.sentence)


def _check_parameters(launch: Launch, function: ast.FunctionDef) -> Iterator[Finding]:
    parameters = function.args.args
    plain = [each.arg for each in parameters if not is_constexpr(each)]
    known = [each.arg for each in parameters if is_constexpr(each)]
    with_default = {each.arg for each in parameters[len(parameters) - len(function.args.defaults) :]}
    if len(launch.arguments) != len(plain):
        yield of_record(
            Sentence(
                "{kernel} takes the arguments {right}; launch.json gives {count} of them.",
                kernel=launch.kernel,
                right=plain,
                count=len(launch.arguments),
            )
        )
    if not set(known) - with_default <= set(launch.constants) <= set(known):
        yield of_record(
            Sentence(
                "{kernel} has the constants {right}; launch.json gives {given}.",
                kernel=launch.kernel,
                right=known,
                given=sorted(launch.constants),
            )
        )
