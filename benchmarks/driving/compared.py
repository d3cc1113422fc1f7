"""What our server sent, against what an agent handed to its model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from driving.mock import Mock, ours
from driving.wire import Asked


@frozen
class Compared:
    """One run, counted."""

    connected: str
    protocol: str
    tools: int
    seen: int
    calls: int
    whole: int

    @property
    def right(self) -> bool:
        return self.connected == "yes" and (self.seen, self.whole) == (self.tools, self.calls)


def compared(answers: list[dict[str, Any]], mock: Mock) -> Compared:
    """The results of our server beside the last request, which holds all that was handed on."""
    last = mock.asked[-1] if mock.asked else Asked((), ())
    tools = [tool for item in answers for tool in item.get("tools", ())]
    sent = [item for item in answers if "content" in item]
    return Compared(
        connected=("late" if mock.too_early else "yes") if last.tools else "late" if tools else "no",
        protocol=next((item["protocolVersion"] for item in answers if "protocolVersion" in item), "-"),
        tools=len(tools),
        seen=sum(is_seen(tool, last) for tool in tools),
        calls=len(mock.story),
        whole=sum(is_whole(item, text) for item, text in zip(sent, last.results, strict=False)),
    )


def is_seen(tool: Mapping[str, Any], asked: Asked) -> bool:
    """Whether the model was offered the tool with its description and every argument."""
    offered = ours(asked).get(tool["name"])
    if offered is None or offered.description != tool["description"]:
        return False
    given, shown = tool["inputSchema"], offered.schema
    same = set(given.get("required", ())) == set(shown.get("required", ()))
    return same and given["properties"].keys() <= shown.get("properties", {}).keys()


def is_whole(sent: Mapping[str, Any], text: str) -> bool:
    """Whether the text holds the answer, as it was, quoted, or written anew from its structure."""
    said = sent["content"][0]["text"]
    if said in text or json.dumps(said)[1:-1] in text:
        return True
    try:
        written = json.loads(text[text.index("{") : text.rindex("}") + 1])
    except ValueError:
        return False
    return bool(written == sent.get("structuredContent"))
