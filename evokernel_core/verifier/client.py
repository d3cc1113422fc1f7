"""RemoteVerifier: the Verifier protocol spoken over HTTP to ``evokernel verifier serve``."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, TypeVar

import httpx2
import stamina
from attrs import evolve
from cattrs.errors import BaseValidationError
from pydantic import BaseModel, ValidationError

from evokernel_core.bounded import BoundedClient
from evokernel_core.domain import earlier_sources
from evokernel_core.domain.errors import UsageError, VerifierError, VerifierUnavailable
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Verdict
from evokernel_core.logs import get_logger
from evokernel_core.network import TooMuch, is_loopback, is_untrusted_certificate, tls_context
from evokernel_core.verifier.base import Cancelled, never
from evokernel_core.verifier.schema import JobView, Problem, StatusView
from evokernel_core.verifier.unjudged import told_by

log = get_logger(__name__)

View = TypeVar("View", bound=BaseModel)

AWAY = frozenset({429, 500, 502, 503, 504})
"""Statuses that another try later may change."""

LARGEST_ANSWER = 16 * 2**20
"""Bytes of the largest answer; a verdict with a thousand hazards has one."""

ANSWER_S = 30.0
"""Seconds of one request beyond those that it asks the service to wait, whatever comes in them."""

TIMES_FORGOTTEN = 3
"""How often a job may vanish from the service (its data were lost, another cancelled) before we stop."""


class _Busy(Exception):
    """An answer that another try later may change; ``later`` says in how many seconds, 0 does not."""

    def __init__(self, sentence: Sentence, later: float) -> None:
        super().__init__(sentence)
        self.sentence, self.later = sentence, later


class _Gone(VerifierError):
    """The service does not know what we asked about."""


class RemoteVerifier:
    """Asks the service at ``url``; jobs survive both sides being killed, as asking twice is asking once.

    ``wait`` is how long one request waits for the end of a job, in seconds, and so how soon a cancel
    is noticed. ``patience`` bounds the seconds of tries against a service that is away; one that says
    when to come back is asked again then, or given up at once where that is later. ``background`` jobs
    leave the others' first.
    Raises UsageError for a URL that would send the token readable over a network; ``plain_http``
    allows that where something else protects the way.
    """

    def __init__(
        self,
        url: str,
        token: str,
        ca_bundle: str = "",
        wait: float = 1.0,
        *,
        patience: float = 10.0,
        plain_http: bool = False,
        background: bool = False,
    ) -> None:
        self.background = background
        self._url = check_url(url, plain_http=plain_http)
        self._wait = wait
        self._patience = patience
        self._place = httpx2.URL(self._url).netloc.decode()
        self._spoken = ""
        self._workers = 1
        self._targets: list[str] = []
        self._http = BoundedClient(
            LARGEST_ANSWER,
            wait + ANSWER_S,
            base_url=self._url,
            headers={"Authorization": f"Bearer {check_token(token)}"},
            verify=tls_context(ca_bundle),
            trust_env=not is_loopback(httpx2.URL(self._url).host),  # no proxy on the way to this machine
            timeout=httpx2.Timeout(10.0, read=wait + 20.0),
        )

    @property
    def name(self) -> str:
        """Who judges there, e.g. ``twin 0.1.0@host:8732 (remote)``; ``verifier@...`` while it is away."""
        if not self._spoken:
            try:
                self._hear(self._ask("GET", "/v1/status", StatusView, patience=0.0))
            except VerifierError as error:
                log.info("the verifier's name is not known yet", verifier=self._url, error=str(error))
        return f"{self._spoken or 'verifier'}@{self._place} (remote)"

    @property
    def workers(self) -> int:
        """As many as the service said that it has, 1 before it said so."""
        return self._workers

    def close(self) -> None:
        self._http.close()

    def status(self) -> StatusView:
        """Who judges there and how much waits. Raises VerifierUnavailable, VerifierError."""
        status = self._ask("GET", "/v1/status", StatusView)
        self._hear(status)
        return status

    def _hear(self, status: StatusView) -> None:
        self._spoken, self._workers, self._targets = status.name, max(1, status.workers), status.targets

    def _data(self, source: KernelSource) -> Mapping[str, Any]:
        """A kernel as the service reads it. Raises VerifierError where it judges none of that target."""
        data: Mapping[str, Any] = to_data(source)
        if not self._targets:  # a service of before kernels named theirs
            data = earlier_sources.flat(data)
        if "target" in data and source.target not in self._targets:
            raise VerifierError(
                "The verifier at {url} takes no kernels for {target}; update it, or name another.",
                url=self._url,
                target=source.target,
            )
        return data

    def verify(
        self,
        task: KernelTask,
        source: KernelSource,
        *,
        cancelled: Cancelled = never,
        below_us: float = math.inf,
    ) -> Verdict:
        """The service's verdict, whole, signed with where it came from.

        Raises VerifierUnavailable while the service is away, VerifierError when it cannot judge or
        ``cancelled`` said so.
        """
        if not self._spoken:
            self.status()
        client = secrets.token_hex(8)
        priority = {"priority": "background"} if self.background else {}
        body = {"task": to_data(task), "source": self._data(source), "client": client} | priority
        for _ in range(TIMES_FORGOTTEN):
            job = self._ask("POST", "/v1/jobs", JobView, json=body)
            done = self._follow(job, client, cancelled)
            if done:
                return self._verdict(done, task, source)
        raise VerifierError(
            "The verifier at {url} forgot this job {times} times; look into its log.",
            url=self._url,
            times=TIMES_FORGOTTEN,
        )

    def _follow(self, job: JobView, client: str, cancelled: Cancelled) -> JobView | None:
        """The job once it is done; None when the service no longer knows it."""
        while job.state != "done":
            if cancelled():
                self._withdraw(job.id, client)
                raise VerifierError("The verification was cancelled.")
            began = time.monotonic()
            try:
                job = self._ask("GET", f"/v1/jobs/{job.id}", JobView, params={"wait": self._wait})
            except _Gone:
                return None
            if job.state != "done":  # a service that does not wait is not asked the faster
                time.sleep(max(0.0, self._wait - (time.monotonic() - began)))
        return job

    def _withdraw(self, job: str, client: str) -> None:
        """Takes the wish back; if that fails, the service judges once for nobody."""
        try:
            self._http.request("DELETE", f"/v1/jobs/{job}", params={"client": client})
        except (httpx2.HTTPError, TooMuch, TimeoutError) as error:
            log.info("could not withdraw a job", verifier=self._url, error=str(error))

    def _verdict(self, job: JobView, task: KernelTask, source: KernelSource) -> Verdict:
        if job.verdict is None:
            raise VerifierError(
                "The verifier at {url} could not verify: {error}",
                url=self._url,
                error=told_by({"error": job.error, "said": job.said}),
            )
        try:
            verdict = from_data(job.verdict, Verdict)
        except (BaseValidationError, LookupError, TypeError, ValueError) as error:
            raise VerifierError(
                "The verifier at {url} gave a verdict that this version cannot read; update one.",
                url=self._url,
            ) from error
        if (verdict.task_id, verdict.source_id) != (task.task_id, source.source_id):
            raise VerifierError(
                "The verifier at {url} verified another kernel; update one of the two.", url=self._url
            )
        return evolve(verdict, verifier=f"{verdict.verifier}@{self._place} (remote)")

    def _ask(
        self, method: str, path: str, kind: type[View], *, patience: float | None = None, **request: Any
    ) -> View:
        """A successful answer. Raises VerifierUnavailable, VerifierError (_Gone for 404)."""
        response = self._answered(method, path, request, self._patience if patience is None else patience)
        if response.status_code == 404:
            raise _Gone("{url} has no {path}; check that the URL is a verifier's.", url=self._url, path=path)
        if response.status_code == 401:
            raise VerifierError(
                "The verifier at {url} refused the token, which is wrong, revoked or expired; ask there "
                "for one of `evokernel verifier token add`.",
                url=self._url,
            )
        if not response.is_success:
            raise VerifierError(
                "The verifier at {url} refused: {said}", url=self._url, said=_sentence(response)
            )
        try:
            return kind.model_validate_json(response.content)
        except ValidationError as error:
            raise VerifierError(
                "{url} does not answer like a verifier of this version; check the URL or update one.",
                url=self._url,
            ) from error

    def _answered(self, method: str, path: str, request: dict[str, Any], patience: float) -> httpx2.Response:
        """An answer that trying again would not change. Raises VerifierUnavailable, VerifierError."""
        try:
            for attempt in stamina.retry_context(
                on=partial(_may_pass, patience),
                attempts=None if patience else 1,
                timeout=patience or None,
                wait_max=2.0,
                wait_jitter=0.2,
            ):
                with attempt:
                    response = self._http.request(method, path, **request)
                    if response.status_code in AWAY:
                        raise _Busy(_sentence(response), _later(response))
        except httpx2.HTTPError as error:
            if is_untrusted_certificate(error):
                raise VerifierError(
                    "The certificate of {url} is not trusted ({error}); set the verifier's CA bundle.",
                    url=self._url,
                    error=error,
                ) from error
            said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise self._away(said.rstrip(".")) from error
        except TooMuch as error:
            raise VerifierError(
                "The verifier at {url} {what}; check that the URL is a verifier's.",
                url=self._url,
                what=error.args[0],
            ) from error
        except TimeoutError as error:
            said = Sentence("not done answering after {seconds} s", seconds=f"{self._http.answer_s:g}")
            raise self._away(said) from error
        except _Busy as error:
            raise VerifierUnavailable(
                "The verifier at {url} takes no kernel now: {said}", url=self._url, said=error.sentence
            ) from error
        return response

    def _away(self, why: str) -> VerifierUnavailable:
        return VerifierUnavailable(
            "The verifier at {url} is away ({why}); start it with `evokernel verifier serve` or "
            "clear the verifier URL.",
            url=self._url,
            why=why,
        )


def _may_pass(patience: float, error: Exception) -> bool | float:
    """Whether another try may go better, or in how many seconds."""
    if isinstance(error, _Busy) and error.later:
        return error.later if error.later <= patience else False
    return isinstance(error, _Busy | httpx2.TransportError) and not is_untrusted_certificate(error)


def _later(response: httpx2.Response) -> float:
    """Seconds of a Retry-After header, 0 without one."""
    text = response.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else 0.0


def _sentence(response: httpx2.Response) -> Sentence:
    """The service's own words, or the bare status of something else that answered."""
    try:
        return told_by(Problem.model_validate_json(response.content).model_dump())
    except ValidationError:
        return Sentence("HTTP status {status}.", status=response.status_code)


def check_url(url: str, *, plain_http: bool = False) -> str:
    """The URL without a slash at its end. Raises UsageError for one that we do not send tokens to."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise UsageError(
            "{url} is not a URL; give the verifier as https://HOST:PORT.", url=repr(url)
        ) from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise UsageError("{url} is not a URL of a verifier; give it as https://HOST:PORT.", url=repr(url))
    if parsed.userinfo:
        raise UsageError("A verifier's URL carries no user or password; give the token separately.")
    if parsed.scheme == "http" and not plain_http and not is_loopback(parsed.host):
        raise UsageError(
            "{url} would send the token readable over the network; use https, an SSH tunnel to "
            "127.0.0.1, or allow plain http explicitly.",
            url=url,
        )
    return url.rstrip("/")


def check_token(token: str) -> str:
    """The token. Raises UsageError where it cannot stand in a header."""
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(
            "The verifier's token is empty or malformed; `evokernel verifier token` shows it there."
        )
    return token
