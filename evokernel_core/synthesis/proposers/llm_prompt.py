"""What a model is told: the op's spec under names of ours, never text or names from the user's file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from attrs import frozen
from jinja2 import Environment, PackageLoader, StrictUndefined

from evokernel_core.ascendc.knowledge import relevant_cards
from evokernel_core.domain.experience import Experience
from evokernel_core.domain.graph import Arg, DTypeArg, InputKind, Node, SymbolicInt, ValueRef
from evokernel_core.domain.outcome import Objection
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.synthesis.lessons import summary
from evokernel_core.synthesis.privacy import Privacy, neutral
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


def _prompt(template: str, task: KernelTask, context: Context, chip: Chip, structured: bool) -> Prompt:
    privacy = Privacy(task)
    start, failed = context.start, _last_failure(context.children)
    files = [privacy.files(item.source, chip) for item in (start, failed) if item]
    texts = [*(file.op_kernel_cpp for file in files), *(item.payload for item in context.experiences)]
    items = _distinct((*context.experiences, *relevant_cards(task, texts)))
    values = {
        "task": describe_task(task),
        "chip": chip,
        "items": [_item(number, item, privacy) for number, item in enumerate(items, 1)],
        "start": start and {"source": files[0], "latency": start.verdict.latency},
        "failed": failed and {"source": files[-1]},
        "attempts": [privacy.words(summary(child.verdict)) for child in context.children[-MOST_ATTEMPTS:]],
        "feedback": privacy.words(context.feedback),
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


def _item(number: int, item: Experience, privacy: Privacy) -> dict[str, Any]:
    body = privacy.words(item.body)[:LONGEST_ITEM]
    return {"number": number, "kind": item.kind.value, "title": privacy.words(item.title), "body": body}


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
    """The computation line by line: tensors in launch order, steps, outputs, sizes, tolerance, under names of
    ours for inputs (x0...), steps (v0...) and sizes (n0...)."""
    task = neutral(task)
    inputs = [{"name": item.name, "kind": item.kind.value, **_spec(item.spec)} for item in task.graph.inputs]
    outputs = [
        {"name": f"out{position}", "value": _ref(ref), **_spec(spec)}
        for position, (ref, spec) in enumerate(
            zip(task.graph.outputs, task.graph.output_specs(), strict=True)
        )
    ]
    tensors = [item["name"] for item in inputs if item["kind"] != InputKind.SCALAR.value]
    return {
        "category": task.op_category,
        "symbols": [(item.name, item.size, item.minimum) for item in task.symbols],
        "inputs": inputs,
        "steps": list(map(_step, task.graph.nodes)),
        "outputs": outputs,
        "tensors": [*tensors, *(item["name"] for item in outputs)],
        "scalars": [item["name"] for item in inputs if item["kind"] == InputKind.SCALAR.value],
        "tolerance": task.tolerance,
    }


def _step(node: Node) -> str:
    """``v0 = aten.mul.Tensor(x0, 2.0)  # float16 [n0, 4]``."""
    arguments = [*map(_arg, node.args), *(f"{name}={_arg(value)}" for name, value in node.kwargs)]
    specs = ", ".join(f"{spec['dtype']} {spec['shape']}" for spec in map(_spec, node.outputs))
    return f"{node.name} = {node.op}({', '.join(arguments)})  # {specs}"


def _spec(spec: TensorSpec) -> dict[str, str]:
    return {"shape": f"[{', '.join(map(str, spec.shape))}]", "dtype": spec.dtype}


def _ref(ref: ValueRef) -> str:
    return f"{ref.name}.{ref.index}" if ref.index else ref.name


def _arg(arg: Arg) -> str:
    match arg:
        case ValueRef():
            return _ref(arg)
        case SymbolicInt(expression=expression):
            return expression
        case DTypeArg(name=name):
            return name
        case tuple():
            return f"[{', '.join(map(_arg, arg))}]"
        case _:
            return repr(arg)
