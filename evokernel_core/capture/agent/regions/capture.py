"""The ``capture`` method: a file's text in, its regions out."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from ..decompositions.composites import kept_whole, stacks_kept
from ..decompositions.compositions import WithoutWrites
from ..errors import AgentError, describe
from ..guards.observed import Observed, observed
from ..inputs.calls_made import CallProblem, Trial
from ..inputs.entry import Entry, entry_of, state_of
from ..inputs.helpers import helpers
from ..inputs.program import Program
from ..inputs.state import restored
from ..inputs.trials import Known, default_dtype, trials
from ..loading.devices import on_host
from ..loading.imports import Imports
from ..loading.lazy_modules import lazy_modules
from ..loading.load import execute, isolation, line_of, parsed
from ..loading.no_memory import WithoutMemory, without_values
from ..loading.npu import stand_in
from ..loading.record import Recorder
from ..loading.source import Source, SourceFunction, definitions
from ..sentence import Sentence
from ..tracing.fusibility import Fusibility
from .data_dependent import values_missing
from .parts import Subject, taken_out
from .request import Request, described
from .results import statements_of


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
            request = Request(source, module, recorder, fusibility, asked.ways, known.observations)
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
        yield described(source, function, body, "{call}", reason)


def _failed_statement(trial: Trial, error: BaseException, source: Source) -> dict[str, Any]:
    line = line_of(error, source.path)
    message = _explain(error, line)
    for function in source.functions:
        if function.node.lineno <= line <= (function.node.end_lineno or 0):
            statement = _statement_at(function.node, line)
            return described(source, function, [statement], "{call}", message)
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
