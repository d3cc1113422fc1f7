"""The host code of a package, ``host.py``, printed from the launch record and the task's contract.

A person reads it as the code that launches her kernel, and PyTorch calls it below autograd: it makes the
results, launches each kernel on the tensors' device in PyTorch's stream there, and keeps no memory.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from evokernel_core.compiler.shapes.sizes import names_in
from evokernel_core.domain.arguments import numbers_of, takes_lists
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.graph import GraphInput
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.package.reference import python_name, symbol_sources, tensor_inputs
from evokernel_core.targets.triton.kernels.text import DTYPES
from evokernel_core.targets.triton.launch import (
    MOST_ELSEWHERE,
    Launch,
    LaunchRecord,
    LibraryCall,
    Literal,
    Scratch,
    View,
    tensor_names,
)
from evokernel_core.targets.triton.library import OPERATIONS
from evokernel_core.targets.triton.package.python_text import condition_text, number_text

_LINE = 100
_RESERVED = frozenset(
    {
        *keyword.kwlist,
        *("torch", "triton", "kernel", "grid", "tensors", "limits", "results", "run", "OUTSIDE"),
        *("all", "int", "max", "min", "len", "ValueError"),
    }
)

_SETTINGS = frozenset({"num_warps", "num_stages", "num_ctas", "maxnreg", "grid", "warmup"})
"""What Triton's launch takes by name beside a function's own parameters."""


def host_text(name: str, task: KernelTask, record: LaunchRecord) -> str:
    """The text for the operator of that name. Raises UsageError for a record that is not the task's, or says
    what no record does: it may be a stranger's."""
    _require_own(task, record)
    lines = list(_Host(name, task, record, _names(task, record)).lines())
    imports = ["import torch", *(["import triton"] if any("triton." in line for line in lines) else [])]
    head = [
        f'"""Launches the kernels of {name} on the device of its tensors; printed from launch.json."""',
        *("", *imports, "", "from . import kernel", ""),
        f'OUTSIDE = "{name} was called outside of its contract: call it only where holds() is true."',
    ]
    text = "\n".join([*head, *lines]) + "\n"
    try:
        compile(text, "host.py", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _no_record() from error
    return text


def _no_record() -> UsageError:
    return UsageError("launch.json is not a launch record of this kernel; make the kernel again.")


def _require_own(task: KernelTask, record: LaunchRecord) -> None:
    symbols = tuple(symbol.name for symbol in task.symbols)
    given = (record.inputs, record.scalars, record.outputs, record.symbols)
    functions = [launch.kernel for launch in record.kernels]
    constants = [constant for launch in record.kernels for constant in launch.constants]
    if given != (*tensor_names(task), symbols) or not all(map(_is_name, (*functions, *constants))):
        raise _no_record()
    if not _SETTINGS.isdisjoint(constants):
        raise _no_record()
    if not all(one.dtype in DTYPES for one in record.scratch):
        raise _no_record()
    made = {*record.outputs, *(one.name for one in record.scratch)}
    if not all(_is_call(call, made, record.tensors()) for call in record.library_calls):
        raise _no_record()


def _is_call(call: LibraryCall, made: Collection[str], tensors: Collection[str]) -> bool:
    return (
        call.op in OPERATIONS
        and call.result in made
        and all(operand.tensor in tensors for operand in call.operands)
    )


def _is_name(word: str) -> bool:
    return word.isidentifier() and word.isascii() and not keyword.iskeyword(word)


def _names(task: KernelTask, record: LaunchRecord) -> dict[str, str]:
    """The names of the record to those in the text: parameters keep those of the reference where they can."""
    result: dict[str, str] = {}
    taken = set(_RESERVED)
    scratch = (one.name for one in record.scratch)
    for name in (*record.inputs, *record.scalars, *record.symbols, *record.outputs, *scratch):
        own = unique = python_name(name)
        count = 2
        while unique in taken:
            unique, count = f"{own}_{count}", count + 1
        taken.add(unique)
        result[name] = unique
    return result


@frozen
class _Host:
    name: str
    task: KernelTask
    record: LaunchRecord
    names: Mapping[str, str]

    def lines(self) -> Iterator[str]:
        yield from ("", *self._limits(), "", *self._results(), "", *self._run())

    def _limits(self) -> Iterator[str]:
        symbols = self._sizes()
        conditions = [condition_text(text, symbols) for text in (*self.record.requires, *self._grid_limits())]
        yield from ("", f"def limits({', '.join(symbols.values())}):")
        yield '    """What must hold of the sizes of tensors that the kernel computes."""'
        yield from (
            [f"    return ({conditions[0]},)"] if len(conditions) == 1 else _listed("    return ", conditions)
        )

    def _grid_limits(self) -> tuple[str, ...]:
        """What CUDA asks of the second and third number of a grid."""
        others = (text for launch in self.record.kernels for text in launch.grid[1:])
        limits = (f"({text}) <= {MOST_ELSEWHERE}" for text in others if not text.isdecimal())
        return tuple(dict.fromkeys(limits))

    def _results(self) -> Iterator[str]:
        specs = self.task.graph.output_specs()
        yield from ("", f"def results({self._parameters()}):")
        yield '    """What the operator returns, as yet without values."""'
        yield from self._unpacked()
        used = frozenset().union(*(names_in(str(dim)) for spec in specs for dim in spec.shape))
        yield from self._size_lines(used)
        made = [self._made(spec) for spec in specs]
        yield from ([f"    return {made[0]}"] if len(made) == 1 else _listed("    return ", made))

    def _made(self, spec: TensorSpec) -> str:
        return self._memory("empty", self._tuple(map(str, spec.shape)), spec.dtype)

    def _memory(self, how: str, shape: str, dtype: str) -> str:
        return f"torch.{how}({shape}, dtype=torch.{dtype}, device={self._first()}.device)"

    def _run(self) -> Iterator[str]:
        yield from ("", f"def run({self._parameters()}):")
        yield f'    """The operator torch.ops.evokernel.{self.name}."""'
        yield from self._contract()
        tensors = [self.names[operand] for operand in self.record.inputs]
        outputs = [self.names[output] for output in self.record.outputs]
        yield f"    with torch.cuda.device_of({self._first()}):  # it may not be the current one"
        for tensor in tensors:
            yield f"        {tensor} = {tensor}.contiguous()"
        if self.record.library_calls:
            yield from self._outputs_of_kernels()
        else:
            yield f"        {', '.join(outputs)} = results({self._parameters()})"
        yield from self._launches()
        yield f"    return {', '.join(outputs)}"

    def _outputs_of_kernels(self) -> Iterator[str]:
        """The results that no library makes."""
        made = {call.result for call in self.record.library_calls}
        for name, spec in zip(self.record.outputs, self.task.graph.output_specs(), strict=True):
            if name not in made:
                yield f"        {self.names[name]} = {self._made(spec)}"

    def _contract(self) -> Iterator[str]:
        """Refuses what the guards of ``call.py`` do not let through."""
        operands = [(self.names[one.name], one.spec) for one in tensor_inputs(self.task)]
        kinds = [
            condition
            for name, spec in operands
            for condition in (f"{name}.dtype is not torch.{spec.dtype}", f"{name}.dim() != {spec.rank}")
        ]
        sizes = [f"{self.names[symbol.name]} < {symbol.minimum}" for symbol in self.task.symbols]
        taken = f"not all(limits({', '.join(self._sizes().values())}))"
        if takes_lists(self.task.graph):
            yield from _refused([f"len(tensors) != {len(operands)}"])
            yield from self._unpacked()
        yield from _refused(kinds)
        yield from self._size_lines(frozenset(self.record.symbols))
        is_limited = bool(self.record.requires or self._grid_limits())
        yield from _refused([*self._shapes(operands), *sizes, *([taken] if is_limited else [])])

    def _shapes(self, operands: Iterable[tuple[str, TensorSpec]]) -> Iterator[str]:
        owned = {(self._of_reference()[name], axis) for name, axis in self._sources().values()}
        for name, spec in operands:
            for axis, dim in enumerate(spec.shape):
                if (name, axis) not in owned:
                    yield f"{name}.size({axis}) != {number_text(str(dim), self._sizes())}"

    def _launches(self) -> Iterator[str]:
        """Scratch memory is made before its first reader and given back behind its last one."""
        readers = [_tensors_of(launch) for launch in self.record.launches]
        for number, launch in enumerate(self.record.launches):
            made = launch.result if isinstance(launch, LibraryCall) else ""
            for one in self.record.scratch:
                is_first = not any(one.name in names for names in readers[:number])
                if one.name in readers[number] and is_first and one.name != made:
                    yield f"        {self.names[one.name]} = {self._scratch(one)}"
            yield from self._call(launch) if isinstance(launch, LibraryCall) else self._launch(launch)
            behind = readers[number + 1 :]
            done = [one.name for one in self.record.scratch if one.name in readers[number]]
            done = [name for name in done if not any(name in names for names in behind)]
            if done and behind:
                yield f"        del {', '.join(self.names[name] for name in done)}"

    def _scratch(self, one: Scratch) -> str:
        elements = number_text(one.elements, self._sizes())
        return self._memory("zeros" if one.zeroed else "empty", elements, one.dtype)

    def _launch(self, launch: Launch) -> Iterator[str]:
        grid = self._tuple(launch.grid)
        constants = {name: number_text(text, self._sizes()) for name, text in launch.constants.items()}
        settings = {**constants, "num_warps": launch.warps, "num_stages": launch.stages}
        arguments = [self._argument(word) for word in launch.arguments]
        arguments += [f"{name}={value}" for name, value in settings.items()]
        if all(self._is_positive(text) for text in launch.grid):
            yield from _listed(f"        kernel.{launch.kernel}[{grid}]", arguments)
            return
        yield f"        grid = {grid}"
        yield "        if 0 not in grid:"
        yield from _listed(f"            kernel.{launch.kernel}[grid]", arguments)

    def _call(self, call: LibraryCall) -> Iterator[str]:
        arguments = [self._given_to(argument) for argument in call.arguments]
        specs = dict(zip(self.record.outputs, self.task.graph.output_specs(), strict=True))
        shape = [str(dim) for dim in specs[call.result].shape] if call.result in specs else []
        tail = f".view({self._tuple(shape)})" if call.result in specs else ""
        head = f"        {self.names[call.result]} = torch.ops.{call.op}"
        yield from _listed(head, arguments, f".contiguous(){tail}")

    def _given_to(self, argument: View | Literal) -> str:
        if not isinstance(argument, View):
            return _literal(argument)
        shape, strides = self._tuple(argument.shape), self._tuple(argument.strides)
        return f"{self.names[argument.tensor]}.as_strided({shape}, {strides})"

    def _tuple(self, numbers: Iterable[str]) -> str:
        texts = [number_text(text, self._sizes()) for text in numbers]
        return f"({', '.join(texts)}{',' * (len(texts) == 1)})"

    def _is_positive(self, text: str) -> bool:
        """Whether a number of programs is at least 1 by the contract."""
        least = {symbol.name: symbol.minimum for symbol in self.task.symbols}
        return int(text) > 0 if text.isdecimal() else least.get(text, 0) > 0

    def _argument(self, word: str) -> str:
        is_named = word in (*self.record.tensors(), *self.record.scalars)
        return self.names[word] if is_named else number_text(word, self._sizes())

    def _sizes(self) -> dict[str, str]:
        return {symbol: self.names[symbol] for symbol in self.record.symbols}

    def _size_lines(self, used: frozenset[str]) -> Iterator[str]:
        for symbol, (tensor, axis) in self._sources().items():
            if symbol in used:
                yield f"    {self.names[symbol]} = {self._of_reference()[tensor]}.size({axis})"

    def _sources(self) -> Mapping[str, tuple[str, int]]:
        return symbol_sources(self.task)

    def _of_reference(self) -> dict[str, str]:
        """The names of tensors in the reference to those in the text."""
        return {python_name(one.name): self.names[one.name] for one in tensor_inputs(self.task)}

    def _parameters(self) -> str:
        return ", ".join(self._given())

    def _given(self) -> list[str]:
        graph = self.task.graph
        operands: Sequence[GraphInput] = graph.inputs
        if takes_lists(graph):
            return ["tensors", *(self.names[one.name] for one in numbers_of(graph))]
        return [self.names[one.name] for one in operands]

    def _unpacked(self) -> Iterator[str]:
        if takes_lists(self.task.graph):
            tensors = [self.names[operand] for operand in self.record.inputs]
            yield from (f"    {name} = tensors[{place}]" for place, name in enumerate(tensors))

    def _first(self) -> str:
        return self.names[self.record.inputs[0]]


def _tensors_of(launch: Launch | LibraryCall) -> frozenset[str]:
    if isinstance(launch, LibraryCall):
        return frozenset({launch.result, *(operand.tensor for operand in launch.operands)})
    return frozenset(launch.arguments)


def _literal(value: Literal) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def _refused(conditions: Sequence[str]) -> Iterator[str]:
    if conditions:
        yield from _joined("    if ", conditions, "or", ":")
        yield "        raise ValueError(OUTSIDE)"


def _joined(head: str, conditions: Sequence[str], word: str, tail: str = "") -> Iterator[str]:
    """On one line, or a condition a line."""
    line = f"{head}{f' {word} '.join(conditions)}{tail}"
    if len(line) <= _LINE:
        yield line
        return
    indent = " " * (len(head) - len(head.lstrip()))
    first, *others = conditions
    yield from (f"{head}(", f"{indent}    {first}")
    yield from (f"{indent}    {word} {condition}" for condition in others)
    yield f"{indent}){tail}"


def _listed(head: str, texts: Sequence[str], tail: str = "") -> Iterator[str]:
    """Behind a head, between parentheses: on one line, or a text a line."""
    line = f"{head}({', '.join(texts)}){tail}"
    if len(line) <= _LINE:
        yield line
        return
    indent = " " * (len(head) - len(head.lstrip()))
    yield f"{head}("
    yield from (f"{indent}    {text}," for text in texts)
    yield f"{indent}){tail}"
