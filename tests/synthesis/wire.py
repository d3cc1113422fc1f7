"""A chat completion as each protocol puts it on the wire: whole, or as a stream of events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Body = dict[str, Any]
PIECE = 40
"""Characters of one delta: words are cut anywhere."""

_STATUS = {"stop": ("completed", None), "length": ("incomplete", "max_output_tokens")}


def is_completion(body: object) -> bool:
    """Whether a recorded body is one that can be put into either protocol."""
    choices = body.get("choices") if isinstance(body, dict) else None
    return isinstance(choices, list) and bool(choices) and all(_has_message(choice) for choice in choices)


def _has_message(choice: object) -> bool:
    return isinstance(choice, dict) and isinstance(choice.get("message"), dict)


def chat_stream(body: Body, *, thoughts: str = "", counted: bool = True) -> Iterator[str]:
    """The chunks of a chat completion, thoughts first, then a count, then the end mark."""
    for choice in body["choices"]:
        index = choice["index"]
        yield _chunk(body, index, {"role": "assistant", "content": ""})
        for piece in _pieces(thoughts):
            yield _chunk(body, index, {"content": None, "reasoning_content": piece})
    for piece, index in _interleaved(body):
        yield _chunk(body, index, {"content": piece})
    for choice in body["choices"]:
        if refusal := choice["message"].get("refusal"):
            yield _chunk(body, choice["index"], {"refusal": refusal})
        yield _chunk(body, choice["index"], {}, choice["finish_reason"])
    if counted and "usage" in body:
        yield _event(
            {"id": body["id"], "object": "chat.completion.chunk", "choices": [], "usage": body["usage"]}
        )
    yield "data: [DONE]\n\n"


def _interleaved(body: Body) -> Iterator[tuple[str, int]]:
    """The pieces of all choices in turn, as endpoints that sample side by side send them."""
    rows = [
        [(piece, choice["index"]) for piece in _pieces(choice["message"].get("content") or "")]
        for choice in body["choices"]
    ]
    for place in range(max(map(len, rows), default=0)):
        yield from (row[place] for row in rows if place < len(row))


def _chunk(body: Body, index: int, delta: Body, finish: str | None = None) -> str:
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return _event(
        {"id": body["id"], "object": "chat.completion.chunk", "model": "recorded", "choices": [choice]}
    )


def responses_body(body: Body, thoughts: str = "") -> Body:
    """The first choice of a completion as a response."""
    choice = body["choices"][0]
    message = choice["message"]
    status, reason = _STATUS.get(choice["finish_reason"], ("incomplete", choice["finish_reason"]))
    content: list[Body] = [{"type": "output_text", "text": message.get("content") or "", "annotations": []}]
    if message.get("refusal"):
        content = [{"type": "refusal", "refusal": message["refusal"]}]
    output: list[Body] = [{"type": "message", "id": "msg", "role": "assistant", "content": content}]
    if thoughts:
        summary = [{"type": "summary_text", "text": thoughts}]
        output.insert(0, {"type": "reasoning", "id": "rs", "summary": summary, "content": None})
    made: Body = {
        "id": "resp-recorded",
        "object": "response",
        "status": status,
        "incomplete_details": reason and {"reason": reason},
        "output": output,
    }
    usage = body.get("usage")
    if isinstance(usage, dict):
        made["usage"] = {
            {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}.get(name, name): count
            for name, count in usage.items()
        }
    return made


def responses_stream(body: Body, *, thoughts: str = "") -> Iterator[str]:
    """The events of a response, thoughts first."""
    response = responses_body(body, thoughts)
    yield _named("response.created", response={**response, "status": "in_progress", "output": []})
    for piece in _pieces(thoughts):
        yield _named("response.reasoning_summary_text.delta", item_id="rs", delta=piece)
    message = body["choices"][0]["message"]
    for piece in _pieces(message.get("content") or ""):
        yield _named("response.output_text.delta", item_id="msg", delta=piece)
    for piece in _pieces(message.get("refusal") or ""):
        yield _named("response.refusal.delta", item_id="msg", delta=piece)
    yield _named(f"response.{response['status']}", response=response)


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), PIECE):
        yield text[start : start + PIECE]


def _named(kind: str, **fields: Any) -> str:
    return f"event: {kind}\n{_event({'type': kind, **fields})}"


def _event(data: Body) -> str:
    return f"data: {json.dumps(data)}\n\n"
