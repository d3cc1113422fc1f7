"""What one capture takes out of a file: whole functions and parts of them, tried, exported, described."""

from __future__ import annotations

import ast
import traceback
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from ..decompositions.composites import classes_kept
from ..errors import Refused, Unsupported, describe
from ..graph.checks import OF_KERNELS
from ..graph.complex_names import names_in
from ..graph.convert import Converter, is_whole
from ..graph.unread import check_passed, states, walked
from ..guards.guard import CapturedGuard
from ..guards.lifting import lifted
from ..guards.observed import Observed, observed
from ..inputs.entry import Entry
from ..inputs.observed import Observation, pinned_number
from ..loading.lazy_modules import was_called
from ..loading.load import line_of
from ..loading.record import Recorder
from ..loading.source import Source, SourceFunction, number_of, numbers_of
from ..reference.half_precision import types_that_differ
from ..sentence import Sentence
from ..tracing.export import (
    RegionFunction,
    Traced,
    examples,
    export,
    export_static,
    export_without,
    region_function,
)
from ..tracing.fusibility import Fusibility
from ..tracing.sizes import InexpressibleSize
from ..tracing.zero_one import least_sizes
from .absorb import Absorber
from .call_site import Applied, CallSite, applied_calls, is_enclosed, of_region
from .data_dependent import values_missing
from .full_graph import WholeFunctions
from .grow import grow
from .layouts import Outcome, conditions_of_order, outcome_of
from .operands import Computed, computed, may_run_code, rest_of
from .parts import KEY, SCALAR, Refusal, RegionPlan, Subject
from .results import statements_of
from .tensor_effects import Warned
from .writes import check_writes, conditions_of_writing

_MAX_PINNINGS = 3
_MOST_TRIED = 16
"""Whole functions of a file that are tried, with those that refused ones call."""
_Captured = tuple[dict[str, Any], list[dict[str, Any]], list[str], tuple[dict[str, Any], ...]]
_MAX_REGROWTHS = 12


