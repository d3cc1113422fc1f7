"""The ``capture`` method: a file's text in, its regions out."""

from __future__ import annotations

import ast
import traceback
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from ..decompositions.composites import classes_kept, kept_whole, stacks_kept
from ..decompositions.compositions import WithoutWrites
from ..errors import AgentError, Refused, Unsupported, describe
from ..graph.checks import OF_KERNELS
from ..graph.complex_names import names_in
from ..graph.convert import Converter, is_whole
from ..graph.unread import check_passed, states, walked
from ..guards.guard import CapturedGuard
from ..guards.lifting import lifted
from ..guards.observed import Observed, observed
from ..inputs.calls_made import CallProblem, Trial
from ..inputs.entry import Entry, entry_of, state_of
from ..inputs.helpers import helpers
from ..inputs.observed import Observation, pinned_number
from ..inputs.program import Program
from ..inputs.state import restored
from ..inputs.trials import Known, default_dtype, trials
from ..loading.devices import on_host
from ..loading.imports import Imports
from ..loading.lazy_modules import lazy_modules, was_called
from ..loading.load import execute, isolation, line_of, parsed
from ..loading.no_memory import WithoutMemory, without_values
from ..loading.npu import stand_in
from ..loading.record import Recorder
from ..loading.source import Source, SourceFunction, definitions, number_of, numbers_of
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
from .parts import KEY, SCALAR, Refusal, RegionPlan, Subject, taken_out
from .results import statements_of
from .tensor_effects import Warned
from .writes import check_writes, conditions_of_writing

_MAX_PINNINGS = 3
_MOST_TRIED = 16
"""Whole functions of a file that are tried, with those that refused ones call."""
_Captured = tuple[dict[str, Any], list[dict[str, Any]], list[str], tuple[dict[str, Any], ...]]
_MAX_REGROWTHS = 12


@dataclass(frozen=True)
class Asked:
    """What a capture is to look at: only the definition ``symbol``, where one is named. ``whole`` lets a
    region take several kernels; ``ways`` names functions to be taken otherwise then, in ``parts`` or with
    ``fixed`` sizes. With ``evaluation`` modules are called in that mode."""

    symbol: str | None = None
    whole: bool = False
    ways: Mapping[str, str] = field(default_factory=dict)
    evaluation: bool = False


def capture(
    path: str,
    text: str,
    imports: Imports,
    fusible: dict[str, str],
    known: Known,
    asked: Asked,
    subjects: list[tuple[dict[str, Any], Subject]] | None = None,
) -> dict[str, Any]:
    """``{"regions", "executed": [qualnames], "stopped": [lines], "helpers": [those that take no tensors],
    "problems", "defects": [tracebacks]}``; calls of the file ended early at the lines of ``stopped``. Raises
    AgentError. The code of candidates joins ``subjects``, each with its region.

    A region is ``{"symbol", "span", "replacement", "status", "reason", "graph", "symbols"}``, a candidate
    also what ``CallSite.data`` gives; graph and symbols are None for any other, whose reason says why.
    """
    whole = asked.whole
    source = parsed(path, text, imports)
    recorder = Recorder(source)
    problems: list[CallProblem] = []
    entries: list[Entry | None] = []
    ran: list[Observed | dict[str, Any]] = []
    unentered: list[dict[str, Any]] = []
    with (
        isolation(Path(path), imports),
        lazy_modules(),
        without_values(),
        WithoutWrites(),
        WithoutMemory(),
        stand_in(),
        ExitStack() as kept,
    ):
        fake = FakeTensorMode(allow_non_fake_inputs=True)
        with on_host(), fake, torch.no_grad():
            recorder.watch = program = Program(source)
            module = execute(source, recorder)
            if whole:
                program.state_of = partial(state_of, module=module)
            torch.set_default_dtype(default_dtype(module, known))
            fusibility = Fusibility(fusible, whole)
            kept.enter_context(kept_whole(fusibility.fits))
            request = _Request(source, module, recorder, fusibility, asked.ways, known.observations)
            parts = {name for name, way in asked.ways.items() if way == "parts"}
            calls = trials(module, source, known, program, request.was_run, problems)
            for trial in _explained(calls, recorder):
                if asked.evaluation and isinstance(trial.function, torch.nn.Module):
                    trial.function.eval()
                entry = entry_of(trial, source, module) if whole else None
                if whole and entry is None:
                    unentered += _unentered(trial, source)
                entry = entry if entry and entry.function.qualname not in parts else None
                entries.append(entry)
                with stacks_kept() if whole else nullcontext():
                    ran.append(_run(trial, recorder, source, entry, module, problems))
                if entry:
                    entry.state.end()  # before the next one is put into evaluation
            failures = [entry for entry in ran if not isinstance(entry, Observed)]
        wanted = [function for function in source.functions if _matches(function, asked.symbol)]
        inside = partial(_inside, program, source, module, fake)
        regions, covered = request.whole_regions(entries, ran, wanted, inside) if whole else ([], frozenset())
        refused = {region["symbol"] for region in regions if region["graph"] is None}
        for function in wanted:
            if function.qualname not in covered:
                smaller = request.contained(function)
                # why there is no region of all of it is said once
                regions += [part for part in smaller if part["graph"] or function.qualname not in refused]
        regions = request.with_applied(regions, wanted)
        without_tensors = helpers(source, module) | program.without_tensors
    regions += [
        part for part in (*failures, *unentered)
        if part and not _covers(regions, part)
    ]  # fmt: skip
    executed = [function.qualname for function in source.functions if request.was_executed(function)]
    regions.sort(key=lambda region: region["span"])
    candidates = taken_out(regions)
    if subjects is not None:
        recorder.watch = None  # the code runs again, and nothing is to be noted then
        subjects += candidates
    return {
        "regions": regions,
        "executed": executed,
        "stopped": [failure["span"][0] for failure in failures if failure],
        "helpers": sorted(without_tensors),
        "problems": [problem.data() for problem in problems],
        "defects": request.defects,
    }


