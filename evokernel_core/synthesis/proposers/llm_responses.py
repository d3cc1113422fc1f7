"""``/responses``: what is sent, and what its stream or its whole answer says."""

from __future__ import annotations

from typing import Any

from attrs import define, field
from pydantic import BaseModel

from evokernel_core.domain.sentence import Sentence
from evokernel_core.synthesis.proposers.llm_words import (
    AnswerPart,
    Count,
    EndpointRefused,
    Features,
    ModelAnswer,
    NoAnswer,
    Question,
    Reader,
    Usage,
    texts,
)


class _Item(BaseModel):
    type: str = ""
    content: list[Any] | None = None


class _Incomplete(BaseModel):
    reason: str | None = None


class _Response(BaseModel):
    """What we need of a response, whatever else an endpoint adds or leaves out."""

    output: list[_Item] | None = None
    status: str | None = None
    incomplete_details: _Incomplete | None = None
    usage: Any = None


class _Event(BaseModel):
    type: str = ""
    delta: Any = None
    response: Any = None


class Responses:
    """``/responses``."""

    name = "responses"
    path = "/responses"

    def body(self, model: str, question: Question, features: Features) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": model,
            "input": list(question.messages),
            "max_output_tokens": question.limit,
        }
        if features.structured:
            body["text"] = {
                "format": {"type": "json_schema", "name": "kernel", "strict": True, "schema": question.schema}
            }
        if features.effort:
            body["reasoning"] = {"effort": features.effort}
        if features.temperature is not None:
            body["temperature"] = features.temperature
        if features.unstored:
            body["store"] = False
        if features.stream:
            body["stream"] = True
        return body

    def reader(self, question: Question) -> Reader:
        return _ResponsesReader(question, Count(question.tokens))


_FINISH = {"max_output_tokens": "length", "content_filter": "content_filter"}


@define
class _ResponsesReader:
    question: Question
    count: Count
    part: AnswerPart = field(factory=AnswerPart)
    began: bool = False

    def take(self, event: object) -> None:
        result = _Event.model_validate(event)
        if not result.type.startswith("response.") and result.type != "error":
            return self._whole(event)
        delta = result.delta if isinstance(result.delta, str) else ""
        match result.type:
            case "response.output_text.delta":
                self.count.add(delta)
                self.part.texts.append(delta)
            case "response.refusal.delta":
                self.part.refused = True
            case "response.reasoning_text.delta" | "response.reasoning_summary_text.delta":
                self.count.add(delta, thought=True)
            case "response.completed" | "response.incomplete":
                self._whole(result.response)
            case "response.failed" | "error":
                raise EndpointRefused(Sentence("broke off its answer with an error"))
            case _:
                return None
        self.began = True
        return None

    def _whole(self, response: object) -> None:
        """The response at its end, whose words count where there were none before."""
        result = _Response.model_validate(response)
        output = [] if result.output is None and self.part.texts else result.output
        if output is None or result.status is None:
            raise NoAnswer("There is no output.")
        if result.status == "failed":
            raise EndpointRefused(Sentence("broke off its answer with an error"))
        self.began, self.count.said = True, result.usage
        reason = result.incomplete_details.reason if result.incomplete_details else None
        self.part.finish = _FINISH.get(reason or "", "stop" if result.status == "completed" else "")
        pieces = [piece for item in output if item.type == "message" for piece in item.content or ()]
        self.part.refused |= any(
            isinstance(piece, dict) and piece.get("type") == "refusal" for piece in pieces
        )
        if not self.part.texts:
            for text in texts(pieces):
                self.count.add(text)
                self.part.texts.append(text)

    @property
    def finished(self) -> bool:
        return bool(self.part.finish)

    def usage(self) -> Usage:
        return self.count.usage()

    def words(self) -> tuple[ModelAnswer, ...]:
        if not self.began:
            raise NoAnswer("There is no output.")
        return (self.part.words(self.question.limit, self.count.thought),)
