"""The seats that Ray's hosts offer, as the service sees them: through the driver's lines."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from evokernel_core.extras import FLEET
from evokernel_core.logs import get_logger
from evokernel_core.process_tree import descendants, kill_all
from evokernel_core.verifier.queue import Claim
from evokernel_core.verifier.workers import LONGEST_ANSWER, SECRETS, Died, HostLost, Serve

log = get_logger(__name__)

DEVICES = {"twin": "twin", "cann": "NPU", "interpreter": "twin", "cuda": "GPU"}
"""The Ray resource that a host of each backend declares."""

RAY_TOKEN = "RAY_AUTH_TOKEN"
"""The one secret that the driver needs; workers do not get it."""

PAUSES_S = (1.0, 30.0)
"""Before a driver that ended is started again: the first pause, and the longest."""

HANG_UP_S = 5.0
"""What a driver gets to end its own Ray after its stdin has ended."""


def check_ray() -> None:
    """Raises ExtraMissing where Ray is not installed."""
    if not FLEET.is_installed:
        raise FLEET.missing()


class FleetPool:
    """One seat for each device of the Ray cluster at ``address``.

    ``address`` is HOST:PORT, ``auto`` or ``local``; ``count`` the devices of ``local``.
    """

    def __init__(
        self, address: str, device: str, factory: str, arguments: Mapping[str, Any], count: int
    ) -> None:
        module = "evokernel_core.verifier.serving.fleet.driver"
        self._command = (
            "-P",
            "-m",
            module,
            address,
            device,
            str(count),
            factory,
            json.dumps(dict(arguments)),
        )

    async def run(self, serve: Serve) -> None:
        pause = PAUSES_S[0]
        while True:
            met = await self._with_driver(serve)
            pause = PAUSES_S[0] if met else min(2 * pause, PAUSES_S[1])
            log.warning("the connection to Ray has ended; it is made again", pause_s=pause)
            await asyncio.sleep(pause)

    async def _with_driver(self, serve: Serve) -> bool:
        """Serves the seats of one driver until it ends; whether there were any."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *self._command,
            stdin=PIPE,
            stdout=PIPE,
            limit=LONGEST_ANSWER,
            cwd="/",  # Ray puts its driver's folder on the path of every host
            env={key: value for key, value in os.environ.items() if key not in SECRETS or key == RAY_TOKEN},
            start_new_session=True,
        )
        seats = _Seats(process, serve)
        try:
            await seats.follow()
        finally:
            await seats.close()
            await _end(process)
        return seats.met


async def _end(process: Process) -> None:
    """The driver and all that it started: politely, then by force."""
    if process.returncode is not None:
        return
    family = descendants(process.pid)
    assert process.stdin
    process.stdin.close()
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.shield(process.wait()), HANG_UP_S)
    if process.returncode is None:
        process.kill()
    kill_all(family)


class _Seats:
    """The seats behind one driver process."""

    def __init__(self, process: Process, serve: Serve) -> None:
        self._process = process
        self._serve = serve
        self._seats: dict[int, FleetSeat] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.met = False

    async def follow(self) -> None:
        """Hears the driver until it ends or speaks nonsense."""
        assert self._process.stdout
        while line := await self._process.stdout.readline():
            try:
                self._hear(json.loads(line))
            except (ValueError, LookupError, TypeError) as error:
                log.error("Ray's driver spoke nonsense", error=repr(error))
                return

    async def close(self) -> None:
        """Every seat is lost."""
        for seat in self._seats.values():
            seat.lose()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _hear(self, message: dict[str, Any]) -> None:
        identity = message["seat"]
        if message.get("up"):
            self.met = True
            seat = self._seats[identity] = FleetSeat(identity, message["place"], self._process)
            log.info("a host has come", place=seat.place)
            task = asyncio.create_task(self._serve(seat))
            self._tasks.add(task)
            seat.task = task
            task.add_done_callback(self._tasks.discard)
        elif "up" in message:
            self._seats.pop(identity).leave()
        else:
            self._seats[identity].hear(message["job"], message["answer"])


class FleetSeat:
    """One device of one host: a Seat."""

    def __init__(self, identity: int, place: str, process: Process) -> None:
        self.place = place
        self.task: asyncio.Task[None] | None = None
        self._id = identity
        self._process = process
        self._job = 0
        self._answer: asyncio.Future[dict[str, Any]] | None = None

    async def ask(self, claim: Claim) -> dict[str, Any]:
        self._job += 1
        self._answer = asyncio.get_running_loop().create_future()
        try:
            await self._say(job=self._job, task=claim.task, source=claim.source)
            return await self._answer
        finally:
            self._answer = None

    def hear(self, job: int, answer: dict[str, Any]) -> None:
        """The driver's answer, unless it is about a job that was cut off."""
        if job != self._job or self._answer is None or self._answer.done():
            return
        if "verdict" in answer or answer.get("error"):
            self._answer.set_result(answer)
        else:
            self._answer.set_exception(Died())

    def kill(self) -> None:
        if self._answer and not self._answer.done():
            self._answer.set_exception(Died())
        assert self._process.stdin
        if not self._process.stdin.is_closing():
            self._process.stdin.write(_line(seat=self._id, stop=True))

    def lose(self) -> None:
        """The host is gone, and what it was doing with it."""
        if self._answer and not self._answer.done():
            self._answer.set_exception(HostLost())

    def leave(self) -> None:
        """The host is gone: what it was doing is given back, and it gets nothing more."""
        if self._answer and not self._answer.done():
            self.lose()
        elif self.task:
            self.task.cancel()

    async def _say(self, **message: Any) -> None:
        assert self._process.stdin
        try:
            self._process.stdin.write(_line(seat=self._id, **message))
            await self._process.stdin.drain()
        except OSError as error:
            raise HostLost from error


def _line(**message: Any) -> bytes:
    return json.dumps(message).encode() + b"\n"
