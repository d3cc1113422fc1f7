"""The client of the worker process, where everything slow happens.

``python -m evokernel_core.synthesis.worker`` speaks one JSON object a line.

To the worker:
    ``{"id": 0, "method": "configure", "params": <Settings JSON>}``   once, first
    ``{"id": n, "method": M, "params": {...}}``                       a request
    ``{"method": "cancel", "params": {"id": n}}``                     end a request early

From the worker:
    ``{"id": n, "result": {...}}`` or ``{"id": n, "error": {"reason": CODE, "message": SENTENCE}}``; a
        sentence, here and below, is what ``Sentence.data`` gives: a text, or a template with its values
    ``{"id": n, "event": {"kind": "attempt", ...}}``                  while a synthesis runs
    ``{"id": n, "event": {"kind": "regions", "done", "total", "offer"}}``  while single kernels are planned;
        ``offer`` is the last one as in the result, null at the beginning

Methods and results:
    ``regions {path, text, symbol, programs, apart, workspace}`` -> ``{"regions": [{"region", "estimate",
        "is_program"}], "interpreter"}``; ``symbol`` is the only class or function that is wanted, none: all;
        ``programs`` asks for those too that several kernels in a row compute, which takes longer, ``apart``
        for an agent of their own; ``workspace`` is where an interpreter is looked for that is not found from
        the file upwards
    ``synthesise {region, budget, job_id, mode}`` -> ``{"status", "reason", "attempts",
        "first_latency_us", "best": {"source_id", "latency", "verifier"} | null}``
    ``preview {region}`` -> ``{"text"}``: the request that a model would be asked first; nothing is sent
    ``package {region, source_id}`` -> ``{"name", "dir"}``; the package is complete or absent
    ``borrow {region}`` -> ``{"name", "dir"}``: a package that calls the vendor's operator
    ``plan {region, text?}`` -> ``{"name", "edits", "guards": [sentences], "rival": Rival | null}``: what
        applying a kernel would do; nothing is written. Without a text, as where the kernel is called already,
        there are no edits
    ``timeline {region, source_id}`` -> ``{"path", "summary"}``: the page with a verified kernel's timeline,
        modelled, and the shares and gaps of its pipes
    ``edit {text, region, name}`` -> ``{"edits": [{"range", "new_text"}]}``: puts the call in place
    ``revert_edit {text, region, name}`` -> the same shape: takes the call out again

A ``range`` is ``{"start": {"line", "character"}, "end": {...}}`` with 0-based lines and characters.
A worker that dies is started again at the next request, after a pause that grows with each death; one that
nobody needs is ended, and started again at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field

from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.sentence import Sentence, sentence_of
from evokernel_core.domain.serial import to_data
from evokernel_core.domain.settings import Settings
from evokernel_server.jobs.child import Child
from evokernel_server.jobs.tasks import spawn
from evokernel_server.texts.translations import marked

log = logging.getLogger(__name__)

Event = Callable[[Mapping[str, Any]], None]

COMMAND_VARIABLE = "EVOKERNEL_WORKER_COMMAND"
"""An environment variable with another command line for the worker, for tests and debugging."""
IDLE_S = 300.0
"""Seconds after which a worker without requests is ended: it holds 85 MiB, and its torch agent 360."""
_CANCEL_GRACE_S = 5.0
_TRIES = 3
_BACKOFF_S = (0.5, 30.0)
_STEADY_S = 60.0
"""A worker that lived this long died of something new: the pauses start from the least again."""


class WorkerError(EvoKernelError):
    """The worker answered with an error; ``reason`` is its stable code."""

    def __init__(self, reason: str, template: str | Sentence) -> None:
        super().__init__(template)
        self.reason = reason


class WorkerDied(WorkerError):
    """The worker ended before it answered."""

    def __init__(self, template: str = "") -> None:
        super().__init__(
            "worker_died", template or marked("The worker process ended; the work will be tried again.")
        )


class Cancelled(EvoKernelError):
    """The request was cancelled by its own flag."""


def worker_command() -> list[str]:
    """``-P``: editors start a server in the workspace, whose modules are not to be taken for ours."""
    given = os.environ.get(COMMAND_VARIABLE)
    return shlex.split(given) if given else [sys.executable, "-P", "-m", "evokernel_core.synthesis.worker"]


@define
class _Call:
    future: asyncio.Future[dict[str, Any]]
    on_event: Event | None


@define(eq=False)
class Worker:
    """One worker process, started at the first request; it answers requests side by side."""

    settings: Callable[[], Settings]
    _process: Child | None = None
    _calls: dict[int, _Call] = field(factory=dict)
    _last_id: int = 0
    _deaths: int = 0
    _started: float = 0.0
    _not_before: float = 0.0
    _ending: bool = False
    _ended: bool = False
    _starting: asyncio.Lock = field(factory=asyncio.Lock)
    _creating: asyncio.Task[None] | None = None
    _rest: asyncio.TimerHandle | None = None

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        on_event: Event | None = None,
        cancel: asyncio.Event | None = None,
    ) -> dict[str, Any]:
        """The result of a request. Raises WorkerError, WorkerDied, or Cancelled once ``cancel`` is set."""
        await self._start()
        number, call = self._send(method, params, on_event)
        try:
            return await (self._wait(number, call, cancel) if cancel else call.future)
        finally:
            if self._calls.pop(number, None) and not call.future.done():
                self._write({"method": "cancel", "params": {"id": number}})
            self._rest_soon()

    def _rest_soon(self) -> None:
        """Ends the process once nobody has asked for anything for a while."""
        if self._rest is not None:
            self._rest.cancel()
        self._rest = asyncio.get_running_loop().call_later(IDLE_S, self._end_idle)

    def _end_idle(self) -> None:
        process = self._process
        if process is not None and not self._calls:
            self._process = None
            process.finish()

    async def request_again(
        self, method: str, params: Mapping[str, Any], *, on_event: Event | None = None
    ) -> dict[str, Any]:
        """As ``request`` for a short request, asked again of the next worker where one died."""
        for _turn in range(_TRIES - 1):
            with contextlib.suppress(WorkerDied):
                return await self.request(method, params, on_event=on_event)
        return await self.request(method, params, on_event=on_event)

    async def _wait(self, number: int, call: _Call, cancel: asyncio.Event) -> dict[str, Any]:
        flag = asyncio.ensure_future(cancel.wait())
        both: set[asyncio.Future[Any]] = {call.future, flag}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            flag.cancel()
        if call.future.done():
            return call.future.result()
        self._write({"method": "cancel", "params": {"id": number}})
        done, _pending = await asyncio.wait({call.future}, timeout=_CANCEL_GRACE_S)
        if done:
            call.future.exception()
        else:
            self.kill()
        raise Cancelled(marked("The work was cancelled."))

    def _send(self, method: str, params: Mapping[str, Any], on_event: Event | None) -> tuple[int, _Call]:
        self._last_id += 1
        call = _Call(asyncio.get_running_loop().create_future(), on_event)
        self._calls[self._last_id] = call
        self._write({"id": self._last_id, "method": method, "params": dict(params)})
        return self._last_id, call

    def _write(self, message: Mapping[str, Any]) -> None:
        if self._process is not None:
            self._process.tell(json.dumps(message).encode() + b"\n")

    async def _start(self) -> None:
        """Whoever asked first and gave up leaves a worker for the others. One that died before anything was
        asked of it has a successor."""
        while self._process is None:
            if self._ended:
                await asyncio.Event().wait()  # until whoever asked is cancelled with the loop
            await asyncio.shield(spawn(self._launch(), "starting a worker"))

    async def _launch(self) -> None:
        async with self._starting:
            if self._process is not None:
                return
            await asyncio.sleep(max(0.0, self._not_before - time.monotonic()))
            if not self._ended:
                self._creating = asyncio.create_task(self._create(), name="starting a worker")
                await asyncio.shield(self._creating)

    async def _create(self) -> None:
        self._process = await Child.start(worker_command(), self._receive, self._bury)
        self._started, self._ending = time.monotonic(), False
        self._process.listen()
        self._write({"id": 0, "method": "configure", "params": to_data(self.settings())})

    def _receive(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            number = message["id"]
        except (ValueError, KeyError, TypeError):
            log.warning("The worker sent a line that is no message.")
            return
        call = self._calls.get(number)
        if call is None:
            if number == 0 and "error" in message:
                log.error("The worker refused its settings: %s", message["error"])
        elif "event" in message:
            if call.on_event:
                call.on_event(message["event"])
        elif not call.future.done():
            _settle(call.future, message)

    def _bury(self, process: Child, status: int) -> None:
        if self._process is not process:
            return  # another has taken its place
        self._process = None
        lived = time.monotonic() - self._started
        self._deaths = 1 if lived > _STEADY_S else self._deaths + 1
        pause = min(_BACKOFF_S[0] * 2 ** (self._deaths - 1), _BACKOFF_S[1])
        self._not_before = time.monotonic() + pause
        calls, self._calls = self._calls, {}
        for call in calls.values():
            if not call.future.done():
                call.future.set_exception(WorkerDied())
        level = logging.INFO if self._ending else logging.WARNING
        log.log(level, "The worker ended with status %s after %.1f s.", status, lived)

    def kill(self) -> int:
        """Ends the worker and all that it started; the next request starts another. Gives its process's
        number, 0 where there was none."""
        self._ending = True
        if self._process is None:
            return 0
        self._process.kill()
        return self._process.pid

    async def start_no_more(self) -> None:
        """The server ends: who still asks for a worker waits until it is cancelled. One that is being started
        is there when this returns."""
        self._ended = True
        if self._creating is not None:
            await asyncio.wait({self._creating})

    async def restart(self) -> None:
        """Ends the worker so that the next request starts one with the present settings."""
        process, self._process = self._process, None
        self._deaths, self._not_before = 0, 0.0
        calls, self._calls = self._calls, {}
        for call in calls.values():
            if not call.future.done():
                call.future.set_exception(WorkerDied(marked("The settings changed; the work starts again.")))
        if process is not None:
            process.kill()
            await process.gone()


def _settle(future: asyncio.Future[dict[str, Any]], message: Mapping[str, Any]) -> None:
    if "error" in message:
        error = message["error"]
        said = sentence_of(error.get("message", ""))
        future.set_exception(WorkerError(str(error.get("reason", "error")), said))
    else:
        future.set_result(message.get("result") or {})
