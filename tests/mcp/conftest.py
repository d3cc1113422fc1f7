"""A server in a process of its own, driven by the SDK's own client over standard input and output.

It is forked from one that has imported the SDK, and so are its workers, but where these are to end with it.
Whether the command itself starts one is for ``test_documented_clients.py``.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest
from attrs import frozen
from evokernel_server.jobs.worker import COMMAND_VARIABLE
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, ListRootsResult, Root

from tests import warm
from tests.homes import own_home
from tests.server.forked import worker

_MODULES = (
    *("evokernel_mcp.app", "evokernel_core.cli.main", "evokernel_core.cli.mcp"),
    *("evokernel_core.memory.migrations.apply", "anyio._backends._asyncio"),
)
MODEL = """\
import torch


# evokernel: x=f32[64,256], y=f32[64,256]
def blend(x, y):
    return torch.relu(x) * 2.0 + y
"""
KERNEL = (Path(__file__).parents[1] / "twin" / "data" / "scale.cpp").read_text()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with own_home(tmp_path_factory.mktemp("home")) as home:
        yield home


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "model.py").write_text(MODEL)
    (folder / "scale.cpp").write_text(KERNEL)
    return folder.resolve()


@frozen
class Agent:
    """A client of a started server; ``schemas`` are those of the tools' answers."""

    client: Client
    schemas: dict[str, dict[str, Any]]

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What a tool answers, held against the schema that the server gave for it."""
        answer = await self.client.call_tool(tool, arguments)
        assert not answer.is_error, answer.content
        assert answer.structured_content is not None
        jsonschema.validate(answer.structured_content, self.schemas[tool])
        return answer.structured_content

    async def refusal(self, tool: str, **arguments: Any) -> str:
        """The sentence with which a tool refuses."""
        answer: CallToolResult = await self.client.call_tool(tool, arguments)
        assert answer.is_error, answer.structured_content
        text: str = answer.content[0].text  # type: ignore[union-attr]
        assert "Traceback" not in text
        return text


def command(*options: str) -> list[str]:
    """The command line of a server."""
    return [warm.interpreter(*_MODULES, paths=warm.SOURCES), "-c", warm.MAIN, "mcp", *options]


def parameters(*options: str, own_workers: bool = False) -> StdioServerParameters:
    program, *arguments = command(*options)
    workers = {} if own_workers else {COMMAND_VARIABLE: worker()}
    return StdioServerParameters(command=program, args=arguments, env={**os.environ, **workers}, cwd="/")


@asynccontextmanager
async def agent_of(
    *options: str, roots: tuple[Path, ...] = (), mode: str = "auto", own_workers: bool = False
) -> AsyncIterator[Agent]:
    """``roots`` are those that the client tells; none: it knows no roots. ``own_workers`` are processes of
    the server, which it starts as it does for a person."""

    async def listed(_: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=root.as_uri()) for root in roots])

    callback = listed if roots else None
    started = parameters(*options, own_workers=own_workers)
    async with Client(started, list_roots_callback=callback, mode=mode) as client:
        tools = (await client.list_tools()).tools
        yield Agent(client, {tool.name: tool.output_schema or {} for tool in tools})


def processes_below(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def servers() -> list[psutil.Process]:
    """The servers that were forked for this process."""
    socket = str(warm.server(*_MODULES, paths=warm.SOURCES))
    return [
        server
        for parent in psutil.Process().children()
        if socket in parent.cmdline()
        for server in parent.children()
    ]
