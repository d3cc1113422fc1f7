"""LlmProposer: a language model, behind any OpenAI-compatible endpoint, as a kernel author.

What it writes is only ever a candidate: the verifier compiles, runs and times it like any other. What came of
it is credited to all that the model was shown, as in EvoKernel: what a model says it used is no evidence.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial

from attrs import evolve

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.errors import AnswerUnreadable, ProposerError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.settings import ModelEndpoint
from evokernel_core.domain.task import KernelTask
from evokernel_core.logs import get_logger
from evokernel_core.synthesis.code import code_id
from evokernel_core.synthesis.proposers.base import Context, Proposal
from evokernel_core.synthesis.proposers.llm_answer import read_answer
from evokernel_core.synthesis.proposers.llm_budget import Account, Books, Budget, Tally
from evokernel_core.synthesis.proposers.llm_model import Model
from evokernel_core.synthesis.proposers.llm_question import Asked, asked, asked_again
from evokernel_core.synthesis.proposers.llm_words import ModelAnswer, Question, Usage

log = get_logger(__name__)

Reader = Callable[[str], KernelSource]
"""From the text of an answer to its kernel. Raises ProposerError."""


class LlmProposer:
    """Drafts, repairs and refines with the model at ``endpoint``, within its budgets.

    ``books`` opens what keeps the spending, where that is to hold over processes. Raises UsageError for an
    wrong settings, and EndpointError for an endpoint that cannot be used.
    """

    def __init__(
        self, endpoint: ModelEndpoint, author: KernelAuthor, books: Callable[[], Books] | None = None
    ) -> None:
        self._endpoint = endpoint
        self._author = author
        self._model = Model(endpoint)
        own = Tally()
        self._budget = Budget(endpoint, books or (lambda: own))
        self._unreported: dict[str, int] = {}
        """Tokens by job of the question that is being asked."""
        self._told = False

    @property
    def name(self) -> str:
        return f"model {self._endpoint.model}"

    def draft(self, task: KernelTask, context: Context) -> Proposal:
        """A first kernel, or a repair of the last draft. Raises ProposerError and its children."""
        return self._propose(task, context, move="")

    def refine(self, task: KernelTask, context: Context) -> Proposal:
        """A kernel meant to beat ``context.start``. Raises ProposerError and its children."""
        if context.start is None:
            raise ProposerError("There is no kernel to refine yet; draft one first.")
        return self._propose(task, context, move=Sentence("model"))

    def preview(self, task: KernelTask, context: Context) -> str:
        """The exact body of the request that ``draft`` or ``refine`` would send, as JSON text."""
        question = self._account(context).fitted(self._asked(task, context).question)
        return json.dumps(self._model.body(question), indent=2, ensure_ascii=False)

    def _asked(self, task: KernelTask, context: Context) -> Asked:
        return asked(task, context, self._author, self._endpoint)

    def _account(self, context: Context) -> Account:
        return Account(self._budget, context.job, lambda usage: self._count(context.job, usage))

    def _propose(self, task: KernelTask, context: Context, move: str) -> Proposal:
        """What a question cost goes with its kernel, or with the error."""
        try:
            proposal = self._answered(task, context, move)
        except ProposerError as error:
            error.tokens = self._unreported.pop(context.job, 0)
            raise
        return evolve(proposal, tokens=self._unreported.pop(context.job, 0))

    def _answered(self, task: KernelTask, context: Context, move: str) -> Proposal:
        """The first answer that cannot be read is asked for again within the same attempt."""
        about = self._asked(task, context)
        target = self._author.target.name
        read = partial(read_answer, target=target, move=move, base=about.base)
        try:
            sources = self._kernels(about.question, context, read)
        except AnswerUnreadable as error:
            log.info("an answer cannot be read; asking again", reason=error.sentence)
            sources = self._kernels(asked_again(about.question, error.sentence), context, read)
        used = tuple(item.id for item in about.prompt.items)
        first, *others = (Proposal(source, used, learned=about.prompt.items) for source in sources)
        return evolve(first, others=tuple(others))

    def _kernels(self, question: Question, context: Context, read: Reader) -> tuple[KernelSource, ...]:
        account = self._account(context)
        answers = self._model.ask(account.fitted(question), account, context.cancelled)
        return _kernels(answers, context.tried, read)

    def _count(self, job: str, usage: Usage) -> None:
        """Tokens count from here on, useful or not."""
        self._unreported[job] = self._unreported.get(job, 0) + usage.input + usage.output
        if usage.estimated and not self._told:
            log.warning("the endpoint does not count tokens; they are estimated", model=self._endpoint.model)
            self._told = True


def _kernels(answers: Iterable[ModelAnswer], tried: frozenset[str], read: Reader) -> tuple[KernelSource, ...]:
    """The different new kernels in the answers. Raises ProposerError for the first flaw where there are
    none."""
    result: dict[str, KernelSource] = {}
    flaws: list[ProposerError] = []
    for answer in answers:
        try:
            source = _kernel(answer, tried, read)
        except ProposerError as error:
            flaws.append(error)
        else:
            result.setdefault(code_id(source), source)
    if not result:
        raise flaws[0]
    for flaw in flaws:
        log.info("an answer of several is left out", reason=flaw.sentence)
    return tuple(result.values())


def _kernel(answer: ModelAnswer, tried: frozenset[str], read: Reader) -> KernelSource:
    if answer.flaw:
        raise (ProposerError if answer.is_refused else AnswerUnreadable)(answer.flaw)
    source = read(answer.text)
    if source.source_id in tried:
        raise ProposerError("The model repeated a kernel that was verified before; write a different one.")
    return source
