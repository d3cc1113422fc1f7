"""The question about a task: what the model is shown, the form of its answer, and what edits are made in.

A kernel may be changed by edits where most of it stays: one that is long, and one that failed.
"""

from __future__ import annotations

from attrs import evolve, frozen

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.settings import ModelEndpoint
from evokernel_core.domain.task import KernelTask
from evokernel_core.synthesis.privacy import Privacy
from evokernel_core.synthesis.proposers.base import Context
from evokernel_core.synthesis.proposers.llm_answer import NOTHING, edit_schema, schema
from evokernel_core.synthesis.proposers.llm_prompt import Prompt, draft_prompt, last_failure, refine_prompt
from evokernel_core.synthesis.proposers.llm_text import NOTHING_MARK
from evokernel_core.synthesis.proposers.llm_words import Message, Question, estimate_tokens

LONG_KERNEL = 12_000
"""Characters from which a kernel may be refined by edits: about 4,000 tokens, most of them copies."""

_EDITS = """

# Edits
Where most of the {which} stays, answer with edits of it. """
_AS_JSON = (
    _EDITS
    + """Give null for each file that is edited or stays, and each change as `search`, lines copied exactly \
that stand once in the file, and `replace`, the lines in their place. For another kernel give both files \
whole and no edits.
"""
)
_AS_TEXT = (
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
_END = """
Where no change would make it faster, """
_END_AS_JSON = f"{_END}give `{NOTHING}` as true, null for the files, and why in the notes.\n"
_END_AS_TEXT = f"{_END}write the line `=== {NOTHING_MARK}` and why, and no files.\n"
_UNREADABLE = """

# Your last answer to this could not be read
{why} Nothing was tried; answer again, in the format that was asked for.
"""


@frozen
class Asked:
    """A question with what it shows: the ``prompt``, and the kernel ``base`` that an answer may change."""

    question: Question
    prompt: Prompt
    base: KernelSource | None


def asked(task: KernelTask, context: Context, author: KernelAuthor, endpoint: ModelEndpoint) -> Asked:
    """As many answers as can be verified, as long as the settings allow."""
    start, failed = context.start, last_failure(context.children)
    changed = failed or start
    base = Privacy(task).files(changed.source, author) if changed else None
    is_long = base is not None and sum(map(len, base.files.values())) >= LONG_KERNEL
    may_edit = failed is not None or is_long
    which = "last attempt, which failed," if failed else "kernel to make faster"
    build = refine_prompt if start else draft_prompt
    as_object, as_text = (build(task, context, author, structured=form) for form in (True, False))
    question = Question(
        _messages(as_object, [_AS_JSON.format(which=which)] * may_edit + [_END_AS_JSON] * bool(start)),
        (edit_schema if may_edit else schema)(author.target.name, refines=start is not None),
        endpoint.answer_tokens,
        max(1, min(endpoint.samples, context.attempts_left)),
        plain=_messages(as_text, [_AS_TEXT.format(which=which)] * may_edit + [_END_AS_TEXT] * bool(start)),
    )
    return Asked(question, as_object, base)


def asked_again(question: Question, why: Sentence) -> Question:
    """The same once more, with what was wrong with the answer."""
    more = _UNREADABLE.format(why=why)
    return evolve(question, messages=_with(question.messages, more), plain=_with(question.plain, more))


def readable(question: Question, endpoint: ModelEndpoint) -> str:
    """The question for a person: who is asked, the tokens of each part as estimated, and the parts."""
    tokens = [estimate_tokens(message["content"]) for message in question.messages]
    model = endpoint.model or "no model yet"
    url = endpoint.base_url or "no endpoint yet"
    answers = f"{question.samples} answers" if question.samples > 1 else "one answer"
    head = (
        f"Asked of {model} at {url}: about {sum(tokens):,} tokens (estimated), for {answers} of at most "
        f"{question.limit:,} tokens."
    )
    parts = (
        f"----- {message['role']} message, about {count:,} tokens -----\n{message['content'].strip()}"
        for message, count in zip(question.messages, tokens, strict=True)
    )
    return "\n\n".join([head, *parts])


def _messages(prompt: Prompt, more: list[str]) -> tuple[Message, ...]:
    """Those of a prompt, the last with further words."""
    return _with(prompt.messages, "".join(more))


def _with(messages: tuple[Message, ...], more: str) -> tuple[Message, ...]:
    if not messages or not more:
        return messages
    *first, last = messages
    return (*first, {**last, "content": last["content"].rstrip("\n") + more})
