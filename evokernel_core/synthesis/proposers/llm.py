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
from evokernel_core.domain.errors import ProposerError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.settings import ModelEndpoint
from evokernel_core.domain.task import KernelTask
from evokernel_core.logs import get_logger
from evokernel_core.synthesis.code import code_id
from evokernel_core.synthesis.privacy import Privacy
from evokernel_core.synthesis.proposers.base import Context, Proposal
from evokernel_core.synthesis.proposers.llm_answer import edit_schema, read_answer, schema
from evokernel_core.synthesis.proposers.llm_budget import Account, Books, Budget, Tally
from evokernel_core.synthesis.proposers.llm_model import Model
from evokernel_core.synthesis.proposers.llm_prompt import Prompt, draft_prompt, refine_prompt
from evokernel_core.synthesis.proposers.llm_words import Message, ModelAnswer, Question, Usage

log = get_logger(__name__)

LONG_KERNEL = 12_000
"""Characters from which a kernel may be refined by edits: about 4,000 tokens, most of them copies."""

_EDITS = """

# Edits
The kernel is long: where most of it stays, answer with edits. """
_EDITS_AS_JSON = (
    _EDITS
    + """Give null for each file that is edited, and each change as \
`search`, lines copied exactly that stand once in the file, and `replace`, the lines in their place. For \
another kernel give both files whole and no edits.
"""
)
_EDITS_AS_TEXT = (
    _EDITS
    + """Under the marker of a file give blocks in place of its text:
<<<<<<< SEARCH
lines copied exactly that stand once in the file
=======
the lines in their place
>>>>>>> REPLACE
For another kernel give both files whole.
"""
)


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
        """Tokens by job that no proposal has reported yet: those of useless answers."""
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
        question, _ = self._question(task, context, self._base(task, context))
        question = self._account(context).fitted(question)
        return json.dumps(self._model.body(question), indent=2, ensure_ascii=False)

    def _base(self, task: KernelTask, context: Context) -> KernelSource | None:
        """The kernel to refine as the model is shown it."""
        return Privacy(task).files(context.start.source, self._author) if context.start else None

    def _question(
        self, task: KernelTask, context: Context, base: KernelSource | None
    ) -> tuple[Question, Prompt]:
        """As many answers as can be verified, as long as the settings allow, and what the model is shown."""
        build = refine_prompt if context.start else draft_prompt
        edited = base is not None and sum(map(len, base.files.values())) >= LONG_KERNEL
        as_object, as_text = (
            build(task, context, self._author, structured=structured) for structured in (True, False)
        )
        question = Question(
            _messages(as_object, _EDITS_AS_JSON if edited else ""),
            (edit_schema if edited else schema)(self._author.target.name),
            self._endpoint.answer_tokens,
            max(1, min(self._endpoint.samples, context.attempts_left)),
            plain=_messages(as_text, _EDITS_AS_TEXT if edited else ""),
        )
        return question, as_object

    def _account(self, context: Context) -> Account:
        return Account(self._budget, context.job, lambda usage: self._count(context.job, usage))

    def _propose(self, task: KernelTask, context: Context, move: str) -> Proposal:
        base, account = self._base(task, context), self._account(context)
        question, prompt = self._question(task, context, base)
        answers = self._model.ask(account.fitted(question), account, context.cancelled)
        read = partial(read_answer, target=self._author.target.name, move=move, base=base)
        sources = _kernels(answers, context.tried, read)
        tokens = self._unreported.pop(context.job, 0)
        used = tuple(item.id for item in prompt.items)
        first, *others = (Proposal(source, used, learned=prompt.items) for source in sources)
        return evolve(first, tokens=tokens, others=tuple(others))

    def _count(self, job: str, usage: Usage) -> None:
        """Tokens count from here on, useful or not."""
        self._unreported[job] = self._unreported.get(job, 0) + usage.input + usage.output
        if usage.estimated and not self._told:
            log.warning("the endpoint does not count tokens; they are estimated", model=self._endpoint.model)
            self._told = True


def _messages(prompt: Prompt, more: str) -> tuple[Message, ...]:
    """Those of a prompt, the last with further words."""
    *first, last = prompt.messages
    return (*first, {**last, "content": last["content"].rstrip("\n") + more} if more else last)


Reader = Callable[[str], KernelSource]
"""From the text of an answer to its kernel. Raises ProposerError."""


def _kernels(answers: Iterable[ModelAnswer], tried: frozenset[str], read: Reader) -> tuple[KernelSource, ...]:
    """The different new kernels in the answers. Raises ProposerError for the first flaw where there are
    none."""
    result: dict[str, KernelSource] = {}
    flaws: list[Sentence] = []
    for answer in answers:
        try:
            source = _kernel(answer, tried, read)
        except ProposerError as error:
            flaws.append(error.sentence)
        else:
            result.setdefault(code_id(source), source)
    if not result:
        raise ProposerError(flaws[0])
    for flaw in flaws:
        log.info("an answer of several is left out", reason=flaw)
    return tuple(result.values())


def _kernel(answer: ModelAnswer, tried: frozenset[str], read: Reader) -> KernelSource:
    if answer.flaw:
        raise ProposerError(answer.flaw)
    source = read(answer.text)
    if source.source_id in tried:
        raise ProposerError("The model repeated a kernel that was judged before; write a different one.")
    return source
