"""LlmProposer: a language model, behind any OpenAI-compatible endpoint, as a kernel author.

What it writes is only ever a candidate: the verifier compiles, runs and times it like any other. What came of
it is credited to all that the model was shown, as in EvoKernel: what a model says it used is no evidence.
"""

from __future__ import annotations

import json

from evokernel_core.domain.errors import BudgetExhausted, ProposerError
from evokernel_core.domain.settings import ModelEndpoint
from evokernel_core.domain.task import KernelTask
from evokernel_core.logs import get_logger
from evokernel_core.synthesis.proposers.base import Context, Proposal
from evokernel_core.synthesis.proposers.llm_answer import SCHEMA, read_answer
from evokernel_core.synthesis.proposers.llm_endpoint import Answer, ChatModel, estimate_tokens
from evokernel_core.synthesis.proposers.llm_prompt import Prompt, draft_prompt, refine_prompt
from evokernel_core.twin.chip import DEFAULT_CHIP, load_chip

log = get_logger(__name__)

LONGEST_ANSWER = 16_384
"""Tokens of the longest answer that is asked for."""
SHORTEST_ANSWER = 1_024
"""Tokens below which no kernel fits, so that asking would waste the rest of the budget."""


class LlmProposer:
    """Drafts, repairs and refines with the model at ``endpoint``, within its token budget.

    Raises UsageError for an unknown chip and EndpointError for an endpoint that cannot be used.
    """

    def __init__(self, endpoint: ModelEndpoint, chip: str = DEFAULT_CHIP) -> None:
        self._endpoint = endpoint
        self._chip = load_chip(chip)
        self._model = ChatModel(endpoint)
        self._spent = 0
        self._unreported = 0
        self._estimated = False

    @property
    def name(self) -> str:
        return f"model {self._endpoint.model}"

    @property
    def spent(self) -> int:
        """Tokens spent since the start, those of useless answers included."""
        return self._spent

    @property
    def estimated(self) -> bool:
        """Whether the endpoint left tokens uncounted, so that ``spent`` is in part our estimate."""
        return self._estimated

    def draft(self, task: KernelTask, context: Context) -> Proposal:
        """A first kernel, or a repair of the last draft. Raises ProposerError and its children."""
        return self._propose(context, self._prompt(task, context), move="")

    def refine(self, task: KernelTask, context: Context) -> Proposal:
        """A kernel meant to beat ``context.start``. Raises ProposerError and its children."""
        if context.start is None:
            raise ProposerError("There is no kernel to refine yet; draft one first.")
        return self._propose(context, self._prompt(task, context), move="model")

    def preview(self, task: KernelTask, context: Context) -> str:
        """The exact body of the request that ``draft`` or ``refine`` would send, as JSON text."""
        messages = list(self._prompt(task, context).messages)
        body = self._model.body(messages, SCHEMA, LONGEST_ANSWER)
        return json.dumps(body, indent=2, ensure_ascii=False)

    def _prompt(self, task: KernelTask, context: Context) -> Prompt:
        build = refine_prompt if context.start else draft_prompt
        return build(task, context, self._chip, structured=self._model.structured)

    def _propose(self, context: Context, prompt: Prompt, move: str) -> Proposal:
        answer = self._ask(prompt)
        if answer.flaw:
            raise ProposerError(answer.flaw)
        source = read_answer(answer.text, move=move)
        if source.source_id in context.tried:
            raise ProposerError("The model repeated a kernel that was judged before; write a different one.")
        tokens, self._unreported = self._unreported, 0
        return Proposal(source, tuple(item.id for item in prompt.items), tokens, learned=prompt.items)

    def _ask(self, prompt: Prompt) -> Answer:
        """One answer within the budget; its tokens count from here on, useful or not."""
        messages = list(prompt.messages)
        asked = sum(estimate_tokens(message["content"]) for message in messages)
        left = self._endpoint.token_budget - self._spent - asked
        if left < SHORTEST_ANSWER:
            raise BudgetExhausted(
                f"The token budget of {self._endpoint.token_budget} is used up ({self._spent} spent);"
                " raise it or go on without the model."
            )
        answer = self._model.ask(messages, SCHEMA, min(LONGEST_ANSWER, left))
        self._spent += answer.tokens
        self._unreported += answer.tokens
        if answer.estimated and not self._estimated:
            log.warning("the endpoint does not count tokens; they are estimated", model=self._endpoint.model)
            self._estimated = True
        return answer
