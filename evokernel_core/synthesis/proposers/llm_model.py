"""A model behind an endpoint: it is asked in the protocol and with the parameters that the endpoint knows."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import openai
import stamina
from attrs import define, evolve

from evokernel_core.domain.errors import BudgetExhausted, EndpointError, ProposerError
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.settings import ModelEndpoint
from evokernel_core.logs import get_logger
from evokernel_core.network import TooMuch, is_untrusted_certificate
from evokernel_core.synthesis.proposers.llm_endpoint import FAILURES, Endpoint, is_stream
from evokernel_core.synthesis.proposers.llm_terms import Terms
from evokernel_core.synthesis.proposers.llm_words import EndpointRefused, ModelAnswer, Question, Reader, Usage
from evokernel_core.verifier.base import Cancelled, never

log = get_logger(__name__)

ATTEMPTS = 4
LONGEST_PAUSE_S = 30.0
COUNTS_S = 2.0
"""How long counts may take to come behind the end of an answer."""
_TOO_LONG = re.compile(r"context[ _](length|window|size)|(prompt|input) is too long")
POLL_S = 0.1
"""How soon a cancelled question closes its connection."""


class Purse(Protocol):
    """What requests are paid from."""

    def fitted(self, question: Question) -> Question:
        """As many and as long answers as can be paid for. Raises BudgetExhausted where none can."""
        ...

    def request(self, question: Question) -> AbstractContextManager[Question]:
        """The same, held until the request is over."""
        ...

    def pay(self, usage: Usage) -> None: ...


class Model:
    """Asks ``endpoint``. Keeps no conversation. Raises EndpointError for one that cannot be used."""

    def __init__(self, settings: ModelEndpoint) -> None:
        self._endpoint = Endpoint(settings)
        self._settings = settings
        self._terms = Terms(settings)

    def body(self, question: Question) -> dict[str, Any]:
        """What is sent, exactly, but for headers."""
        return self._terms.body(question)

    def ask(self, question: Question, purse: Purse, cancelled: Cancelled = never) -> tuple[ModelAnswer, ...]:
        """The answers, at least one and at most ``question.samples``. Each request is paid from ``purse``,
        also one that breaks off, and only sent where it can be. Once ``cancelled`` says so, connections are
        closed.

        Raises EndpointError, BudgetExhausted, and ProposerError for a cancelled question.
        """
        return asyncio.run(self._until(question, purse, cancelled))

    async def _until(self, question: Question, purse: Purse, cancelled: Cancelled) -> tuple[ModelAnswer, ...]:
        asking = asyncio.ensure_future(self._ask(question, purse))
        try:
            while not asking.done():
                if cancelled():
                    raise ProposerError("The question to the model was cancelled.")
                await asyncio.wait({asking}, timeout=POLL_S)
            return asking.result()
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    async def _ask(self, question: Question, purse: Purse) -> tuple[ModelAnswer, ...]:
        """Once, and where that gave fewer answers than asked for, again for each that is missing."""
        async with self._endpoint.client() as client:
            asking = _Asking(self._settings, self._endpoint, self._terms, client, purse)
            result = await asking.answers(question)
            more = await asking.further(evolve(question, samples=question.samples - len(result)))
        for other in more:
            if isinstance(other, EndpointError | BudgetExhausted):
                log.warning("an answer fewer came from the model", reason=str(other))
            elif isinstance(other, BaseException):
                raise other
            else:
                result += other
        return result


@define
class _Asking:
    """One question, for which one pool of connections stands open."""

    settings: ModelEndpoint
    endpoint: Endpoint
    terms: Terms
    client: openai.AsyncOpenAI
    purse: Purse

    async def answers(self, question: Question) -> tuple[ModelAnswer, ...]:
        """Asks until the endpoint and we agree on protocol and parameters. Raises EndpointError and
        BudgetExhausted."""
        try:
            result = await self._agreed(question)
        except BaseException:
            self.terms.restore_limit()
            raise
        self.terms.keep_limit()
        return result

    async def _agreed(self, question: Question) -> tuple[ModelAnswer, ...]:
        changed = False
        while True:
            wire, body = self.terms.wire, self.terms.body(question)
            try:
                async with asyncio.timeout(self.settings.total_timeout_s):
                    return await self._tried(question)
            except openai.APIStatusError as error:
                if (wire, body) != (self.terms.wire, self.terms.body(question)):
                    continue  # another sample's answer has told already
                what = self.terms.adapt(error, question, other=not changed)
                if not what:
                    raise self._refused(error, both=changed) from error
                changed |= wire is not self.terms.wire
                log.warning(f"the endpoint {what}", url=self.endpoint.shown)
            except FAILURES as error:
                raise self.endpoint.failed(error) from error

    async def further(self, question: Question) -> Sequence[tuple[ModelAnswer, ...] | BaseException]:
        """Each of the samples by itself, side by side, as far as they can be paid for."""
        if question.samples < 1:
            return ()
        try:
            fitted = self.purse.fitted(question)
        except BudgetExhausted as error:
            return (error,)
        one = evolve(fitted, samples=1)
        asked = (self.answers(one) for _ in range(fitted.samples))
        return await asyncio.gather(*asked, return_exceptions=True)

    async def _tried(self, question: Question) -> tuple[ModelAnswer, ...]:
        timeout_s = self.settings.total_timeout_s
        async for attempt in stamina.retry_context(
            on=_pause, attempts=ATTEMPTS, timeout=timeout_s, wait_max=8.0
        ):
            with attempt, self.purse.request(question) as fitted:
                return await self._once(fitted)
        raise AssertionError("the last try returns or raises")

    async def _once(self, question: Question) -> tuple[ModelAnswer, ...]:
        """One request, read to its end. A stream that is open is paid for whatever comes: the model reads."""
        accepted, wire = False, self.terms.wire
        reader = wire.reader(self.terms.question(question))
        try:
            stream = await self.client.post(
                wire.path,
                cast_to=object,
                body=self.terms.body(question),
                stream=True,
                stream_cls=openai.AsyncStream[object],
            )
            async with stream:
                if accepted := is_stream(stream.response):
                    await _read(stream, reader)
                else:
                    reader.take(json.loads(await stream.response.aread()))
        finally:
            if reader.began or accepted:
                self.purse.pay(reader.usage())
        return reader.words()

    def _refused(self, error: openai.APIStatusError, *, both: bool) -> EndpointError:
        """What a refusal says to a person; ``both``: neither protocol is there."""
        model = self.settings.model
        if error.status_code in (401, 403):
            what = Sentence("refused the API key; store the right one")
        elif error.status_code in (404, 405) and both:
            what = Sentence(
                "has neither chat completions nor responses for the model {model}; check baseUrl and model",
                model=repr(model),
            )
        elif error.status_code == 404:
            what = Sentence(
                "knows no model {model} at this address; check baseUrl, model and protocol", model=repr(model)
            )
        elif error.status_code == 429:
            what = Sentence("says that the rate or quota is exhausted; wait or raise the limit")
        elif _TOO_LONG.search(str(error.message).lower()):
            what = Sentence(
                "says that the question does not fit into the model's context; take a model with a longer one"
            )
        elif error.status_code >= 500:
            what = Sentence(
                "failed with status {status} {count} times; try again later",
                status=error.status_code,
                count=ATTEMPTS,
            )
        else:
            what = Sentence(
                "refused the request with status {status}; check the model's name and limits",
                status=error.status_code,
            )
        return EndpointError("The model endpoint {url} {what}.", url=self.endpoint.shown, what=what)


async def _read(stream: openai.AsyncStream[object], reader: Reader) -> None:
    """All events; those behind the end of the answers, which hold counts, are not waited for long."""
    clock = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(None) as end:
            async for event in stream:
                reader.take(event)
                if reader.finished:
                    end.reschedule(clock.time() + COUNTS_S)
    except (TimeoutError, openai.APIConnectionError):
        if not reader.finished:
            raise


def _pause(error: Exception) -> bool | float:
    """Whether another try may go better, and how long the endpoint asks us to wait for it."""
    if isinstance(error, openai.APITimeoutError) or isinstance(error.__cause__, (TooMuch, TimeoutError)):
        return False
    if isinstance(error, openai.APIConnectionError):
        return not is_untrusted_certificate(error)
    if isinstance(error, openai.RateLimitError) and error.code == "insufficient_quota":
        return False
    if isinstance(error, openai.APIStatusError):
        passing = error.status_code in (408, 409, 429) or error.status_code >= 500
        return passing and (_retry_after(error.response.headers.get("retry-after", "")) or True)
    return isinstance(error, EndpointRefused) or type(error) is openai.APIError


def _retry_after(text: str) -> float:
    """Seconds that a Retry-After header asks for, bounded; 0 where it names none."""
    try:
        seconds = float(text)
    except ValueError:
        return 0.0
    return min(max(seconds, 0.0), LONGEST_PAUSE_S) if math.isfinite(seconds) else 0.0
