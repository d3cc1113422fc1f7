"""What a model is told: the op's spec under names of ours, never text or names from the user's file.

What is the same for all prompts comes first, so that endpoints can keep it: the system message is that of a
kind of cores and a chip, the question begins with what is known of the kind of kernel.
"""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterable, Mapping
from functools import cache
from typing import Any

from attrs import frozen
from jinja2 import Environment, PackageLoader

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.graph import Arg, DTypeArg, InputKind, Node, SymbolicInt, ValueRef
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.outcome import Objection
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import GateStatus, Verdict, evenness
from evokernel_core.synthesis.lessons import GATES, summary
from evokernel_core.synthesis.privacy import MODEL, Privacy, neutral
from evokernel_core.synthesis.proposers.base import Candidate, Context
from evokernel_core.synthesis.proposers.llm_code import change, hot_lines, precedent
from evokernel_core.targets import load_knowledge
from evokernel_core.targets.sources import main_file
from evokernel_core.templates import text_environment
from evokernel_core.verifier.gates.cases import SMALL
from evokernel_core.verifier.gates.mixture import told

MOST_ATTEMPTS = 8
"""Earlier attempts that a prompt mentions, the latest ones."""
LONGEST_ITEM = 3_000
"""Characters of one experience in a prompt."""
OF_MEMORY = 0.4
"""The share of what is left for further items that those of the memory may take."""
HEADING = 40
"""Characters around an item, at most."""
FORM = 1_200
"""Characters in which the form of an answer is told, at most."""
LONGEST_WORDS = 400
"""Characters of what an attempt's author says of it."""

_ASKED: Mapping[str, str] = {
    Objection.SLOW: "slower than wanted: it has to gain more than small steps do",
    Objection.UNREADABLE: "hard to read: write fewer and simpler lines",
    Objection.PRECISION: "its precision: compute in float32 from the load to the store",
}
"""What a person's objection asks of the next kernel; their own words stay with them."""


@frozen
class Prompt:
    """Messages for the endpoint; ``items`` are the experiences that were chosen for this one, number 1 first:
    what every prompt of the kind says is none of them."""

    messages: tuple[dict[str, str], ...]
    items: tuple[Experience, ...]


def draft_prompt(task: KernelTask, context: Context, author: KernelAuthor, *, structured: bool) -> Prompt:
    """Asks for a first kernel, or the repair of the last one that failed."""
    return _prompt("draft.md.jinja", task, context, author, structured)


def refine_prompt(task: KernelTask, context: Context, author: KernelAuthor, *, structured: bool) -> Prompt:
    """Asks for a kernel that is faster than ``context.start``."""
    return _prompt("refine.md.jinja", task, context, author, structured)


def guide(task: KernelTask, context: Context, author: KernelAuthor) -> str:
    """All that a model is told of a task, but for the form of an answer: for an author who writes files."""
    template = "refine.md.jinja" if context.start else "draft.md.jinja"
    return "\n\n".join(
        message["content"] for message in _prompt(template, task, context, author, None).messages
    )


def common_part(common: Iterable[Experience]) -> str:
    """What the question about every task of a kind begins with."""
    known = [
        {"kind": card.kind.value.replace("_", " "), "title": card.title, "body": card.body} for card in common
    ]
    return _environment().get_template("knowledge.md.jinja").render(common=known)


