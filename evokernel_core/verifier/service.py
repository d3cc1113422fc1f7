"""The verifier as an HTTP service: a durable queue in front of worker processes.

The HTTP process only stores and hands out; kernels are compiled and run in children that can be
killed. It may be killed at any moment itself: started again on the same folder, it goes on with
what was queued or running.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from attrs import field, frozen
from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evokernel_core import __version__
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.serial import dumps
from evokernel_core.logs import get_logger
from evokernel_core.verifier.queue import JobQueue, QueuedJob, QueueFull, QueueLock, QueueState
from evokernel_core.verifier.schema import (
    CancelView,
    ClientName,
    JobId,
    JobRequest,
    JobView,
    Problem,
    StatusView,
    job_id,
    parse_kernel,
)
from evokernel_core.verifier.workers import Workers

log = get_logger(__name__)

LONGEST_WAIT_S = 60.0
DEFAULT_FACTORY = "evokernel_core.verifier.service_worker:local_verifier"


@frozen
class ServiceConfig:
    """``factory`` names the function (``module:function``) that gives each worker its Verifier, called
    with ``arguments``. ``name`` is who speaks; with the chip it is part of a job's identity."""

    folder: Path
    token: str = field(repr=False)
    name: str = f"twin {__version__}"
    backend: str = "twin"
    chip: str = "ascend910b1"
    workers: int = 1
    factory: str = DEFAULT_FACTORY
    arguments: Mapping[str, Any] = field(factory=dict)
    job_timeout_s: float = 900.0
    max_body_bytes: int = 4 * 2**20
    max_queued: int = 10_000


class _Refused(Exception):
    """A request that ends with a status and one sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Guard:
    """In front of everything: who may speak, and how much they may say."""

    def __init__(self, app: ASGIApp, token: str, max_body_bytes: int) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()
        self._limit = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if not hmac.compare_digest(headers.get(b"authorization", b""), self._expected):
            sentence = (
                "The bearer token is missing or wrong; `evokernel verifier token` shows it on the host."
            )
            await _problem(401, sentence, {"WWW-Authenticate": "Bearer"})(scope, receive, send)
            return
        try:
            body = await self._body(headers, receive)
        except _Refused as refusal:
            await _problem(refusal.status, str(refusal))(scope, receive, send)
            return
        await self._app(scope, _replay(body, receive), send)

    async def _body(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        announced = headers.get(b"content-length", b"0")
        self._check_size(int(announced) if announced.isdigit() else 0)
        body = bytearray()
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            self._check_size(len(body))
            more = message.get("more_body", False)
        return bytes(body)

    def _check_size(self, size: int) -> None:
        if size > self._limit:
            raise _Refused(413, f"The request is larger than {self._limit} bytes; send one kernel at a time.")


def _replay(body: bytes, receive: Receive) -> Receive:
    """A ``receive`` that gives the body that was read already, then what follows it."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay


