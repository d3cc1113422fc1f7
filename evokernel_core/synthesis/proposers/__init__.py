"""Authors of kernels behind one interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.settings import ProposerName, Settings
from evokernel_core.extras import MODEL, needed
from evokernel_core.synthesis.proposers.base import Proposer
from evokernel_core.targets import author_for

if TYPE_CHECKING:
    from evokernel_core.synthesis.proposers.llm_budget import Books

__all__ = ["open_proposer"]


def open_proposer(settings: Settings, books: Callable[[], Books] | None = None) -> Proposer:
    """The proposer that the settings name; ``books`` opens what keeps a model's spending. Raises UsageError
    for a model without an endpoint, ExtraMissing without its client."""
    from evokernel_core.synthesis.proposers.schedule import ScheduleProposer

    author = author_for(settings.chip, settings.target, half=settings.half)
    schedule = ScheduleProposer(author)
    if settings.proposer is ProposerName.SCHEDULE:
        return schedule
    if not (settings.endpoint.base_url and settings.endpoint.model):
        raise UsageError(
            "The {proposer} proposer needs a model endpoint; give its URL and model, or use the "
            "schedule proposer.",
            proposer=settings.proposer.value,
        )
    from evokernel_core.synthesis.proposers.hybrid import HybridProposer

    with needed(MODEL):
        from evokernel_core.synthesis.proposers.llm import LlmProposer

    model = LlmProposer(settings.endpoint, author, books)
    return model if settings.proposer is ProposerName.LLM else HybridProposer(schedule, model)
