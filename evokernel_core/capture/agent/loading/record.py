"""What each expression of the user's functions evaluated to, and which ops ran inside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..errors import AgentError
from ..graph.mutations import statistics
from .outside import Deadline
from .source import Source


def is_plain(value: Any) -> bool:
    """Whether the value is fixed by its repr: numbers, text, dtypes, and tuples of those."""
    if isinstance(value, (tuple, list)):
        return all(is_plain(element) for element in value)
    return isinstance(value, (bool, int, float, str, type(None), torch.dtype))


def _configuration(value: Any) -> str:
    """What must be equal in every call for a captured value to stand for all of them."""
    if isinstance(value, torch.nn.Module) and type(value).__module__.startswith("torch.nn"):
        return repr(value)
    return repr(value) if is_plain(value) else ""


_MOST_OPS = 256
"""An expression of more ops, as a recurrent layer, is no kernel: the rest is not kept."""


@dataclass
class OpCall:
    """One dispatched op. Tensors among the arguments are fake."""

    name: str
    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def mutates(self) -> bool:
        return bool(self.func._schema.is_mutable)

    @property
    def draws(self) -> bool:
        """Whether it takes random numbers; attention without dropout is one that might."""
        if torch.Tag.nondeterministic_seeded not in self.func.tags:
            return False
        names = [argument.name for argument in self.func._schema.arguments]
        given = {**dict(zip(names, self.args)), **self.kwargs}  # noqa: B905 - defaults are left out
        return "dropout_p" not in names or given.get("dropout_p", 0.0) != 0.0


@dataclass
class Evaluation:
    """The first evaluation of an expression, and how later ones differed.

    ``ops`` ran in this expression but in none of its sub-expressions; ``too_long`` says that there
    were more. ``calls_user`` says that it
    entered another function of the file. ``mutated`` are storages that were written meanwhile.
    ``plain_values`` are the reprs of all its values, if they are Python numbers, dtypes and such,
    or modules of torch.nn.
    """

    value: Any = None
    ops: list[OpCall] = field(default_factory=list)
    too_long: bool = False
    calls_user: bool = False
    mutated: set[int] = field(default_factory=set)
    plain_values: set[str] = field(default_factory=set)
    ops_differ: bool = False
    shapes: list[tuple[int, ...]] = field(default_factory=list)

    @property
    def comparable(self) -> bool:
        """Whether its ops are known, its own, and the same each time."""
        return not (self.calls_user or self.ops_differ or self.too_long)


@dataclass
class _Frame:
    number: int
    evaluation: Evaluation


class Watch(Protocol):
    """What hears of expressions; ``limit`` bounds the time of what runs now."""

    limit: Deadline | None

    def __call__(self, number: int) -> None: ...


class Recorder(TorchDispatchMode):
    """Collects evaluations while ``running``; outside it costs two attribute reads an expression."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.evaluations: dict[int, Evaluation] = {}
        self.watch: Watch | None = None
        """Hears of every expression of the file that is evaluated."""
        self.stopped: AgentError | None = None
        """Why the file was executed only in part: a statement that defines nothing failed."""
        self._source = source
        self._stack: list[_Frame] = []
        self._running = False
        self._kept: list[Any] = []

    @contextmanager
    def running(self) -> Any:
        """Record everything that happens inside."""
        self._running, self._stack = True, []
        try:
            with self:
                yield
        finally:
            self._running = False

    def enter(self, number: int) -> int:
        """Open the frame of an expression; its depth identifies it to ``exit``."""
        if self.watch is not None:
            self.watch(number)
        if not self._running:
            return 0
        if self._stack and not self._source.inside(number, self._stack[-1].number):
            self._stack[-1].evaluation.calls_user = True
        self._stack.append(_Frame(number, Evaluation()))
        return len(self._stack)

    def exit(self, number: int, depth: int, value: Any) -> Any:
        """Close the frame and those that an exception left open above it; gives ``value`` back."""
        if self._running and 0 < depth <= len(self._stack):
            frame = self._stack[depth - 1]
            del self._stack[depth - 1 :]
            self._keep(number, frame.evaluation, value)
        return value

    def _keep(self, number: int, new: Evaluation, value: Any) -> None:
        new.value = value
        first = self.evaluations.setdefault(number, new)
        if configuration := _configuration(value):
            first.plain_values.add(configuration)
        if isinstance(value, torch.Tensor) and tuple(value.shape) not in first.shapes:
            first.shapes.append(tuple(value.shape))
        if first is not new:
            first.calls_user |= new.calls_user
            first.mutated |= new.mutated
            first.ops_differ |= [op.name for op in first.ops] != [op.name for op in new.ops]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._stack and func.namespace not in ("prim", "profiler"):  # those two only look
            call = OpCall(str(func), func, tuple(args), dict(kwargs))
            evaluation = self._stack[-1].evaluation
            evaluation.too_long = len(evaluation.ops) >= _MOST_OPS
            if not evaluation.too_long:
                evaluation.ops.append(call)
            for written in self._written(call):
                self._note_mutation(written)
        return func(*args, **kwargs)

    @staticmethod
    def _written(call: OpCall) -> Iterator[torch.Tensor]:
        yield from statistics(call.name, call.args)
        if not call.mutates:
            return
        names = [argument.name for argument in call.func._schema.arguments]
        given = {**dict(zip(names, call.args, strict=False)), **call.kwargs}
        for argument in call.func._schema.arguments:
            value = given.get(argument.name)
            written = argument.alias_info is not None and argument.alias_info.is_write
            if written and isinstance(value, torch.Tensor):
                yield value

    def _note_mutation(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        self._kept.append(storage)  # keeps its address from being used again
        for frame in self._stack:
            frame.evaluation.mutated.add(storage._cdata)
