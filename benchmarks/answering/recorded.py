"""Answers that are kept, each with the kernels that its question showed: questions are built anew."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import frozen

from benchmarks.answering.questions import QUESTION, Questions, answers
from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.errors import ProposerError
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.region import Region
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.domain.settings import ModelEndpoint
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Verdict
from evokernel_core.synthesis.privacy import MODEL
from evokernel_core.synthesis.proposers.base import Candidate, Context
from evokernel_core.synthesis.proposers.llm_answer import read_answer
from evokernel_core.synthesis.proposers.llm_question import Asked, asked
from evokernel_core.synthesis.proposers.llm_words import AnswerPart
from evokernel_core.synthesis.regions import task_of
from evokernel_core.synthesis.session import Session
from evokernel_core.targets import TARGETS
from evokernel_core.targets.sources import files_of

TASK = "task.py"
START, FAILED = "# The kernel to make faster", "# The last attempt, which failed"
_NEXT = r"\n\nIt (?:takes \d|changed)|^# (?:What|Attempts|Why a person|Edits|The (?:last|kernel))\b|\Z"
_SECTION = re.compile(rf"^({START}|{FAILED})$(.*?)(?={_NEXT})", re.MULTILINE | re.DOTALL)
Files = Mapping[str, str]
UNREADABLE = "answer"
"""In place of a gate: no kernel came of the answer."""


@frozen
class Came:
    """What came of an answer: the gate that failed with its code, or UNREADABLE with the sentence, or neither
    and the microseconds of a verified kernel."""

    gate: str = ""
    code: str = ""
    us: float | None = None

    def is_as(self, other: Came) -> bool:
        return (self.gate, self.code) == (other.gate, other.code)


@frozen
class Given:
    """An answer, the keys of the kernels that its question showed (empty: none), and what came of it, None
    where nobody has looked."""

    start: str
    failed: str
    text: str
    finish: str = "stop"
    came: Came | None = None


@frozen
class Recorded:
    """The answers about one task, in their order; ``task`` is the text of its file, ``kernels`` the files of
    those that questions showed."""

    name: str
    date: str
    target: str
    task: str
    kernels: Mapping[str, Files]
    answers: tuple[Given, ...]

    def asked(self, given: Given, task: KernelTask, author: KernelAuthor) -> Asked:
        """The question that an answer is to, as it is asked today."""
        start, failed = (self._candidate(key, task) for key in (given.start, given.failed))
        context = Context(start=start, children=(failed,) if failed else ())
        return asked(task, context, author, ModelEndpoint())

    def read(self, given: Given, task: KernelTask, author: KernelAuthor) -> KernelSource:
        """The kernel in an answer to today's question. Raises ProposerError."""
        about = self.asked(given, task, author)
        answer = AnswerPart([given.text], finish=given.finish).words(about.question.limit, 0)
        if answer.flaw:
            raise ProposerError(answer.flaw)
        move = MODEL if given.start else ""
        return read_answer(answer.text, target=self.target, move=move, base=about.base)

    def _candidate(self, key: str, task: KernelTask) -> Candidate | None:
        """A kernel that was shown, as one that failed: nothing is said of its time."""
        if not key:
            return None
        source = KernelSource(self.target, self.kernels[key], Strategy(MODEL))
        gate = GateResult(GateName.CORRECTNESS, GateStatus.FAILED)
        return Candidate(source, Verdict(task.task_id, source.source_id, "recorded", (gate,)))


def judged(recorded: Recorded, given: Given, region: Region, session: Session) -> Came:
    """What comes of an answer today, which the session's memory keeps. Raises EvoKernelError."""
    try:
        source = recorded.read(given, task_of(region), session.author)
    except ProposerError as error:
        return Came(UNREADABLE, str(error))
    verdict = session.judge(region, source, f"recorded {recorded.date}").verdict
    if (failed := verdict.failed_gate) is not None:
        return Came(failed.gate.value, failed.code)
    return Came(us=round(verdict.latency.us, 3) if verdict.latency else None)


def shown(question: str) -> tuple[Files, Files]:
    """The files of the kernel to make faster and of the attempt that failed, empty where there is none."""
    sections = dict(_SECTION.findall(question))
    return _files(sections.get(START, "")), _files(sections.get(FAILED, ""))


def _files(section: str) -> Files:
    names = "|".join(re.escape(name) for target in TARGETS for name in files_of(target))
    parts = re.split(rf"^({names}):$", section, flags=re.MULTILINE)
    return {name: text.strip("\n") + "\n" for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def recorded(folder: Path, name: str, date: str) -> Recorded:
    """The answers that stand in a folder of questions about a task, whose file stands there too."""
    kernels: dict[str, Files] = {}
    given: list[Given] = []
    target = TARGETS[0]
    for place in Questions(folder).of(name):
        text = (place / QUESTION).read_text()
        target = next(target for target in TARGETS if all(file in text for file in files_of(target)))
        start, failed = (_key(kernels, files) for files in shown(text))
        given += (Given(start, failed, answer.text, answer.finish) for answer in answers(place))
    return Recorded(name, date, target, (folder / name / TASK).read_text(), kernels, tuple(given))


def _key(kernels: dict[str, Files], files: Files) -> str:
    if not files:
        return ""
    key = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:8]
    kernels[key] = files
    return key


def kept(folder: Path) -> Iterator[Recorded]:
    """All that a folder holds, by the names of tasks."""
    for path in sorted(folder.glob("*.json")):
        yield from_data(json.loads(path.read_text()), Recorded)


def keep(folder: Path, record: Recorded) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(to_data(record), indent=1, ensure_ascii=False, sort_keys=True)
    (folder / f"{record.name}.json").write_text(text + "\n")