def _matches(function: SourceFunction, symbol: str | None) -> bool:
    return not symbol or function.qualname == symbol or function.qualname.startswith(symbol + ".")


def _covers(regions: list[dict[str, Any]], failure: dict[str, Any]) -> bool:
    return any(region["span"] == failure["span"] for region in regions)


def _explained(calls: Iterator[Trial], recorder: Recorder) -> Iterator[Trial]:
    """The calls; where none can be made of a file that was executed in part, that is the reason."""
    try:
        yield from calls
    except AgentError as error:
        raise recorder.stopped or error from error


def _run(
    trial: Trial,
    recorder: Recorder,
    source: Source,
    entry: Entry | None,
    module: types.ModuleType,
    problems: list[CallProblem],
) -> Observed | dict[str, Any]:
    """Run one call under the recorder: what it read, or the region of the statement that failed, empty where
    that is among the problems. A failure ends the call; what ran before it still counts."""
    try:
        with recorder.running():
            trial.run()
        if entry is None:
            return Observed((), {})
        own = ((source.path, entry.function.qualname),)
        with restored(entry.holders):
            return observed(trial.run, entry.roots, module, source.imports.root, own)
    except BaseException as error:
        try:
            return _failed_statement(trial, error, source)
        except AgentError as outside:
            if not trial.observed:
                raise
            problems.append(CallProblem(trial.what, outside.reason, outside.sentence))
            return {}


def _inside(
    program: Program, source: Source, module: types.ModuleType, fake: FakeTensorMode, caller: str
) -> Iterator[tuple[Entry, Observed]]:
    """The calls of modules that a function of the file made, with what each read."""
    with on_host(), fake, torch.no_grad(), stacks_kept():
        for trial, state in program.inside(caller, module):
            entry = entry_of(trial, source, module, state)
            if entry is not None:
                yield entry, _seen_again(trial, entry, source, module)


def _seen_again(trial: Trial, entry: Entry, source: Source, module: types.ModuleType) -> Observed:
    """What a call read that the program made; where it cannot be made again, that is the problem."""
    own = ((source.path, entry.function.qualname),)
    try:
        with restored(entry.holders):
            return observed(trial.run, entry.roots, module, source.imports.root, own)
    except Exception as error:
        return Observed((), {}, _explain(error, line_of(error, source.path) or entry.function.node.lineno))


def _unentered(trial: Trial, source: Source) -> Iterator[dict[str, Any]]:
    """Why a definition of the file that was called is no function that a region can stand for."""
    result = definitions(source, trial.what, f"{trial.what}.forward")
    for function in result[-1:]:
        name, body = function.qualname, statements_of(function.node)
        reason = Sentence(
            "What is called as {name} is no plain function: a kernel cannot stand for it.", name=name
        )
        if len(result) > 1:
            reason = Sentence("{name} is defined {count} times: keep one.", name=name, count=len(result))
        yield _region(source, function, body, "{call}", reason)


def _failed_statement(trial: Trial, error: BaseException, source: Source) -> dict[str, Any]:
    line = line_of(error, source.path)
    message = _explain(error, line)
    for function in source.functions:
        if function.node.lineno <= line <= (function.node.end_lineno or 0):
            statement = _statement_at(function.node, line)
            return _region(source, function, [statement], "{call}", message)
    raise AgentError(
        "import_failed",
        "Running {what} failed ({error}): correct its inputs.",
        what=trial.what,
        error=describe(error),
    )


def _explain(error: BaseException, line: int) -> Sentence:
    if reason := values_missing(error, line):
        return reason
    if ".numpy() is not supported" in str(error) or ".tolist() is not supported" in str(error):
        return Sentence(
            "Line {line} takes a tensor out of PyTorch, where no kernel can follow: stay with tensors.",
            line=line,
        )
    if isinstance(error, RecursionError):
        return Sentence("Line {line} recurses without end.", line=line)
    return Sentence(
        "Line {line} raised {error}: correct it or the shapes of the inputs.",
        line=line,
        error=describe(error),
    )


def _statement_at(function: ast.FunctionDef, line: int) -> ast.stmt:
    """The innermost statement that covers the line."""
    stmt: ast.stmt = function
    for node in ast.walk(function):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
            stmt = node  # breadth first: later means deeper or equal
    return stmt


@dataclass(eq=False)
class _Request:
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
        return {**_region(self.source, entry.function, body, "{call}", ""), **region}

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
            return [_region(self.source, function, statements_of(function.node)[:1], "{call}", reason)]

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
                call = {**_region(self.source, function, [edit.call], "{call}", reason), "status": "applied"}
                taken = _region(self.source, function, [edit.first, edit.last], "", "")["span"]
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
            return _region(self.source, plan.function, [plan.node], "{call}", plan.reason)
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
        region = _region(self.source, plan.function, list(plan.body), site["replacement"], "")
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
        return _region(self.source, plan.function, list(plan.body), plan.replacement, reason)

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


def _region(
    source: Source, function: SourceFunction, nodes: list[Any], replacement: str, reason: str
) -> dict[str, Any]:
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
