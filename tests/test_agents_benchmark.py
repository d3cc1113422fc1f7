"""benchmarks/agents.py: what a mock of a model says in each protocol, and what counts as a whole answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from driving.clients import CLIENTS, documented
from driving.compared import is_seen, is_whole
from driving.mock import Mock, Step, ours
from driving.wire import PROTOCOLS, Asked, Call, Offered, protocol_of

PLAN = {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}
SENT = {"content": [{"text": '{"a":1.0,"b":"c"}'}], "structuredContent": {"a": 1.0, "b": "c"}}
REQUESTS: dict[str, dict[str, Any]] = {
    "/v1/messages?beta=true": {
        "tools": [{"name": "mcp__evokernel__plan", "description": "d", "input_schema": PLAN}],
        "messages": [{"role": "user", "content": [{"type": "tool_result", "content": "seen"}]}],
    },
    "/v1/responses": {
        "tools": [
            {"type": "namespace", "name": "mcp__evokernel",
             "tools": [{"type": "function", "name": "plan", "description": "d", "parameters": PLAN}]}
        ],
        "input": [{"type": "function_call_output", "output": "seen"}],
    },
    "/v1/chat/completions": {
        "tools": [{"function": {"name": "evokernel_plan", "description": "d", "parameters": PLAN}}],
        "messages": [{"role": "tool", "content": "seen"}],
    },
    "/v1beta/models/m:streamGenerateContent?alt=sse": {
        "tools": [{"functionDeclarations": [
            {"name": "mcp_evokernel_plan", "description": "d", "parametersJsonSchema": PLAN}]}],
        "contents": [{"parts": [{"functionResponse": {"response": {"output": "seen"}}}]}],
    },
}  # fmt: skip


@pytest.mark.parametrize("path", REQUESTS)
def test_each_protocol_offers_our_tools_and_is_asked_for_one(path: str) -> None:
    protocol = protocol_of(path)
    assert protocol in PROTOCOLS
    asked = protocol.read(REQUESTS[path])
    assert asked.results == ("seen",) and ours(asked).keys() == {"plan"}
    assert is_seen({"name": "plan", "description": "d", "inputSchema": PLAN}, asked)
    mock = Mock((Step("plan", lambda _: {}), Step("plan", lambda seen: {"file": seen[0]})))
    answer = mock.answer(asked)
    assert isinstance(answer, Call) and answer.arguments == {"file": "seen"}
    said = b"".join(protocol.stream(answer, 1)).decode()
    assert "plan" in said and "seen" in said


def test_an_agent_that_asks_before_the_server_is_there_is_noticed() -> None:
    mock = Mock((Step("plan", lambda _: {}),))
    mock.answer(Asked((), ()))
    mock.answer(Asked((Offered("read_file", "", {}),), ()))
    assert (mock.too_early, mock.asked) == (1, [])


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ('{"a":1.0,"b":"c"}', True),
        ('Wall time: 1 s\nOutput:\n{"b": "c", "a": 1}', True),
        (json.dumps({"error": SENT["content"][0]["text"]}), True),  # type: ignore[index]
        ('{"a":1.0...', False),
        ('{"a":1.0,"b":"d"}', False),
    ],
)
def test_a_whole_answer_is_told_from_a_cut_one(text: str, whole: bool) -> None:
    assert is_whole(SENT, text) is whole


def test_each_agent_that_is_run_is_documented() -> None:
    page = (Path(__file__).parents[1] / "docs" / "mcp.md").read_text()
    assert {item.name for item in CLIENTS} == documented(page).keys() - {"Cursor", "VS Code"}
