"""The model behind endpoints as they are: both protocols, and streams that think, stall, lie and break."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

import pytest
import stamina
from attrs import define, evolve, field

from evokernel_core.domain.errors import EndpointError, ProposerError
from evokernel_core.domain.settings import Effort, ModelEndpoint, ModelProtocol
from evokernel_core.synthesis.proposers import llm_model
from evokernel_core.synthesis.proposers.llm_model import ATTEMPTS, Model
from evokernel_core.synthesis.proposers.llm_words import Count, ModelAnswer, Question, Usage
from tests.synthesis.endpoint import RecordedEndpoint, Recording, completion

CHAT, RESPONSES = "chat/completions", "responses"
PROTOCOLS = (ModelProtocol.CHAT, ModelProtocol.RESPONSES)
QUESTION = Question(({"role": "user", "content": "write"},), {"type": "object"}, 4096)
EVENTS = {"Content-Type": "text/event-stream"}
LONG_S = 60.0
"""Longer than any test waits."""

Serve = Callable[..., tuple[RecordedEndpoint, Model]]


@pytest.fixture(autouse=True)
def no_pauses() -> Iterator[None]:
    with stamina.set_testing(True, attempts=ATTEMPTS):
        yield


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:

        def start(
            *answers: Recording, protocols: tuple[str, ...] = (CHAT, RESPONSES), **options: Any
        ) -> tuple[RecordedEndpoint, Model]:
            endpoint = stack.enter_context(RecordedEndpoint(*answers, protocols=protocols))
            settings = ModelEndpoint(endpoint.url, "recorded", idle_timeout_s=5.0)
            return endpoint, Model(evolve(settings, **options))

        yield start


def says(content: str, tokens: int | None = 1000, **more: Any) -> Recording:
    return completion(content, tokens) | more


def refusing(message: str, status: int = 400, **more: Any) -> Recording:
    return {"status": status, "body": {"error": {"message": message, **more}}}


def events(*data: Any) -> Recording:
    """A stream of events as they are, for what no honest endpoint sends."""
    raw = "".join(f"data: {item if isinstance(item, str) else json.dumps(item)}\n\n" for item in data)
    return {"raw": raw, "headers": EVENTS}


@define
class Purse:
    """Never empty."""

    paid: list[Usage] = field(factory=list)

    def fitted(self, question: Question) -> Question:
        return question

    def request(self, question: Question) -> AbstractContextManager[Question]:
        return nullcontext(question)

    def pay(self, usage: Usage) -> None:
        self.paid.append(usage)


def ask(model: Model, question: Question = QUESTION) -> tuple[tuple[ModelAnswer, ...], list[Usage]]:
    purse = Purse()
    return model.ask(question, purse), purse.paid


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("tokens", [1000, None])
def test_an_answer_comes_as_a_stream_or_whole(
    serve: Serve, protocol: ModelProtocol, whole: bool, tokens: int | None
) -> None:
    text = "the words of\n\na kernel " * 20
    endpoint, model = serve(says(text, tokens, whole=whole), protocol=protocol)
    answers, paid = ask(model)
    assert answers == (ModelAnswer(text),)
    assert endpoint.requests[0]["stream"] is True
    (usage,) = paid
    assert usage.estimated == (tokens is None)
    assert tokens is None or usage == Usage(999, 1, estimated=False)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_settings_are_asked_for(serve: Serve, protocol: ModelProtocol) -> None:
    endpoint, model = serve(
        says("a"), protocol=protocol, effort=Effort.HIGH, temperature=0.7, answer_tokens=2048
    )
    ask(model)
    (request,) = endpoint.requests
    assert request["temperature"] == 0.7
    if protocol is ModelProtocol.CHAT:
        assert (request["reasoning_effort"], request["max_tokens"]) == ("high", 2048)
    else:
        assert (request["reasoning"], request["max_output_tokens"]) == ({"effort": "high"}, 2048)
        assert request["store"] is False


def test_nothing_that_was_not_set_is_asked_for(serve: Serve) -> None:
    endpoint, model = serve(says("a"), protocol=ModelProtocol.CHAT)
    ask(model)
    assert endpoint.requests[0].keys().isdisjoint({"temperature", "reasoning_effort", "n"})


@pytest.mark.parametrize(("has", "asked"), [(CHAT, [CHAT, CHAT]), (RESPONSES, [CHAT, RESPONSES, RESPONSES])])
def test_the_protocol_is_found_out(
    serve: Serve, has: str, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    endpoint, model = serve(says("a"), protocols=(has,))
    assert [ask(model)[0] for _ in range(2)] == [(ModelAnswer("a"),)] * 2
    assert endpoint.asked == [f"/v1/{name}" for name in asked]
    assert ("has no chat completions; asking for responses" in capsys.readouterr().err) == (has == RESPONSES)


def test_an_endpoint_that_names_the_other_protocol_is_asked_in_it(serve: Serve) -> None:
    message = "This model is only supported in v1/responses and not in v1/chat/completions."
    endpoint, model = serve(refusing(message, 404, param="model"), says("a"))
    assert ask(model)[0] == (ModelAnswer("a"),)
    assert endpoint.asked == [f"/v1/{CHAT}", f"/v1/{RESPONSES}"]


@pytest.mark.parametrize(
    ("protocols", "protocol", "words"),
    [
        ((), ModelProtocol.AUTO, "neither chat completions nor responses"),
        ((CHAT,), ModelProtocol.RESPONSES, "check baseUrl, model and protocol"),
        ((RESPONSES,), ModelProtocol.CHAT, "check baseUrl, model and protocol"),
    ],
)
def test_a_protocol_that_is_not_there_is_named(
    serve: Serve, protocols: tuple[str, ...], protocol: ModelProtocol, words: str
) -> None:
    _, model = serve(says("a"), protocols=protocols, protocol=protocol)
    with pytest.raises(EndpointError, match=words):
        ask(model)


def test_a_model_that_is_not_there_is_not_looked_for_elsewhere(serve: Serve) -> None:
    endpoint, model = serve(refusing("The model `recorded` was not found.", 404))
    with pytest.raises(EndpointError, match="knows no model 'recorded'"):
        ask(model)
    assert endpoint.asked == [f"/v1/{CHAT}"]


UNKNOWN = {
    "response_format": ("'response_format' of type 'json_schema' is not supported.", "response_format"),
    "effort": ("Unrecognized request argument supplied: reasoning_effort", "reasoning_effort"),
    "temperature": (
        "Unsupported value: 'temperature' does not support 0.7 with this reasoning model.",
        "temperature",
    ),
    "stream_options": ("body.stream_options: Extra inputs are not permitted", "stream_options"),
    "stream": ("stream is not supported", "stream"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_an_endpoint_does_not_know_is_left_out(
    serve: Serve, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    message, key = UNKNOWN[name]
    param = key if key in ("temperature", "response_format") else None
    endpoint, model = serve(
        refusing(message, param=param), says("a"), effort=Effort.LOW, temperature=0.7, protocol="chat"
    )
    assert ask(model)[0] == (ModelAnswer("a"),)
    before, after = endpoint.requests
    assert key in before
    lost = {"stream", "stream_options"} if key == "stream" else {key}
    assert before.keys() - after.keys() == lost
    assert "the endpoint" in capsys.readouterr().err, "a setting that is left out is said"


def test_what_is_halved_is_what_was_asked_for(serve: Serve) -> None:
    endpoint, model = serve(refusing("max_tokens is too large"), says("a"), protocol=ModelProtocol.CHAT)
    ask(model)
    assert [request["max_tokens"] for request in endpoint.requests] == [QUESTION.limit, QUESTION.limit // 2]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "message",
    [
        "{name} is too large: 4096. This model supports at most 2500 completion tokens.",
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
    ],
)
def test_a_limit_that_is_too_large_is_halved(serve: Serve, message: str, protocol: ModelProtocol) -> None:
    name = "max_tokens" if protocol is ModelProtocol.CHAT else "max_output_tokens"
    message = message.format(name=name)
    endpoint, model = serve(refusing(message), says("a"), protocol=protocol, answer_tokens=4096)
    assert ask(model)[0] == (ModelAnswer("a"),)
    assert [request[name] for request in endpoint.requests] == [4096, 2048]


def test_a_question_that_does_not_fit_leaves_the_limit_as_it_was(serve: Serve) -> None:
    """No shorter answer makes room for it, and the next question may be short."""
    no = refusing("This model's maximum context length is 8192 tokens. Your messages have 9000 tokens.")
    endpoint, model = serve(no, no, no, says("a"), protocol=ModelProtocol.CHAT, answer_tokens=4096)
    with pytest.raises(EndpointError, match="question does not fit into the model's context"):
        ask(model)
    assert ask(model)[0] == (ModelAnswer("a"),)
    assert [request["max_tokens"] for request in endpoint.requests] == [4096, 2048, 1024, 4096]


def test_a_shorter_limit_is_kept_once_it_was_taken(serve: Serve) -> None:
    large = refusing("max_tokens is too large. This model supports at most 2500 completion tokens.")
    endpoint, model = serve(
        large, says("a"), refusing("no", 401), says("b"), protocol=ModelProtocol.CHAT, answer_tokens=4096
    )
    ask(model)
    with pytest.raises(EndpointError):
        ask(model)
    ask(model)
    assert [request["max_tokens"] for request in endpoint.requests] == [4096, 2048, 2048, 2048]


def test_an_endpoint_without_structured_output_is_asked_otherwise_at_once(serve: Serve) -> None:
    no = refusing("response_format is not supported", param="response_format")
    endpoint, model = serve(no, says("a"))
    plain = ({"role": "user", "content": "write text"},)
    ask(model, evolve(QUESTION, plain=plain))
    assert [request["messages"] for request in endpoint.requests] == [list(QUESTION.messages), list(plain)]


def several(*texts: str) -> Recording:
    return completion(texts[0], 1000, others=texts[1:])


@pytest.mark.parametrize(
    ("protocol", "answers", "requests"),
    [
        ("chat", [several("a", "b", "c")], 1),
        ("chat", [refusing("Unsupported parameter: 'n'", param="n"), says("a"), says("b"), says("c")], 4),
        ("chat", [says("a"), says("b"), says("c")], 3),
        ("responses", [says("a"), says("b"), says("c")], 3),
    ],
)
def test_several_answers_to_one_question(
    serve: Serve, protocol: str, answers: list[Recording], requests: int
) -> None:
    endpoint, model = serve(*answers, protocol=ModelProtocol(protocol))
    found, paid = ask(model, evolve(QUESTION, samples=3))
    assert sorted(words.text for words in found) == ["a", "b", "c"]
    assert len(endpoint.requests) == requests
    assert sum(usage.input + usage.output for usage in paid) == (1000 if requests == 1 else 3000)


def test_samples_that_are_asked_for_side_by_side_learn_together(serve: Serve) -> None:
    """Two requests that are refused for the same parameter leave it out once."""
    no = refusing("Unsupported parameter", param="temperature")
    endpoint, model = serve(says("a"), no, no, says("b"), temperature=0.7, protocol=ModelProtocol.RESPONSES)
    found, _ = ask(model, evolve(QUESTION, samples=3))
    assert sorted(words.text for words in found) == ["a", "b", "b"]
    assert ["temperature" in request for request in endpoint.requests] == [True] * 3 + [False] * 2


def test_answers_that_fail_later_cost_only_themselves(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    _, model = serve(says("a"), refusing("no key", 401), protocol=ModelProtocol.RESPONSES)
    assert ask(model, evolve(QUESTION, samples=3))[0] == (ModelAnswer("a"),)
    assert "an answer fewer" in capsys.readouterr().err


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_thoughts_are_no_part_of_the_answer(serve: Serve, protocol: ModelProtocol) -> None:
    _, model = serve(
        says("the kernel", None, thoughts='maybe {"files": 1}\n=== tiling.h\n' * 50), protocol=protocol
    )
    (words,), (usage,) = ask(model)
    assert words == ModelAnswer("the kernel")
    assert usage.output > 50, "they are paid for"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>so\nso</think>\nthe kernel", "\nthe kernel"),
        ("  <thinking>a</thinking><think>b</think>the kernel", "the kernel"),
        ("so, so</think>the kernel", "the kernel"),
        ("the kernel // <think>", "the kernel // <think>"),
    ],
)
def test_a_block_of_thought_is_no_part_of_the_answer(serve: Serve, text: str, answer: str) -> None:
    _, model = serve(says(text))
    assert ask(model)[0] == (ModelAnswer(answer),)


FLAWED: dict[str, tuple[Recording, str]] = {
    "thoughts alone": (says("", thoughts="hm"), "was empty"),
    "a thought without an end": (says("<think>and so on"), "was empty"),
    "thought to the limit": (
        completion("", 9, finish="length") | {"thoughts": "hm"},
        "thought until its limit",
    ),
    "filtered": (completion("a", 9, finish="content_filter"), "filter withheld"),
    "cut off": (completion("a", 9, finish="length"), "cut off at 4096"),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", FLAWED)
def test_what_is_no_answer_is_named(serve: Serve, name: str, protocol: ModelProtocol) -> None:
    answer, words = FLAWED[name]
    _, model = serve(answer, protocol=protocol)
    ((found,), _) = ask(model)
    assert words in found.flaw


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_may_take_longer_than_the_idle_limit(serve: Serve, protocol: ModelProtocol) -> None:
    thinking = says("the kernel", thoughts="x" * 400, pause=0.15)
    _, model = serve(thinking, protocol=protocol, idle_timeout_s=1.0)
    assert ask(model)[0] == (ModelAnswer("the kernel"),)


@pytest.mark.parametrize(
    ("answer", "limits", "words"),
    [
        (says("a", pause=LONG_S), {"idle_timeout_s": 0.3}, "sent nothing for 0.3 s"),
        (says("a", delay=LONG_S), {"idle_timeout_s": 0.3}, "sent nothing for 0.3 s"),
        (says("a" * 4000, pause=0.05), {"total_timeout_s": 0.5}, "was not done after 0.5 s"),
        (says("a", delay=LONG_S), {"total_timeout_s": 1.5}, "was not done after 1.5 s"),
    ],
)
def test_what_takes_too_long_is_left(
    serve: Serve, answer: Recording, limits: dict[str, float], words: str
) -> None:
    endpoint, model = serve(answer, **limits)
    with pytest.raises(EndpointError, match=words):
        ask(model)
    assert endpoint.left.wait(LONG_S / 4), "the connection is closed"


def delta(text: str, index: Any = 0, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": {"content": text}, "finish_reason": finish}]}


COUNTS = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
RESPONSE = {"status": "completed", "usage": {"input_tokens": 5, "output_tokens": 7}}
WORD = {"type": "response.output_text.delta", "delta": "ok"}
ODD: dict[str, tuple[Recording, ModelProtocol]] = {
    "no choices beside the counts": (
        events(delta("ok", finish="stop"), {"choices": None, "usage": COUNTS}),
        ModelProtocol.CHAT,
    ),
    "no place": (
        events(delta("ok", None, "stop"), {"choices": [], "usage": COUNTS}, "[DONE]"),
        ModelProtocol.CHAT,
    ),
    "no output behind the words": (
        events(WORD, {"type": "response.completed", "response": RESPONSE}),
        ModelProtocol.RESPONSES,
    ),
    "a null for it": (
        events(WORD, {"type": "response.completed", "response": {**RESPONSE, "output": None}}),
        ModelProtocol.RESPONSES,
    ),
    "another case": (
        events(delta("ok", finish="stop"), {"choices": [], "usage": COUNTS})
        | {"headers": {"Content-Type": "Text/Event-Stream; charset=UTF-8"}},
        ModelProtocol.CHAT,
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_what_endpoints_leave_out_is_not_needed(serve: Serve, name: str) -> None:
    answer, protocol = ODD[name]
    _, model = serve(answer, protocol=protocol)
    assert ask(model) == ((ModelAnswer("ok"),), [Usage(5, 7, estimated=False)])


OPEN = {"Content-Length": str(10**6)}
"""Of an answer that never comes to its end."""


@pytest.mark.parametrize(
    "limits", [{"idle_timeout_s": 0.3}, {"total_timeout_s": LONG_S, "idle_timeout_s": LONG_S}]
)
def test_an_answer_that_came_to_its_end_is_not_lost_where_its_stream_does_not(
    serve: Serve, limits: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llm_model, "COUNTS_S", 0.2 if limits["idle_timeout_s"] == LONG_S else LONG_S)
    said = events(delta("o"), delta("k", finish="stop"), {"choices": [], "usage": COUNTS})
    endpoint, model = serve({**said, "headers": EVENTS | OPEN}, protocol=ModelProtocol.CHAT, **limits)
    assert ask(model) == ((ModelAnswer("ok"),), [Usage(5, 7, estimated=False)])
    assert len(endpoint.requests) == 1


CREATED = {"type": "response.created", "response": {"status": "in_progress", "output": []}}


@pytest.mark.parametrize(
    ("answer", "protocol"),
    [
        (events(), ModelProtocol.CHAT),
        (events(CREATED), ModelProtocol.RESPONSES),
    ],
)
def test_a_question_that_was_taken_is_paid_for_without_a_word(
    serve: Serve, answer: Recording, protocol: ModelProtocol
) -> None:
    _, model = serve({**answer, "headers": EVENTS | OPEN}, protocol=protocol, idle_timeout_s=0.3)
    purse = Purse()
    with pytest.raises(EndpointError, match="sent nothing for"):
        model.ask(QUESTION, purse)
    assert purse.paid == [Usage(QUESTION.tokens, 0, estimated=True)]


@pytest.mark.parametrize(
    ("said", "usage"),
    [
        ({"completion_tokens": 7}, Usage(100, 7, estimated=True)),
        ({"prompt_tokens": 5}, Usage(5, 30, estimated=True)),
        ({"prompt_tokens": 5, "completion_tokens": 7}, Usage(5, 7, estimated=False)),
        ({"input_tokens": 5, "output_tokens": 7, "total_tokens": None}, Usage(5, 7, estimated=False)),
        ({"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 50}, Usage(5, 45, estimated=False)),
        ({"completion_tokens": 7, "total_tokens": 50}, Usage(43, 7, estimated=False)),
        ({"completion_tokens": 70, "total_tokens": 50}, Usage(0, 50, estimated=False)),
        ({"total_tokens": 150}, Usage(100, 50, estimated=False)),
        ({"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": -1}, Usage(100, 30, estimated=True)),
        ({"prompt_tokens": "5", "completion_tokens": True}, Usage(100, 30, estimated=True)),
        (None, Usage(100, 30, estimated=True)),
    ],
)
def test_tokens_are_those_that_the_endpoint_counts(said: Any, usage: Usage) -> None:
    """Of an answer of 90 characters to a question of some 100 tokens."""
    assert Count(100, text=60, thought=30, said=said).usage() == usage


NO_PROTOCOL = "does not speak the OpenAI protocol"
HOSTILE: dict[str, tuple[Recording, str]] = {
    "no events": (events(), NO_PROTOCOL),
    "no JSON": (events("{"), NO_PROTOCOL),
    "deep JSON": (events("[" * 100_000), NO_PROTOCOL),
    "no objects": (events([1], "null"), NO_PROTOCOL),
    "no choices": (events({"choices": "many"}), NO_PROTOCOL),
    "other types": (events({"choices": [{"delta": {"content": {"a": 1}}}]}), NO_PROTOCOL),
    "foreign places": (events(delta("a", 7), delta("a", -1), "[DONE]"), NO_PROTOCOL),
    "bytes": ({"raw": b"data: \xff\xfe\n\n", "headers": EVENTS}, NO_PROTOCOL),
    "many words": (
        {
            "raw": events(delta("x" * 2**19))["raw"],
            "repeat": 5,
            "headers": {**EVENTS, "Content-Length": str(10**8)},
        },
        "more than 2 MB",
    ),
    "one endless line": (
        {"raw": "x" * 2**22, "repeat": 17, "headers": {**EVENTS, "Content-Length": str(10**9)}},
        "more than 64 MB",
    ),
    "an error": (events(delta("a"), {"error": {"message": "overloaded"}}), "broke off its answer"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_stream_is_cut_off(serve: Serve, name: str) -> None:
    answer, words = HOSTILE[name]
    _, model = serve(answer, protocol=ModelProtocol.CHAT)
    with pytest.raises(EndpointError, match=words):
        ask(model)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"type": "response.failed", "response": {"status": "failed"}}, "broke off its answer"),
        ({"type": "error", "message": "no"}, "broke off its answer"),
        ({"type": "response.completed", "response": None}, NO_PROTOCOL),
        ({"type": "response.completed", "response": {"output": [[]], "status": "completed"}}, NO_PROTOCOL),
        ({"type": 7}, NO_PROTOCOL),
        ({}, NO_PROTOCOL),
    ],
)
def test_a_hostile_response_is_cut_off(serve: Serve, event: dict[str, Any], words: str) -> None:
    _, model = serve(events(event), protocol=ModelProtocol.RESPONSES)
    with pytest.raises(EndpointError, match=words):
        ask(model)


def test_an_answer_without_its_end_is_none(serve: Serve) -> None:
    _, model = serve(events(delta("a kern")))
    ((words,), _) = ask(model)
    assert "broke off before its end" in words.flaw


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_connection_that_breaks_is_tried_again_and_paid_for(serve: Serve, protocol: ModelProtocol) -> None:
    endpoint, model = serve(says("a" * 900, events=12), says("a" * 900), protocol=protocol)
    answers, (broken, whole) = ask(model)
    assert answers == (ModelAnswer("a" * 900),)
    assert len(endpoint.requests) == 2
    assert broken.estimated and broken.output > 50
    assert not whole.estimated


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("answer", [says("a" * 900, pause=0.05), says("a", delay=LONG_S)])
def test_a_cancelled_question_closes_its_connection(
    serve: Serve, protocol: ModelProtocol, answer: Recording
) -> None:
    endpoint, model = serve({**answer, "body": says("a" * 10**6)["body"]}, protocol=protocol)
    cancelled = threading.Event()
    begun = threading.Timer(0.5, cancelled.set)
    begun.start()
    purse = Purse()
    with pytest.raises(ProposerError, match="was cancelled"):
        model.ask(QUESTION, purse, cancelled.is_set)
    assert endpoint.left.wait(LONG_S / 4), "the server sees the connection close"
    assert bool(purse.paid) == ("pause" in answer), "what came is paid for"
