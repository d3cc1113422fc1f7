"""What a model may cost: tokens and money, for one kernel and for a day."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from typing import Protocol

from attrs import define, evolve, field, frozen

from evokernel_core.domain.errors import BudgetExhausted, UsageError
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.settings import ModelEndpoint
from evokernel_core.memory.spending import Cost, Spent
from evokernel_core.synthesis.proposers.llm_words import Question, Usage

SHORTEST_ANSWER = 1_024
"""Tokens below which no kernel fits, so that asking would waste the rest of a budget."""
_MILLION = 1e6


class Books(Protocol):
    """Where spending is kept: the memory."""

    def spend(self, day: str, job: str, model: str, cost: Cost) -> None: ...

    def spent_by(self, job: str) -> Spent: ...

    def spent_on(self, day: str) -> Spent: ...


@define
class Tally:
    """Books of this process alone, where there is no memory."""

    _jobs: dict[str, Spent] = field(factory=lambda: defaultdict(Spent))
    _days: dict[str, Spent] = field(factory=lambda: defaultdict(Spent))

    def spend(self, day: str, job: str, model: str, cost: Cost) -> None:
        for kept, key in ((self._jobs, job), (self._days, day)):
            tokens = kept[key].tokens + cost.input_tokens + cost.output_tokens
            kept[key] = evolve(kept[key], tokens=tokens, money=kept[key].money + cost.money)

    def spent_by(self, job: str) -> Spent:
        return self._jobs[job]

    def spent_on(self, day: str) -> Spent:
        return self._days[day]


@frozen
class AnswerBudget:
    """How many answers to ask for, and the tokens of the longest."""

    samples: int
    limit: int


@frozen
class _Limit:
    """One budget: what is left, what tokens cost of it, and why there is no more, in words."""

    left: float
    input_price: float
    output_price: float
    reason: Sentence

    def without(self, held: Iterable[Question]) -> _Limit:
        """What is left if those requests cost all that they may."""
        costs = (
            each.samples * (each.tokens * self.input_price + each.limit * self.output_price) for each in held
        )
        return evolve(self, left=self.left - sum(costs))

    def longest(self, asked: int, samples: int) -> float:
        """Tokens that each of the answers may have where each is asked for with ``asked`` tokens."""
        rest = self.left / samples - asked * self.input_price
        if rest < 0:
            return 0.0
        return rest / self.output_price if self.output_price else math.inf


@frozen
class Budget:
    """Raises UsageError for a budget of money without prices."""

    settings: ModelEndpoint
    books: Callable[[], Books]

    def __attrs_post_init__(self) -> None:
        settings = self.settings
        budgets, prices = (
            (settings.money_budget, settings.day_money_budget),
            (settings.input_price, settings.output_price),
        )
        if any(budgets) and not any(prices):
            raise UsageError("A budget of money needs the model's prices; give those of a million tokens.")

    def plan(self, job: str, asked: int, samples: int, held: Iterable[Question] = ()) -> AnswerBudget:
        """For a question of ``asked`` tokens, beside requests whose answers are ``held`` free. Raises
        BudgetExhausted where no answer fits in what is left."""
        held = tuple(held)
        limits = tuple(limit.without(held) for limit in self._limits(job))
        for fewer in range(max(1, samples), 0, -1):
            longest = min(limit.longest(asked, fewer) for limit in limits)
            if longest >= SHORTEST_ANSWER:
                return AnswerBudget(fewer, int(min(longest, self.settings.answer_tokens)))
        tightest = min(limits, key=lambda limit: limit.longest(asked, 1))
        raise BudgetExhausted(tightest.reason)

    def pay(self, job: str, usage: Usage) -> None:
        """Books what a request cost."""
        settings = self.settings
        money = (usage.input * settings.input_price + usage.output * settings.output_price) / _MILLION
        self.books().spend(_today(), job, settings.model, Cost(usage.input, usage.output, money))

    def _limits(self, job: str) -> Iterator[_Limit]:
        settings, books = self.settings, self.books()
        of_job, of_day = books.spent_by(job), books.spent_on(_today())
        read, written = settings.input_price / _MILLION, settings.output_price / _MILLION
        more, later = Sentence("raise it"), Sentence("raise it, wait for tomorrow")
        yield _limit(Sentence("The token budget"), settings.token_budget, of_job.tokens, more)
        if settings.day_token_budget:
            yield _limit(Sentence("Today's token budget"), settings.day_token_budget, of_day.tokens, later)
        if settings.money_budget:
            yield _limit(
                Sentence("The money budget"),
                settings.money_budget,
                of_job.money,
                Sentence("raise it"),
                read,
                written,
            )
        if settings.day_money_budget:
            yield _limit(
                Sentence("Today's money budget"),
                settings.day_money_budget,
                of_day.money,
                later,
                read,
                written,
            )


@define
class Account:
    """A budget for the requests of one question, first ones and further tries. ``told`` hears what each
    cost."""

    budget: Budget
    job: str
    told: Callable[[Usage], None]
    _open: list[Question] = field(factory=list)

    def fitted(self, question: Question) -> Question:
        """As many and as long answers as fit in what is left beside the open requests. Raises
        BudgetExhausted."""
        plan = self.budget.plan(self.job, question.tokens, question.samples, self._open)
        return evolve(question, limit=min(question.limit, plan.limit), samples=plan.samples)

    @contextmanager
    def request(self, question: Question) -> Iterator[Question]:
        """Holds what the fitted question may cost until its request is over. Raises BudgetExhausted."""
        fitted = self.fitted(question)
        self._open.append(fitted)
        try:
            yield fitted
        finally:
            self._open.remove(fitted)

    def pay(self, usage: Usage) -> None:
        self.budget.pay(self.job, usage)
        self.told(usage)


def _limit(
    name: Sentence, budget: float, spent: float, remedy: Sentence, read: float = 1.0, written: float = 1.0
) -> _Limit:
    reason = Sentence(
        "{name} of {budget} is used up ({spent} spent); {remedy} or go on without the model.",
        name=name,
        budget=f"{budget:.10g}",
        spent=f"{spent:.10g}",
        remedy=remedy,
    )
    return _Limit(budget - spent, read, written, reason)


def _today() -> str:
    return date.today().isoformat()
