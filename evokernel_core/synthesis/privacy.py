"""What leaves for a model or in a pack has no name of the user's file, only names of ours."""

from __future__ import annotations

import re
from functools import cached_property

from attrs import define, evolve

from evokernel_core.ascendc.author import write
from evokernel_core.ascendc.lowering.program import camel
from evokernel_core.domain.canonical import Prefixes
from evokernel_core.domain.errors import PlanError, ProposerError, StrategyError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask, numbered_task
from evokernel_core.twin.chip import Chip

MODEL = "model"
"""The family of kernels that a model wrote: it never saw a name of the file."""
_PREFIXES = Prefixes(inputs="x", updates="u", nodes="v", symbols="n")
_NAME = "kernel"
_TASK_NAME = re.compile(r"^Task [^:\n]*:", re.MULTILINE)
_PATH = re.compile(r"(?<![\w)\]])(?:[A-Za-z]:)?(?:[/\\][\w.@+-]+)+[/\\](?=[\w.-])")
_WORD = re.compile(r"[A-Za-z_]\w*")


def neutral(task: KernelTask) -> KernelTask:
    """The task under names of ours: inputs x0..., steps v0..., sizes n0..., the kernel itself ``kernel``."""
    return evolve(numbered_task(task, _PREFIXES), name=_NAME)


@define(frozen=True, slots=False)
class Privacy:
    """Takes the names of one task's file out of what is said of it."""

    task: KernelTask

    def files(self, source: KernelSource, chip: Chip) -> KernelSource:
        """A kernel as it would be written of the neutral task; a model's own as it is. Raises ProposerError
        for one that cannot be written again, which another version made."""
        if source.strategy.family == MODEL:
            return source
        try:
            return write(neutral(self.task), source.strategy, chip)
        except (PlanError, StrategyError) as error:
            raise ProposerError(
                "The kernel cannot be shown to a model without names of your file, since this version does "
                "not write it; generate it again first."
            ) from error

    def words(self, text: str) -> str:
        """A verifier's or an experience's words without names of values and tasks, and without folders."""
        bare = _PATH.sub("", _TASK_NAME.sub("Task:", text))
        return _WORD.sub(lambda found: self._word(found[0]), bare)

    def _word(self, word: str) -> str:
        """Identifiers of kernels begin with names: ``hidden_state`` with ``hiddenState``, ``my_model`` with
        ``MyModel``."""
        for name, other in self._names:
            rest = word.removeprefix(name)
            if rest != word and not rest[:1].islower():
                return other + rest
        return word

    @cached_property
    def _names(self) -> tuple[tuple[str, str], ...]:
        """How identifiers may begin, and with what instead; the longest first."""
        other_task = neutral(self.task)
        graph, new = self.task.graph, other_task.graph
        pairs = [(item.name, other.name) for item, other in zip(graph.inputs, new.inputs, strict=True)]
        pairs += [(item.name, other.name) for item, other in zip(graph.updates, new.updates, strict=True)]
        pairs += [
            (item.name, other.name) for item, other in zip(self.task.symbols, other_task.symbols, strict=True)
        ]
        found: dict[str, str] = {}
        # a letter says nothing of a file, and is a word of many sentences
        told = ((name, other) for name, other in (*pairs, (self.task.name, _NAME)) if len(name) > 1)
        for name, other in told:
            pascal = camel(name)[:1].upper() + camel(name)[1:]
            found |= {name: other, camel(name): other, pascal: other[0].upper() + other[1:]}
        return tuple(sorted(found.items(), key=lambda pair: -len(pair[0])))
