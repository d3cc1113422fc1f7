"""What leaves for a model or in a pack has no name of the user's file, only names of ours."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, cached_property

from attrs import define, evolve

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.compiler.planned import identifier
from evokernel_core.domain.canonical import Prefixes
from evokernel_core.domain.errors import PlanError, ProposerError, StrategyError
from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.graph import GraphInput, Update
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask, Symbol, numbered_task
from evokernel_core.domain.verdict import GateName, Verdict
from evokernel_core.targets import TARGETS, load_knowledge

MODEL = "model"
"""The family of kernels that a model wrote: it never saw a name of the file."""
_PREFIXES = Prefixes(inputs="x", updates="u", nodes="v", symbols="n")
_NAME = "kernel"
_TASK_NAME = re.compile(r"^Task [^:\n]*:", re.MULTILINE)
_FOLDER = r"(?:[\w@+-]+(?: [\w@+-]+){1,3}|[\w.@+-]+)"
_PATH = re.compile(rf"(?<![\w)\]])(?:[A-Za-z]:)?(?:[/\\]{_FOLDER})+[/\\](?=[\w.-])")
_WORD = re.compile(r"[^\W\d]\w*")
_Names = tuple[tuple[str, str], ...]
"""Forms of names with what stands in their place, the longest first."""
_SAID_OF_TEXT = frozenset((GateName.AUDIT, GateName.COMPILE))
_OF_NO_FILE = frozenset((ExperienceKind.RULE, ExperienceKind.API_CARD, ExperienceKind.PRACTICE))


@cache
def _kept() -> frozenset[str]:
    """Words that the targets' languages, their interfaces and all kernels have: they say nothing of a file
    that has them, too."""
    return frozenset().union(*(load_knowledge(name).words() for name in TARGETS))


def neutral(task: KernelTask) -> KernelTask:
    """The task under names of ours: inputs x0..., steps v0..., sizes n0..., the kernel itself ``kernel``."""
    return evolve(numbered_task(task, _PREFIXES), name=_NAME)


@define(frozen=True, slots=False)
class Privacy:
    """Takes the names of one task's file out of what is said of it.

    What may leave as it is, since no name of the file can be in it: what a model wrote, which is shown
    neutral names alone, and what the audit and the compiler say of its text, but for folders and the task's
    name; rules, cards and practices, which are made of the interface and of settings of schedules; and names
    of the file that are words of C++, of the interface or of every kernel (``mask``, ``half``, ``tile``),
    which say nothing of it. Names of one letter are such, too.
    """

    task: KernelTask

    def files(self, source: KernelSource, author: KernelAuthor) -> KernelSource:
        """A kernel as it would be written of the neutral task; a model's own as it is. Raises ProposerError
        for one that cannot be written again, which another version made."""
        if source.strategy.family == MODEL:
            return source
        try:
            return author.write(neutral(self.task), source.strategy)
        except (PlanError, StrategyError) as error:
            raise ProposerError(
                "The kernel cannot be shown to a model without names of your file, since this version does "
                "not write it; generate it again first."
            ) from error

    def words(self, text: str) -> str:
        """A verifier's or an experience's words without names of values and tasks, and without folders."""
        return self._without(text, self._names)

    def verdict(self, text: str, source: KernelSource, verdict: Verdict) -> str:
        """What a verdict says of a kernel, the same way: of a model's own text its words stay."""
        failed = verdict.failed_gate
        if source.strategy.family != MODEL or failed is None or failed.gate not in _SAID_OF_TEXT:
            return self.words(text)
        return self._without(text, self._task_names)

    def item(self, experience: Experience) -> tuple[str, str]:
        """Title and body of an experience, the same way."""
        if experience.kind in _OF_NO_FILE:
            return experience.title, experience.body
        return self.words(experience.title), self.words(experience.body)

    @staticmethod
    def _without(text: str, names: _Names) -> str:
        bare = _PATH.sub("", _TASK_NAME.sub("Task:", text))
        return _WORD.sub(lambda match: _renamed(match[0], names), bare)

    @cached_property
    def _names(self) -> _Names:
        other_task = neutral(self.task)
        graph, new = self.task.graph, other_task.graph
        return _forms(
            [
                *zip(_called(graph.inputs), _called(new.inputs), strict=True),
                *zip(_called(graph.updates), _called(new.updates), strict=True),
                *zip(_called(self.task.symbols), _called(other_task.symbols), strict=True),
                *self._names_of_task,
            ]
        )

    @cached_property
    def _task_names(self) -> _Names:
        return _forms(self._names_of_task)

    @property
    def _names_of_task(self) -> list[tuple[str, str]]:
        return [(self.task.name, _NAME), (identifier(self.task.name), _NAME)]


def _called(items: Iterable[GraphInput | Update | Symbol]) -> list[str]:
    return [item.name for item in items]


def _forms(pairs: Iterable[tuple[str, str]]) -> _Names:
    """The forms that kernels give to names: ``hidden_state`` is ``hiddenState``, ``HiddenState`` and
    ``HIDDEN_STATE``, too."""
    told = [(name, other) for name, other in pairs if len(name) > 1]
    result: dict[str, str] = {}
    for name, other in told:  # a name itself goes before a form of another one
        result.setdefault(name, other)
    for name, other in told:
        forms = _forms_of(name, other)
        if forms.keys() & _kept():
            result.pop(name, None)
        else:
            result = forms | result
    return tuple(sorted(result.items(), key=lambda pair: -len(pair[0])))


def _forms_of(name: str, other: str) -> dict[str, str]:
    forms: dict[str, str] = {}
    for knowledge in map(load_knowledge, TARGETS):
        forms |= zip(knowledge.spellings(name), knowledge.spellings(other), strict=True)
    return forms


def _renamed(word: str, names: _Names) -> str:
    """A word with other names in the places of these: at its beginning (``hiddenLocal``), or where a capital
    begins a part of it (``copyInHidden``, ``ROWS_OF_HIDDEN``)."""
    if word in _kept():
        return word
    parts: list[str] = []
    place = 0
    while place < len(word):
        result = next((pair for pair in names if _stands(word, place, pair[0])), None)
        parts.append(result[1] if result else word[place])
        place += len(result[0]) if result else 1
    return "".join(parts)


def _stands(word: str, place: int, name: str) -> bool:
    """Whether a name is a part of a word from a place on, and no piece of a longer part."""
    if not word.startswith(name, place):
        return False
    before, after = word[:place][-1:], word[place + len(name) :][:1]
    if name.isupper():
        return before in ("", "_") and not after.isalpha()
    is_part = not before or (before.islower() and not name[0].islower())
    return is_part and not after.islower()