@dataclass(eq=False)
class Request:
    """``defects`` collects tracebacks of the capture's own errors."""

    source: Source
    module: types.ModuleType
    recorder: Recorder
    fusibility: Fusibility
    ways: Mapping[str, str]
    observations: Sequence[Observation]
    defects: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._applied = applied_calls(self.source)
        self._done: dict[Any, dict[str, Any] | frozenset[int]] = {}

    def was_run(self, qualname: str) -> bool:
        """Whether a call has run a function, or the forward of a class."""
        names = (qualname, f"{qualname}.forward")
        return any(
            self.was_executed(function) for function in self.source.functions if function.qualname in names
        )

    def was_executed(self, function: SourceFunction) -> bool:
        return any(number in self.recorder.evaluations for number in numbers_of(function))

    def whole_regions(
        self,
        entries: list[Entry | None],
        ran: list[Any],
        wanted: list[SourceFunction],
        inside: Callable[[str], Iterator[tuple[Entry, Observed]]],
    ) -> tuple[list[dict[str, Any]], frozenset[str]]:
        """Regions of whole functions, and the names of those functions. Where one region takes all that
        the file's calls do, nothing is left for the functions that they call in turn. Where one is refused,
        or not wanted, the modules that it calls are tried: those that ``inside`` gives."""
        maker = WholeFunctions(self.source, self.module, self.fusibility, self._was_run)
        regions, covered = [], set()
        waiting = deque(zip(entries, ran))  # noqa: B905
        tried = {entry.function.qualname for entry in entries if entry is not None}
        while waiting:
            entry, seen = waiting.popleft()
            if entry is None:
                continue
            name = entry.function.qualname
            if entry.function in wanted and isinstance(seen, Observed):
                regions.append(self._whole(maker, entry, seen))
                if regions[-1]["graph"] is not None:
                    covered.add(name)
                    continue
            if len(tried) < _MOST_TRIED:
                inner = [entry for entry in inside(name) if entry[0].function.qualname not in tried]
                tried |= {element[0].function.qualname for element in inner}
                waiting.extend(inner)
        if all(entry is not None and entry.function.qualname in covered for entry in entries):
            covered = {function.qualname for function in self.source.functions}
        return regions, frozenset(covered)

    def _whole(self, maker: WholeFunctions, entry: Entry, seen: Observed) -> dict[str, Any]:
        """The region of a whole function, or of why there is none."""
        region: dict[str, Any]
        body = statements_of(entry.function.node)
        fixed = self.ways.get(entry.function.qualname) == "fixed"
        try:
            if any(self._is_inside(edit, entry.function) for edit in self._applied):
                raise Refused("It already calls a generated kernel.")
            region = {**maker.region(entry, seen, fixed=fixed), "status": "candidate"}
            self._check_numbers(entry, region)
        except Refused as error:
            region = {"reason": error.sentence.data()}
        except Exception as error:  # costs this function's program alone
            region = {"reason": self._defect(error, entry.function.node.lineno).data()}
        return {**described(self.source, entry.function, body, "{call}", ""), **region}

    def _check_numbers(self, entry: Entry, region: dict[str, Any]) -> None:
        """Raises Refused where the region would serve few of the calls that were observed."""
        name = pinned_number(entry, region["guards"], self.observations)
        if name:
            raise Refused(
                "Its {name} was another number in most of the observed calls, and a kernel of it all is "
                "for one: pass it as a tensor. What does not depend on it is offered by itself.",
                name=name,
            )

    def _was_run(self, node: ast.AST) -> bool:
        return number_of(node) in self.recorder.evaluations

    def contained(self, function: SourceFunction) -> list[dict[str, Any]]:
        """Its regions; a defect of ours costs this function alone, with a sentence and its traceback."""
        try:
            return self.regions(function)
        except Exception as error:
            reason = self._defect(error, function.node.lineno)
            return [described(self.source, function, statements_of(function.node)[:1], "{call}", reason)]

    def _defect(self, error: BaseException, line: int) -> Sentence:
        self.defects.append(traceback.format_exc())
        return Sentence(
            "Line {line} met a defect of EvoKernel while its regions were captured ({error}): please "
            "report it with the traceback in the log.",
            line=line,
            error=describe(error),
        )

    def regions(self, function: SourceFunction) -> list[dict[str, Any]]:
        """Grow, export, and grow again without the expressions that could not be arguments."""
        blocked: frozenset[int] = frozenset()
        for _ in range(_MAX_REGROWTHS):
            evaluations = self.recorder.evaluations
            absorber = Absorber(self.source, function, evaluations, self.fusibility, blocked)
            results = [result for grown in grow(absorber) for result in self._results(grown)]
            more = frozenset().union(*(result for result in results if isinstance(result, frozenset)))
            if not more - blocked:
                return [result for result in results if isinstance(result, dict)]
            blocked |= more
        return [result for result in results if isinstance(result, dict)]

    def with_applied(
        self, regions: list[dict[str, Any]], wanted: list[SourceFunction]
    ) -> list[dict[str, Any]]:
        """The regions, and the calls of kernels that the file makes, without the code behind their guards."""
        for function in wanted:
            for edit in self._applied:
                if not self._is_inside(edit, function):
                    continue
                reason = Sentence("Line {line} already calls a generated kernel.", line=edit.call.lineno)
                call = {
                    **described(self.source, function, [edit.call], "{call}", reason),
                    "status": "applied",
                }
                taken = described(self.source, function, [edit.first, edit.last], "", "")["span"]
                regions = [region for region in regions if not _overlap(region["span"], taken)]
                regions.append(call)
        return regions

    @staticmethod
    def _is_inside(applied: Applied, function: SourceFunction) -> bool:
        return any(node is applied.call for node in ast.walk(function.node))

    def _results(self, plan: RegionPlan | Refusal) -> Iterator[dict[str, Any] | frozenset[int]]:
        """The result of a plan, or those of its regions where one kernel cannot give all of them."""
        result = self._result(plan)
        if isinstance(plan, RegionPlan) and plan.apart and isinstance(result, dict) and not result["graph"]:
            for part in plan.apart:
                yield from self._results(part)
        else:
            yield result

    def _result(self, plan: RegionPlan | Refusal) -> dict[str, Any] | frozenset[int]:
        if isinstance(plan, Refusal):
            return described(self.source, plan.function, [plan.node], "{call}", plan.reason)
        if plan.key not in self._done:
            self._done[plan.key] = self._export(plan)
        return self._done[plan.key]

    def _export(self, plan: RegionPlan) -> dict[str, Any] | frozenset[int]:
        """A region, or the expressions to keep outside and try again."""
        strided = (plan.origin(result) for result in plan.results if not result.value.is_contiguous())
        if views := frozenset(number_of(origin) for origin in strided if self._is_view(origin)):
            return views
        try:
            operands = computed(plan, self.source)
            receiver = self._receiver(plan.function)
            function = region_function(plan, self.module, receiver, self.source.path, operands.expressions)
            graph, symbols, unread, specs = self._graph(plan, function)
            seen = self._observed(plan, function, receiver)
            graph, settings = lifted(graph, seen.settings, lambda: self._graph(plan, function)[0])
            check_writes(graph, seen.attributes | seen.by_text)
            outcome = outcome_of(function.call, function.inputs)
            whole = tuple(leaf.expression for leaf in function.inputs if is_whole(leaf))
            texts = (
                *unread,
                *_ordered(function, graph, outcome),
                *conditions_of_writing(function.inputs, graph),
                *states(function.inputs, seen.tensors, seen.attributes, seen.by_text),
                *walked(seen.walked, function.inputs),
                *self._modules_named(plan),
            )
            asked = (*seen.without(settings), *_sized(plan), *(CapturedGuard("", text) for text in texts))
            site = self._site(plan, operands, asked, seen.code, whole, outcome.warned).data(graph)
        except (Unsupported, Refused) as error:
            return self._refused(plan, error.sentence)
        except Exception as error:
            unknown = Sentence("torch.export could not trace it ({error}).", error=describe(error))
            line = line_of(error, self.source.path) or plan.last.lineno
            reason = values_missing(error, line) or unknown
            return _scalar_owners(plan) or self._refused(plan, reason)
        region = described(self.source, plan.function, list(plan.body), site["replacement"], "")
        places = tuple((position, position, ()) for position in range(len(plan.results)))
        subject = Subject(function.call, function.inputs, specs, places, warned=outcome.warned)
        return {**region, **site, "status": "candidate", "graph": graph, "symbols": symbols, KEY: subject}

    def _site(
        self,
        plan: RegionPlan,
        operands: Computed,
        asked: tuple[CapturedGuard, ...],
        code: Mapping[str, str],
        whole_numbers: tuple[str, ...],
        warned: tuple[Warned, ...],
    ) -> CallSite:
        """Where a plan's kernel is called. Raises Unsupported for code that a call cannot stand beside."""
        template, original = of_region(plan, self.source)
        known = vars(self.module)
        return CallSite(
            template,
            original,
            asked,
            code,
            plan.function.local_names,
            plan.function.bound_names,
            known,
            operands.texts,
            rest_of(plan, operands, known),
            may_run_code(plan, operands, self._value),
            is_enclosed(plan, self.source),
            whole_numbers,
            warned,
        )

    def _modules_named(self, plan: RegionPlan) -> Iterator[str]:
        """That names which the function itself gives to modules of torch are theirs."""
        nodes = {
            node.id: node
            for statement in plan.body
            for node in ast.walk(statement)
            if isinstance(node, ast.Name)
        }
        for name, node in nodes.items():
            module = self._value(node)
            if name in plan.function.bound_names and isinstance(module, types.ModuleType):
                yield f'{name} is guards.module("{module.__name__}")'

    def _value(self, node: ast.AST) -> Any:
        evaluation = self.recorder.evaluations.get(number_of(node))
        return evaluation.value if evaluation else None

    def _observed(self, plan: RegionPlan, function: RegionFunction, receiver: Any) -> Observed:
        """What the region reads. Raises Unsupported for what no guard can ask."""
        roots = {plan.function.receiver: receiver} if plan.function.receiver else {}
        modules = {ast.unparse(call.node): call.module for call in plan.parts.modules}
        given = examples(function)

        def run() -> None:
            with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
                function.call(*given)

        project = self.source.imports.root
        seen = observed(run, roots, self.module, project, codes=(function.call.__code__,), modules=modules)
        if seen.problem:
            raise Unsupported(seen.problem)
        # what has no values is in no graph
        valued = {path: read for path, read in seen.tensors.items() if not isinstance(read, FakeTensor)}
        check_passed(valued, (*given, *(leaf.known_as for leaf in function.inputs)), Unsupported)
        return seen

    def _refused(self, plan: RegionPlan, reason: str) -> dict[str, Any]:
        return described(self.source, plan.function, list(plan.body), plan.replacement, reason)

    def _is_view(self, node: ast.AST) -> bool:
        """Whether an expression itself only looks at a tensor in another way, whatever that comes of."""
        evaluation = self.recorder.evaluations.get(number_of(node))
        ops = evaluation.ops if evaluation else []
        return bool(ops) and all(call.func.is_view for call in ops)

    def _receiver(self, function: SourceFunction) -> Any:
        for number in numbers_of(function):
            node = self.source.nodes[number]
            evaluation = self.recorder.evaluations.get(number)
            if evaluation and isinstance(node, ast.Name) and node.id == function.receiver:
                return evaluation.value
        return None

    def _graph(self, plan: RegionPlan, function: RegionFunction) -> _Captured:
        """The graph, its symbols, the conditions on tensors that it does not take, and the specs of all that
        the region does. Raises Unsupported, or what torch raises."""
        with classes_kept(self.fusibility.fits):
            return self._exported(plan, function)

    def _exported(self, plan: RegionPlan, function: RegionFunction) -> _Captured:
        """The same, with sizes as numbers where they cannot be expressed."""
        table = self.fusibility.table
        traced = export(function, table)
        for _ in range(_MAX_PINNINGS):
            try:
                return self._converted(plan, function, traced)
            except InexpressibleSize as error:
                traced = export_without(function, table, traced, error.symbols)
        return self._converted(plan, function, export_static(function, table))

    def _converted(self, plan: RegionPlan, function: RegionFunction, traced: Traced) -> _Captured:
        converter = Converter(traced, function.inputs, self.source.path)
        graph = converter.convert()
        converter.check_whole_numbers()
        _check_ops(graph, self.fusibility)
        _check_outputs(graph, plan)
        read = [leaf.known_as for leaf in function.inputs if not leaf.member]
        input_specs = converter.bound_specs()
        specs = {node["name"]: node["outputs"] for node in graph["nodes"]}
        given = graph["outputs"][: len(plan.results)]
        outputs = [specs[output["ref"]][output["index"]]["shape"] for output in given]
        symbols = least_sizes(function, input_specs, outputs, converter.sizes)
        return graph, symbols, converter.asked_of_unread(read), tuple(input_specs)


