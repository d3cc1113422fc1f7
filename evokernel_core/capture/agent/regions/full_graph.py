"""A whole function as one region: whatever its statements do, PyTorch's tracer follows them."""

from __future__ import annotations

import ast
import random
import types
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch.utils import _pytree as pytree

from ..decompositions.composites import ATEN_NAMES, TABLE, overridden, stacks_kept
from ..errors import Refused, Unsupported, describe, uncovered
from ..graph.complex_names import name_for, names_in
from ..graph.convert import IGNORED, line_in
from ..graph.unread import REQUIRES_GRAD, check_passed, states
from ..guards.guard import CapturedGuard
from ..guards.lifting import lifted
from ..guards.observed import Observed
from ..inputs.entry import Entry, EntryCall, call_of, outside_state
from ..loading.devices import on_host
from ..loading.lazy_modules import was_called
from ..loading.load import line_of
from ..loading.source import ENTER, EXIT, Source
from ..reference.half_precision import types_that_differ
from ..sentence import Sentence, joined
from ..tracing.export import RegionFunction
from ..tracing.fusibility import Fusibility
from ..tracing.random_inputs import DrawingConverter
from ..tracing.sizes import InexpressibleSize
from ..tracing.trace import Input, Key, WholeTrace, inputs_of, lines_noted, trace
from ..tracing.zero_one import least_sizes
from .call_site import CallSite
from .data_dependent import values_missing
from .layouts import Outcome, conditions_of_order, outcome_of
from .parts import KEY, SCALAR, Subject
from .results import Results
from .writes import aliases, check_writes, is_set_by_each_call

_MAX_ROUNDS = 10
_MOST_LIFTED = 64
"""Nodes of a graph up to which floats become operands."""
_LINEAR_ALGEBRA = "aten._linalg_check_errors"
"""What PyTorch calls behind each solver and factorisation of matrices, to raise an error at once."""


class Untraceable(Refused):
    """The tracer failed, as it may where an operation cannot take a size that is a symbol."""


