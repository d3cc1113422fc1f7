"""Triton in words: what a model or a coding agent is told of its interface, and all that can be looked up."""

from __future__ import annotations

import ast
import keyword
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from attrs import frozen
from jinja2 import Environment, PackageLoader

from evokernel_core.compiler.coverage import family_of_task
from evokernel_core.compiler.knowledge import Shipped
from evokernel_core.compiler.knowledge_items import item
from evokernel_core.compiler.legalise import legalised
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Overlap, Split
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Latency
from evokernel_core.hardware.device import Device
from evokernel_core.hardware.gpu.gpu import gpu_of
from evokernel_core.targets.triton.source import FILES, HEADER, KERNEL
from evokernel_core.targets.triton.target import TRITON
from evokernel_core.templates import text_environment

FOLDER = Path(__file__).parent
WORKERS = "programs"
"""What works side by side on a GPU."""
_PROGRAMS_A_MULTIPROCESSOR = 8
_WORDS = frozenset(
    """triton jit tl constexpr program_id arange load store mask other where sum max min dot exp log sqrt
    abs maximum minimum float32 float16 bfloat16 int32 int64 zeros full cdiv range to axis keep_dims BLOCK
    row column inside output grid arguments constants warps stages kernel launches scratch requires symbols
    inputs outputs scalars zeroed dtype elements next_power_of_2""".split()  # noqa: SIM905
)


@frozen
class Card:
    """A lesson, and the operations of tasks that need it; none: all do."""

    experience: Experience
    ops: frozenset[str]


@cache
def cards() -> tuple[Card, ...]:
    """All cards, in the order of their file."""
    data = tomllib.loads((FOLDER / "cards.toml").read_text(encoding="utf-8"))["card"]
    return tuple(
        Card(
            item(ExperienceKind.PRACTICE, card["title"], card["body"].strip()), frozenset(card.get("ops", ()))
        )
        for card in data
    )


@frozen
class TritonKnowledge:
    """``compiler.knowledge.Knowledge``, whose kinds are names of families, or ``program``."""

    @property
    def workers(self) -> tuple[str, ...]:
        return (WORKERS,)

    def words(self) -> frozenset[str]:
        return _WORDS | frozenset(keyword.kwlist)

    def spellings(self, name: str) -> tuple[str, ...]:
        """Constants are in capitals: ``hidden_state`` is ``HIDDEN_STATE``, too."""
        return name.upper(), name

    def descriptor_of(self, files: Mapping[str, str]) -> Descriptor:
        return describe(files[KERNEL])

    def kind_of(self, task: KernelTask, device: Device) -> str:
        family = family_of_task(legalised(task, device, TRITON), device, TRITON)
        return "program" if family is None else family.name

    def system_message(self, kind: str, device: Device, *, structured: bool | None) -> str:
        values = {"gpu": gpu_of(device), "header": HEADER.strip(), "structured": structured, "files": FILES}
        return _environment().get_template("system.md.jinja").render(values)

    def interface(self, workers: str, device: Device) -> str:
        if workers.lower() != WORKERS:
            raise UsageError(
                "There are no {workers} workers; choose one of: {known}.",
                workers=repr(workers),
                known=WORKERS,
            )
        return self.system_message("", device, structured=None)

    def common(self, kind: str, device: Device) -> tuple[Experience, ...]:
        return tuple(card.experience for card in cards() if not card.ops)

    def further(
        self, task: KernelTask, kind: str, latency: Latency | None, kernels: Sequence[str], device: Device
    ) -> tuple[Experience, ...]:
        words = {word for node in task.graph.nodes for word in _words_of(node.op)}
        return tuple(card.experience for card in cards() if card.ops & words)

    def most_characters(self, kind: str) -> int:
        return 24_000

    def most_blocks(self, kind: str, device: Device) -> int:
        return _PROGRAMS_A_MULTIPROCESSOR * gpu_of(device).multiprocessors

    def launch_us(self, kind: str, blocks: int, device: Device) -> float:
        return gpu_of(device).launch_us

    def shipped(self, device: Device) -> tuple[Shipped, ...]:
        return tuple(Shipped(card.experience) for card in cards())


def _words_of(op: str) -> frozenset[str]:
    """``layer_norm`` of ``aten.native_layer_norm.default``, with the name itself."""
    name = op.split(".")[1].strip("_")
    return frozenset(
        (name, name.removeprefix("native_"), name.removeprefix("linalg_vector_"), name.lstrip("_"))
    )


def describe(text: str) -> Descriptor:
    """The archive cell that a text suggests; coarse, as nothing is executed."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Descriptor()
    calls = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    loops = any(isinstance(node, ast.For | ast.While) for node in ast.walk(tree))
    reduces = bool(calls & {"sum", "max", "min", "reduce", "argmax", "argmin"})
    if "dot" in calls:
        return Descriptor(
            Dataflow.OUTPUT_STATIONARY,
            "SHARED",
            Split.TILES,
            Algorithm.MATRIX_PRODUCT,
            Overlap.PIPELINED if loops else Overlap.NONE,
        )
    online = reduces and loops and bool(re.search(r"exp2?\(", text))
    looped = Algorithm.ONLINE if online else Algorithm.MULTI_PASS
    algorithm = (looped if loops else Algorithm.SINGLE_PASS) if reduces else Algorithm.DIRECT
    return Descriptor(
        Dataflow.RESIDENT_ROWS if reduces and not loops else Dataflow.STREAMED,
        "REGISTERS" if reduces and not loops else "none",
        Split.ROWS if reduces else Split.TILES,
        algorithm,
        Overlap.PIPELINED if loops else Overlap.NONE,
    )


@cache
def _environment() -> Environment:
    return text_environment(PackageLoader("evokernel_core.targets.triton.knowledge", "prompts"))
