"""Options from a client's JSON."""

from __future__ import annotations

from typing import Any

import pytest
from evokernel_server.options import Options, read_options, update_options

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.settings import ProposerName


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
        ({"survivalS": [1.0]}, "evokernel.survivalS"),
        ({"pauseS": [1]}, "evokernel.pauseS"),
    ],
)
def test_a_wrong_value_is_named(section: dict[str, Any], name: str) -> None:
    with pytest.raises(UsageError, match=name):
        update_options(Options(), section)
