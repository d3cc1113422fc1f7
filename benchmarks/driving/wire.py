"""How coding agents ask their models: what a request holds, and how an answer is streamed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from attrs import field, frozen

Json = dict[str, Any]


@frozen
class Offered:
    """A tool that a request offers to the model; ``space`` is the namespace that Codex puts it in."""

    name: str
    description: str
    schema: Json
    space: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.space}{self.name}"


@frozen
class Asked:
    """What reached the model: the tools, and the texts of all results so far in their order."""

    tools: tuple[Offered, ...]
    results: tuple[str, ...]


@frozen
class Call:
    """A tool that the model asks for."""

    tool: Offered
    arguments: Json = field(factory=dict)


Answer = Call | str
"""What the model says: a call, or words and an end."""


@frozen
class Protocol:
    """One way to ask a model; a request belongs to it where its path has ``path`` in it."""

    path: str
    read: Callable[[Json], Asked]
    events: Callable[[Answer, int], Iterator[Json | str]]
    named: bool = False
    """Whether each event is sent with its type as its name."""

    def stream(self, answer: Answer, number: int) -> Iterator[bytes]:
        """The server-sent events of the answer to the request of that number."""
        for event in self.events(answer, number):
            name = f"event: {event['type']}\n" if self.named and isinstance(event, dict) else ""
            text = event if isinstance(event, str) else json.dumps(event)
            yield f"{name}data: {text}\n\n".encode()


def _text(content: Any) -> str:
    """The text of a result, which is a string, or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    return "\n".join(
        str(part["text"]) if isinstance(part, dict) and "text" in part else json.dumps(part) for part in parts
    )


def _read_messages(body: Json) -> Asked:
    parts = (
        part for item in body["messages"] if isinstance(item["content"], list) for part in item["content"]
    )
    return Asked(
        tuple(
            Offered(tool["name"], tool.get("description", ""), tool.get("input_schema", {}))
            for tool in body.get("tools", ())
        ),
        tuple(_text(part.get("content", "")) for part in parts if part.get("type") == "tool_result"),
    )


def _messages(answer: Answer, number: int) -> Iterator[Json]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "mock", "content": []}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}}
    if isinstance(answer, Call):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": answer.tool.full_name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(answer.arguments)}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": answer}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    reason = "tool_use" if isinstance(answer, Call) else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}
    yield {"type": "message_stop"}


def _read_responses(body: Json) -> Asked:
    return Asked(
        tuple(_offered(body.get("tools", ()))),
        tuple(
            _text(item["output"]) for item in body["input"] if str(item.get("type")) == "function_call_output"
        ),
    )


def _offered(tools: Iterable[Mapping[str, Any]], space: str = "") -> Iterator[Offered]:
    for tool in tools:
        if tool["type"] == "namespace":
            yield from _offered(tool["tools"], tool["name"])
        elif tool["type"] == "function":
            yield Offered(tool["name"], tool.get("description", ""), tool.get("parameters", {}), space)


def _responses(answer: Answer, number: int) -> Iterator[Json]:
    item: Json
    if isinstance(answer, Call):
        item = {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "name": answer.tool.name,
            "arguments": json.dumps(answer.arguments),
            **({"namespace": answer.tool.space} if answer.tool.space else {}),
        }
    else:
        item = {"type": "message", "id": f"msg_{number}", "role": "assistant"}
        item["content"] = [{"type": "output_text", "text": answer, "annotations": []}]
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    yield {"type": "response.created", "response": {"id": f"resp_{number}"}}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {
        "type": "response.completed",
        "response": {"id": f"resp_{number}", "output": [item], "usage": usage},
    }


def _read_chat(body: Json) -> Asked:
    functions = (tool["function"] for tool in body.get("tools", ()))
    return Asked(
        tuple(
            Offered(item["name"], item.get("description", ""), item.get("parameters", {}))
            for item in functions
        ),
        tuple(_text(item["content"]) for item in body["messages"] if item["role"] == "tool"),
    )


def _chat(answer: Answer, number: int) -> Iterator[Json | str]:
    delta: Json = {"role": "assistant"}
    if isinstance(answer, Call):
        function = {"name": answer.tool.full_name, "arguments": json.dumps(answer.arguments)}
        delta["tool_calls"] = [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]
    else:
        delta["content"] = answer
    chunk = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 0, "model": "mock"}
    reason = "tool_calls" if isinstance(answer, Call) else "stop"
    yield {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    yield {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage}
    yield "[DONE]"


def _read_contents(body: Json) -> Asked:
    declared = (item for tool in body.get("tools", ()) for item in tool.get("functionDeclarations", ()))
    parts = (part for content in body["contents"] for part in content.get("parts", ()))
    answers = (part["functionResponse"]["response"] for part in parts if "functionResponse" in part)
    return Asked(
        tuple(
            Offered(
                item["name"],
                item.get("description", ""),
                item.get("parametersJsonSchema") or item.get("parameters", {}),
            )
            for item in declared
        ),
        tuple(str(item.get("output") or item.get("error") or json.dumps(item)) for item in answers),
    )


def _contents(answer: Answer, number: int) -> Iterator[Json]:
    if isinstance(answer, Call):
        part: Json = {"functionCall": {"name": answer.tool.full_name, "args": answer.arguments}}
    else:
        part = {"text": answer}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    content = {"role": "model", "parts": [part]}
    yield {
        "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
        "usageMetadata": usage,
        "responseId": f"mock-{number}",
    }


PROTOCOLS = (
    Protocol("/messages", _read_messages, _messages, named=True),
    Protocol("/responses", _read_responses, _responses, named=True),
    Protocol("/chat/completions", _read_chat, _chat),
    Protocol("GenerateContent", _read_contents, _contents),
)
"""Anthropic's messages, OpenAI's responses and chat completions, Gemini's streamGenerateContent."""


def protocol_of(path: str) -> Protocol | None:
    """The protocol that a request's path belongs to."""
    whole = path.partition("?")[0]
    return next((item for item in PROTOCOLS if whole.endswith(item.path)), None)
