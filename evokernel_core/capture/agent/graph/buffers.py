"""What a region changes in place: running statistics, counters of calls, and arguments of a function."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import Unsupported
from ..regions.parts import PARAMETER, TENSOR, Leaf


class Buffers:
    """The inputs of one trace that it changes. ``written`` are those with a new value, in the order of
    their first write, by the name of their node. ``arguments``: tensors that a caller passes may be."""

    def __init__(self, inputs: tuple[Any, ...], leaves: tuple[Leaf, ...], *, arguments: bool = False) -> None:
        self.written: list[str] = []
        self._kinds = (PARAMETER, TENSOR) if arguments else (PARAMETER,)
        self._counted: dict[str, int] = {}
        self._names = [node.name for node in inputs]
        self._leaves = leaves

    def write(self, name: str) -> None:
        """Note a new value. Raises Unsupported unless the input is a buffer that no other input shares."""
        self.check(name)
        if name not in self.written:
            self.written.append(name)

    def count(self, name: str, step: int) -> None:
        """Note an addition. Raises Unsupported unless the input is a buffer that no other input shares."""
        self.check(name)
        self._counted[name] = self._counted.get(name, 0) + step

    def check(self, name: str) -> None:
        """Raises Unsupported unless the input is a buffer that no other input shares."""
        if name not in self._names:
            raise Unsupported("The region changes a captured tensor in place: make it a buffer.")
        leaf = self._leaves[self._names.index(name)]
        if leaf.kind not in self._kinds:
            raise Unsupported(
                "The region changes {expression} in place: use the out-of-place form.",
                expression=leaf.expression,
            )
        storage = leaf.value.untyped_storage()._cdata
        for other in self._leaves:
            shares = isinstance(other.value, torch.Tensor) and (
                other.value.untyped_storage()._cdata == storage
            )
            if shares and other.key != leaf.key:
                raise Unsupported(
                    "The region changes {expression}, whose memory {other} shares.",
                    expression=leaf.expression,
                    other=other.expression,
                )

    def updates(self, inputs: list[dict[str, Any]], first: int) -> list[dict[str, Any]]:
        """The domain's Updates; the new values are the outputs from number ``first`` on. ``inputs`` are
        the domain's inputs of all leaves. Raises Unsupported where a counter has a new value too."""
        result = []
        for position, name in enumerate(self.written):
            if name in self._counted:
                raise Unsupported("The region both counts with a buffer and gives it a new value.")
            result.append(self._update(inputs, name, first + position, 0))
        result += [self._update(inputs, name, None, step) for name, step in self._counted.items()]
        return result

    def _update(
        self, inputs: list[dict[str, Any]], name: str, output: int | None, step: int
    ) -> dict[str, Any]:
        operand = inputs[self._names.index(name)]
        same = {key: operand[key] for key in ("name", "spec", "expression")}
        return {**same, "output": output, "step": step}
