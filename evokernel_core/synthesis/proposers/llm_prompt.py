"""What a model is told: the op's spec under names of ours, never text or names from the user's file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from attrs import frozen
from jinja2 import Environment, PackageLoader, StrictUndefined

from evokernel_core.ascendc.knowledge import relevant_cards
from evokernel_core.domain.experience import Experience
from evokernel_core.domain.graph import Arg, DTypeArg, InputKind, SymbolicInt, ValueRef
from evokernel_core.domain.outcome import Objection
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim, TensorSpec
from evokernel_core.synthesis.lessons import summary
from evokernel_core.synthesis.proposers.base import Candidate, Context
from evokernel_core.twin.chip import Chip

MOST_ATTEMPTS = 8
"""Earlier attempts that a prompt mentions, the latest ones."""
LONGEST_ITEM = 12_000
"""Characters of one experience in a prompt."""

_ASKED: Mapping[str, str] = {
    Objection.SLOW: "slower than wanted: it has to gain more than small steps do",
    Objection.UNREADABLE: "hard to read: write fewer and simpler lines",
    Objection.PRECISION: "its precision: compute in float32 from the load to the store",
}
"""What a person's objection asks of the next kernel; their own words stay with them."""
_TASK_NAME = re.compile(r"^Task [^:\n]*:", re.MULTILINE)
_PATH = re.compile(r"(?<![\w)\]])(?:[A-Za-z]:)?(?:[/\\][\w.@+-]+)+[/\\](?=[\w.-])")


@frozen
class Prompt:
    """Messages for the endpoint; ``items`` are the experiences in them, number 1 first."""

    messages: tuple[dict[str, str], ...]
    items: tuple[Experience, ...]


def draft_prompt(task: KernelTask, context: Context, chip: Chip, *, structured: bool) -> Prompt:
    """Asks for a first kernel, or the repair of the last one that failed."""
    return _prompt("draft.md.jinja", task, context, chip, structured)


def refine_prompt(task: KernelTask, context: Context, chip: Chip, *, structured: bool) -> Prompt:
    """Asks for a kernel that is faster than ``context.start``."""
    return _prompt("refine.md.jinja", task, context, chip, structured)


def private(text: str) -> str:
    """A verifier's or an experience's words without task names and folders, which are the user's."""
    return _PATH.sub("", _TASK_NAME.sub("Task:", text))


def _prompt(template: str, task: KernelTask, context: Context, chip: Chip, structured: bool) -> Prompt:
    failed = _last_failure(context.children)
    shown = [item.source.op_kernel_cpp for item in (context.start, failed) if item]
    texts = [*shown, *(item.payload for item in context.experiences)]
    items = _distinct((*context.experiences, *relevant_cards(task, texts)))
    values = {
        "task": describe_task(task),
        "chip": chip,
        "items": [_item(number, item) for number, item in enumerate(items, 1)],
        "start": context.start,
        "failed": failed,
        "attempts": [private(summary(child.verdict)) for child in context.children[-MOST_ATTEMPTS:]],
        "feedback": private(context.feedback),
        "asked": [_ASKED[reason] for reason in context.asked if reason in _ASKED],
        "structured": structured,
    }
    system = _environment().get_template("system.md.jinja").render(values)
    question = _environment().get_template(template).render(values)
    messages = {"role": "system", "content": system}, {"role": "user", "content": question}
    return Prompt(messages, items)


def _last_failure(children: tuple[Candidate, ...]) -> Candidate | None:
    """The latest attempt, if it failed: the one to repair."""
    last = children[-1] if children else None
    if last is None or last.verdict.feasible or last.verdict.is_slower:
        return None
    return last


def _distinct(items: tuple[Experience, ...]) -> tuple[Experience, ...]:
    return tuple({item.id: item for item in items}.values())


def _item(number: int, item: Experience) -> dict[str, Any]:
    body = private(item.body)[:LONGEST_ITEM]
    return {"number": number, "kind": item.kind.value, "title": private(item.title), "body": body}


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("evokernel_core.synthesis", "prompts"),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def describe_task(task: KernelTask) -> dict[str, Any]:
    """The computation line by line: tensors in launch order, steps, outputs, sizes, tolerance."""
    names = _Names(task)
    inputs = [
        {"name": names.value(item.name), "kind": item.kind.value, **names.spec(item.spec)}
        for item in task.graph.inputs
    ]
    outputs = [
        {"name": f"out{position}", "value": names.ref(ref), **names.spec(spec)}
        for position, (ref, spec) in enumerate(
            zip(task.graph.outputs, task.graph.output_specs(), strict=True)
        )
    ]
    tensors = [item["name"] for item in inputs if item["kind"] != InputKind.SCALAR.value]
    return {
        "category": task.op_category,
        "symbols": [(names.symbol(s.name), s.size, s.minimum) for s in task.symbols],
        "inputs": inputs,
        "steps": [names.step(position) for position in range(len(task.graph.nodes))],
        "outputs": outputs,
        "tensors": [*tensors, *(item["name"] for item in outputs)],
        "scalars": [item["name"] for item in inputs if item["kind"] == InputKind.SCALAR.value],
        "tolerance": task.tolerance,
    }


class _Names:
    """New names for a task's inputs (x0...), steps (v0...) and sizes (n0...)."""

    def __init__(self, task: KernelTask) -> None:
        self._graph = task.graph
        self._values: Mapping[str, str] = {
            **{item.name: f"x{i}" for i, item in enumerate(task.graph.inputs)},
            **{node.name: f"v{i}" for i, node in enumerate(task.graph.nodes)},
        }
        self._symbols: Mapping[str, str] = {s.name: f"n{i}" for i, s in enumerate(task.symbols)}

    def value(self, name: str) -> str:
        return self._values[name]

    def symbol(self, name: str) -> str:
        return self._symbols[name]

    def dim(self, dim: Dim) -> str:
        """A size expression over the new names."""
        return re.sub(r"[A-Za-z_]\w*", lambda match: self._symbols[match.group()], str(dim))

    def spec(self, spec: TensorSpec) -> dict[str, str]:
        return {"shape": f"[{', '.join(self.dim(dim) for dim in spec.shape)}]", "dtype": spec.dtype}

    def ref(self, ref: ValueRef) -> str:
        name = self._values[ref.name]
        return f"{name}.{ref.index}" if ref.index else name

    def arg(self, arg: Arg) -> str:
        match arg:
            case ValueRef():
                return self.ref(arg)
            case SymbolicInt(expression=expression):
                return self.dim(expression)
            case DTypeArg(name=name):
                return name
            case tuple():
                return f"[{', '.join(self.arg(item) for item in arg)}]"
            case _:
                return repr(arg)

    def step(self, position: int) -> str:
        """One node: ``v0 = aten.mul.Tensor(x0, 2.0)  # float16 [n0, 4]``."""
        node = self._graph.nodes[position]
        arguments = [self.arg(arg) for arg in node.args]
        arguments += [f"{name}={self.arg(value)}" for name, value in node.kwargs]
        specs = ", ".join(f"{spec['dtype']} {spec['shape']}" for spec in map(self.spec, node.outputs))
        return f"{self._values[node.name]} = {node.op}({', '.join(arguments)})  # {specs}"
