"""The verifier as an HTTP service: a durable queue in front of worker processes.

The HTTP process only stores and hands out; kernels are compiled and run in children that can be
killed. It may be killed at any moment itself: started again on the same folder, it goes on with
what was queued or running.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any
from weakref import WeakValueDictionary

import uvicorn
from attrs import field, frozen
from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from evokernel_core import __version__
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.serial import dumps
from evokernel_core.logs import get_logger
from evokernel_core.targets.sources import FILES
from evokernel_core.verifier.queue import Asker, JobQueue, QueuedJob, QueueFull, QueueLock, QueueState
from evokernel_core.verifier.schema import (
    CancelView,
    ClientName,
    JobId,
    JobRequest,
    JobView,
    PriorityName,
    Problem,
    StatusView,
    job_id,
    parse_kernel,
)
from evokernel_core.verifier.serving.audit_log import AuditLog
from evokernel_core.verifier.serving.door import Limits, Server
from evokernel_core.verifier.serving.guard import (
    WRONG,
    Doorkeeper,
    RequestGuard,
    RequestRefused,
    address_of,
    problem,
)
from evokernel_core.verifier.serving.tokens import TokenStore
from evokernel_core.verifier.serving.users import Priority, Scope, User
from evokernel_core.verifier.unjudged import answered, lacks_priority, lacks_scope, unwritable
from evokernel_core.verifier.workers import JobEnd, LocalPool, Pool, Workers

log = get_logger(__name__)

LONGEST_WAIT_S = 60.0
DEFAULT_FACTORY = "evokernel_core.verifier.service_worker:local_verifier"


@frozen
class ServiceConfig:
    """``factory`` names the function (``module:function``) that gives each worker its Verifier, called
    with ``arguments``. ``name`` is who speaks; with the chip it is part of a job's identity.

    ``token`` is the owner's own; users have theirs in the folder (``TokenStore``). ``ray`` is the address
    of a cluster, or ``local``, whose hosts declare ``device``; without it ``workers`` children judge here.
    """

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
    ray: str = ""
    device: str = "twin"
    limits: Limits = field(factory=Limits)


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
        self._reading: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.audit = AuditLog(config.folder)
        self.tokens = TokenStore(config.folder)
        self._workers = Workers(
            self._queue,
            _pool(config),
            job_timeout_s=config.job_timeout_s,
            on_done=self._announce,
            on_outcome=self._note_outcome,
        )

    @asynccontextmanager
    async def running(self, _: FastAPI) -> AsyncIterator[None]:
        """Works while the application is up."""
        self.audit.note("started", verifier=self.config.name, chip=self.config.chip)
        async with self._workers.running():
            yield
        for event in self._finished.values():
            event.set()
        self.audit.note("stopped")
        self.audit.close()
        self.tokens.close()
        self._queue.close()
        self._lock.release()

    async def put(self, user: User, request: JobRequest) -> tuple[bool, JobView]:
        """Whether the job is new to the user, and the job. Raises Refused."""
        _demand(user, Scope.SUBMIT)
        priority = _priority(user, request.priority)
        identity, task, source = await self._read(user, request)
        asker = Asker(user.name, request.client, priority, user.quota)
        try:
            new, job = await asyncio.to_thread(self._put, identity, task, source, asker)
        except QueueFull as error:
            raise RequestRefused(429, error.sentence, error.retry_after_s) from error
        self._workers.wake()
        if new:  # who asks again costs nothing, and must not wash the log out
            facts = {"user": user.name, "token": user.token, "job": identity, "client": request.client}
            self.audit.note("submitted", **facts, priority=priority.value)
        return new, _view(job)

    async def _read(self, user: User, request: JobRequest) -> tuple[str, str, str]:
        """The job's id, and task and source as JSON. Raises Refused.

        The largest kernels take seconds to check: on a thread, so that others are answered meanwhile, and one
        at a time for each user, so that they also get on.
        """
        turn = self._reading.setdefault(user.name, asyncio.Lock())
        async with turn:
            try:
                return await asyncio.to_thread(self._parsed, request)
            except UsageError as error:
                raise RequestRefused(
                    422, error.sentence if str(error).endswith(".") else f"{error}."
                ) from error

    def _parsed(self, request: JobRequest) -> tuple[str, str, str]:
        task, source = parse_kernel(request.task, request.source.model_dump())
        identity = job_id(task, source, self.config.name, self.config.chip)
        return identity, dumps(task), dumps(source)

    def _put(self, identity: str, task: str, source: str, asker: Asker) -> tuple[bool, QueuedJob]:
        new = not self._queue.wanted_by(identity, asker.user)
        return new, self._queue.put(identity, task, source, asker=asker)

    async def get(self, user: User, identity: str, wait: float) -> JobView:
        """The job, after it is done or ``wait`` seconds have passed. Raises Refused."""
        if not user.may(Scope.SUBMIT):
            _demand(user, Scope.READ)
        job = await self._known(user, identity)
        if wait > 0 and job.state is not QueueState.DONE:
            event = self._finished.setdefault(identity, asyncio.Event())
            job = await self._known(user, identity)  # it may have ended before the event existed
            if job.state is not QueueState.DONE:
                await _wait(event, wait)
                await self._still(user)
                job = await self._known(user, identity)
            if job.state is QueueState.DONE:
                self._finished.pop(identity, None)
        return _view(job)

    async def withdraw(self, user: User, identity: str, client: str) -> CancelView:
        """Takes back one client's wish, and stops the work if it was the last. Raises Refused.

        An administrator who has not asked for the job takes back everybody's.
        """
        _demand(user, Scope.SUBMIT)
        gone = await asyncio.to_thread(self._queue.withdraw, identity, client, user=user.name)
        if gone is None and user.may(Scope.ADMIN):
            gone = await asyncio.to_thread(self._queue.remove, identity)
        if gone is None:
            raise _unknown(identity)
        if gone:
            self._workers.stop(identity)
            self._announce(identity)
            self.audit.note("withdrawn", user=user.name, token=user.token, job=identity)
        return CancelView(id=identity, cancelled=gone)

    async def status(self) -> StatusView:
        counts = await asyncio.to_thread(self._queue.counts)
        config = self.config
        return StatusView(
            name=config.name,
            backend=config.backend,
            chip=config.chip,
            version=__version__,
            workers=self._workers.seats if config.ray else config.workers,
            queued=counts[QueueState.QUEUED],
            running=counts[QueueState.RUNNING],
            done=counts[QueueState.DONE],
            targets=list(FILES),
        )

    async def _still(self, user: User) -> None:
        """Raises Refused where the user's token has ended during the wait."""
        if user.token and not await asyncio.to_thread(self.tokens.is_valid, user.token):
            raise RequestRefused(401, WRONG)

    async def _known(self, user: User, identity: str) -> QueuedJob:
        """The job, if the user asked for it: others' jobs are unknown. Raises Refused."""
        job = await asyncio.to_thread(self._visible, user, identity)
        if job is None:
            raise _unknown(identity)
        return job

    def _visible(self, user: User, identity: str) -> QueuedJob | None:
        mine = user.may(Scope.ADMIN) or self._queue.wanted_by(identity, user.name)
        return self._queue.get(identity) if mine else None

    def _note_outcome(self, outcome: JobEnd) -> None:
        verdict = outcome.answer.get("verdict")
        self.audit.note(
            "judged" if verdict else "failed",
            job=outcome.job,
            user=outcome.user,
            place=outcome.place,
            gates=_gates(verdict),
            seconds=round(outcome.seconds, 3),
            cpu_s=round(outcome.cpu_s, 3),
        )

    def _announce(self, identity: str) -> None:
        event = self._finished.pop(identity, None)
        if event:
            event.set()