def _prompt(
    template: str, task: KernelTask, context: Context, author: KernelAuthor, structured: bool | None
) -> Prompt:
    device, knowledge = author.device, load_knowledge(author.target.name)
    privacy, kind = Privacy(task), knowledge.kind_of(task, device)
    main = main_file(author.target.name)
    start, failed = context.start, last_failure(context.children)
    own, attempt = (privacy.files(choice.source, author) if choice else None for choice in (start, failed))
    similar = None if own or attempt else precedent(task, context.precedents(), author)
    latency = start.verdict.latency if start else None
    kernels = [files.files[main] for files in (own, attempt) if files]
    common = _common(knowledge.common(kind, device), has_kernel=bool(kernels), has_similar=bool(similar))
    told_of = {card.id for card in common}
    further = knowledge.further(task, kind, latency, kernels, device)
    further = tuple(card for card in further if card.id not in told_of)
    blocks = latency.block_dim if latency else knowledge.most_blocks(kind, device)
    drawn_sizes, drawn_values = told(task)
    values = {
        "common": common_part(common),
        "launch_blocks": blocks,
        "launch_us": knowledge.launch_us(kind, blocks, device),
        "eager": author.baseline(task),
        "drawn_sizes": drawn_sizes,
        "drawn_values": drawn_values,
        "always": max(SMALL),
        "task": describe_task(task) | {"bound_us": author.least_us(task)},
        "items": [],
        "similar": similar,
        "start": own and {"source": own, "latency": latency},
        "kernel_file": main,
        "hot_lines": hot_lines(start, own) if start and own else [],
        "failed": attempt and {"source": attempt, "change": change(own, attempt) if own else ""},
        "attempts": [_attempt(child, privacy) for child in context.children[-MOST_ATTEMPTS:]],
        "faster_us": _faster_us(context),
        "evenness": evenness(latency, knowledge.most_blocks(kind, device)) if latency else 1.0,
        "feedback": _feedback(context.feedback, failed, privacy),
        "asked": [_ASKED[reason] for reason in context.asked if reason in _ASKED],
    }
    system = knowledge.system_message(kind, device, structured=structured)
    page = _environment().get_template(template)
    code = _code(attempt or own, similar, common)
    room = knowledge.most_characters(kind) + code - len(system) - len(page.render(values))
    items = _fitting(_memory(context, told_of), further, room - FORM)
    ours = {item.id for item in further}
    shown = [
        _item(number, item, None if item.id in ours else privacy) for number, item in enumerate(items, 1)
    ]
    question = page.render(values | {"items": shown})
    messages = {"role": "system", "content": system}, {"role": "user", "content": question}
    return Prompt(messages, items)


def _code(shown: KernelSource | None, similar: Mapping[str, str] | None, common: Iterable[Experience]) -> int:
    """The characters of the one kernel that a question shows."""
    if shown is not None:
        return sum(map(len, shown.files.values()))
    if similar is not None:
        return len(similar["code"])
    return sum(len(card.body) for card in common if card.kind is ExperienceKind.EXEMPLAR)


def _common(known: Iterable[Experience], *, has_kernel: bool, has_similar: bool) -> tuple[Experience, ...]:
    """What a question begins with: one kernel is shown in it. Where that is the task's own, the cards are
    those of what it calls."""
    example = {ExperienceKind.EXEMPLAR} if has_kernel or has_similar else set()
    cards = {ExperienceKind.API_CARD} if has_kernel else set()
    return tuple(card for card in known if card.kind not in example | cards)


def _attempt(child: Candidate, privacy: Privacy) -> str:
    """What came of an attempt, where its time went, and what its author says that it does."""
    verdict, strategy = child.verdict, child.source.strategy
    told = [privacy.verdict(summary(verdict), child.source, verdict)]
    if verdict.latency and verdict.latency.pipes:
        busy = ", ".join(f"{pipe} {us:.2f} us" for pipe, us in verdict.latency.pipes)
        told.append(f"Busy: {busy}.")
    if verdict.failed_gate and (passed := _passed(verdict)):
        told.append(f"Passed before: {', '.join(passed)}.")
    if words := " ".join((strategy.move, *strategy.notes) if strategy.family != MODEL else strategy.notes):
        told.append(f"What it does: {privacy.words(words)[:LONGEST_WORDS].strip()}")
    return " ".join(told)


def _passed(verdict: Verdict) -> list[str]:
    """The gates before the one that failed."""
    return [str(GATES[gate.gate]) for gate in verdict.gates if gate.status is GateStatus.PASSED]


