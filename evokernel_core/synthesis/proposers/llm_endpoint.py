"""One question to an OpenAI-compatible endpoint: bounded in time, size, tries and trust."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import stamina
from attrs import frozen
from pydantic import BaseModel, Field, ValidationError

from evokernel_core.domain.errors import EndpointError
from evokernel_core.domain.settings import ModelEndpoint
from evokernel_core.logs import get_logger
from evokernel_core.network import is_loopback, is_untrusted_certificate, tls_context

log = get_logger(__name__)

LARGEST_ANSWER = 2 * 2**20
"""Bytes of the largest HTTP answer that is read."""

ATTEMPTS = 4
LONGEST_PAUSE_S = 30.0
CHARACTERS_PER_TOKEN = 3.0
"""For estimates where an endpoint does not count; code has fewer characters a token than prose."""

Message = dict[str, str]


@frozen
class Answer:
    """The model's words and their price; ``estimated`` where the endpoint did not count.

    ``flaw`` is one sentence where the words are no answer (refused, cut off, empty), else empty.
    """

    text: str
    tokens: int
    estimated: bool
    flaw: str = ""


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Completion(BaseModel):
    """What we need of a chat completion, whatever else an endpoint adds or leaves out."""

    choices: list[_Choice] = Field(min_length=1)
    usage: Any = None


class _TooMuch(Exception):
    """An answer larger, slower or otherwise packed than we accept."""


class ChatModel:
    """Asks ``endpoint``. Keeps no conversation. Raises EndpointError for one that cannot be used."""

    def __init__(self, endpoint: ModelEndpoint) -> None:
        url = _check(endpoint)
        self._endpoint = endpoint
        self._structured = True
        self._limit_name = "max_tokens"
        self._client = openai.OpenAI(
            base_url=endpoint.base_url,
            # an explicit value, so that no key meant for another service is taken from the environment
            api_key=endpoint.api_key or "none",
            max_retries=0,
            http_client=httpx2.Client(
                verify=tls_context(endpoint.ca_bundle),
                trust_env=not is_loopback(url.host),
                timeout=httpx2.Timeout(endpoint.timeout_s, connect=min(10.0, endpoint.timeout_s)),
                follow_redirects=False,
                headers={"Accept-Encoding": "identity"},
                event_hooks={"request": [_drop_foreign_headers], "response": [self._bound]},
            ),
        )

    @property
    def structured(self) -> bool:
        """Whether the endpoint is asked to keep to the schema; false once it said that it cannot."""
        return self._structured

    def body(self, messages: list[Message], schema: dict[str, Any], limit: int) -> dict[str, Any]:
        """What is sent, exactly, but for headers."""
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": messages,
            self._limit_name: limit,
        }
        if self._structured:
            format = {"name": "kernel", "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": format}
        return body

    def ask(self, messages: list[Message], schema: dict[str, Any], limit: int) -> Answer:
        """The answer, of at most ``limit`` tokens. Raises EndpointError."""
        while True:
            try:
                completion = self._complete(self.body(messages, schema, limit))
            except openai.APIStatusError as error:
                if not self._adapt(error):
                    raise self._refused(error) from error
            except (openai.APIError, ValidationError, _TooMuch) as error:
                raise self._failed(error) from error
            else:
                return _answer(completion, messages, limit)

    def _complete(self, body: dict[str, Any]) -> _Completion:
        for attempt in stamina.retry_context(
            on=_pause, attempts=ATTEMPTS, timeout=2 * self._endpoint.timeout_s, wait_max=8.0
        ):
            with attempt:
                response = self._client.chat.completions.with_raw_response.create(**body)
        return _Completion.model_validate_json(response.content)

    def _adapt(self, error: openai.APIStatusError) -> bool:
        """Whether the endpoint said that it lacks a feature that we can do without."""
        if error.status_code not in (400, 404, 422, 501):
            return False
        words = str(error.message).lower()
        if self._limit_name == "max_tokens" and "max_completion_tokens" in words:
            self._limit_name = "max_completion_tokens"
            return True
        if self._structured and any(word in words for word in ("response_format", "json_schema")):
            log.warning("the endpoint has no structured output; asking for plain JSON", url=self._shown)
            self._structured = False
            return True
        return False

    def _refused(self, error: openai.APIStatusError) -> EndpointError:
        if error.status_code in (401, 403):
            what = "refused the API key; store the right one"
        elif error.status_code == 404:
            what = f"knows no model {self._endpoint.model!r} at this address; check baseUrl and model"
        elif error.status_code == 429:
            what = "says that the rate or quota is exhausted; wait or raise the limit"
        elif error.status_code >= 500:
            what = f"failed with status {error.status_code} {ATTEMPTS} times; try again later"
        else:
            what = f"refused the request with status {error.status_code}; check the model's name and limits"
        return EndpointError(f"The model endpoint {self._shown} {what}.")

    def _failed(self, error: Exception) -> EndpointError:
        cause = error if isinstance(error, _TooMuch) else error.__cause__
        if isinstance(cause, _TooMuch):
            what = f"{cause}; check that it is a model's"
        elif is_untrusted_certificate(error):
            what = "shows a certificate that is not trusted; set the CA bundle"
        elif isinstance(error, openai.APITimeoutError):
            what = f"did not answer within {self._endpoint.timeout_s:g} s; raise its timeout"
        elif isinstance(error, openai.APIConnectionError):
            what = f"cannot be reached ({cause}); check its address"
        else:
            what = "does not speak the OpenAI protocol; check its address"
        return EndpointError(f"The model endpoint {self._shown} {what}.")

    @property
    def _shown(self) -> str:
        """The address without what may be secret in it."""
        url = httpx2.URL(self._endpoint.base_url)
        return f"{url.scheme}://{url.netloc.decode()}{url.path}".rstrip("/")

    def _bound(self, response: httpx2.Response) -> None:
        """Refuses what could fill the memory or never end, before any of it is read."""
        if response.headers.get("content-encoding", "identity") != "identity":
            raise _TooMuch("packs its answers although it was asked not to")
        stream = response.stream
        assert isinstance(stream, httpx2.SyncByteStream)
        response.stream = _BoundedStream(stream, time.monotonic() + self._endpoint.timeout_s)


def _drop_foreign_headers(request: httpx2.Request) -> None:
    """Headers that the client library takes from the environment; they belong to another service."""
    for name in ("OpenAI-Organization", "OpenAI-Project"):
        request.headers.pop(name, None)


class _BoundedStream(httpx2.SyncByteStream):
    def __init__(self, inner: httpx2.SyncByteStream, deadline: float) -> None:
        self._inner = inner
        self._deadline = deadline

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for chunk in self._inner:
            size += len(chunk)
            if size > LARGEST_ANSWER:
                raise _TooMuch(f"answers with more than {LARGEST_ANSWER // 2**20} MB")
            if time.monotonic() > self._deadline:
                raise _TooMuch("goes on answering after its time is over")
            yield chunk

    def close(self) -> None:
        self._inner.close()


def estimate_tokens(text: str) -> int:
    """Tokens of a text where nobody counted: a guess on the high side."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def _check(endpoint: ModelEndpoint) -> httpx2.URL:
    """The endpoint's URL. Raises EndpointError for one that is unset or would show the key to others."""
    if not endpoint.base_url or not endpoint.model:
        raise EndpointError(
            "No model endpoint is configured; set its baseUrl and model, or use the schedule proposer."
        )
    try:
        url = httpx2.URL(endpoint.base_url)
    except httpx2.InvalidURL as error:
        raise EndpointError(
            "The model endpoint's baseUrl is not a URL; give it as https://HOST/v1."
        ) from error
    if url.scheme not in ("http", "https") or not url.host:
        raise EndpointError("The model endpoint's baseUrl is not a URL; give it as https://HOST/v1.")
    if url.userinfo:
        raise EndpointError("The model endpoint's baseUrl carries a password; store the API key instead.")
    if endpoint.api_key and url.scheme == "http" and not is_loopback(url.host):
        raise EndpointError(
            f"http://{url.host} would send the API key readable over the network; use https or no key."
        )
    if not (endpoint.api_key.isascii() and endpoint.api_key.isprintable()):
        raise EndpointError("The API key holds characters that no key has; store it again.")
    return url


