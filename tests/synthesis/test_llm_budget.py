"""What a model may cost: tokens and money, for one kernel and for a day, over processes and restarts."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import stamina
from attrs import evolve

from evokernel_core.domain.errors import BudgetExhausted, UsageError
from evokernel_core.domain.settings import ModelEndpoint
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.memory.spending import Cost, Spent
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.proposers import llm_budget
from evokernel_core.synthesis.proposers.base import Context
from evokernel_core.synthesis.proposers.llm import LlmProposer
from evokernel_core.synthesis.proposers.llm_budget import Account, AnswerBudget, Books, Budget, Tally
from evokernel_core.synthesis.proposers.llm_model import ATTEMPTS
from evokernel_core.synthesis.proposers.llm_words import Question, Usage
from evokernel_core.targets.ascendc.target import ascendc
from tests.synthesis.endpoint import RecordedEndpoint, Recording, completion, kernel_text, recording
from tests.synthesis.test_llm import scale_add

ENDPOINT = ModelEndpoint("http://127.0.0.1:9/v1", "m", input_price=1.0, output_price=10.0)


@pytest.fixture(params=[Tally, Memory])
def books(request: pytest.FixtureRequest, tmp_path: Path) -> Books:
    made: Books = Tally() if request.param is Tally else Memory(tmp_path / "memory.db")
    return made


def test_books_add_up(books: Books) -> None:
    assert books.spent_by("a") == books.spent_on("2026-01-31") == Spent()
    books.spend("2026-01-30", "a", "m", Cost(10, 1, 0.5))
    books.spend("2026-01-31", "a", "m", Cost(20, 2, 0.25))
    books.spend("2026-01-31", "a", "m", Cost(20, 2, 0.25))
    books.spend("2026-01-31", "b", "other", Cost(100, 0))
    assert books.spent_by("a") == Spent(55, 1.0)
    assert books.spent_on("2026-01-31") == Spent(144, 0.5)


PLANS: list[tuple[dict[str, float], int, AnswerBudget | str]] = [
    ({}, 1, AnswerBudget(1, 32_768)),
    ({"answer_tokens": 5_000}, 4, AnswerBudget(4, 5_000)),
    ({"token_budget": 9_000}, 1, AnswerBudget(1, 8_000)),
    ({"token_budget": 9_000}, 3, AnswerBudget(3, 2_000)),
    ({"token_budget": 9_000}, 16, AnswerBudget(4, 1_250)),
    ({"token_budget": 2_000}, 1, "The token budget of 2000 is used up (0 spent); raise it or go on"),
    ({"day_token_budget": 4_000}, 1, AnswerBudget(1, 3_000)),
    ({"day_token_budget": 1_500}, 1, "Today's token budget of 1500 is used up (0 spent); raise it, wait"),
    ({"money_budget": 0.101}, 2, AnswerBudget(2, 4_950)),
    ({"money_budget": 0.01}, 1, "The money budget of 0.01 is used up (0 spent)"),
    ({"day_money_budget": 0.05}, 1, AnswerBudget(1, 4_900)),
    ({"day_money_budget": 0.0005}, 1, "Today's money budget of 0.0005 is used up"),
    ({"money_budget": 0.002, "output_price": 0.0}, 1, AnswerBudget(1, 32_768)),
]


@pytest.mark.parametrize(("options", "samples", "plan"), PLANS)
def test_what_fits(options: dict[str, float], samples: int, plan: AnswerBudget | str) -> None:
    """Questions of a thousand tokens."""
    budget = Budget(evolve(ENDPOINT, **options), Tally)
    if isinstance(plan, AnswerBudget):
        assert budget.plan("job", 1_000, samples) == plan
        return
    with pytest.raises(BudgetExhausted) as raised:
        budget.plan("job", 1_000, samples)
    assert str(raised.value).startswith(plan)
    assert str(raised.value).endswith("go on without the model.")


def test_money_is_counted_by_the_prices(books: Books) -> None:
    Budget(ENDPOINT, lambda: books).pay("job", Usage(1_000_000, 100_000, estimated=False))
    assert books.spent_by("job") == Spent(1_100_000, 2.0)


def test_a_budget_of_money_needs_prices() -> None:
    free = evolve(ENDPOINT, input_price=0.0, output_price=0.0)
    Budget(free, Tally)
    for name in ("money_budget", "day_money_budget"):
        with pytest.raises(UsageError, match="needs the model's prices"):
            LlmProposer(evolve(free, **{name: 1.0}), ascendc(load_chip()))


def test_each_kernel_has_its_budget_and_the_day_has_one(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = evolve(ENDPOINT, token_budget=10_000, day_token_budget=25_000)

    def pay_and_plan(job: str) -> AnswerBudget:
        budget = Budget(settings, lambda: books)  # another process's
        budget.pay(job, Usage(5_000, 4_000, estimated=False))
        return budget.plan(job, 100, 1)

    with pytest.raises(BudgetExhausted, match=r"^The token budget of 10000 is used up \(9000 spent\)"):
        pay_and_plan("first")
    assert Budget(settings, lambda: books).plan("second", 100, 1)
    with pytest.raises(BudgetExhausted, match=r"^The token budget"):
        pay_and_plan("second")
    assert Budget(settings, lambda: books).plan("third", 100, 1).limit == 25_000 - 18_000 - 100
    with pytest.raises(BudgetExhausted, match=r"^Today's token budget of 25000 is used up \(27000 spent\)"):
        pay_and_plan("third")
    monkeypatch.setattr(llm_budget, "_today", lambda: "2999-01-01")
    assert Budget(settings, lambda: books).plan("fourth", 100, 1)


def test_the_day_is_kept_over_restarts(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"

    def draft(job: str) -> None:
        with Memory(path) as memory:
            settings = ModelEndpoint(endpoint.url, "recorded", day_token_budget=20_000)
            LlmProposer(settings, ascendc(load_chip()), books=lambda: memory).draft(
                scale_add(), Context(job=job)
            )

    with RecordedEndpoint(recording("good")) as endpoint:
        draft("first")
        draft("second")
        with pytest.raises(BudgetExhausted, match=r"of 20000 is used up \(12420 spent\)"):
            draft("third")
        assert len(endpoint.requests) == 2
    with Memory(path) as memory:
        assert memory.spent_by("second").tokens == 6210


def test_no_more_kernels_are_asked_for_than_can_be_verified() -> None:
    with RecordedEndpoint(recording("good")) as endpoint:
        settings = ModelEndpoint(endpoint.url, "recorded", samples=8)
        LlmProposer(settings, ascendc(load_chip())).draft(scale_add(), Context(attempts_left=1))
        assert len(endpoint.requests) == 1 and "n" not in endpoint.requests[0]


def broken_off(written: int) -> Recording:
    """A stream that ends in an error after ``written`` tokens were counted."""
    data: tuple[dict[str, Any], ...] = (
        {"choices": [{"index": 0, "delta": {"content": "x" * 300}, "finish_reason": None}]},
        {"choices": [], "usage": {"prompt_tokens": 1_000, "completion_tokens": written}},
        {"error": {"message": "overloaded"}},
    )
    raw = "".join(f"data: {json.dumps(item)}\n\n" for item in data)
    return {"raw": raw, "headers": {"Content-Type": "text/event-stream"}}


def test_a_further_try_is_paid_from_what_the_last_one_left() -> None:
    tally = Tally()
    with RecordedEndpoint(broken_off(8_000)) as endpoint, stamina.set_testing(True, attempts=ATTEMPTS):
        settings = ModelEndpoint(endpoint.url, "recorded", token_budget=30_000)
        with pytest.raises(BudgetExhausted, match="budget of 30000 is used up"):
            LlmProposer(settings, ascendc(load_chip()), books=lambda: tally).draft(scale_add(), Context())
        limits = [request["max_tokens"] for request in endpoint.requests]
    assert 1 < len(limits) < ATTEMPTS, "as often as there is room for an answer"
    assert {before - after for before, after in pairwise(limits)} == {9_000}
    assert tally.spent_by("").tokens <= 30_000


@pytest.mark.parametrize("room", [3, 2, 1])
def test_missing_answers_are_asked_for_as_far_as_there_is_budget(room: int) -> None:
    """The endpoint gives one of three answers, and each may cost what its request allows."""
    answers = [completion(kernel_text("t", f"k{number}();"), 15_000) for number in range(room)]
    tally, budget = Tally(), 15_000 * room + 500
    with RecordedEndpoint(*answers) as endpoint:
        settings = ModelEndpoint(
            endpoint.url, "recorded", samples=3, token_budget=budget, answer_tokens=4_000
        )
        proposal = LlmProposer(settings, ascendc(load_chip()), books=lambda: tally).draft(
            scale_add(), Context()
        )
        assert len(endpoint.requests) == room
    assert len((proposal, *proposal.others)) == room
    assert tally.spent_by("").tokens == 15_000 * room <= budget


def test_open_requests_hold_what_they_may_cost() -> None:
    budget = Budget(evolve(ENDPOINT, token_budget=10_000), Tally)
    account = Account(budget, "job", lambda usage: None)
    question = Question(({"role": "user", "content": "x" * 3_000},), {}, 4_000)
    with account.request(question) as first, account.request(question) as second:
        assert (first.limit, second.limit) == (4_000, 10_000 - 5_000 - 1_000)
        with pytest.raises(BudgetExhausted), account.request(question):
            raise AssertionError("there is no room for a third")
    assert account.fitted(question).limit == 4_000
