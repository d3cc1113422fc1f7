"""Options of commands that may ask a language model, and the ModelEndpoint that they give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from attrs import AttrsInstance, fields

from evokernel_core.domain.serial import from_data
from evokernel_core.domain.settings import Effort, ModelEndpoint, ModelProtocol

_DEFAULT = ModelEndpoint()
_SECONDS = click.FloatRange(0.1, 86_400)
_MONEY = click.FloatRange(0)

OPTIONS = (
    click.option("--model-url", "base_url", envvar="EVOKERNEL_MODEL_URL", default="", metavar="URL",
                 help="OpenAI-compatible endpoint; its key: EVOKERNEL_API_KEY or `evokernel key`."),
    click.option("--model", envvar="EVOKERNEL_MODEL", default="", metavar="NAME",
                 help="Model at that endpoint."),
    click.option("--model-ca", "ca_bundle", envvar="EVOKERNEL_MODEL_CA", default="", metavar="PATH",
                 help="CA bundle of that endpoint."),
    click.option("--model-protocol", "protocol", default=_DEFAULT.protocol.value, show_default=True,
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
    click.option("--idle-timeout", "idle_timeout_s", default=_DEFAULT.idle_timeout_s, show_default=True,
                 type=_SECONDS, metavar="S",
                 help="Seconds without a word of the model after which it is given up."),
    click.option("--total-timeout", "total_timeout_s", default=_DEFAULT.total_timeout_s, show_default=True,
                 type=_SECONDS, metavar="S", help="Seconds that one answer may take."),
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


def endpoint_from(options: Mapping[str, Any]) -> ModelEndpoint:
    """The endpoint of these options; its key comes from the environment alone."""
    return from_data(given_for(ModelEndpoint, options), ModelEndpoint)


def given_for(kind: type[AttrsInstance], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are named as fields of a class."""
    return {field.name: options[field.name] for field in fields(kind) if field.name in options}