def _faster_us(context: Context) -> float:
    """The best latency of the run where the kernel to refine is slower; else 0."""
    best = min((candidate.latency_us for candidate in context.candidates), default=math.inf)
    return best if context.start and best < context.start.latency_us else 0.0


def _memory(context: Context, known: Container[str]) -> tuple[Experience, ...]:
    """What the memory chose: one item of an attempt, and nothing that is told anyway."""
    chosen = {_attempt_of(item): item for item in reversed(context.experiences) if item.id not in known}
    return tuple(reversed(chosen.values()))


def _attempt_of(item: Experience) -> str:
    """The kernel that an item tells of, or the item."""
    payload = json.loads(item.payload) if item.payload else {}
    return str(payload.get("source_id", item.id)) if isinstance(payload, dict) else item.id


def _fitting(
    memory: Iterable[Experience], further: Iterable[Experience], room: int
) -> tuple[Experience, ...]:
    """What there is room for: of the memory in a share of it, of what the target knows of the task in the
    rest."""
    taken: dict[str, Experience] = {}
    for items, until in ((memory, room * (1 - OF_MEMORY)), (further, 0.0)):
        for item in items:
            size = len(item.title) + min(len(item.body), LONGEST_ITEM) + HEADING
            if item.id not in taken and room - size >= until:
                taken[item.id] = item
                room -= size
    return tuple(taken.values())


def _feedback(text: str, failed: Candidate | None, privacy: Privacy) -> str:
    """The last words of the verifier: those about ``failed`` where they are."""
    gate = failed.verdict.failed_gate if failed else None
    if failed is None or gate is None or gate.feedback not in text:
        return privacy.words(text)
    passed = _passed(failed.verdict)
    before = f"Passed before it: {', '.join(passed)}.\n" if passed else ""
    return before + privacy.verdict(text, failed.source, failed.verdict)


def last_failure(children: tuple[Candidate, ...]) -> Candidate | None:
    """The latest attempt, if it failed: the one to repair."""
    last = children[-1] if children else None
    if last is None or last.verdict.feasible or last.verdict.is_slower:
        return None
    return last


def _item(number: int, experience: Experience, privacy: Privacy | None) -> dict[str, Any]:
    """An item in words; ``privacy`` is None for knowledge of ours, which speaks of no file."""
    title, body = privacy.item(experience) if privacy else (experience.title, experience.body)
    return {"number": number, "kind": experience.kind.value, "title": title, "body": body[:LONGEST_ITEM]}


@cache
def _environment() -> Environment:
    return text_environment(PackageLoader("evokernel_core.synthesis", "prompts"))


def describe_task(task: KernelTask) -> dict[str, Any]:
    """The computation line by line: tensors in launch order, steps, outputs, sizes, tolerance, under names of
    ours for inputs (x0...), steps (v0...) and sizes (n0...)."""
    task = neutral(task)
    inputs = [
        {"name": operand.name, "kind": operand.kind.value, **_spec(operand.spec)}
        for operand in task.graph.inputs
    ]
    outputs = [
        {"name": f"out{position}", "value": _ref(ref), **_spec(spec)}
        for position, (ref, spec) in enumerate(
            zip(task.graph.outputs, task.graph.output_specs(), strict=True)
        )
    ]
    tensors = [operand["name"] for operand in inputs if operand["kind"] != InputKind.SCALAR.value]
    return {
        "category": task.op_category,
        "symbols": [(symbol.name, symbol.size, symbol.minimum) for symbol in task.symbols],
        "inputs": inputs,
        "steps": list(map(_step, task.graph.nodes)),
        "outputs": outputs,
        "tensors": [*tensors, *(output["name"] for output in outputs)],
        "scalars": [operand["name"] for operand in inputs if operand["kind"] == InputKind.SCALAR.value],
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
