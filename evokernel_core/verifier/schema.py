"""What travels over the verifier's HTTP API: pydantic at the edge, the domain's JSON inside."""

from __future__ import annotations

import hashlib
import math
from typing import Annotated, Any, Literal

from cattrs.errors import BaseValidationError
from cattrs.v import transform_error
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from evokernel_core.domain import earlier_sources
from evokernel_core.domain.admission import read_task
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.files import MOST_FILES
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.serial import dumps, from_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.sources import require_known

JobId = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
ClientName = Annotated[str, StringConstraints(pattern="^[A-Za-z0-9_-]{0,64}$")]
PriorityName = Literal["interactive", "background"]
DEEPEST = 64
"""Levels of lists and objects in a request; a task has fewer than ten."""

MOST_VALUES = 500_000
"""Values in a request."""

LONGEST_WORD = 100_000
"""Characters of the longest text in a task."""

LONGEST_SENTENCE = 400
"""Characters of what is said about a mistake; some exceptions repeat the text that they are about."""

GREATEST = 2**63
"""Whole numbers are smaller than this: sizes, seeds and constants of graphs are 64 bits wide."""

TargetName = Annotated[str, StringConstraints(pattern="^[a-z][a-z0-9_]{0,31}$")]
FileName = Annotated[str, StringConstraints(pattern="^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")]
FileText = Annotated[str, StringConstraints(min_length=1, max_length=1_000_000)]


class SourceBody(BaseModel):
    """A kernel: the language of its files, their texts by name (docs/kernel-abi.md), and the strategy behind
    them."""

    model_config = ConfigDict(extra="forbid")

    target: TargetName
    files: dict[FileName, FileText] = Field(min_length=1, max_length=MOST_FILES)
    strategy: dict[str, Any]

    @model_validator(mode="before")
    @classmethod
    def _with_target(cls, data: Any) -> Any:
        """Clients of before kernels named a target write two files as fields: read for one more release."""
        is_earlier = isinstance(data, dict) and data.keys() >= earlier_sources.FIELDS.keys()
        return earlier_sources.named(data) if is_earlier else data


class JobRequest(BaseModel):
    """A kernel to judge. ``client`` names who asks, so that a cancel takes back only one's own wish.

    ``priority`` is interactive where the token allows it, unless it is said.
    """

    model_config = ConfigDict(extra="forbid")

    task: dict[str, Any]
    source: SourceBody
    client: ClientName = ""
    priority: PriorityName | None = None


class JobView(BaseModel):
    """A job; once done it has a verdict, or in ``error`` one sentence why there is none; ``said`` is what the
    sentence is made of, its template (``say``) and values (``with``), so that it can be translated."""

    id: JobId
    state: Literal["queued", "running", "done"]
    verdict: dict[str, Any] | None = None
    error: str = ""
    said: dict[str, Any] | None = None


class CancelView(BaseModel):
    """``cancelled`` is false where the job was done already or others still want it."""

    id: JobId
    cancelled: bool


class StatusView(BaseModel):
    """Who judges here, and how much waits. ``targets``: the languages of kernels that are judged; none where
    the service is of before kernels named theirs."""

    name: str
    backend: str
    chip: str
    version: str
    workers: int
    queued: int
    running: int
    done: int
    targets: list[str] = []


class Problem(BaseModel):
    """Every answer that is not a success: one sentence; ``said`` as in JobView."""

    error: str
    said: dict[str, Any] | None = None


def parse_kernel(task: dict[str, Any], source: dict[str, Any]) -> tuple[KernelTask, KernelSource]:
    """The domain's objects, the task admitted, the kernel one of a known target; ``source`` may be of the
    earlier form. Raises UsageError."""
    check_bounds(task, "task")
    check_bounds(source, "source", longest=1_000_000)
    parsed = read_task(task), _structure(source, KernelSource, "source")
    require_known(parsed[1])
    _check_json(*parsed)
    return parsed


def job_id(task: KernelTask, source: KernelSource, backend: str, chip: str) -> str:
    """What is judged, and by what: the same question has the same name.

    Captured settings are no part of a task's identity, but what is drawn lies around them: a kernel that is
    right around other settings has another verdict.
    """
    settings = [str(operand.value) for operand in task.graph.inputs if operand.value is not None]
    question = (task.task_id, source.source_id, backend, chip, *settings)
    return hashlib.sha256("\n".join(question).encode()).hexdigest()


def check_bounds(data: Any, what: str, *, longest: int = LONGEST_WORD) -> None:
    """Raises UsageError for JSON that is deeper, larger or stranger than any task or source is."""
    level, seen = [data], 0
    for _ in range(DEEPEST):
        seen += len(level)
        if seen > MOST_VALUES:
            raise UsageError(f"The {what} has more than {MOST_VALUES} values.")
        for value in level:
            _check_value(value, what, longest)
        level = [item for value in level for item in _items(value)]
        if not level:
            return
    raise UsageError(f"The {what} is nested deeper than {DEEPEST} levels.")


def _items(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else []


def _check_value(value: Any, what: str, longest: int) -> None:
    match value:
        case str() if len(value) > longest:
            raise UsageError(f"The {what} has a text of more than {longest} characters.")
        case float() if not math.isfinite(value):
            raise UsageError(f'The {what} has a number that JSON does not have; write {{"float": "inf"}}.')
        case int() if abs(value) >= GREATEST:
            raise UsageError(f"The {what} has a number of more than 64 bits.")


def _clipped(error: object) -> str:
    """What went wrong, without all that a client wrote."""
    text = str(error).rstrip(".")
    return text if len(text) <= LONGEST_SENTENCE else f"{text[:LONGEST_SENTENCE]}..."


def _structure(data: dict[str, Any], kind: type[Any], what: str) -> Any:
    try:
        return from_data(data, kind)
    except BaseValidationError as error:
        first = next(iter(transform_error(error)), "it does not fit")
        raise UsageError(f"The {what} is not a {kind.__name__}: {_clipped(first)}.") from error
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, MemoryError) as error:
        raise UsageError(f"The {what} is not a {kind.__name__}: {_clipped(error)}.") from error


def _check_json(task: KernelTask, source: KernelSource) -> None:
    """Text that has no UTF-8 form, or numbers that have no JSON form, cannot be stored or named."""
    try:
        dumps(task), task.task_id, dumps(source), source.source_id
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"The kernel cannot be written as JSON: {_clipped(error)}.") from error