def _gates(verdict: Any) -> dict[str, str]:
    """The status of each gate, for the log; what a worker of another version sends may have none."""
    gates = verdict.get("gates", []) if isinstance(verdict, dict) else []
    return {str(gate.get("gate")): str(gate.get("status")) for gate in gates if isinstance(gate, dict)}


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return


def _pool(config: ServiceConfig) -> Pool:
    if not config.ray:
        return LocalPool(config.factory, config.arguments, config.workers)
    from evokernel_core.verifier.serving.fleet.pool import FleetPool, check_ray

    check_ray()
    return FleetPool(config.ray, config.device, config.factory, config.arguments, config.workers)


def _demand(user: User, scope: Scope) -> None:
    if not user.may(scope):
        raise RequestRefused(403, lacks_scope(scope.value))


def _priority(user: User, asked: PriorityName | None) -> Priority:
    """What was asked for, or the most urgent that the token allows. Raises Refused."""
    wished = Priority(asked) if asked else None
    if wished and wished not in user.priorities:
        raise RequestRefused(403, lacks_priority(wished.value))
    return wished or (
        Priority.INTERACTIVE if Priority.INTERACTIVE in user.priorities else Priority.BACKGROUND
    )


def _unknown(identity: str) -> RequestRefused:
    return RequestRefused(404, f"There is no job {identity}; ask for it again with POST /v1/jobs.")