def _ordered(function: RegionFunction, graph: dict[str, Any], outcome: Outcome) -> list[str]:
    """Python texts that hold where the result is contiguous, as it was when the region was captured."""
    read = [operand["expression"] for operand in graph["inputs"]]
    return [*conditions_of_order(function.call, function.inputs, read, outcome)]


def _sized(plan: RegionPlan) -> Iterator[CapturedGuard]:
    """That modules which learn sizes from their first call have had it."""
    for call in plan.parts.modules:
        for condition in was_called(ast.unparse(call.node), call.module):
            yield CapturedGuard("", condition)


def _overlap(one: list[int], other: list[int]) -> bool:
    first, second = sorted((span[:2], span[2:]) for span in (one, other))
    return second[0] < first[1]


def _scalar_owners(plan: RegionPlan) -> frozenset[int]:
    """Whole numbers first: they are sizes and dimensions more often than operands."""
    scalars = [leaf for leaf in plan.parts.leaves if leaf.kind == SCALAR]
    whole = [leaf for leaf in scalars if isinstance(leaf.value, int)]
    return frozenset(leaf.owner for leaf in whole or scalars)


def _check_ops(graph: dict[str, Any], fusibility: Fusibility) -> None:
    for name, line in names_in(graph["nodes"]):
        if not fusibility.fits(name):
            raise Unsupported(fusibility.unfit(name, line))
    if not any(fusibility.computes(node["op"]) for node in graph["nodes"]):
        raise Unsupported("Nothing is left to compute after simplification.")
    if mixed := types_that_differ(graph):
        raise Unsupported(mixed)


