"""Decide for one expression whether a region can compute it, and what it then needs from outside."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from ..graph import complex_tensors
from ..inputs.state import member
from ..loading.record import Evaluation
from ..loading.source import OPAQUE, Source, SourceFunction, number_of
from ..tracing.fusibility import Fusibility
from .parts import PARAMETER, SCALAR, TENSOR, ModuleCall, Parts, total

_STRUCTURAL = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Tuple, ast.List)
_PURE_CALLS = (*vars(math).values(), abs, float, int, len, max, min, round)


@dataclass(eq=False)
class Absorber:
    """Rules for the expressions of one function. ``blocked`` expressions stay outside."""

    source: Source
    function: SourceFunction
    evaluations: dict[int, Evaluation]
    fusibility: Fusibility
    blocked: frozenset[int]

    def __post_init__(self) -> None:
        self._shallow = False
        self._changing = _attributes_set_late(self.source, self.function)
        self._changing_names = _globals_changed(self.source)

    def evaluation(self, node: ast.AST) -> Evaluation | None:
        return self.evaluations.get(number_of(node))

    def value(self, node: ast.AST) -> Any:
        evaluation = self.evaluation(node)
        return evaluation.value if evaluation else None

    def absorb(self, node: ast.expr, assigned: frozenset[str] = frozenset()) -> Parts | None:
        """The parts if the region can compute ``node`` itself, else None. ``assigned`` are the names
        that earlier statements of the region gave values to."""
        if isinstance(node, ast.Constant):
            return Parts()
        evaluation = self.evaluation(node)
        if evaluation is None or isinstance(node, OPAQUE) or number_of(node) in self.blocked:
            return None
        if not evaluation.comparable or self.fusibility.obstacles(evaluation):
            return None
        own = Parts(
            work=self.fusibility.work(evaluation),
            numbers=(number_of(node),),
            rows=self.fusibility.rows(evaluation),
        )
        parts = self._inside(node, evaluation, assigned)
        if parts is None or len((parts + own).rows) <= 1:
            return None if parts is None else parts + own
        return self._without_inner_reductions(node, evaluation, assigned, own)

    def _without_inner_reductions(
        self, node: ast.expr, evaluation: Evaluation, assigned: frozenset[str], own: Parts
    ) -> Parts | None:
        """Reductions over different rows do not share a kernel: those further in become arguments."""
        self._shallow = True
        try:
            parts = self._inside(node, evaluation, assigned)
        finally:
            self._shallow = False
        return parts + own if parts is not None and len((parts + own).rows) <= 1 else None

    def _inside(  # noqa: PLR0911 - one return a kind of expression
        self, node: ast.expr, evaluation: Evaluation, assigned: frozenset[str]
    ) -> Parts | None:
        if isinstance(node, ast.Name) and node.id in assigned:
            return Parts()
        if isinstance(evaluation.value, (int, float)) and not isinstance(evaluation.value, bool):
            return self._number(node, evaluation, assigned)
        if isinstance(node, ast.Name):
            return self._name(node, evaluation)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, evaluation, assigned)
        if isinstance(node, ast.Call):
            return self._call(node, assigned)
        if self._is_held(node, evaluation):
            return self._argument(node, PARAMETER, evaluation.value, number_of(node))
        if isinstance(node, _STRUCTURAL):
            return total(self.part(child, node, assigned) for child in _operands(node))
        return None

    def _is_held(self, node: ast.expr, evaluation: Evaluation) -> bool:
        """Whether an expression takes a tensor out of a list or a dictionary: ``self.table['gain']``."""
        is_entry = isinstance(node, ast.Subscript) and isinstance(evaluation.value, torch.Tensor)
        return is_entry and self._is_chain(node)

    def part(self, node: ast.expr, parent: ast.AST, assigned: frozenset[str]) -> Parts | None:
        """The child as computed inside, or else as an argument of the region."""
        shallow, self._shallow = self._shallow, False
        absorbed = self.absorb(node, assigned)
        self._shallow = shallow
        if shallow and absorbed is not None and absorbed.rows:
            absorbed = None
        return absorbed if absorbed is not None else self._leaf(node, parent, assigned)

    def _leaf(self, node: ast.expr, parent: ast.AST, assigned: frozenset[str]) -> Parts | None:
        value = self.value(node)
        if not isinstance(value, torch.Tensor) or not _movable(node) or names_in(node) & assigned:
            return None
        return self._argument(node, TENSOR, value, number_of(parent))

    def _argument(self, node: ast.expr, kind: str, value: Any, owner: int) -> Parts:
        text = self.source.in_one_line(node)
        return Parts(leaves=(complex_tensors.leaf(node, kind, text, value, owner),))

    def _name(self, node: ast.Name, evaluation: Evaluation) -> Parts | None:
        if isinstance(evaluation.value, torch.Tensor):
            return self._argument(node, TENSOR, evaluation.value, number_of(node))
        return Parts() if self._is_outer(node.id) else None

    def _is_outer(self, name: str) -> bool:
        """Whether a name means the same in every call: a global, a builtin or the receiver."""
        return name not in self.function.local_names or name == self.function.receiver

    def _attribute(
        self, node: ast.Attribute, evaluation: Evaluation, assigned: frozenset[str]
    ) -> Parts | None:
        if isinstance(evaluation.value, torch.Tensor) and self._is_chain(node):
            return self._argument(node, PARAMETER, evaluation.value, number_of(node))
        if len(evaluation.plain_values) > 1 and self._is_chain(node):
            return None
        if self._is_chain(node):
            return None if node.attr in self._changing else Parts()
        return self.part(node.value, node, assigned)

    def _is_chain(self, node: ast.expr) -> bool:
        """``self.a.b[0].c`` or ``module.a``: attributes from the receiver or a global, no tensor
        on the way."""
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
                return False
            node = node.value
            if isinstance(self.value(node), torch.Tensor):
                return False
        return isinstance(node, ast.Name) and self._is_outer(node.id)

    def _number(self, node: ast.expr, evaluation: Evaluation, assigned: frozenset[str]) -> Parts | None:
        """A Python number: fixed where it is the same in every call, else a scalar argument."""
        if self._is_fixed(node, evaluation):
            return Parts()
        if names_in(node) & assigned or (isinstance(evaluation.value, int) and self._reads_tensor(node)):
            return self._computed_size(node, assigned)
        if not _movable(node):
            return None
        return self._argument(node, SCALAR, evaluation.value, number_of(node))

    def _computed_size(self, node: ast.expr, assigned: frozenset[str]) -> Parts | None:
        """Arithmetic on sizes: the exporter keeps it symbolic."""
        if isinstance(node, ast.Call):
            return self._call(node, assigned)
        if isinstance(node, ast.Attribute):
            return self.part(node.value, node, assigned)
        if isinstance(node, _STRUCTURAL):
            return total(self.part(child, node, assigned) for child in _operands(node))
        return None

    def _is_fixed(self, node: ast.expr, evaluation: Evaluation) -> bool:
        if len(evaluation.plain_values) > 1 or not all(self._is_outer(name) for name in names_in(node)):
            return False
        for child in ast.walk(node):
            if isinstance(child, ast.Attribute) and child.attr in self._changing:
                return False
            if isinstance(child, ast.Name) and child.id in self._changing_names:
                return False
            if isinstance(child, ast.Call) and not self._is_pure(child.func):
                return False
        return not self._reads_tensor(node)

    def _is_pure(self, func: ast.expr) -> bool:
        value = self.value(func)
        return any(value is known for known in _PURE_CALLS)

    def _reads_tensor(self, node: ast.expr) -> bool:
        return any(isinstance(self.value(child), torch.Tensor) for child in ast.walk(node))

    def _call(self, node: ast.Call, assigned: frozenset[str]) -> Parts | None:
        if any(keyword.arg is None for keyword in node.keywords):
            return None
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        inner = total(self._call_argument(argument, node, assigned) for argument in arguments)
        outer = self._callee(node.func, assigned)
        if outer is None or inner is None:
            return None
        return inner + outer if outer.modules else outer + inner

    def _call_argument(self, node: ast.expr, call: ast.Call, assigned: frozenset[str]) -> Parts | None:
        if isinstance(node, ast.Starred):
            return self.absorb(node.value, assigned)
        return self.part(node, call, assigned)

    def _callee(self, func: ast.expr, assigned: frozenset[str]) -> Parts | None:
        evaluation = self.evaluation(func)
        if evaluation is None or len(evaluation.plain_values) > 1:
            return None
        if isinstance(evaluation.value, torch.nn.Module):
            return self._module(func, evaluation.value)
        if isinstance(func, ast.Name):
            return Parts() if self._is_outer(func.id) else None
        if not isinstance(func, ast.Attribute):
            return None
        if isinstance(self.value(func.value), torch.Tensor):
            return self.part(func.value, func, assigned)
        return Parts() if self._is_chain(func) else None

    def _module(self, func: ast.expr, module: torch.nn.Module) -> Parts | None:
        if not self._is_chain(func) or module._forward_hooks or module._forward_pre_hooks:
            return None
        text, leaves = ast.unparse(func), []
        members = [*module.named_parameters(), *module.named_buffers()]
        for path, tensor in members:
            expression = _below(module, text, path)
            leaves.append(complex_tensors.leaf(func, PARAMETER, expression, tensor, number_of(func), path))
        return Parts(tuple(leaves), (ModuleCall(func, module, tuple(leaves)),))


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Slice):
            yield from _operands(child)
        elif isinstance(child, ast.Starred):
            yield child.value
        elif isinstance(child, ast.expr):
            yield child


def names_in(node: ast.AST) -> frozenset[str]:
    """Every name that the text reads."""
    return frozenset(child.id for child in ast.walk(node) if isinstance(child, ast.Name))


def _movable(node: ast.expr) -> bool:
    """Whether the expression can be an argument of a call: it binds nothing and never suspends."""
    kinds = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom, ast.Starred)
    return not any(isinstance(child, kinds) for child in ast.walk(node))


def _below(module: torch.nn.Module, text: str, path: str) -> str:
    """The text that reaches ``0.weight`` below ``self.seq``: ``self.seq[0].weight``."""
    owner: Any = module
    for name in path.split("."):
        text, owner = member(owner, text, name), getattr(owner, name)
    return text


_CHANGING = frozenset(
    """add append clear discard extend insert pop popitem popleft appendleft remove reverse setdefault sort
    update""".split()  # noqa: SIM905
)
"""Methods that change a container."""


def _attributes_set_late(source: Source, function: SourceFunction) -> frozenset[str]:
    """Attributes that a method other than ``__init__`` sets, or what they hold: their values may change
    between calls."""
    names = set()
    for other in source.functions:
        if other.class_name != function.class_name or other.node.name == "__init__":
            continue
        for node in ast.walk(other.node):
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                names.add(node.attr)
            names.update(child.attr for child in _changed_by(node) if isinstance(child, ast.Attribute))
    return frozenset(names)


def _globals_changed(source: Source) -> frozenset[str]:
    """Globals whose contents functions of the file change."""
    names = set()
    for function in source.functions:
        for node in ast.walk(function.node):
            changed = {child.id for child in _changed_by(node) if isinstance(child, ast.Name)}
            names.update(changed - function.local_names)
    return frozenset(names)


def _changed_by(node: ast.AST) -> Iterator[ast.AST]:
    """What a statement or a call changes the contents of: ``self.seen`` in ``self.seen[0] += 1``, and in
    ``self.seen.append(1)``."""
    held: ast.AST | None = None
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        held = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
        held = node.func.value
    while isinstance(held, ast.Subscript):
        held = held.value
    if held is not None:
        yield held
