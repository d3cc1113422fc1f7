"""``/chat/completions``: what is sent, and what its stream or its whole answer says."""

from __future__ import annotations

from typing import Any

from attrs import define, field
from pydantic import BaseModel

from evokernel_core.synthesis.proposers.llm_words import (
    AnswerPart,
    Count,
    Features,
    ModelAnswer,
    NoAnswer,
    Question,
    Reader,
    Usage,
    texts,
)


class _Delta(BaseModel):
    content: str | list[Any] | None = None
    refusal: Any = None
    reasoning_content: Any = None
    reasoning: Any = None

    @property
    def thought(self) -> str:
        """Endpoints have two names for it."""
        result = (self.reasoning_content, self.reasoning)
        return next((text for text in result if isinstance(text, str)), "")


class _Choice(BaseModel):
    index: int | None = None
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(BaseModel):
    """What we need of a chat completion or of a chunk of one, whatever else an endpoint adds."""

    choices: list[_Choice] | None = None
    usage: Any = None


class ChatCompletions:
    """``/chat/completions``."""

    name = "chat completions"
    path = "/chat/completions"

    def body(self, model: str, question: Question, features: Features) -> dict[str, Any]:
        body: dict[str, Any] = {"model": model, "messages": list(question.messages)}
        body[features.limit_name] = question.limit
        if features.structured:
            format = {"name": "kernel", "strict": True, "schema": question.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": format}
        if features.effort:
            body["reasoning_effort"] = features.effort
        if features.temperature is not None:
            body["temperature"] = features.temperature
        if features.samples and question.samples > 1:
            body["n"] = question.samples
        if features.stream:
            body["stream"] = True
        if features.stream and features.counted:
            body["stream_options"] = {"include_usage": True}
        return body

    def reader(self, question: Question) -> Reader:
        return _ChatReader(question, Count(question.tokens))


@define
class _ChatReader:
    question: Question
    count: Count
    parts: dict[int, AnswerPart] = field(factory=dict)

    def take(self, event: object) -> None:
        chunk = _Chunk.model_validate(event)
        self.count.said = chunk.usage or self.count.said
        for choice in chunk.choices or ():
            says, index = choice.message or choice.delta or choice.finish_reason, choice.index or 0
            if says and 0 <= index < self.question.samples:
                self._take(choice, self.parts.setdefault(index, AnswerPart()))

    def _take(self, choice: _Choice, part: AnswerPart) -> None:
        for delta in (choice.delta, choice.message):
            if delta is None:
                continue
            for text in texts(delta.content):
                self.count.add(text)
                part.texts.append(text)
            self.count.add(delta.thought, thought=True)
            part.refused |= bool(delta.refusal)
        part.finish = choice.finish_reason or part.finish or ("stop" if choice.message else "")

    @property
    def began(self) -> bool:
        return bool(self.parts)

    @property
    def finished(self) -> bool:
        return len(self.parts) == self.question.samples and all(part.finish for part in self.parts.values())

    def usage(self) -> Usage:
        return self.count.usage()

    def words(self) -> tuple[ModelAnswer, ...]:
        if not self.parts:
            raise NoAnswer("There are no choices.")
        limit, thought = self.question.limit, self.count.thought
        return tuple(part.words(limit, thought) for _, part in sorted(self.parts.items()))