def _check_outputs(graph: dict[str, Any], plan: RegionPlan) -> None:
    specs = {node["name"]: node["outputs"] for node in graph["nodes"]}
    for position, output in enumerate(graph["outputs"]):
        if not isinstance(output, dict) or output.get("ref") not in specs:
            raise Unsupported("The result is an input, a view or a constant, so there is nothing to compute.")
        dtype = specs[output["ref"]][output["index"]]["dtype"]
        if dtype not in OF_KERNELS:
            raise Unsupported(
                "The result is {dtype}: kernels give {known}.", dtype=dtype, known=", ".join(OF_KERNELS)
            )
        given = plan.results[position : position + 1]
        if any(dtype != str(result.value.dtype).removeprefix("torch.") for result in given):
            raise Unsupported("A Python number decides the result's dtype: convert the tensor explicitly.")
    if not all(result.value.is_contiguous() for result in plan.results):
        raise Unsupported(
            "Its result has the strides of a transposed tensor, and a kernel's would be contiguous: "
            "call contiguous() on that tensor before."
        )


def described(
    source: Source, function: SourceFunction, nodes: list[Any], replacement: str, reason: str
) -> dict[str, Any]:
    """A region that no task is known of yet."""
    first, last = nodes[0], nodes[-1]
    start = _character(source, first.lineno, first.col_offset)
    end = _character(source, last.end_lineno, last.end_col_offset)
    span = [first.lineno, start, last.end_lineno, end]
    return {
        "symbol": function.qualname, "span": span, "replacement": replacement,
        "number": source.number_among_equals(function.node, first, last),
        "status": "unsupported", "reason": Sentence(reason).data(), "graph": None, "symbols": None,
    }  # fmt: skip


def _character(source: Source, line: int, byte: int) -> int:
    """ast counts bytes of UTF-8, the product counts characters."""
    return len(source.lines[line - 1].encode()[:byte].decode())
