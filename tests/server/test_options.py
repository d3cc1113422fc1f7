"""Options from a client's JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from attrs import fields
from evokernel_server.options import _LIMITS, Options, camel, read_options, update_options

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.settings import Effort, ModelEndpoint, ModelProtocol, ProposerName

ROOT = Path(__file__).parents[2]


def test_nothing_given_means_the_defaults() -> None:
    assert read_options(None, {}) == Options()
    assert read_options({"settings": None, "trusted": False}, {}) == Options()


def test_names_are_camel_case() -> None:
    options = read_options(
        {
            "settings": {
                "verifierUrl": "https://v", "refineInBackground": False, "proposer": "llm", "budget": 12,
                "modelUrl": "https://m", "model": "coder", "tokenBudget": 5, "caBundle": "/ca.pem",
                "inlayHints": False, "survivalS": [1, 2, 3],
            },
            "trusted": False,
        },
        {"EVOKERNEL_API_KEY": "key", "EVOKERNEL_VERIFIER_TOKEN": "token"},
    )  # fmt: skip
    settings = options.settings
    assert (settings.verifier_url, settings.verifier_token) == ("https://v", "token")
    assert (settings.proposer, settings.budget) == (ProposerName.LLM, 12)
    assert not settings.refine_in_background and not options.server.inlay_hints
    assert not options.trust
    endpoint = settings.endpoint
    assert (endpoint.base_url, endpoint.model, endpoint.api_key) == ("https://m", "coder", "key")
    assert (endpoint.token_budget, endpoint.ca_bundle) == (5, "/ca.pem")
    assert options.server.survival_s == (1.0, 2.0, 3.0)


def test_every_setting_of_the_model_is_read() -> None:
    section = {
        "modelUrl": "https://m", "model": "coder", "caBundle": "/ca.pem", "modelProtocol": "responses",
        "effort": "high", "temperature": 0.7, "samples": 4, "answerTokens": 9000, "idleTimeoutS": 60,
        "totalTimeoutS": 600, "tokenBudget": 5, "dayTokenBudget": 6, "moneyBudget": 1.5,
        "dayMoneyBudget": 3, "inputPrice": 0.25, "outputPrice": 2,
    }  # fmt: skip
    endpoint = update_options(Options(), section).settings.endpoint
    assert endpoint == ModelEndpoint(
        "https://m", "coder", "", "/ca.pem", ModelProtocol.RESPONSES, Effort.HIGH, 0.7, 4, 9000, 60.0, 600.0,
        5, 6, 1.5, 3.0, 0.25, 2.0,
    )  # fmt: skip
    assert len(section) == len(fields(ModelEndpoint)) - 1, "all but the key"
    nested = {"endpoint": {"baseUrl": "https://m", "temperature": 1, "protocol": "chat"}}
    found = update_options(Options(), nested).settings.endpoint
    assert found == ModelEndpoint("https://m", temperature=1.0, protocol=ModelProtocol.CHAT)


def test_a_settings_file_never_holds_the_key() -> None:
    options = read_options({"settings": {"endpoint": {"apiKey": "leaked", "model": "m"}}}, {})
    assert (options.settings.endpoint.api_key, options.settings.endpoint.model) == ("", "m")


def test_empty_and_unknown_values_change_nothing() -> None:
    section = {"interpreter": "", "chip": None, "unheardOf": 7}
    assert update_options(Options(), section) == Options()


@pytest.mark.parametrize(
    ("section", "name"),
    [
        ({"budget": "many"}, "evokernel.budget"),
        ({"refineInBackground": "no"}, "evokernel.refineInBackground"),
        ({"proposer": "oracle"}, "evokernel.proposer"),
        ({"target": "cuda"}, "evokernel.target"),
        ({"temperature": "hot"}, "evokernel.temperature"),
        ({"effort": "endless"}, "evokernel.effort"),
        ({"samples": "many"}, "evokernel.samples"),
        ({"survivalS": [1.0]}, "evokernel.survivalS"),
        ({"pauseS": [1]}, "evokernel.pauseS"),
    ],
)
def test_a_wrong_value_is_named(section: dict[str, Any], name: str) -> None:
    with pytest.raises(UsageError, match=name):
        update_options(Options(), section)


@pytest.mark.parametrize("name", sorted(_LIMITS))
def test_limits_are_those_of_the_extension(name: str) -> None:
    """Which warns in the settings page alone, and sends what is there."""
    declared = json.loads((ROOT / "vscode-extension/package.json").read_text("utf-8"))
    properties = declared["contributes"]["configuration"]["properties"]
    called = camel(name)
    (found,) = (
        item for key, item in properties.items() if key.rpartition(".")[2] == called and "minimum" in item
    )
    least, most = _LIMITS[name]
    assert (least, most) == (found["minimum"], found["maximum"])
    for wrong in (least - 1, most + 1, math.nan):
        with pytest.raises(UsageError, match=f"evokernel.{called}"):
            update_options(Options(), {called: wrong})
    for right in (least, most):
        update_options(Options(), {called: right})


def test_a_choice_that_there_is_none_of_is_refused_in_words_of_the_settings() -> None:
    with pytest.raises(UsageError, match=r"evokernel\.policy cannot be 'bogus'; it stays 'qvalue'\."):
        update_options(Options(), {"policy": "bogus"})