def _problem(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": sentence}, status, headers)


class Service:
    """The queue, its workers and those who wait for a result."""

    def __init__(self, config: ServiceConfig) -> None:
        self.config = config
        self._lock = QueueLock(config.folder)
        self._queue = JobQueue(config.folder, limit=config.max_queued)
        recovered = self._queue.recover()
        if recovered:
            log.info("queued interrupted jobs again", jobs=recovered)
        self._finished: dict[str, asyncio.Event] = {}
        self._workers = Workers(
            self._queue,
            factory=config.factory,
            arguments=config.arguments,
            count=config.workers,
            job_timeout_s=config.job_timeout_s,
            on_done=self._announce,
        )

    @asynccontextmanager
    async def running(self, _: FastAPI) -> AsyncIterator[None]:
        """Works while the application is up."""
        async with self._workers.running():
            yield
        for event in self._finished.values():
            event.set()
        self._queue.close()
        self._lock.release()

    async def put(self, request: JobRequest) -> tuple[bool, JobView]:
        """Whether the job is new, and the job. Raises _Refused."""
        try:
            task, source = parse_kernel(request.task, request.source.model_dump())
        except UsageError as error:
            raise _Refused(422, str(error)) from error
        identity = job_id(task, source, self.config.name, self.config.chip)
        known = await asyncio.to_thread(self._queue.get, identity)
        try:
            job = await asyncio.to_thread(
                self._queue.put, identity, dumps(task), dumps(source), request.client
            )
        except QueueFull as error:
            raise _Refused(429, str(error)) from error
        self._workers.wake()
        return known is None, _view(job)

    async def get(self, identity: str, wait: float) -> JobView:
        """The job, after it is done or ``wait`` seconds have passed. Raises _Refused."""
        job = await self._known(identity)
        if wait > 0 and job.state is not QueueState.DONE:
            event = self._finished.setdefault(identity, asyncio.Event())
            job = await self._known(identity)  # it may have ended before the event existed
            if job.state is not QueueState.DONE:
                await _wait(event, wait)
                job = await self._known(identity)
            if job.state is QueueState.DONE:
                self._finished.pop(identity, None)
        return _view(job)

    async def withdraw(self, identity: str, client: str) -> CancelView:
        """Takes back one client's wish, and stops the work if it was the last. Raises _Refused."""
        gone = await asyncio.to_thread(self._queue.withdraw, identity, client)
        if gone is None:
            raise _unknown(identity)
        if gone:
            self._workers.stop(identity)
            self._announce(identity)
        return CancelView(id=identity, cancelled=gone)

    async def status(self) -> StatusView:
        counts = await asyncio.to_thread(self._queue.counts)
        config = self.config
        return StatusView(
            name=config.name,
            backend=config.backend,
            chip=config.chip,
            version=__version__,
            workers=config.workers,
            queued=counts[QueueState.QUEUED],
            running=counts[QueueState.RUNNING],
            done=counts[QueueState.DONE],
        )

    async def _known(self, identity: str) -> QueuedJob:
        job = await asyncio.to_thread(self._queue.get, identity)
        if job is None:
            raise _unknown(identity)
        return job

    def _announce(self, identity: str) -> None:
        event = self._finished.pop(identity, None)
        if event:
            event.set()


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return


def _unknown(identity: str) -> _Refused:
    return _Refused(404, f"There is no job {identity}; ask for it again with POST /v1/jobs.")


def _view(job: QueuedJob) -> JobView:
    verdict = json.loads(job.verdict) if job.verdict else None
    return JobView(id=job.id, state=job.state.value, verdict=verdict, error=job.error)


_PROBLEMS: dict[int | str, dict[str, Any]] = {
    401: {"model": Problem, "description": "The token is missing or wrong."},
    413: {"model": Problem, "description": "The request is too large."},
    422: {"model": Problem, "description": "The request does not fit the schema."},
}
_UNKNOWN: dict[int | str, dict[str, Any]] = {404: {"model": Problem, "description": "No such job."}}
_FULL: dict[int | str, dict[str, Any]] = {429: {"model": Problem, "description": "The queue is full."}}
_NEW: dict[int | str, dict[str, Any]] = {201: {"model": JobView, "description": "A new job."}}


def create_app(config: ServiceConfig) -> FastAPI:
    """The application; it owns ``config.folder`` from here on. Raises StoreError."""
    service = Service(config)
    app = FastAPI(
        title="EvoKernel verifier",
        version=__version__,
        lifespan=service.running,
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(HTTPBearer(auto_error=False))],  # for the schema; Guard is what checks
        responses=_PROBLEMS,
    )
    app.add_middleware(Guard, token=config.token, max_body_bytes=config.max_body_bytes)
    _add_problems(app)
    _add_routes(app, service)
    return app


def _add_routes(app: FastAPI, service: Service) -> None:
    @app.post("/v1/jobs", responses={**_NEW, **_FULL})
    async def put_job(request: JobRequest, response: Response) -> JobView:
        """Asks for a verdict; the same kernel again is the same job."""
        new, view = await service.put(request)
        response.status_code = 201 if new else 200
        return view

    @app.get("/v1/jobs/{identity}", responses=_UNKNOWN)
    async def get_job(
        identity: JobId, wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT_S, allow_inf_nan=False)] = 0.0
    ) -> JobView:
        """The job; waits up to ``wait`` seconds for its end."""
        return await service.get(identity, wait)

    @app.delete("/v1/jobs/{identity}", responses=_UNKNOWN)
    async def cancel_job(identity: JobId, client: ClientName = "") -> CancelView:
        """Takes back the wish of ``client``; work that nobody wants stops."""
        return await service.withdraw(identity, client)

    @app.get("/v1/status")
    async def status() -> StatusView:
        """Who judges here, and how much waits."""
        return await service.status()


def _add_problems(app: FastAPI) -> None:
    @app.exception_handler(_Refused)
    async def refused(_: Request, refusal: _Refused) -> Response:
        return _problem(refusal.status, str(refusal), {"Retry-After": "5"} if refusal.status == 429 else None)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        return _problem(422, _first_mistake(error))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        # fastapi's 400 is a body that its parser cannot follow at all
        status = 422 if error.status_code == 400 else error.status_code
        return _problem(status, f"{request.method} {request.url.path}: {error.detail}.", error.headers)


def _first_mistake(error: RequestValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"The request does not fit the schema at {place}: {first['msg'].rstrip('.')}."


def serve(config: ServiceConfig, *, host: str, port: int, certificate: str = "", key: str = "") -> None:
    """Serves until a signal ends it; with ``certificate`` and ``key`` (PEM files) over https.

    Raises UsageError for an address or certificate that cannot be used, StoreError for the folder.
    """
    if certificate:
        _check_certificate(certificate, key)
    listener = listen(host, port)
    settings = uvicorn.Config(
        create_app(config),
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=3,
        ssl_certfile=certificate or None,
        ssl_keyfile=key or None,
    )
    uvicorn.Server(settings).run(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    """A listening TCP socket. Raises UsageError for an address that cannot be had."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family)
        # Accepted connections inherit it; else every small answer waits 40 ms for the peer's delayed ACK.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"The verifier cannot listen on {host} port {port} ({error}); choose another --port or --host."
        ) from error


def _check_certificate(certificate: str, key: str) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            f"The certificate {certificate} or its key cannot be read ({error}); give both as PEM files."
        ) from error
