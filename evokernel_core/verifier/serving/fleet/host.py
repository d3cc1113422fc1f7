"""A host: the Ray actor that holds one device and judges on it, one kernel at a time.

What a client sent arrives as bytes of the JSON that the service has checked and written anew. Bytes
are the one thing that Ray hands over without deserialising, and JSON is the one thing read here.
"""

from __future__ import annotations

import asyncio
import json

from evokernel_core import __version__
from evokernel_core.verifier.workers import Child, Died, worker_command


class RayHost:
    """Runs in a process that Ray started on the machine with the device."""

    def __init__(self, factory: str, arguments: str) -> None:
        self._child = Child(worker_command(factory, json.loads(arguments)))
        self._turn = asyncio.Lock()

    async def version(self) -> bytes:
        """The version of this package there."""
        return __version__.encode()

    async def judge(self, task: bytes, source: bytes) -> bytes:
        """JSON: ``{"verdict":...}``, ``{"error":...}`` or ``{"died": true}``."""
        async with self._turn:
            try:
                answer = await self._child.judge(str(task, "utf-8"), str(source, "utf-8"))
            except Died:
                self._child.kill()
                answer = {"died": True}
        return json.dumps(answer).encode()

    async def stop(self) -> None:
        """Ends the work at hand, which then has died."""
        self._child.kill()
