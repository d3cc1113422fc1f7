"""What a question to a model is and what an answer, whichever of the two protocols carries them.

Thoughts (``reasoning_content``, reasoning events, a ``<think>`` block before the words) are no part of an
answer; they are counted where nobody else counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from attrs import define, field, frozen

from evokernel_core.domain.sentence import Sentence
from evokernel_core.network import TooMuch

LARGEST_TEXT = 2 * 2**20
"""Characters of the longest answer that is kept."""
CHARACTERS_PER_TOKEN = 3.0
"""For estimates where an endpoint does not count; code has fewer characters a token than prose."""
_MOST_TOKENS = 10**9
"""A count beyond this is none."""
_THOUGHTS = ("think", "thinking", "thought", "reasoning")

Message = dict[str, str]


class NoAnswer(Exception):
    """Words of an endpoint that are no answer of its protocol."""


class EndpointRefused(Exception):
    """The endpoint ended its answer with an error of its own."""


@frozen
class Question:
    """``samples`` different answers of at most ``limit`` tokens each, as objects of ``schema``. ``plain``
    asks for the same as text, where an endpoint without structured output is asked otherwise."""

    messages: tuple[Message, ...]
    schema: Mapping[str, Any]
    limit: int
    samples: int = 1
    plain: tuple[Message, ...] = ()

    @property
    def tokens(self) -> int:
        """Those of the question in its longer form, estimated."""
        forms = (self.messages, self.plain)
        return max(sum(estimate_tokens(message["content"]) for message in form) for form in forms)


@frozen
class ModelAnswer:
    """What a model said. ``flaw`` is one sentence where that is no answer (refused, cut off, empty);
    ``is_refused`` where asking again would be refused too."""

    text: str
    flaw: Sentence = field(factory=Sentence)
    is_refused: bool = False


@frozen
class Usage:
    """Tokens read and written; ``estimated`` where the endpoint did not count them."""

    input: int
    output: int
    estimated: bool


@define
class Features:
    """What an endpoint is asked with; it loses what the endpoint says that it does not know."""

    effort: str = ""
    temperature: float | None = None
    structured: bool = True
    samples: bool = True
    stream: bool = True
    counted: bool = True
    unstored: bool = True
    limit_name: str = "max_tokens"


class Reader(Protocol):
    """Folds the events of one answer, or the whole of it, into words."""

    def take(self, event: object) -> None:
        """Raises pydantic's ValidationError, TooMuch or Refused."""
        ...

    @property
    def began(self) -> bool:
        """Whether there were words or counts, which somebody pays for."""
        ...

    @property
    def finished(self) -> bool:
        """Whether every answer came to its end, so that only counts may follow."""
        ...

    def usage(self) -> Usage: ...

    def words(self) -> tuple[ModelAnswer, ...]:
        """Raises NoAnswer where nothing of the protocol came."""
        ...


class Wire(Protocol):
    """A protocol."""

    name: str
    path: str

    def body(self, model: str, question: Question, features: Features) -> dict[str, Any]: ...

    def reader(self, question: Question) -> Reader: ...


def estimate_tokens(text: str) -> int:
    """Tokens of a text where nobody counted: a guess on the high side."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


@define
class AnswerPart:
    """One answer while it comes. ``finish`` is why it ended, empty while it goes on."""

    texts: list[str] = field(factory=list)
    refused: bool = False
    finish: str = ""

    def words(self, limit: int, thought: int) -> ModelAnswer:
        text, inner = without_thoughts("".join(self.texts))
        is_refused = self.refused or self.finish == "content_filter"
        return ModelAnswer(text, self._flaw(text, limit, bool(thought or inner)), is_refused)

    def _flaw(self, text: str, limit: int, thought: bool) -> Sentence:
        if self.refused:
            return Sentence("The model refused to write this kernel; try another model.")
        if self.finish == "content_filter":
            return Sentence("The endpoint's filter withheld the model's answer; try another model.")
        if self.finish == "length" and thought and not text.strip():
            return Sentence(
                "The model thought until its limit of {limit} tokens; raise it or ask for less effort.",
                limit=limit,
            )
        if self.finish == "length":
            return Sentence(
                "The model's answer was cut off at {limit} tokens; answer with shorter files.", limit=limit
            )
        if not self.finish:
            return Sentence("The model's answer broke off before its end; answer again.")
        empty = Sentence("The model's answer was empty; answer with the two files.")
        return Sentence() if text.strip() else empty


@define
class Count:
    """Characters that came, and what the endpoint says of their tokens."""

    asked: int
    text: int = 0
    thought: int = 0
    said: Any = None

    def add(self, text: str, *, thought: bool = False) -> None:
        if thought:
            self.thought += len(text)
            return
        self.text += len(text)
        if self.text > LARGEST_TEXT:
            raise TooMuch(Sentence("answers with more than {most} MB", most=LARGEST_TEXT // 2**20))

    def usage(self) -> Usage:
        """By the endpoint's word, where it makes sense; what it does not say is estimated."""
        said = self.said if isinstance(self.said, dict) else {}
        read = _first(said, "prompt_tokens", "input_tokens")
        written = _first(said, "completion_tokens", "output_tokens")
        total = _first(said, "total_tokens")
        came = math.ceil((self.text + self.thought) / CHARACTERS_PER_TOKEN)
        if said.get("total_tokens") is None:
            return Usage(read or self.asked, written or came, estimated=not (read and written))
        if not total:
            return Usage(self.asked, came, estimated=True)
        read = read or (total - written if written else self.asked)
        read = min(max(read, 0), total)
        return Usage(read, total - read, estimated=False)


def _first(said: Mapping[str, Any], *names: str) -> int:
    """The first of the counts that is one, 0 where none is."""
    result = (said.get(name) for name in names)
    return next((count for count in result if type(count) is int and 0 < count <= _MOST_TOKENS), 0)


def without_thoughts(text: str) -> tuple[str, str]:
    """The words behind the blocks of thought at the beginning, and the thoughts. A block without its first
    mark is one too, as prompts of some models hold that; one without its last goes to the end."""
    rest, thoughts = text, []
    while True:
        bare = rest.lstrip()
        name = next((name for name in _THOUGHTS if bare.startswith(f"<{name}>")), "")
        if not name:
            break
        thought, _, rest = bare.partition(f"</{name}>")
        thoughts.append(thought)
    for name in _THOUGHTS:
        before, mark, after = rest.partition(f"</{name}>")
        if mark and f"<{name}>" not in before:
            thoughts.append(before)
            rest = after
    return rest, "".join(thoughts)


def texts(content: str | list[Any] | None) -> Iterator[str]:
    """The words of a message; some endpoints list them beside thoughts."""
    if isinstance(content, str):
        yield content
    for piece in content if isinstance(content, list) else ():
        if isinstance(piece, dict) and piece.get("type") in ("text", "output_text"):
            yield str(piece.get("text") or "")
