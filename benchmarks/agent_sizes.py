"""What our tools cost a coding agent: bytes of their schemas, and bytes and seconds of a plan.

Starts `evokernel mcp` with a home of its own, so that nothing is remembered; each file is planned by a server
that has just started, so that torch is imported for it. Processor seconds are those of all its processes: on
a machine that does other work, too, they say more than seconds.

Usage: python benchmarks/agent_sizes.py [FILE ...] [--json OUT]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from mcp import Client, StdioServerParameters

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.measuring.processes import processor_s  # noqa: E402

MAIN = "from evokernel_core.cli.main import main; main()"
FILES = tuple(
    ROOT / "tests" / "capture" / "models" / name for name in ("t5.py", "gpt_bf16.py", "llama_gqa.py")
)
MOST = 100
"""Regions that are asked for."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=FILES, metavar="FILE")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="evokernel-sizes-") as home:
        figures = asyncio.run(_figures([file.resolve() for file in options.files], home))
    print("| tool | bytes |\n|---|---|")
    for name, size in figures["tools"].items():
        print(f"| {name} | {size:,} |")
    print("\n| plan of | regions | bytes | seconds | processor seconds |\n|---|---|---|---|---|")
    for plan in figures["plans"]:
        print("| {file} | {regions} | {bytes:,} | {seconds:.1f} | {processor_s:.1f} |".format(**plan))
    if options.json:
        options.json.write_text(json.dumps({"summary": figures}, indent=2))
    return 0


async def _figures(files: list[Path], home: str) -> dict[str, Any]:
    async with _client(ROOT, home) as client:
        listed = (await client.list_tools()).tools
    sizes = {
        tool.name: _bytes(tool.model_dump(mode="json", by_alias=True, exclude_none=True)) for tool in listed
    }
    return {
        "tools": {**sizes, "all": sum(sizes.values())},
        "plans": [await _plan(file, home) for file in files],
    }


async def _plan(file: Path, home: str) -> dict[str, Any]:
    async with _client(file.parent, home) as client:
        began = time.monotonic()
        answer = await client.call_tool("plan", {"path": str(file), "limit": MOST})
        seconds = time.monotonic() - began
        used = sum(map(processor_s, psutil.Process().children()))
    plan = answer.structured_content
    if answer.is_error or plan is None:
        raise SystemExit(f"{file} was not planned: {answer.content}")
    return {
        "file": file.name, "regions": plan["total"], "bytes": _bytes(plan),
        "seconds": seconds, "processor_s": used,
    }  # fmt: skip


def _client(trusted: Path, home: str) -> Client:
    variables = {**os.environ, "EVOKERNEL_HOME": home, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    words = ["-c", MAIN, "mcp", "--trust", str(trusted), "--allow-write"]
    return Client(StdioServerParameters(command=sys.executable, args=words, env=variables))


def _bytes(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


if __name__ == "__main__":
    sys.exit(main())
