"""What an endpoint is asked with: its protocol and the parameters that it knows, as far as it has said."""

from __future__ import annotations

import re
from typing import Any

import openai
from attrs import evolve

from evokernel_core.domain.settings import Effort, ModelEndpoint, ModelProtocol
from evokernel_core.synthesis.proposers.llm_chat import ChatCompletions
from evokernel_core.synthesis.proposers.llm_responses import Responses
from evokernel_core.synthesis.proposers.llm_words import Features, Question, Wire

LEAST_LIMIT = 1_024
"""Answer tokens below which an endpoint's own limit is not looked for."""
_UNKNOWN = (400, 404, 405, 422, 501)
"""Statuses of an endpoint that does not know what it was asked with."""

_FEATURES: tuple[tuple[str, Any, str, str], ...] = (
    (
        "structured",
        False,
        r"response_format|json_schema|text\.format",
        "has no structured output; asking for files under markers",
    ),
    ("effort", "", r"reasoning|effort", "does not take that reasoning effort; leaving it out"),
    ("temperature", None, r"temperature", "does not take that temperature; leaving it out"),
    ("samples", False, r"['\"`]n['\"`]", "gives one answer at a time; asking again for each"),
    ("counted", False, r"stream_options|include_usage", "counts no tokens in streams; estimating them"),
    ("unstored", False, r"\bstore\b", "does not know `store`; leaving it out"),
    ("stream", False, r"stream", "does not stream; waiting for whole answers"),
)
"""Field of Features, its value without the feature, how an endpoint names it, and what we do then."""

CHAT, RESPONSES = ChatCompletions(), Responses()


class Terms:
    """Begins with what the settings ask for; ``adapt`` takes away what the endpoint does not know."""

    def __init__(self, settings: ModelEndpoint) -> None:
        self._settings = settings
        self.wire: Wire = RESPONSES if settings.protocol is ModelProtocol.RESPONSES else CHAT
        effort = "" if settings.effort is Effort.DEFAULT else settings.effort.value
        self.features = Features(effort=effort, temperature=settings.temperature)
        self._longest = self._taken = settings.answer_tokens

    def question(self, question: Question) -> Question:
        """The question with a limit that the endpoint takes, in the form that it knows."""
        structured = self.features.structured or not question.plain
        messages = question.messages if structured else question.plain
        return evolve(question, limit=min(question.limit, self._longest), messages=messages, plain=())

    def keep_limit(self) -> None:
        """The endpoint took a request with the limit as it is."""
        self._taken = self._longest

    def restore_limit(self) -> None:
        """A question failed with the shorter limits too: they were not the reason."""
        self._longest = self._taken

    def body(self, question: Question) -> dict[str, Any]:
        """What is sent, exactly, but for headers."""
        return self.wire.body(self._settings.model, self.question(question), self.features)

    def adapt(self, error: openai.APIStatusError, asked: Question, *, other: bool) -> str:
        """What is asked for in another way since the endpoint said that it lacks something, in words; empty
        where it did not. ``other``: the other protocol may be taken."""
        if error.status_code not in _UNKNOWN:
            return ""
        words, param = str(error.message).lower(), f"'{error.param or ''}'".lower()
        other = other and self._settings.protocol is ModelProtocol.AUTO
        if other and f"v1{self._other.path}" in words:
            return self._change_protocol()
        result = self._shorter(words + param, asked.limit) or self._without(param) or self._without(words)
        if result or not other:
            return result
        no_path = error.code != "model_not_found" and self._settings.model.lower() not in words
        return self._change_protocol() if error.status_code in (404, 405) and no_path else ""

    @property
    def _other(self) -> Wire:
        return RESPONSES if self.wire is CHAT else CHAT

    def _change_protocol(self) -> str:
        before, self.wire = self.wire, self._other
        return f"has no {before.name}; asking for {self.wire.name}"

    def _shorter(self, words: str, asked: int) -> str:
        """The limit under another name, or one smaller than was ``asked`` for."""
        other, name = "max_completion_tokens", self.features.limit_name
        is_large = any(word in words for word in ("large", "maximum", "at most", "exceed"))
        if self.wire is CHAT and name != other and other in words and not is_large:
            self.features.limit_name = other
            return f"calls the limit of an answer {other}"
        name = name if self.wire is CHAT else "max_output_tokens"
        half = min(asked, self._longest) // 2
        if (name in words or "context length" in words) and is_large and half >= LEAST_LIMIT:
            self._longest = half
            return f"has a smaller limit of an answer; asking for {self._longest} tokens"
        return ""

    def _without(self, words: str) -> str:
        """One feature fewer: the first in use that the words name."""
        for name, lost, pattern, what in _FEATURES:
            if getattr(self.features, name) != lost and re.search(pattern, words):
                setattr(self.features, name, lost)
                return what
        return ""
