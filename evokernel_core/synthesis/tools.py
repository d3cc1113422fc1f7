"""What coding agents ask of the worker beyond what the editor asks: to judge, to run, to look things up.

Each tool takes the session, the request's parameters and a flag of its cancellation, and gives plain data.
Paths in parameters are real ones that the server has checked; ``near`` is a trusted
folder where an interpreter is looked for, or empty.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.experience import Experience, ExperienceKind, Stage
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.region import Region
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.domain.settings import RetrievalName
from evokernel_core.memory.retrieval import Query, RetrievalChoice
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.regions import task_of
from evokernel_core.targets import load_knowledge

if TYPE_CHECKING:
    from evokernel_core.synthesis.session import Session

Params = Mapping[str, Any]
Tool = Callable[["Session", Params, Callable[[], bool]], Mapping[str, Any]]

AUTHOR = "agent"
"""Who wrote a kernel that a coding agent handed in, in the memory."""


def brief(session: Session, params: Params, cancelled: Callable[[], bool]) -> Mapping[str, Any]:
    """``{region}`` -> ``{"task", "guide", "bound_us"}``: what to compute, and all that is known of it."""
    from evokernel_core.synthesis.proposers.llm_prompt import describe_task, guide

    region = from_data(params["region"], Region)
    task = task_of(region)
    context = session.engine().next_context(task)
    described = describe_task(task)
    return {
        "task": {name: described[name] for name in ("inputs", "steps", "outputs", "tensors", "scalars")}
        | {
            "symbols": [list(symbol) for symbol in described["symbols"]],
            "rtol": task.tolerance.rtol,
            "atol": task.tolerance.atol,
        },
        "guide": guide(task, context, session.author),
        "bound_us": session.author.least_us(task),
    }


def interface(session: Session, params: Params, cancelled: Callable[[], bool]) -> Mapping[str, Any]:
    """``{cores}`` -> ``{"text"}``: the interface of a kernel on workers of a name, "" for the most common."""
    author = session.author
    knowledge = load_knowledge(author.target.name)
    return {"text": knowledge.interface(params["cores"] or knowledge.workers[0], author.device)}


def judge(session: Session, params: Params, cancelled: Callable[[], bool]) -> Mapping[str, Any]:
    """``{region, target, files}`` -> ``{"source_id", "verdict"}``; the memory keeps both. Raises UsageError
    for a target that the session does not judge."""
    from evokernel_core.synthesis.privacy import MODEL
    from evokernel_core.targets.sources import require_known

    strategy = Strategy(MODEL, notes=("written by a coding agent",))
    source = KernelSource(params["target"], params["files"], strategy)
    require_known(source)
    if source.target != session.author.target.name:
        raise UsageError(
            "Kernels for {device} are verified here, and this one is for the target {target}; start "
            "EvoKernel with --target {target}.",
            device=session.author.device.name,
            target=source.target,
        )
    result = session.judge(from_data(params["region"], Region), source, AUTHOR, cancelled=cancelled)
    return {"source_id": source.source_id, "verdict": to_data(result.verdict)}


def apply(session: Session, params: Params, cancelled: Callable[[], bool]) -> Mapping[str, Any]:
    """``{region, source_id}`` -> ``{"name", "dir"}``: writes the package, then the call into its file."""
    region = from_data(params["region"], Region)
    best = session.verified(region, _kernel_id(session, params["source_id"]))
    package = session.apply(Path(region.file), region, best)
    return {"name": package.name, "dir": str(package.folder)}


def kernels(session: Session, params: Params, cancelled: Callable[[], bool]) -> Mapping[str, Any]:
    """``{region}`` -> ``{"kernels": [{"source_id", "verdict", "files", "notes"}]}``, fastest verified first;
    ``files`` are their names."""
    task = task_of(from_data(params["region"], Region))
    result = session.memory.candidates(task.task_id, chip=session.settings.chip)
    latest = {element.source.source_id: element for element in result}
    rows = [
        {
            "source_id": id,
            "verdict": to_data(entry.verdict),
            "files": list(entry.source.files),
            "notes": list(entry.source.strategy.notes),
        }
        for id, entry in sorted(latest.items(), key=lambda pair: _us(pair[1].verdict))
    ]
    return {"kernels": rows}


def kernel(session: Session, params: Params, cancelled: Callable[[], bool]) -> Mapping[str, Any]:
    """``{source_id}``, or its beginning -> ``{"source_id", "target", "files", "notes", "verdicts"}``."""
    id = _kernel_id(session, params["source_id"])
    source = session.memory.source(id)
    if source is None:
        raise UsageError("The kernel {id} in the memory is damaged; generate it again.", id=id[:12])
    return {
        "source_id": id,
        "target": source.target,
        "files": dict(source.files),
        "notes": list(source.strategy.notes),
        "verdicts": [to_data(verdict) for verdict in session.memory.verdicts(id)],
    }


def verify_package(session: Session, params: Params, cancelled: Callable[[], bool]) -> Mapping[str, Any]:
    """``{folder, changed, trusted}`` -> ``{"source_id", "verdict", "foreign"}`` of a kernel package;
    ``foreign`` names files that are not part of it."""
    from evokernel_core.package.integrity import foreign_words
    from evokernel_core.package.write import read_package
    from evokernel_core.verifier.again import verify_again

    folder = Path(params["folder"])
    task, source, manifest = read_package(folder, changed=params["changed"])
    verdict = verify_again(task, source, session.settings, folder, trust=params["trusted"])
    return {
        "source_id": source.source_id,
        "verdict": to_data(verdict),
        "foreign": foreign_words(folder, manifest),
    }


def run(session: Session, params: Params, cancelled: Callable[[], bool]) -> Mapping[str, Any]:
    """As ``apart.run_source``."""
    from evokernel_core.twin.apart import run_source

    return run_source(params, session.settings.chip)


def run_operator(session: Session, params: Params, cancelled: Callable[[], bool]) -> Mapping[str, Any]:
    """As ``apart.run_operator``."""
    from evokernel_core.twin import apart

    return apart.run_operator(params, session.settings.chip)


def search(session: Session, params: Params, cancelled: Callable[[], bool]) -> Mapping[str, Any]:
    """``{query, kinds, most}`` -> ``{"items": [Experience and "shipped"]}``: cards and practices that come
    with EvoKernel, which are ``shipped``, then what the memory learned, each the closest first."""

    result = lookup(session.memory, session.author, params["query"], params["kinds"], params["most"])
    ours = comes_with_us(session.author)
    return {"items": [to_data(element) | {"shipped": element in ours} for element in result]}


TOOLS: Mapping[str, Tool] = MappingProxyType(
    {
        "apply": apply,
        "brief": brief,
        "interface": interface,
        "judge": judge,
        "kernel": kernel,
        "kernels": kernels,
        "run": run,
        "run_operator": run_operator,
        "search": search,
        "verify_package": verify_package,
    }
)


def _us(verdict: Any) -> float:
    return verdict.latency.us if verdict.feasible and verdict.latency else float("inf")


def _kernel_id(session: Session, beginning: str) -> str:
    result = session.memory.kernels_from(beginning)
    if len(result) != 1:
        what = "no kernel" if not result else f"{len(result)} kernels"
        raise UsageError(
            "The memory has {what} whose id begins with {beginning}; generate one first.",
            what=what,
            beginning=repr(beginning[:64]),
        )
    return result[0]


_IN_TITLE, _IN_NAME = 3, 10
"""How much more a word counts in a title, and as a function that a card is about, than in the text."""


def lookup(
    memory: Memory, author: KernelAuthor, query: str, kinds: Collection[str], most: int
) -> tuple[Experience, ...]:
    """At most ``most`` items about the words of ``query``, of ``kinds`` or of all where none are named:
    first what comes with EvoKernel, then the memory's, each the closest first."""
    wanted = frozenset(map(ExperienceKind, kinds)) or frozenset(ExperienceKind)
    words = _words(query)
    named = frozenset(re.findall(r"\w+", query))
    shipped = sorted(_shipped(words, named, wanted, author), key=lambda matches: -matches[0])
    items = [experience for score, experience in shipped if score]
    asked = Query(query, {}, Stage.DRAFT, "", tuple(sorted(wanted)))
    choice = RetrievalChoice(most, most, mode=RetrievalName.SIMILARITY)
    learned = memory.retrieve(asked, choice, random.Random(0)).experiences
    matching = [
        experience for experience in learned if words & _words(f"{experience.title} {experience.body}")
    ]
    return tuple({item.id: item for item in [*items, *matching]}.values())[:most]


def comes_with_us(author: KernelAuthor) -> tuple[Experience, ...]:
    """The cards and practices that ``lookup`` takes from EvoKernel itself."""
    return tuple(shipped.experience for shipped in load_knowledge(author.target.name).shipped(author.device))


def _shipped(
    words: frozenset[str], named: frozenset[str], wanted: Collection[ExperienceKind], author: KernelAuthor
) -> Iterator[tuple[int, Experience]]:
    for shipped in load_knowledge(author.target.name).shipped(author.device):
        if shipped.experience.kind in wanted:
            # by its case: "copy" is a word of many questions, Copy a function
            score = _IN_NAME * len(named & shipped.names) + _score(words, shipped.experience)
            yield score, shipped.experience


def _score(words: frozenset[str], experience: Experience) -> int:
    return _IN_TITLE * len(words & _words(experience.title)) + len(words & _words(experience.body))


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))