def _pause(error: Exception) -> bool | float:
    """Whether another try may go better, and how long the endpoint asks us to wait for it."""
    if isinstance(error, openai.APITimeoutError) or isinstance(error.__cause__, _TooMuch):
        return False
    if isinstance(error, openai.APIConnectionError):
        return not is_untrusted_certificate(error)
    if isinstance(error, openai.RateLimitError) and error.code == "insufficient_quota":
        return False
    if isinstance(error, openai.APIStatusError) and (
        error.status_code in (408, 409, 429) or error.status_code >= 500
    ):
        return _retry_after(error.response.headers.get("retry-after", "")) or True
    return False


def _retry_after(text: str) -> float:
    """Seconds that a Retry-After header asks for, bounded; 0 where it names none."""
    try:
        seconds = float(text)
    except ValueError:
        return 0.0
    return min(max(seconds, 0.0), LONGEST_PAUSE_S) if math.isfinite(seconds) else 0.0


def _answer(completion: _Completion, messages: list[Message], limit: int) -> Answer:
    """The words of a completion, what they cost, and what is wrong with them."""
    choice = completion.choices[0]
    text = choice.message.content or ""
    flaw = _flaw(choice, limit)
    counted = completion.usage.get("total_tokens") if isinstance(completion.usage, dict) else None
    if type(counted) is int and counted > 0:
        return Answer(text, counted, estimated=False, flaw=flaw)
    asked = sum(estimate_tokens(message["content"]) for message in messages)
    return Answer(text, asked + estimate_tokens(text), estimated=True, flaw=flaw)


def _flaw(choice: _Choice, limit: int) -> str:
    """Why these words cannot be a kernel, empty where they may be."""
    if choice.message.refusal:
        return "The model refused to write this kernel; try another model."
    if choice.finish_reason == "length":
        return f"The model's answer was cut off at {limit} tokens; answer with shorter files."
    if choice.finish_reason == "content_filter":
        return "The endpoint's filter withheld the model's answer; try another model."
    if not (choice.message.content or "").strip():
        return "The model's answer was empty; answer with the two files."
    return ""
