"""The C++ binding of a kernel: what its templates need from the task's contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evokernel_core.domain.arguments import numbers_of, takes_lists
from evokernel_core.domain.graph import GraphInput, InputKind
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim, TensorSpec
from evokernel_core.hardware.ascend.isa import RESERVED_BY_APIS_BYTES
from evokernel_core.package.reference import python_name, symbol_sources, tensor_inputs

_AT_DTYPE = {
    "float32": "at::kFloat",
    "float16": "at::kHalf",
    "bfloat16": "at::kBFloat16",
    "bool": "at::kBool",
    "int8": "at::kChar",
    "uint8": "at::kByte",
    "int16": "at::kShort",
    "int32": "at::kInt",
    "int64": "at::kLong",
}


def context(task: KernelTask) -> Mapping[str, Any]:
    """The variables of op_torch.cpp.jinja."""
    tensors = [python_name(operand.name) for operand in tensor_inputs(task)]
    listed = takes_lists(task.graph)
    access = {name: f"tensors[{index}]" if listed else name for index, name in enumerate(tensors)}
    passed = _listed(task) if listed else list(map(_passed, task.graph.inputs))
    scalars = [python_name(operand.name) for operand in task.graph.inputs if operand.kind is InputKind.SCALAR]
    results = [f"result{i}" for i in range(len(task.graph.outputs))]
    sources = {symbol: (access[name], axis) for symbol, (name, axis) in symbol_sources(task).items()}
    several = len(results) > 1
    return {
        "cpp_parameters": ", ".join(parameter for parameter, _, _ in passed),
        "cpp_names": ", ".join(name for _, _, name in passed),
        "cpp_result": f"std::tuple<{', '.join(['at::Tensor'] * len(results))}>" if several else "at::Tensor",
        "checks": [
            *([f"tensors.size() != {len(tensors)}"] if listed else []),
            *(
                check
                for operand in tensor_inputs(task)
                for check in _checks(operand, access[python_name(operand.name)], sources)
            ),
            *(f"{sources[s.name][0]}.size({sources[s.name][1]}) < {s.minimum}" for s in task.symbols),
        ],
        "symbol_lines": _symbol_lines(task, sources),
        "allocation_lines": [
            f"at::Tensor {name} = at::empty({{{_dims(spec)}}}, "
            f"{access[tensors[0]]}.options().dtype({_AT_DTYPE[spec.dtype]}));"
            for name, spec in zip(results, task.graph.output_specs(), strict=True)
        ],
        "returned": f"std::make_tuple({', '.join(results)})" if several else results[0],
        "sizes_length": max(len(task.symbols), 1),
        "size_values": ", ".join(f"{sources[s.name][0]}.size({sources[s.name][1]})" for s in task.symbols)
        or "0",
        "scalars_length": max(len(scalars), 1),
        "scalar_values": ", ".join(f"static_cast<float>({name})" for name in scalars) or "0.0f",
        "contiguous_lines": [
            f"const at::Tensor {name}Dense = {access[name]}.contiguous();" for name in tensors
        ],
        "first_tensor": access[tensors[0]],
        "addresses": ", ".join(
            [*(_address(f"{name}Dense") for name in tensors), *_result_addresses(len(results))]
        ),
        "reserved_bytes": RESERVED_BY_APIS_BYTES,
    }


def _passed(graph_input: GraphInput) -> tuple[str, str, str]:
    """Parameter, type and name of an input."""
    return _parameter(graph_input), _type(graph_input), python_name(graph_input.name)


def _listed(task: KernelTask) -> list[tuple[str, str, str]]:
    """The same of the list of all tensors, then of each number."""
    return [("at::TensorList tensors", "at::TensorList", "tensors"), *map(_passed, numbers_of(task.graph))]


def _type(graph_input: GraphInput) -> str:
    return "double" if graph_input.kind is InputKind.SCALAR else "const at::Tensor &"


def _parameter(graph_input: GraphInput) -> str:
    kind = _type(graph_input)
    return f"{kind}{'' if kind.endswith('&') else ' '}{python_name(graph_input.name)}"


def _address(tensor: str) -> str:
    return f"static_cast<uint8_t *>({tensor}.data_ptr())"


def _result_addresses(count: int) -> list[str]:
    if count == 1:
        return [_address("results")]
    return [_address(f"std::get<{i}>(results)") for i in range(count)]


def _checks(graph_input: GraphInput, name: str, sources: Mapping[str, tuple[str, int]]) -> list[str]:
    """Conditions under which an argument, which C++ calls ``name``, is outside the contract."""
    checks = [
        f"{name}.scalar_type() != {_AT_DTYPE[graph_input.spec.dtype]}",
        f"{name}.dim() != {graph_input.spec.rank}",
    ]
    for axis, dim in enumerate(graph_input.spec.shape):
        if sources.get(str(dim)) != (name, axis):
            checks.append(f"{name}.size({axis}) != {_size(dim, sources)}")
    return checks


def _size(dim: Dim, sources: Mapping[str, tuple[str, int]]) -> str:
    text = str(dim).replace("//", "/")
    for symbol, (name, axis) in sources.items():
        text = _replace_word(text, symbol, f"{name}.size({axis})")
    return text


def _replace_word(text: str, word: str, replacement: str) -> str:
    parts: list[str] = []
    current = ""
    for char in [*text, " "]:
        if char.isalnum() or char == "_":
            current += char
            continue
        parts += [replacement if current == word else current, char]
        current = ""
    return "".join(parts).strip()


def _symbol_lines(task: KernelTask, sources: Mapping[str, tuple[str, int]]) -> list[str]:
    text = " ".join(_dims(spec) for spec in task.graph.output_specs())
    return [
        f"const int64_t {symbol} = {name}.size({axis});"
        for symbol, (name, axis) in sources.items()
        if _replace_word(text, symbol, "") != text
    ]


def _dims(spec: TensorSpec) -> str:
    return ", ".join(str(dim).replace("//", "/") for dim in spec.shape)
