"""Options of commands that may ask a language model, and the ModelEndpoint that they give."""

from __future__ import annotations

from typing import Any

import click

from evokernel_core.domain.settings import Effort, ModelEndpoint, ModelProtocol

_DEFAULT = ModelEndpoint()
_SECONDS = click.FloatRange(0.1, 86_400)
_MONEY = click.FloatRange(0)

OPTIONS = (
    click.option("--model-url", envvar="EVOKERNEL_MODEL_URL", default="", metavar="URL",
                 help="OpenAI-compatible endpoint; its key: EVOKERNEL_API_KEY or `evokernel key`."),
    click.option("--model", envvar="EVOKERNEL_MODEL", default="", metavar="NAME",
                 help="Model at that endpoint."),
    click.option("--model-ca", envvar="EVOKERNEL_MODEL_CA", default="", metavar="PATH",
                 help="CA bundle of that endpoint."),
    click.option("--model-protocol", default=_DEFAULT.protocol.value, show_default=True,
                 type=click.Choice([name.value for name in ModelProtocol]),
                 help="Protocol of that endpoint; auto finds it out."),
    click.option("--effort", default=_DEFAULT.effort.value, show_default=True,
                 type=click.Choice([name.value for name in Effort]), help="How long the model thinks."),
    click.option("--temperature", default=None, type=click.FloatRange(0, 2),
                 help="Sampling temperature; the endpoint's own if not given."),
    click.option("--samples", default=_DEFAULT.samples, show_default=True, type=click.IntRange(1, 16),
                 metavar="N", help="Kernels to ask for with one question; each takes an attempt."),
    click.option("--answer-tokens", default=_DEFAULT.answer_tokens, show_default=True,
                 type=click.IntRange(1_024), metavar="N", help="Longest answer, thoughts included."),
    click.option("--idle-timeout", default=_DEFAULT.idle_timeout_s, show_default=True, type=_SECONDS,
                 metavar="S", help="Seconds without a word of the model after which it is given up."),
    click.option("--total-timeout", default=_DEFAULT.total_timeout_s, show_default=True, type=_SECONDS,
                 metavar="S", help="Seconds that one answer may take."),
    click.option("--token-budget", default=_DEFAULT.token_budget, show_default=True, type=click.IntRange(1),
                 metavar="N", help="Tokens that the model may use for one kernel."),
    click.option("--day-token-budget", default=_DEFAULT.day_token_budget, show_default=True,
                 type=click.IntRange(0), metavar="N", help="Tokens that it may use on one day; 0: no limit."),
    click.option("--money-budget", default=_DEFAULT.money_budget, show_default=True, type=_MONEY,
                 metavar="X", help="Money that one kernel may cost, by the prices given; 0: no limit."),
    click.option("--day-money-budget", default=_DEFAULT.day_money_budget, show_default=True, type=_MONEY,
                 metavar="X", help="Money that one day may cost; 0: no limit."),
    click.option("--input-price", envvar="EVOKERNEL_INPUT_PRICE", default=_DEFAULT.input_price,
                 show_default=True, type=_MONEY, metavar="X", help="Price of a million tokens read."),
    click.option("--output-price", envvar="EVOKERNEL_OUTPUT_PRICE", default=_DEFAULT.output_price,
                 show_default=True, type=_MONEY, metavar="X", help="Price of a million tokens written."),
)  # fmt: skip


def endpoint_from(options: dict[str, Any]) -> ModelEndpoint:
    """The endpoint of these options; its key comes from the environment alone."""
    return ModelEndpoint(
        base_url=options["model_url"],
        model=options["model"],
        ca_bundle=options["model_ca"],
        protocol=ModelProtocol(options["model_protocol"]),
        effort=Effort(options["effort"]),
        temperature=options["temperature"],
        samples=options["samples"],
        answer_tokens=options["answer_tokens"],
        idle_timeout_s=options["idle_timeout"],
        total_timeout_s=options["total_timeout"],
        token_budget=options["token_budget"],
        day_token_budget=options["day_token_budget"],
        money_budget=options["money_budget"],
        day_money_budget=options["day_money_budget"],
        input_price=options["input_price"],
        output_price=options["output_price"],
    )
