"""Why a kernel is as it is: what it was made from, what was said of it, and which values moved by it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.experience import Stage
from evokernel_core.foreign import read_foreign_object
from evokernel_core.memory.candidates import Attempt
from evokernel_core.memory.ledger import Effect, Reward
from evokernel_core.memory.store import Memory
from evokernel_core.memory.values import start_item
from evokernel_core.package.integrity import MANIFEST
from evokernel_core.package.write import ROOT_PACKAGE
from evokernel_core.paths import cache_path
from evokernel_core.synthesis.lessons import summary

SHORT = 12
"""Letters of an id that people read."""
_STAGES = {Stage.DRAFT: "drafted", Stage.REFINE: "refined"}


def kernel_named(memory: Memory, given: str, near: Path) -> str:
    """The id of the kernel that a person names: by the beginning of its id, by a package's folder, or by a
    package's name as it stands in the edited file. Packages are looked for beside the files whose calls the
    memory follows, in the folder ``near`` and those around it, and among those that were never applied.

    Raises UsageError where none or several are meant, and where the memory does not have the kernel.
    """
    folder = near / given
    is_folder = given != "" and folder.is_dir()
    ids = () if is_folder else memory.kernels_from(given)
    if not ids:
        named = [folder] if is_folder else _packages(memory, given, near)
        ids = tuple(dict.fromkeys(filter(None, map(_source_id, named))))
    if len(ids) != 1:
        what = "no kernel" if not ids else f"{len(ids)} kernels"
        raise UsageError(
            "{given} means {what} of the memory; give a package's folder, its name, or the beginning of the "
            "source_id in its kernel.json.",
            what=what,
            given=repr(given),
        )
    if not memory.kernels_from(ids[0]):
        raise UsageError(
            "The memory does not have the kernel of {given}: it was made elsewhere, or forgotten.",
            given=repr(given),
        )
    return ids[0]


def _packages(memory: Memory, name: str, near: Path) -> Iterator[Path]:
    """Folders that may be the package of a name."""
    if Path(name).name != name:
        return
    for placement in memory.called(name):
        yield from (folder / ROOT_PACKAGE / name for folder in placement.file.parents)
    yield from (folder / ROOT_PACKAGE / name for folder in (near, *near.parents))
    yield cache_path() / "packages" / ROOT_PACKAGE / name


def _source_id(folder: Path) -> str:
    """The kernel of a package; empty where the folder is none."""
    try:
        result = read_foreign_object(folder / MANIFEST).get("source_id")
    except (OSError, ValueError):
        return ""
    return result if isinstance(result, str) else ""


def why(memory: Memory, source_id: str) -> tuple[str, ...]:
    """Sentences about a kernel that the memory has, in the order in which things happened."""
    attempts = [attempt for attempt in memory.attempts() if attempt.source_id == source_id]
    events = [event for event in memory.rewards() if event.source_id == source_id]
    told = *_made(memory, attempts), *_judged(memory, source_id, attempts)
    return (*told, *map(_moved, events), *_worth(memory, source_id))


def _made(memory: Memory, attempts: list[Attempt]) -> Iterator[str]:
    for attempt in attempts[:1]:
        task = memory.task(attempt.task_id)
        name = f" for {task.name} ({task.op_category})" if task else ""
        yield f"Kernel {attempt.source_id[:SHORT]} was {_STAGES[attempt.stage]} by {attempt.proposer}{name}."
        if attempt.parent:
            source = memory.source(attempt.source_id)
            move = f" by the step '{source.strategy.move}'" if source and source.strategy.move else ""
            yield f"It was made from kernel {attempt.parent[:SHORT]}{move}."
        for stage, id in memory.kernel_uses(attempt.source_id, attempt.task_id):
            known = memory.experience(id)
            if known is not None:
                yield f"It used '{known.title}' [{id[:SHORT]}], a {known.kind.value} ({stage.value})."
    if len(attempts) > 1:
        yield f"It came up {len(attempts)} times."


def _judged(memory: Memory, source_id: str, attempts: list[Attempt]) -> Iterator[str]:
    for task_id, verifier, chip in dict.fromkeys(
        (attempt.task_id, attempt.verifier, attempt.chip) for attempt in attempts
    ):
        verdict = memory.verdict(task_id, source_id, verifier, chip)
        if verdict is not None:
            yield f"{verifier}: {summary(verdict)}"


def _moved(event: Reward) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(event.at))
    if event.effect is Effect.SEED:
        return f"{when}: as a start point it begins at {event.raw:+.3f}."
    shown = f", of {len(event.shown)} that were shown" if event.shown else ""
    scaled = " before it was scaled" if event.scale else ""
    return f"{when}: {event.cause} paid {event.raw:+.3f}{scaled} to {len(event.used)} item(s){shown}."


def _worth(memory: Memory, source_id: str) -> Iterator[str]:
    start = start_item(source_id)
    for value in memory.values(Stage.REFINE):
        if value.item == start and not value.op_category:
            yield f"As a start point it is worth {value.q:+.3f} now, after {value.n} update(s)."