def _view(job: QueuedJob) -> JobView:
    verdict = json.loads(job.verdict) if job.verdict else None
    return JobView(id=job.id, state=job.state.value, verdict=verdict, **answered(job.error))


_PROBLEMS: dict[int | str, dict[str, Any]] = {
    401: {"model": Problem, "description": "The token is missing or wrong."},
    403: {"model": Problem, "description": "The token does not allow this."},
    408: {"model": Problem, "description": "The request took too long to arrive."},
    413: {"model": Problem, "description": "The request is too large."},
    422: {"model": Problem, "description": "The request does not fit the schema."},
    429: {"model": Problem, "description": "The queue is full or a quota is used; Retry-After says when."},
    503: {"model": Problem, "description": "The queue cannot be written, such as on a full disk."},
}
_UNKNOWN: dict[int | str, dict[str, Any]] = {404: {"model": Problem, "description": "No such job."}}
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
        redirect_slashes=False,  # a redirect would repeat the Host header
        dependencies=[Depends(HTTPBearer(auto_error=False))],  # for the schema; Guard is what checks
        responses=_PROBLEMS,
    )
    app.add_middleware(
        RequestGuard,
        doorkeeper=Doorkeeper(config.token, service.tokens),
        audit=service.audit,
        max_body_bytes=config.max_body_bytes,
        body_s=config.limits.body_s,
    )
    _add_problems(app, service)
    _add_routes(app, service)
    return app


async def _user(request: Request) -> User:
    """Whom Guard has let in."""
    user: User = request.state.user
    return user


Asking = Annotated[User, Depends(_user)]


def _add_routes(app: FastAPI, service: Service) -> None:
    @app.post("/v1/jobs", responses=_NEW)
    async def put_job(request: JobRequest, user: Asking, response: Response) -> JobView:
        """Asks for a verdict; the same kernel again is the same job."""
        new, view = await service.put(user, request)
        response.status_code = 201 if new else 200
        return view

    @app.get("/v1/jobs/{identity}", responses=_UNKNOWN)
    async def get_job(
        identity: JobId,
        user: Asking,
        wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT_S, allow_inf_nan=False)] = 0.0,
    ) -> JobView:
        """The job; waits up to ``wait`` seconds for its end."""
        return await service.get(user, identity, wait)

    @app.delete("/v1/jobs/{identity}", responses=_UNKNOWN)
    async def cancel_job(identity: JobId, user: Asking, client: ClientName = "") -> CancelView:
        """Takes back the wish of ``client``; work that nobody wants stops."""
        return await service.withdraw(user, identity, client)

    @app.get("/v1/status")
    async def status() -> StatusView:
        """Who judges here, and how much waits."""
        return await service.status()


def _add_problems(app: FastAPI, service: Service) -> None:
    @app.exception_handler(RequestRefused)
    async def refused(request: Request, refusal: RequestRefused) -> Response:
        if refusal.status in (403, 429):
            user = await _user(request)
            facts = {"status": refusal.status, "method": request.method, "user": user.name}
            service.audit.refusal(address_of(request.scope), **facts, token=user.token)
        return refusal.response

    @app.exception_handler(sqlite3.OperationalError)
    async def no_queue(_: Request, error: sqlite3.OperationalError) -> Response:
        log.error("the queue cannot be used", error=str(error))
        return problem(503, unwritable(error), {"Retry-After": "5"})

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        return problem(422, _first_mistake(error))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        # fastapi's 400 is a body that its parser cannot follow at all
        status = 422 if error.status_code == 400 else error.status_code
        return problem(status, f"{request.method} {request.url.path}: {error.detail}.", error.headers)


def _first_mistake(error: RequestValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])[:200]  # the name of a field may be a client's
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
        ws="none",
        log_level="error",  # a warning for each odd request is a log that anybody can fill
        server_header=False,
        proxy_headers=False,  # anybody can write them, and quotas and the log believe addresses
        timeout_keep_alive=int(config.limits.idle_s),
        timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=config.limits.head_bytes,
        ssl_certfile=certificate or None,
        ssl_keyfile=key or None,
    )
    Server(settings, config.limits).run(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    """A listening TCP socket. Raises UsageError for an address that cannot be had."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=1024)
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
