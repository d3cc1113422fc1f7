"""Buffers that a call changes: an operator without side effects, and one around it that writes them.

The kernel only computes new values. Around it stands a composite operator whose schema names what is
written; it is taken apart wherever PyTorch traces, so compiling and exporting a model see the functional
operator and plain copies into the buffers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evokernel_core.ascendc.emit.binding import schema_argument, schema_type
from evokernel_core.ascendc.emit.reference import python_name
from evokernel_core.domain.arguments import lists, takes_lists
from evokernel_core.domain.graph import Graph, InputKind, Update
from evokernel_core.domain.task import KernelTask


def functional_name(name: str, task: KernelTask) -> str:
    """The operator without side effects: that of the kernel itself unless the call changes buffers."""
    return f"{name}_values" if task.graph.updates else name


def context(task: KernelTask) -> Mapping[str, Any]:
    """The variables of the templates that are about buffers."""
    graph = task.graph
    results = [f"result{index}" if graph.returned > 1 else "result" for index in range(graph.returned)]
    copied = [item.name for item in graph.updates if item.output is not None]
    marks = {item.name: _alias_set(index) for index, item in enumerate(graph.updates)}
    inputs = [python_name(item.name) for item in graph.inputs]
    counters = [python_name(item.name) for item in graph.counters]
    arguments = [schema_argument(item, marks.get(item.name, "")) for item in graph.inputs]
    arguments += [f"Tensor({marks[item.name]}!) {python_name(item.name)}" for item in graph.counters]
    passed = {
        "updating_arguments": ", ".join(arguments),
        "functional_parameters": ", ".join(inputs),
        "parameters": ", ".join([*inputs, *counters]),
    }
    return {
        **(_in_lists(graph) if takes_lists(graph) else passed),
        "updates": bool(graph.updates),
        "lists": takes_lists(graph),
        "names": ", ".join(inputs),
        "input_names": inputs,
        "counts": [python_name(item.name) for item in graph.counters if item.output is None],
        "updating_results": schema_type(graph.returned),
        "counters": counters,
        "returned": graph.returned,
        "outputs": len(graph.outputs),
        "result": ", ".join(results),
        "computed": ", ".join([*results, *(f"new_{python_name(name)}" for name in copied)]),
        "update_lines": [_line(item) for item in graph.updates],
        "changed": list(map(python_name, copied)),
        "saved_copies": [item.name in copied for item in graph.inputs],
    }


def _in_lists(graph: Graph) -> dict[str, Any]:
    """The same where tensors are passed in lists."""
    parts = lists(graph)
    numbers = [python_name(item.name) for item in parts.numbers]
    tensors = [python_name(item.name) for item in graph.inputs if item.kind is not InputKind.SCALAR]
    read = [python_name(item.name) for item in parts.read]
    written = [python_name(item.name) for item in parts.written]
    schemas = ["Tensor[] tensors", "Tensor(a!)[] buffers", *map(schema_argument, parts.numbers)]
    return {
        "updating_arguments": ", ".join(schemas),
        "functional_parameters": ", ".join([f"[{', '.join(tensors)}]", *numbers]),
        "parameters": ", ".join(["tensors", "buffers", *numbers]),
        "list_names": ", ".join(["tensors", *numbers]),
        "tensor_names": ", ".join(tensors),
        "read_list": read,
        "written_list": written,
        "read_names": ", ".join(read),
        "written_names": ", ".join(written),
    }


def _alias_set(index: int) -> str:
    """a to z, then a1, a2, ..."""
    return chr(ord("a") + index) if index < 26 else f"a{index - 25}"


def _line(item: Update) -> str:
    name = python_name(item.name)
    return f"{name}.add_({item.step})" if item.output is None else f"{name}.copy_(new_{name})"
