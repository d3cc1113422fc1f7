"""The service's side of Ray, in a process of its own.

    python -m evokernel_core.verifier.serving.fleet.driver ADDRESS DEVICE LOCAL_COUNT FACTORY ARGUMENTS

keeps one host (an actor) for each DEVICE that a live node of the cluster at ADDRESS declares, and
writes ``{"seat": ID, "up": true, "place": NODE}`` or ``{"seat": ID, "up": false}`` when one comes or
goes. It reads ``{"seat", "job", "task", "source"}``, answered by ``{"seat", "job", "answer"}``, and
``{"seat", "stop": true}``. ADDRESS ``local`` starts a Ray of its own on this machine with LOCAL_COUNT
devices. When stdin ends, its service is gone: it ends itself, and Ray ends its hosts.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any, TextIO

import ray
from attrs import define, field
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from evokernel_core import __version__
from evokernel_core.logs import get_logger
from evokernel_core.verifier.service_worker import private_stdout
from evokernel_core.verifier.serving.fleet.host import RayHost
from evokernel_core.verifier.serving.fleet.own import close_folder, private_folder_of_ray

log = get_logger(__name__)

CENSUS_S = 1.0
"""Seconds between two looks at which nodes live and what they declare."""

HIRE_S = 120.0
"""A host that has not started after so many seconds is given up, and tried again."""

SHUTDOWN_S = 4.0
"""What Ray gets to end by itself."""

OBJECT_STORE_BYTES = 100 * 2**20
"""Of a Ray of our own: jobs are kilobytes."""


@define
class Seat:
    """One device of one node, and the actor that holds it once it has started."""

    id: int
    node: str
    place: str
    actor: Any
    up: bool = False
    work: set[asyncio.Task[None]] = field(factory=set)


class Driver:
    """Hosts come and go with their nodes; jobs go to hosts and answers to the channel."""

    def __init__(self, device: str, factory: str, arguments: str, channel: TextIO) -> None:
        self._device = device
        self._hosted = (factory, arguments)
        self._channel = channel
        self._seats: dict[int, Seat] = {}
        self._ids = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._strangers: set[str] = set()
        self._actor = ray.remote(RayHost)

    async def run(self, lines: asyncio.Queue[str]) -> None:
        """Until an empty line. Raises RayError in a group when the cluster is gone."""
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(self._watch())
            while line := await lines.get():
                self._hear(json.loads(line))
            watch.cancel()

    async def _watch(self) -> None:
        while True:
            nodes = await asyncio.to_thread(ray.nodes)
            self._census({node["NodeID"]: node for node in nodes if node["Alive"]})
            await asyncio.sleep(CENSUS_S)

    def _census(self, nodes: dict[str, dict[str, Any]]) -> None:
        """Seats for the devices that are there, none for those that are not."""
        for seat in [seat for seat in self._seats.values() if seat.node not in nodes]:
            self._drop(seat)
        for identity, node in nodes.items():
            have = sum(seat.node == identity for seat in self._seats.values())
            declared = int(node["Resources"].get(self._device, 0))
            for _ in range(declared - have if identity not in self._strangers else 0):
                self._start(self._hire(identity, node["NodeManagerHostname"]))

    async def _hire(self, node: str, name: str) -> None:
        """A host on the node; it has a seat as soon as it answers, if it speaks our version."""
        actor = self._actor.options(
            num_cpus=0,
            **_request(self._device),
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=4,
        ).remote(*self._hosted)
        seat = Seat(next(self._ids), node, f"{name}/{node[:8]}", actor)
        self._seats[seat.id] = seat
        try:
            version = (await asyncio.wait_for(actor.version.remote(), HIRE_S)).decode()
        except (RayError, TimeoutError) as error:
            log.warning("a host did not start", place=seat.place, error=_sentence(error))
            await asyncio.sleep(CENSUS_S)
            self._drop(seat)
            return
        if version != __version__:
            log.error("a host has another version", place=seat.place, there=version, here=__version__)
            self._strangers.add(node)
            self._drop(seat)
            return
        if seat.id in self._seats:
            seat.up = True
            self._say({"seat": seat.id, "up": True, "place": seat.place})

    def _drop(self, seat: Seat) -> None:
        """The seat is gone, and with it the work on it."""
        if self._seats.pop(seat.id, None) is None:
            return
        for task in seat.work:
            task.cancel()
        ray.kill(seat.actor)
        if seat.up:
            self._say({"seat": seat.id, "up": False})

    def _hear(self, message: dict[str, Any]) -> None:
        seat = self._seats.get(message["seat"])
        if seat is None:
            return  # the service learns, or has learnt, that it is gone
        if message.get("stop"):
            self._start(self._stop(seat))
        else:
            task = self._start(self._ask(seat, message))
            seat.work.add(task)
            task.add_done_callback(seat.work.discard)

    async def _ask(self, seat: Seat, message: dict[str, Any]) -> None:
        task, source = message["task"].encode(), message["source"].encode()
        try:
            answer = json.loads(await seat.actor.judge.remote(task, source))
        except RayError as error:
            log.warning("a host is gone", place=seat.place, error=_sentence(error))
            self._drop(seat)
            return
        self._say({"seat": seat.id, "job": message["job"], "answer": answer})

    async def _stop(self, seat: Seat) -> None:
        with contextlib.suppress(RayError):
            await seat.actor.stop.remote()

    def _start(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _say(self, message: dict[str, Any]) -> None:
        self._channel.write(json.dumps(message) + "\n")
        self._channel.flush()


def _request(device: str) -> dict[str, Any]:
    """What an actor asks Ray for, to have one device to itself."""
    return {"num_gpus": 1} if device == "GPU" else {"resources": {device: 1}}


def _sentence(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


@contextlib.contextmanager
def connected(address: str, device: str, count: int) -> Iterator[None]:
    """Joins the cluster, or starts one on this machine that ends with the block."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.WARNING}
    with contextlib.ExitStack() as stack:
        if address == "local":
            folder = stack.enter_context(private_folder_of_ray())
            stack.callback(ray.shutdown)
            ray.init(
                address="local",
                num_cpus=count,
                include_dashboard=False,
                object_store_memory=OBJECT_STORE_BYTES,
                resources={device: count} if device != "GPU" else None,
                _temp_dir=str(folder),
                **quiet,
            )
            close_folder(folder)
        else:
            stack.callback(ray.shutdown)
            ray.init(address=address, **quiet)
        yield


def _read(lines: asyncio.Queue[str], loop: asyncio.AbstractEventLoop) -> None:
    for line in sys.stdin:
        loop.call_soon_threadsafe(lines.put_nowait, line)
    threading.Timer(SHUTDOWN_S, os._exit, (1,)).start()
    loop.call_soon_threadsafe(lines.put_nowait, "")


async def _main(driver: Driver) -> None:
    lines: asyncio.Queue[str] = asyncio.Queue()
    threading.Thread(target=_read, args=(lines, asyncio.get_running_loop()), daemon=True).start()
    await driver.run(lines)


def main() -> None:
    """Runs until stdin ends, or the cluster does."""
    channel = private_stdout()
    address, device, count, factory, arguments = sys.argv[1:]
    status = 0
    try:
        with connected(address, device, int(count)):
            asyncio.run(_main(Driver(device, factory, arguments, channel)))
    except* (OSError, RayError, RuntimeError, ValueError) as group:
        log.error("Ray cannot be reached", address=address, errors=[_sentence(e) for e in group.exceptions])
        status = 1
    os._exit(status)


if __name__ == "__main__":
    main()
