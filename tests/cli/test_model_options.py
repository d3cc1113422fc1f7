"""Options of the command line for the model, and what they make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from attrs import asdict, fields
from click.testing import CliRunner

from evokernel_core.cli.options import settings_from, synthesis_options
from evokernel_core.domain.settings import Effort, ModelEndpoint, ModelProtocol

GIVEN: dict[str, tuple[str, Any]] = {
    "base_url": ("--model-url=https://m/v1", "https://m/v1"),
    "model": ("--model=coder", "coder"),
    "ca_bundle": ("--model-ca=/ca.pem", "/ca.pem"),
    "protocol": ("--model-protocol=responses", ModelProtocol.RESPONSES),
    "effort": ("--effort=xhigh", Effort.XHIGH),
    "temperature": ("--temperature=0.7", 0.7),
    "samples": ("--samples=4", 4),
    "answer_tokens": ("--answer-tokens=64000", 64_000),
    "idle_timeout_s": ("--idle-timeout=60", 60.0),
    "total_timeout_s": ("--total-timeout=3600", 3600.0),
    "token_budget": ("--token-budget=1000000", 1_000_000),
    "day_token_budget": ("--day-token-budget=0", 0),
    "money_budget": ("--money-budget=1.5", 1.5),
    "day_money_budget": ("--day-money-budget=10", 10.0),
    "input_price": ("--input-price=1.25", 1.25),
    "output_price": ("--output-price=10", 10.0),
}


def endpoint(*arguments: str) -> ModelEndpoint:
    made: list[ModelEndpoint] = []

    @click.command()
    @synthesis_options(patience=0)
    def command(**options: Any) -> None:
        made.append(settings_from(options).endpoint)

    done = CliRunner().invoke(command, list(arguments), env={"EVOKERNEL_API_KEY": "key"})
    assert done.exit_code == 0, done.output
    return made[0]


def test_nothing_given_means_the_defaults() -> None:
    """No key either, as there is no endpoint that needs one."""
    assert endpoint() == ModelEndpoint()


def test_every_setting_has_an_option() -> None:
    assert GIVEN.keys() == {field.name for field in fields(ModelEndpoint)} - {"api_key"}
    found = asdict(endpoint(*(option for option, _ in GIVEN.values())))
    assert found == {name: value for name, (_, value) in GIVEN.items()} | {"api_key": "key"}


def test_every_option_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "model.md").read_text("utf-8")
    for option, _ in GIVEN.values():
        assert f"`{option.partition('=')[0]}`" in text


@pytest.mark.parametrize(
    "option", ["--temperature=3", "--samples=0", "--idle-timeout=0", "--effort=endless", "--input-price=-1"]
)
def test_a_wrong_value_is_refused(option: str) -> None:
    with pytest.raises(AssertionError, match="Invalid value"):
        endpoint(option)
