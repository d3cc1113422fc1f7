"""Experience: one item of the memory."""

from __future__ import annotations

from enum import StrEnum

from attrs import field, frozen

from evokernel_core.domain.sentence import Sentence


class ExperienceKind(StrEnum):
    API_CARD = "api_card"
    EXEMPLAR = "exemplar"
    TRACE = "trace"
    SUCCESS = "success"
    FAILURE = "failure"
    PRACTICE = "practice"
    SEQUENCE = "sequence"
    RULE = "rule"


class Stage(StrEnum):
    DRAFT = "draft"
    REFINE = "refine"


@frozen
class Experience:
    """A memory item. ``id`` is the sha256 of kind, title and body, so the same lesson is one item. The title
    is a sentence, since people are shown it.

    ``body`` is text for a person or a model; ``payload`` is JSON for a program (a Strategy, a
    move, two kernel files), empty where there is none. ``features`` are the structural features of
    the task it came from (name to weight). ``bottleneck`` is the pipe that it helps with, if any.
    """

    id: str
    kind: ExperienceKind
    title: Sentence = field(converter=Sentence)
    body: str
    op_category: str = ""
    task_id: str = ""
    bottleneck: str = ""
    payload: str = ""
    features: tuple[tuple[str, float], ...] = ()
