"""Answers as agents take them: whole, in few characters, with what schemas lose said in words."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from evokernel_mcp.answers import MOST_ANSWER, MOST_TEXT, MemoryItemAnswer, fitting, part_of, verdict_answer
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Hazard, Severity, Verdict
from tests.mcp.conftest import agent_of

NARROWEST = 10_000
"""Bytes, with some room: with a model that it does not know, Codex kept 12,000 and cut the middle out."""


async def test_what_agents_drop_from_schemas_is_said_in_words() -> None:
    """Codex hands on neither limits nor defaults; no agent folds the lines of a docstring."""
    async with agent_of() as agent:
        tools = (await agent.client.list_tools()).tools
    for tool in tools:
        assert tool.description and tool.description == " ".join(tool.description.split()), tool.name
        for name, schema in tool.input_schema["properties"].items():
            words = schema.get("description", "")
            for most in (schema[key] for key in ("maximum", "minimum") if schema.get(key)):
                assert str(most) in words or most == 1, (tool.name, name, "its limits are not said")
            if schema.get("default") not in (None, "", [], False, 0) and name != "limit":
                assert "unless given" in words, (tool.name, name, "its default is not said")


async def test_the_text_of_an_answer_is_its_structure_without_blanks(project: Path) -> None:
    async with agent_of("--trust", str(project)) as agent:
        answer = await agent.client.call_tool("explain", {"code": "missing-sync"})
        (block,) = answer.content
        assert json.loads(block.text) == answer.structured_content  # type: ignore[union-attr]
        assert "\n" not in block.text and '": ' not in block.text  # type: ignore[union-attr]


@pytest.mark.parametrize("uri", ["evokernel://docs/hazards", "evokernel://docs/kernel-abi/both"])
async def test_a_resource_is_read_in_parts_that_no_agent_cuts(project: Path, uri: str) -> None:
    async with agent_of("--trust", str(project)) as agent:
        parts: list[dict[str, Any]] = [await agent.call("read", uri=uri)]
        while (offset := parts[-1].get("next_offset")) is not None:
            parts.append(await agent.call("read", uri=uri, offset=offset))
        assert max(len(json.dumps(part).encode()) for part in parts) < NARROWEST
        page = await agent.client.read_resource(uri)
        assert "".join(part["text"] for part in parts) == page.contents[0].text  # type: ignore[union-attr]


async def test_definitions_of_a_file_that_is_only_parsed_are_listed_in_parts(project: Path) -> None:
    names = [f"model_{number}" for number in range(130)]
    (project / "many.py").write_text(
        "import torch\n" + "".join(f"def {name}(x):\n    return torch.relu(x)\n" for name in names)
    )
    async with agent_of("--root", str(project)) as agent:
        seen: list[str] = []
        offset: int | None = 0
        while offset is not None:
            plan = await agent.call("plan", path="many.py", offset=offset, limit=100)
            assert plan["total"] == len(names)
            seen += [item["symbol"] for item in plan["definitions"]]
            offset = plan.get("next_offset")
        assert seen == names


@given(st.lists(st.integers(0, 2 * MOST_ANSWER), max_size=30), st.integers(1, 100))
def test_parts_make_the_whole_and_fit(lengths: list[int], limit: int) -> None:
    def told(length: int) -> MemoryItemAnswer:
        return MemoryItemAnswer(id="", kind="", title="", body="x" * length)

    seen: list[int] = []
    offset: int | None = 0
    while offset is not None:
        shown, offset = part_of(lengths, told, offset, limit)
        assert len(shown) <= limit
        assert len(shown) <= 1 or sum(len(item.model_dump_json()) for item in shown) <= MOST_ANSWER
        seen += [len(item.body) for item in shown]
        assert offset is None or offset == len(seen)
    assert seen == lengths


@pytest.mark.parametrize(("room", "told"), [(-1, 1), (0, 2), (1, 2)])
def test_an_answer_is_filled_to_the_last_character(room: int, told: int) -> None:
    items = [MemoryItemAnswer(id="", kind="", title="", body="x" * 9) for _ in range(3)]
    most = 2 * len(items[0].model_dump_json()) + room
    assert len(fitting(items, lambda item: item, most)) == told


@pytest.mark.parametrize("length", [10, 500, 10 * MOST_TEXT])
def test_a_verdict_with_many_hazards_is_taken_whole(length: int) -> None:
    """The first of each are told, and how many more there are."""
    hazards = tuple(
        Hazard(
            code="missing-sync",
            severity=Severity.ERROR,
            message="x" * length,
            file="op_kernel.cpp",
            line=line,
        )
        for line in range(300)
    )
    failed = GateResult(
        gate=GateName.CORRECTNESS,
        status=GateStatus.FAILED,
        feedback="y" * length,
        hazards=hazards,
        seconds=math.pi,
    )
    told = verdict_answer("0" * 64, Verdict("0" * 64, "0" * 64, "twin", (failed,)))
    assert told.hazards and len(told.hazards) + told.more_hazards == len(hazards)
    assert len(told.model_dump_json().encode()) < NARROWEST