@dataclass(eq=False)
class WholeFunctions:
    """Makes regions of whole functions of one file. ``was_run`` tells whether an expression was
    evaluated while the file's calls were recorded."""

    source: Source
    module: types.ModuleType
    fusibility: Fusibility
    was_run: Callable[[ast.AST], bool]

    def __post_init__(self) -> None:
        self._seen = Observed((), {})
        self._set: frozenset[str] = frozenset()
        # a draw said in other draws would give other numbers
        seeded = torch.Tag.nondeterministic_seeded
        table = {
            operation: rule
            for operation, rule in self.fusibility.table.items()
            if seeded not in operation.tags
        }
        self._table = table | TABLE

    def region(self, entry: Entry, seen: Observed, *, fixed: bool = False) -> dict[str, Any]:
        """The call site, ``graph``, ``symbols`` and subject of the function's whole body, whose call read
        what was ``seen``. With ``fixed`` only the first
        sizes of its tensors, as those of batches, are symbols. Raises Refused with the reason where it cannot
        be one region."""
        if entry.refusal:
            raise Refused(entry.refusal)
        called = {name.rpartition(":")[2] for name in seen.code} | {entry.function.qualname}
        run = [
            function for function in self.source.functions
            if function.qualname in called and any(map(self.was_run, ast.walk(function.node)))
        ]  # fmt: skip
        if reason := outside_state(self.was_run, run):
            raise Refused(reason)
        if seen.problem:
            raise Refused(seen.problem)
        self._seen = seen
        region = self._region(entry, fixed)
        region = self._lifted(region, entry, fixed)
        for change in entry.state.built():
            if not is_set_by_each_call(change, self._set, region["graph"], run):
                name = change.expression
                raise Refused(
                    "The first call sets {name}, which a kernel's would not: set it in __init__.", name=name
                )
        return region

    def _lifted(self, region: dict[str, Any], entry: Entry, fixed: bool) -> dict[str, Any]:
        """The region with operands for floats that the code reads from attributes. Large graphs are traced
        only once: their floats stay conditions."""
        if len(region["graph"]["nodes"]) > _MOST_LIFTED:
            return region
        graph, paths = lifted(
            region["graph"], self._seen.settings, lambda: self._region(entry, fixed)["graph"]
        )
        kept = {guard.condition for guard in self._seen.without(paths)}
        dropped = {guard.condition for guard in self._seen.guards} - kept
        guards = [guard for guard in region["guards"] if CapturedGuard(**guard).condition not in dropped]
        return {**region, "graph": graph, "guards": guards}

    def _region(self, entry: Entry, fixed: bool) -> dict[str, Any]:
        call = call_of(entry, self.module, fix_numbers=False)
        try:
            return self._traced(call, fixed)
        except Refused:
            if not any(leaf.kind == SCALAR for leaf in call.leaves):
                raise
        return self._traced(call_of(entry, self.module, fix_numbers=True), fixed)

    def _traced(self, call: EntryCall, fixed: bool) -> dict[str, Any]:
        inputs = inputs_of(call.leaves, fixed, self._seen.attributes | self._seen.by_text)
        pinned: set[Key] = set()
        for _ in range(_MAX_ROUNDS):
            try:
                result = self._trace(call, inputs, pinned)
                more = result.symbols_to_pin() - pinned
            except Untraceable:
                if not fixed:
                    return self._traced(call, fixed=True)
                more = {key for i, operand in enumerate(inputs) for key in _keys(operand, i)} - pinned
                if not more:
                    raise
                pinned |= more
                continue
            except Unsupported as error:  # a number that is an argument, where PyTorch takes no tensor
                raise Refused(error.sentence) from error
            if not more:
                try:
                    return self._converted(call, result)
                except InexpressibleSize as error:
                    more = result.keys_of(error.symbols) - pinned
            pinned |= more or {key for i, operand in enumerate(inputs) for key in _keys(operand, i)}
        raise Refused("Its sizes decide on each other in more ways than can be followed: use fixed sizes.")

    def _trace(self, call: EntryCall, inputs: tuple[Input, ...], pinned: set[Key]) -> WholeTrace:
        """Raises Refused with what stopped the tracer."""
        state = random.getstate()
        try:
            with ExitStack() as stack:
                stack.enter_context(on_host())
                stack.enter_context(lines_noted(self.module, self.source, ENTER, EXIT))
                stack.enter_context(overridden(self.fusibility.fits))
                result = trace(call, inputs, self._table, pinned)
        except Unsupported as error:
            raise Refused(error.sentence) from error
        except Exception as error:
            line = line_of(error, self.source.path)
            if _LINEAR_ALGEBRA in str(error):
                raise Refused(
                    "Line {line} solves or factors matrices, which no kernel does.", line=line
                ) from error
            unknown = Sentence("Line {line} could not be traced ({error}).", line=line, error=describe(error))
            raise Untraceable(values_missing(error, line) or unknown) from error
        if random.getstate() != state:
            random.setstate(state)
            raise Refused("It draws random numbers of Python, which change from call to call: use torch's.")
        return result

    def _converted(self, call: EntryCall, whole_trace: WholeTrace) -> dict[str, Any]:
        """Raises Refused, or InexpressibleSize with symbols that tracing must pin."""
        made = {change.expression for change in call.changes}
        read = {path: tensor for path, tensor in self._seen.tensors.items() if path not in made}
        check_passed(read, (leaf.known_as for leaf in call.leaves), Refused)
        conditions = [*call.conditions]
        if isinstance(call.entry.receiver, torch.nn.Module):
            conditions += was_called(call.entry.function.receiver, call.entry.receiver)
        try:
            converter = DrawingConverter(whole_trace.traced, call.leaves, self.source.path)
            outcome = self._outcome(call)
            results = Results(call, whole_trace, converter, outcome.layouts)
            graph = converter.graph(results.wanted)
            check_writes(graph, self._seen.attributes | self._seen.by_text)
            conditions += results.conditions_of_writing(graph)
            conditions += self._ordered(call, graph, outcome)
            conditions += aliases(call.places, graph)
            conditions += states(call.leaves, self._seen.tensors, self._seen.attributes, self._seen.by_text)
            conditions += converter.asked_of_unread(self._seen.tensors.values())
        except InexpressibleSize:
            raise
        except Unsupported as error:
            raise Refused(self._missing(whole_trace) or error.sentence) from error
        self._check(graph)
        self._set = frozenset(change.expression for change in call.changes)
        symbols = self._symbols(call, results, converter, graph)
        specs, copies = tuple(converter.bound_specs()), tuple(results.copied.items())
        warned = outcome.warned
        subject = Subject(call, call.leaves, specs, tuple(results.places), copies, warned)
        asked = [CapturedGuard("", text) for text in conditions]
        template, original = results.replacement(self.source)
        guards, function = (*asked, *self._seen.guards), call.entry.function
        names, bound = function.local_names, function.bound_names
        try:
            known = vars(self.module)
            site = CallSite(
                template, original, guards, self._seen.code, names, bound, known, warned=warned
            ).data(graph)
        except Unsupported as error:
            raise Refused(error.sentence) from error
        return {**site, "graph": graph, "symbols": symbols, KEY: subject}

    def _outcome(self, call: EntryCall) -> Outcome:
        """How the function's results lie in memory, whatever device computes them, and of what it warns.
        Raises Refused."""
        try:
            with on_host(), enable_python_dispatcher(), overridden(self.fusibility.fits):
                result = outcome_of(call, call.leaves)
                if REQUIRES_GRAD in self._seen.attributes | self._seen.by_text:
                    # the call may have set it before: then it is set where it was not
                    with suppress(RuntimeError, TypeError, AttributeError):
                        outcome_of(call, call.leaves, as_captured=False)
                return result
        except Refused:
            raise
        except Exception as error:
            raise Refused(
                "It could not be run with operands that lie in memory as they were passed ({error}).",
                error=describe(error),
            ) from error

    def _ordered(self, call: EntryCall, graph: dict[str, Any], outcome: Outcome) -> list[str]:
        """Python texts that hold where results lie in memory so."""
        read = [operand["expression"] for operand in graph["inputs"]]
        with on_host(), enable_python_dispatcher(), overridden(self.fusibility.fits):
            return [*conditions_of_order(call, call.leaves, read, outcome)]

    def _missing(self, whole_trace: WholeTrace) -> Sentence:
        """The operations that no family covers; empty where all are covered."""
        nodes = [node for node in whole_trace.traced.graph.nodes if str(node.target).startswith("aten.")]
        names = [(_name(node), node) for node in nodes]
        ignored = (*IGNORED, "aten.sym_")
        return joined(
            uncovered(name, line_in(element.meta.get("stack_trace") or "", self.source.path))
            for name, element in names
            if not self.fusibility.fits(name) and not name.startswith(ignored)
        )

    def _check(self, graph: dict[str, Any]) -> None:
        missing = [named for named in names_in(graph["nodes"]) if not self.fusibility.fits(named[0])]
        if missing:
            raise Refused(joined(uncovered(name, line) for name, line in missing))
        if not graph["nodes"]:  # views alone are copied into the memory of the result
            raise Refused("Nothing is left to compute after simplification.")
        if mixed := types_that_differ(graph):
            raise Refused(mixed)

    def _symbols(
        self, call: EntryCall, results: Results, converter: DrawingConverter, graph: dict[str, Any]
    ) -> list[dict[str, Any]]:
        shapes = [*results.shapes, *map(converter.output_shape, results.written.values())]

        def run(*values: Any) -> Any:
            flat = pytree.tree_leaves(call(*values))
            changed = [values[index] for index in results.written]
            return [*(flat[position] for position in results.positions), *changed]

        function = RegionFunction(run, call.leaves)
        with on_host(), stacks_kept(self.fusibility.fits):
            return least_sizes(function, converter.bound_specs(), shapes, converter.sizes)


def _name(node: torch.fx.Node) -> str:
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda element: element.meta.get("val"))
    return name_for(ATEN_NAMES.get(str(node.target), str(node.target)), args, kwargs)


def _keys(input_: Input, index: int) -> list[Key]:
    keys = (input_.key(index, dim) for dim in range(len(input_.shape)))
    return [key for key in keys if key is not None]
