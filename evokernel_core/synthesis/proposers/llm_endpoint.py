"""The connection to an OpenAI-compatible endpoint: bounded in time, size and trust."""

from __future__ import annotations

import httpx2
import openai

from evokernel_core.bounded import PLAIN, bound
from evokernel_core.domain.errors import EndpointError
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.settings import ModelEndpoint
from evokernel_core.network import TooMuch, is_loopback, is_untrusted_certificate, tls_context
from evokernel_core.synthesis.proposers.llm_words import EndpointRefused, NoAnswer

LARGEST_ANSWER = 2 * 2**20
"""Bytes of the largest answer that comes in one piece."""
LARGEST_STREAM = 64 * 2**20
"""Bytes of the longest stream: each token comes in some 300."""
CONNECT_TIMEOUT_S = 10.0

EVENTS = "text/event-stream"


class Endpoint:
    """Where and how to connect. Raises EndpointError for an endpoint that cannot be used."""

    def __init__(self, settings: ModelEndpoint) -> None:
        self._url = _check(settings)
        self._settings = settings
        self._tls = tls_context(settings.ca_bundle)

    def client(self) -> openai.AsyncOpenAI:
        """A client for the running event loop; its connections end with it."""
        idle_s = self._settings.idle_timeout_s
        return openai.AsyncOpenAI(
            base_url=self._settings.base_url,
            # an explicit value, so that no key meant for another service is taken from the environment
            api_key=self._settings.api_key or "none",
            max_retries=0,
            http_client=httpx2.AsyncClient(
                verify=self._tls,
                trust_env=not is_loopback(self._url.host),
                timeout=httpx2.Timeout(idle_s, connect=min(CONNECT_TIMEOUT_S, idle_s)),
                follow_redirects=False,
                headers=PLAIN,
                event_hooks={"request": [_drop_foreign_headers], "response": [self._bound]},
            ),
        )

    @property
    def shown(self) -> str:
        """The address without what may be secret in it."""
        return f"{self._url.scheme}://{self._url.netloc.decode()}{self._url.path}".rstrip("/")

    def failed(self, error: BaseException) -> EndpointError:
        """What a failure of the connection or of the protocol says to a person."""
        cause = error.__cause__
        if isinstance(cause, TooMuch | TimeoutError):  # the client library takes them for the connection's
            error = cause
        if isinstance(error, TooMuch):
            what = Sentence("{what}; check that it is a model's", what=error.args[0])
        elif isinstance(error, EndpointRefused):
            what = Sentence("{what}; try again later", what=error.args[0])
        elif is_untrusted_certificate(error):
            what = Sentence("shows a certificate that is not trusted; set the CA bundle")
        elif isinstance(error, TimeoutError):
            what = Sentence(
                "was not done after {seconds} s; raise its total time limit",
                seconds=f"{self._settings.total_timeout_s:g}",
            )
        elif isinstance(error, openai.APITimeoutError) and not isinstance(cause, httpx2.ConnectTimeout):
            what = Sentence(
                "sent nothing for {seconds} s; raise its idle time limit",
                seconds=f"{self._settings.idle_timeout_s:g}",
            )
        elif isinstance(error, openai.APIConnectionError):
            what = Sentence("cannot be reached ({error}); check its address", error=str(cause))
        elif type(error) is openai.APIError:
            what = Sentence("broke off its answer with an error; try again later")
        else:
            what = Sentence("does not speak the OpenAI protocol; check its address")
        return EndpointError("The model endpoint {url} {what}.", url=self.shown, what=what)

    async def _bound(self, response: httpx2.Response) -> None:
        """Refuses what could fill the memory or never end, before any of it is read."""
        most = LARGEST_STREAM if is_stream(response) else LARGEST_ANSWER
        bound(response, most, self._settings.total_timeout_s)


FAILURES = (openai.APIError, NoAnswer, TooMuch, EndpointRefused, TimeoutError, ValueError, RecursionError)
"""What ``Endpoint.failed`` has words for; pydantic's and JSON's errors are ValueErrors."""


def is_stream(response: httpx2.Response) -> bool:
    return str(response.headers.get("content-type", "")).lower().startswith(EVENTS)


async def _drop_foreign_headers(request: httpx2.Request) -> None:
    """Headers that the client library takes from the environment; they belong to another service."""
    for name in ("OpenAI-Organization", "OpenAI-Project"):
        request.headers.pop(name, None)


def _check(settings: ModelEndpoint) -> httpx2.URL:
    """The endpoint's URL. Raises EndpointError for one that is unset or would show the key to others."""
    if not settings.base_url or not settings.model:
        raise EndpointError(
            "No model endpoint is configured; set its baseUrl and model, or use the schedule proposer."
        )
    try:
        url = httpx2.URL(settings.base_url)
    except httpx2.InvalidURL as error:
        raise EndpointError(
            "The model endpoint's baseUrl is not a URL; give it as https://HOST/v1."
        ) from error
    if url.scheme not in ("http", "https") or not url.host:
        raise EndpointError("The model endpoint's baseUrl is not a URL; give it as https://HOST/v1.")
    if url.userinfo:
        raise EndpointError("The model endpoint's baseUrl carries a password; store the API key instead.")
    if settings.api_key and url.scheme == "http" and not is_loopback(url.host):
        raise EndpointError(
            "http://{host} would send the API key readable over the network; use https or no key.",
            host=url.host,
        )
    if not (settings.api_key.isascii() and settings.api_key.isprintable()):
        raise EndpointError("The API key holds characters that no key has; store it again.")
    return url
