"""AscendC in words: what a model or a coding agent is told of its interface, and all that can be looked up.

The system message is that of a kind of cores and a chip: the same text for all tasks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache

from attrs import frozen
from jinja2 import Environment, PackageLoader

from evokernel_core.compiler.knowledge import Shipped
from evokernel_core.domain.descriptor import Algorithm, Descriptor, Overlap, Split
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.experience import Experience
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Latency
from evokernel_core.hardware.ascend.api import interface_words, most_of
from evokernel_core.hardware.ascend.api.rows import COSTS
from evokernel_core.hardware.ascend.chip import Chip, chip_of
from evokernel_core.hardware.ascend.isa import REQUEST_BYTES, RESERVED_BYTES
from evokernel_core.hardware.device import Device
from evokernel_core.targets.ascendc.audit.rules.callees import TILING_FUNCTIONS
from evokernel_core.targets.ascendc.audit.rules.tiling import MAX_BYTES
from evokernel_core.targets.ascendc.audit.text import KEYWORDS
from evokernel_core.targets.ascendc.kernels.family import Cores
from evokernel_core.targets.ascendc.knowledge import common_knowledge, further_cards
from evokernel_core.targets.ascendc.knowledge.cards import cards
from evokernel_core.targets.ascendc.knowledge.kinds import KernelKind, kind_of
from evokernel_core.targets.ascendc.knowledge.practices import (
    bindings_of,
    expected_bindings,
    practices,
    practices_for,
)
from evokernel_core.targets.ascendc.lowering.program import camel
from evokernel_core.targets.ascendc.source import FILES, KERNEL
from evokernel_core.templates import text_environment

_REDUCTION = re.compile(r"\b(?:Whole|Block|Pair|Repeat)?Reduce\w+")
_DEPTH = re.compile(r"InitBuffer\s*\(\s*\w+\s*,\s*(\w+)\s*,")
"""How many buffers a queue has, as a number or a name."""


def describe(kernel: str) -> Descriptor:
    """The archive cell that the text of a kernel suggests; coarse, as nothing is executed. What its names do
    not say is unknown."""
    cube, reduces = "Mmad" in kernel, _REDUCTION.search(kernel) is not None
    vectors = Algorithm.SINGLE_PASS if reduces else Algorithm.DIRECT
    return Descriptor(
        split=Split.UNKNOWN if "GetBlockIdx" in kernel else Split.NOTHING,
        algorithm=Algorithm.MATRIX_PRODUCT if cube else vectors if "DataCopy" in kernel else Algorithm.SCALAR,
        overlap=Overlap.PIPELINED if _is_doubled(kernel) else Overlap.NONE,
    )


def _is_doubled(kernel: str) -> bool:
    depths = (match[1].lower() for match in _DEPTH.finditer(kernel))
    return any(depth == "2" or "buffer" in depth for depth in depths)


_OURS = frozenset(("kernel", "op", "pipe", "tile", "tiling", "workspace"))
"""Words of the text of every kernel."""


@frozen
class LaunchWords:
    """How kernels on some cores are launched and built: words of the system message."""

    block_dim: str
    core_num: str
    qualifier: str
    idiom: str


_ON_VECTORS = (
    "A class with Init, Process, CopyIn, Compute and CopyOut; split rows or elements evenly over the cores "
    "and let the last one take the tail."
)
_ON_CUBES = (
    "A class with Init and Process, and methods that load panels into L1, steps into L0, multiply and store; "
    "equal tiles in whole fractals, spread over the cores."
)
_LAUNCHES: Mapping[Cores, LaunchWords] = {
    Cores.VECTOR: LaunchWords("vector cores, 1 to coreNum", "as many as it has", "__vector__", _ON_VECTORS),
    Cores.CUBE: LaunchWords(
        "cube cores, 1 to coreNum / 2", "twice as many as its cube cores", "__cube__", _ON_CUBES
    ),
    Cores.BOTH: LaunchWords(
        "cube cores with two vector cores each, 1 to coreNum / 2",
        "twice as many as its cube cores",
        "__mix__(1, 2)",
        f"On cube cores: {_ON_CUBES} On vector cores: {_ON_VECTORS}",
    ),
}


@frozen
class AscendCKnowledge:
    """``compiler.knowledge.Knowledge``, whose kinds are ``KernelKind``s."""

    @property
    def workers(self) -> tuple[str, ...]:
        return tuple(name.lower() for name in Cores.__members__)

    def words(self) -> frozenset[str]:
        return KEYWORDS | interface_words() | _OURS

    def spellings(self, name: str) -> tuple[str, ...]:
        """``hidden_state`` is ``HIDDEN_STATE``, ``HIDDENSTATE``, ``HiddenState`` and ``hiddenState``, too."""
        lower = camel(name)
        apart = "".join(f"_{letter}" if letter.isupper() else letter for letter in lower)
        return name.upper(), lower.upper(), apart.upper(), lower[:1].upper() + lower[1:], lower, name

    def descriptor_of(self, files: Mapping[str, str]) -> Descriptor:
        return describe(files[KERNEL])

    def kind_of(self, task: KernelTask, device: Device) -> KernelKind:
        return kind_of(task, chip_of(device))

    def system_message(self, kind: KernelKind, device: Device, *, structured: bool | None) -> str:
        return system_message(kind.units, chip_of(device), structured=structured)

    def interface(self, workers: str, device: Device) -> str:
        if workers.upper() not in Cores.__members__:
            raise UsageError(
                "There are no {workers} cores; choose one of: {known}.",
                workers=repr(workers),
                known=", ".join(name.lower() for name in Cores.__members__),
            )
        return system_message(Cores[workers.upper()], chip_of(device), structured=None)

    def common(self, kind: KernelKind, device: Device) -> tuple[Experience, ...]:
        return common_knowledge(kind, chip_of(device))

    def further(
        self,
        task: KernelTask,
        kind: KernelKind,
        latency: Latency | None,
        kernels: Sequence[str],
        device: Device,
    ) -> tuple[Experience, ...]:
        chip = chip_of(device)
        binding = bindings_of(latency, chip) if latency else expected_bindings(task, chip)
        return *practices_for(binding, kind.units, chip), *further_cards(task, kind, kernels)

    def most_characters(self, kind: KernelKind) -> int:
        return 32_000 if kind.units is Cores.BOTH else 24_000

    def most_blocks(self, kind: KernelKind, device: Device) -> int:
        return most_blocks(kind.units, chip_of(device))

    def launch_us(self, kind: KernelKind, blocks: int, device: Device) -> float:
        return launch_us(kind.units, blocks, chip_of(device))

    def shipped(self, device: Device) -> tuple[Shipped, ...]:
        chip = chip_of(device)
        return (
            *(Shipped(card.experience, card.names) for card in cards()),
            *(Shipped(practice.on(chip)) for practice in practices()),
        )


def system_message(units: Cores, chip: Chip, *, structured: bool | None) -> str:
    """What is told of cores of that kind: the same text for all tasks. ``structured`` None: nothing of the
    form of an answer."""
    reserved_bytes = RESERVED_BYTES if units is Cores.BOTH else 0
    core_gbps = chip.mte.load_bytes_per_cycle * chip.mhz / 1000
    known = [card for card in cards() if units in card.cores and card.is_topic]
    values = {
        "units": units,
        "chip": chip,
        "ub_bytes": chip.ub_bytes - reserved_bytes,
        "reserved_bytes": reserved_bytes,
        "launch": _LAUNCHES[units],
        "tiling_bytes": MAX_BYTES,
        "tiling_functions": sorted(TILING_FUNCTIONS),
        "core_gbps": core_gbps,
        "full_cores": math.ceil(chip.gm.hbm_achieved_gbps / core_gbps),
        "request_bytes": REQUEST_BYTES,
        "launch_us": launch_us(units, most_blocks(units, chip), chip),
        "titles": [card.experience.title.partition(": ")[0] for card in known],
        "repeats": most_of("Add", "repeatTime"),
        "mmad_limit": most_of("Mmad", "m"),
        "classes": [name for name in COSTS if name],
        "structured": structured,
        "files": FILES,
    }
    return _environment().get_template("system.md.jinja").render(values)


def most_blocks(units: Cores, chip: Chip) -> int:
    """Those of a launch on all cores of that kind."""
    return chip.aiv if units is Cores.VECTOR else chip.aic


def launch_us(units: Cores, blocks: int, chip: Chip) -> float:
    """Modelled microseconds of a launch on such cores before any work."""
    return chip.mixed_launch_of(blocks) if units is Cores.BOTH else chip.launch_of(blocks)


@cache
def _environment() -> Environment:
    return text_environment(PackageLoader("evokernel_core.targets.ascendc.knowledge", "prompts"))
