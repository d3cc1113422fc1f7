"""What a target tells an author who is asked in words: interface, rules, cards, practices, examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from attrs import frozen

from evokernel_core.domain.descriptor import Descriptor
from evokernel_core.domain.experience import Experience
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Latency
from evokernel_core.hardware.device import Device


@frozen
class Shipped:
    """An experience that comes with a target. ``names``: the functions that it is about."""

    experience: Experience
    names: frozenset[str] = frozenset()


class Knowledge(Protocol):
    """What is the same for all tasks of a kind is said in the same words. A kind is a value of the target's
    own, which can be hashed."""

    @property
    def workers(self) -> tuple[str, ...]:
        """The names of workers that ``interface`` takes, the most common first."""

    def words(self) -> frozenset[str]:
        """Words of the language and its interface, which say nothing of a person's file."""

    def spellings(self, name: str) -> tuple[str, ...]:
        """The forms that kernels give to a name, the name itself last; as many for each name."""

    def descriptor_of(self, files: Mapping[str, str]) -> Descriptor:
        """The archive cell that the texts of a kernel suggest; coarse, as nothing is executed."""

    def kind_of(self, task: KernelTask, device: Device) -> Any:
        """What kind of kernel the target's author would write."""

    def system_message(self, kind: Any, device: Device, *, structured: bool | None) -> str:
        """The interface of kernels of a kind, with the form of an answer: JSON (``structured``), files under
        markers, or None."""

    def interface(self, workers: str, device: Device) -> str:
        """The interface of kernels on workers of a name, without the form of an answer. Raises UsageError for
        a name that no workers have."""

    def common(self, kind: Any, device: Device) -> tuple[Experience, ...]:
        """What the question about every task of a kind begins with."""

    def further(
        self, task: KernelTask, kind: Any, latency: Latency | None, kernels: Sequence[str], device: Device
    ) -> tuple[Experience, ...]:
        """What helps where something binds (as ``latency`` says it of the kernel to refine), and what a task
        and the texts of ``kernels`` need beside what is common."""

    def most_characters(self, kind: Any) -> int:
        """Of all that is told, but for the texts of kernels."""

    def most_blocks(self, kind: Any, device: Device) -> int:
        """The blocks of a launch that keeps all workers busy."""

    def launch_us(self, kind: Any, blocks: int, device: Device) -> float:
        """Modelled microseconds that a launch of so many blocks costs before any work."""

    def shipped(self, device: Device) -> tuple[Shipped, ...]:
        """All that can be looked up."""
