"""The converter for whole functions: random draws in the graph become inputs."""

from __future__ import annotations

import re
from typing import Any

from ..errors import Unsupported
from ..graph.buffers import Buffers
from ..graph.constant_folding import contiguous, node_of
from ..graph.convert import Converter
from ..graph.names import input_name
from ..regions.parts import PARAMETER, SCALAR, TENSOR
from ..torch_compat import output_node
from .random_samples import draw_text
from .sizes import spec


class DrawingConverter(Converter):
    """``graph`` takes the place of ``convert``: it is told which values to give."""

    joins = True

    def read(self) -> list[Any]:
        """Converts all nodes and gives the arguments of the graph's output. Raises Unsupported."""
        self._buffers = Buffers(self._traced.inputs, self._leaves, arguments=True)
        self._given = self._inputs()
        self._drawn: list[dict[str, Any]] = []
        self._constants(self._given)
        for node in self._traced.graph.nodes:
            if node.op == "call_function":
                self._call(node)
        return [self._argument(argument) for argument in output_node(self._traced.graph).args[0]]

    def write(self, index: int, value: Any, node: Any) -> None:
        """Notes that an input is given a new value by the call. Raises Unsupported where it must not."""
        given = self._traced.inputs[index]
        if step := _counted(node, given):
            self._buffers.count(given.name, step)
            return
        if "ref" not in value or self.expression(value["ref"]) is not None:
            raise Unsupported(
                "A value that is not computed is copied into {expression}: compute with that value and "
                "assign the result.",
                expression=self._leaves[index].expression,
            )
        self._buffers.write(given.name)
        self._values[given.name] = value

    def graph(self, outputs: list[dict[str, Any]]) -> dict[str, Any]:
        """``{"inputs", "nodes", "outputs", "updates", "copies"}`` for the values wanted."""
        self._all_nodes = {node["name"]: node for node in self._nodes}
        changed = self._buffers.updates(self._given, len(outputs))
        outputs = [*outputs, *(self._values[name] for name in self._buffers.written)]
        self._drop_dead(outputs)
        # a draw that nothing reads moves the generator too, so it stays an argument
        inputs = self._needed([*self._given, *self._drawn], [*outputs, *self._draws()])
        return self._made(inputs, outputs, changed)

    def _draws(self) -> list[dict[str, Any]]:
        return [{"ref": sample["name"], "index": 0} for sample in self._drawn]

    def output_shape(self, output: dict[str, Any]) -> list[int | str]:
        shape: list[int | str] = self._all_nodes[output["ref"]]["outputs"][output["index"]]["shape"]
        return shape

    def value_of(self, node: Any) -> dict[str, Any]:
        """What a node of a tensor is in the graph."""
        value: dict[str, Any] = self._argument(node)
        return value

    def shape_of(self, node: Any) -> list[int | str]:
        return [self.sizes.text(size) for size in node.meta["val"].shape]

    @property
    def nodes(self) -> dict[str, dict[str, Any]]:
        """The nodes of the graph by name."""
        return {node["name"]: node for node in self._nodes}

    def shape_of_value(self, value: dict[str, Any]) -> list[int | str]:
        """The shape of what a value of the graph is."""
        given = {part["name"]: part for part in (*self._given, *self._drawn)}
        if value["ref"] in given:
            return [*given[value["ref"]]["spec"]["shape"]]
        return [*self.nodes[value["ref"]]["outputs"][value["index"]]["shape"]]

    def permuted(self, value: dict[str, Any], order: tuple[int, ...]) -> dict[str, Any]:
        """The value with its dimensions in another order, which a node of its own gives."""
        given = {part["name"]: part["spec"] for part in (*self._given, *self._drawn)}
        ref, index = value["ref"], value["index"]
        spec = given[ref] if ref in given else self.nodes[ref]["outputs"][index]
        taken = {*given, *self.nodes, *(node.name for node in self._traced.graph.nodes)}
        name = input_name("laid_out", taken)
        made = contiguous([spec["shape"][dim] for dim in order], spec["dtype"])
        self._nodes.append(node_of(name, "aten.permute.default", [value, [*order]], [made]))
        return {"ref": name, "index": 0}

    def expression(self, ref: str) -> str | None:
        """The Python text of an input, None for a computed value."""
        return next((given["expression"] for given in self._given if given["name"] == ref), None)

    def input_number(self, value: Any) -> int | None:
        """The number of the function's tensor that a value is as it was passed, None for any other value."""
        ref = value.get("ref") if isinstance(value, dict) else None
        given = enumerate(self._given[: len(self._leaves)])  # tables follow
        return next((i for i, item in given if item["name"] == ref and item["kind"] != SCALAR), None)

    def check_written(self, index: int) -> None:
        """Raises Unsupported unless the input is one that may be written into."""
        self._buffers.check(self._traced.inputs[index].name)

    def size_text(self, size: Any) -> str:
        """A size as Python text at the call site."""
        return self.dim_text(self.sizes.text(size))

    def dim_text(self, dim: int | str) -> str:
        """The same of a size as the graph has it."""
        text = str(dim)
        sources = self._size_sources()
        return re.sub(r"\bs\d+\b", lambda values: sources[values[0]], text)

    def _size_sources(self) -> dict[str, str]:
        result: dict[str, str] = {}
        for given in self._given:
            if given["kind"] != SCALAR:
                for dim, size in enumerate(given["spec"]["shape"]):
                    result.setdefault(str(size), f"{given['expression']}.shape[{dim}]")
        return result

    def _emit(self, node: Any, name: str) -> None:
        args = [argument if not hasattr(argument, "meta") else argument.meta["val"] for argument in node.args]
        text = draw_text(name, args, dict(node.kwargs))
        if not text:
            super()._emit(node, name)
            return
        value = node.meta["val"]
        size = ", ".join(map(self.size_text, value.shape))
        size = f"({size},)" if len(value.shape) == 1 else f"({size})"
        expression = text.format(size=size, dtype=str(value.dtype), device=self._device())
        taken = {part["name"] for part in (*self._given, *self._drawn)} | {
            node.name for node in self._traced.graph.nodes
        }
        drawn = {
            "name": input_name("drawn", taken),
            "spec": {**spec(value, self.sizes), "contiguous": True},
            "kind": TENSOR,
            "expression": expression,
        }
        self._drawn.append(drawn)
        self._values[node.name] = {"ref": drawn["name"], "index": 0}

    def _device(self) -> str:
        """The device of the first tensor that is passed, or of a parameter."""
        for kind in (TENSOR, PARAMETER):
            for given in self._given:
                if given["kind"] == kind:
                    return f"{given['expression']}.device"
        return '"cpu"'


def _counted(node: Any, given: Any) -> int:
    """The whole number that the node, after others like it, adds to an input that is a single integer; 0
    where it does something else."""
    total = 0
    while str(node.target) == "aten.add.Tensor" and isinstance(node.args[1], int):
        total += node.args[1]
        node = node.args[0]
    value = node.meta["val"]
    return total if node is given and value.dim() == 0 and not value.dtype.is_floating_point else 0
