"""The agent's answer as Regions, and the file's shape comments as the agent's request."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path
from typing import Any

from attrs import frozen

from evokernel_core.capture.annotation import parse_annotation
from evokernel_core.capture.category import op_category, task_name
from evokernel_core.capture.finder import Definition, Document, find
from evokernel_core.capture.text import text_at
from evokernel_core.domain.call_site import CallSite, Guard
from evokernel_core.domain.errors import ShapesNeeded
from evokernel_core.domain.graph import Graph
from evokernel_core.domain.region import Region, RegionStatus, Span
from evokernel_core.domain.sentence import Sentence, sentence_of
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.domain.task import KernelTask, Symbol, in_order_of_use, tolerance_for

_NOT_CALLED = Sentence(
    "The shapes of its inputs are unknown: run a program that uses it as 'evokernel observe -- "
    "COMMAND', or add get_inputs()."
)
"""Alike for all definitions, so that a list says it once."""
_LOOKUPS = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Load, ast.UnaryOp, ast.USub)


@frozen
class Outline:
    """What a file says without being run: its definitions, the arguments that their shape comments
    give in the agent's form, and the comments that do not parse."""

    definitions: tuple[Definition, ...]
    annotations: dict[str, dict[str, Any]]
    malformed: dict[str, Sentence]

    @classmethod
    def of(cls, text: str) -> Outline:
        definitions = find(Document(text))
        annotations, malformed = {}, {}
        for definition in definitions:
            if definition.annotation:
                try:
                    annotations[definition.qualname] = _arguments(definition.annotation)
                except ShapesNeeded as error:
                    malformed[definition.qualname] = error.sentence
        return cls(definitions, annotations, malformed)


def _arguments(annotation: str) -> dict[str, Any]:
    return {name: to_data(value) for name, value in parse_annotation(annotation).items()}


def regions_of(
    path: Path, text: str, answer: Any, outline: Outline, symbol: str | None
) -> tuple[Region, ...]:
    """The regions of one capture, in source order. A definition that nothing gave shapes to, or that
    could not be called, is one region on its name that says why; a function that takes no tensors has no
    shapes to give."""
    captured = [_region(path, text, region) for region in answer["regions"]]
    not_called = _not_reached(answer["stopped"][0]) if answer["stopped"] else _NOT_CALLED
    problems = {
        problem["symbol"]: (problem["reason"], sentence_of(problem["message"]))
        for problem in answer["problems"]
    }
    for definition in outline.definitions:
        name = definition.qualname
        reason, message = problems.get(name, ("needs_shapes", outline.malformed.get(name, Sentence())))
        executed = any(data == name or data.startswith(name + ".") for data in answer["executed"])
        wanted = not symbol or name == symbol or symbol.startswith(name + ".")
        asked = name in problems or bool(definition.annotation) or name not in answer["helpers"]
        shown = any(region.task for region in captured if f"{region.symbol}.".startswith(f"{name}."))
        if wanted and asked and (not executed or (name in problems and not shown)):
            captured.append(_unknown(path, text, definition, reason, message or not_called))
    return tuple(sorted(captured, key=lambda region: (region.span.line, region.span.column)))


def _not_reached(line: int) -> Sentence:
    """Why a definition has no shapes where the run that would have called it ended early."""
    return Sentence(
        "The run of the file stopped at line {line} before anything called it. Run a program that "
        "uses it as 'evokernel observe -- COMMAND', or note its shapes.",
        line=line,
    )


def _unknown(path: Path, text: str, definition: Definition, reason: str, message: Sentence) -> Region:
    source = text_at(text, definition.name_span)
    digest = hashlib.sha256(source.encode()).hexdigest()
    needs_shapes = reason == ShapesNeeded.reason
    return Region(
        id=identity(definition.qualname, digest, 1),
        file=str(path),
        symbol=definition.qualname,
        span=definition.name_span,
        source=source,
        source_hash=digest,
        op_category="other",
        status=RegionStatus.NEEDS_SHAPES if needs_shapes else RegionStatus.UNSUPPORTED,
        reason=message,
    )


def _region(path: Path, text: str, data: dict[str, Any]) -> Region:
    span = Span(*data["span"])
    source = text_at(text, span)
    digest = hashlib.sha256(source.encode()).hexdigest()
    task = _task(data) if data["graph"] is not None else None
    return Region(
        id=identity(data["symbol"], digest, data["number"]),
        file=str(path),
        symbol=data["symbol"],
        span=span,
        source=source,
        source_hash=digest,
        op_category=task.op_category if task else "other",
        status=RegionStatus(data["status"]),
        reason=sentence_of(data["reason"]),
        task=task,
        site=_site(data) if task else None,
    )


def _site(data: dict[str, Any]) -> CallSite:
    return CallSite(
        template=data["replacement"],
        original=data["original"],
        bindings=tuple(data["bindings"].items()),
        rest=data["rest"],
        carried=tuple(data["carried"]),
        asks_late=data["asks_late"],
        parameters=tuple(data["parameters"]),
        guards=tuple(Guard(**guard) for guard in data["guards"]),
        code=tuple(data["code"].items()),
        enclosed=data["enclosed"],
        module_names=tuple(data["module_names"]),
        default_dtype=data["default_dtype"],
        whole_numbers=tuple(data["whole_numbers"]),
        warned=tuple((category, text) for category, text in data["warned"]),
    )


def identity(symbol: str, digest: str, number: int) -> str:
    """A region's id. Equal texts in one symbol are told apart by their number; other edits leave it alone."""
    return hashlib.sha256(f"{symbol}\0{digest}\0{number}".encode()).hexdigest()[:16]


def _task(data: dict[str, Any]) -> KernelTask:
    graph = from_data(data["graph"], Graph)
    task = KernelTask(
        name=task_name(graph, data["symbol"]),
        graph=graph,
        symbols=tuple(Symbol(**symbol) for symbol in data["symbols"]),
        tolerance=tolerance_for(graph),
        op_category=op_category(graph),
    )
    # a call evaluates its arguments from left to right: what draws or assigns keeps its place
    return in_order_of_use(task) if all(_only_reads(given.expression) for given in graph.inputs) else task


def _only_reads(expression: str) -> bool:
    """Whether evaluating it is looking something up: a name, an attribute or an element by a constant."""
    if not expression:
        return True
    nodes = ast.walk(ast.parse(expression, mode="eval").body)
    return all(isinstance(node, _LOOKUPS) for node in nodes)
