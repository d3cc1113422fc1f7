"""Schemathesis against a real service: whatever is sent, the answers are those that the schema names."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.tables import few

TOKEN = {"Authorization": "Bearer right-token"}
OPERATIONS = [
    ("/v1/jobs", "POST"),
    ("/v1/jobs/{identity}", "GET"),
    ("/v1/jobs/{identity}", "DELETE"),
    ("/v1/status", "GET"),
]
# a task is an open JSON object in the schema, and most such objects are no task: those are 422
EXCLUDED = [positive_data_acceptance]
# a text that breaks its limit of characters may break the limit of the whole body first: that is 413
REFUSALS = {"checks": {"negative_data_rejection": {"expected-statuses": [401, 404, 409, 413, 422, 429]}}}


@pytest.fixture(scope="module")
def api(shared_server: Any) -> Any:
    config = SchemathesisConfig.from_dict(REFUSALS)
    return schemathesis.openapi.from_url(f"{shared_server.url}/v1/openapi.json", config=config, headers=TOKEN)


def test_the_schema_has_these_operations(api: Any) -> None:
    operations = [result.ok() for result in api.get_all_operations()]
    assert sorted((op.path, op.method.upper()) for op in operations) == sorted(OPERATIONS)


CASES = [(path, method, mode) for path, method in OPERATIONS for mode in GenerationMode]
CASES.remove(("/v1/status", "GET", GenerationMode.NEGATIVE))  # it has no parameter that could be wrong


@pytest.mark.parametrize(("path", "method", "mode"), CASES)
@few("examples", (15, 40), keep=(0,))
def test_answers_are_as_the_schema_says(
    api: Any, examples: int, path: str, method: str, mode: GenerationMode
) -> None:
    operation = api[path][method]

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    def run(case: schemathesis.Case) -> None:
        if mode is GenerationMode.POSITIVE and case.query and "wait" in case.query:
            case.query["wait"] = 0  # right, but it would take a minute
        case.call_and_validate(headers=TOKEN, excluded_checks=EXCLUDED, timeout=10)

    run()


def test_a_body_over_the_limit_is_refused_as_the_schema_says(api: Any) -> None:
    """Its size is looked at before its fields: hypothesis finds this only now and then."""
    text = "\U0001f600" * 1_200_000
    source = {"target": "ascendc", "files": {"tiling.h": "x", "op_kernel.cpp": text}, "strategy": {}}
    case = api["/v1/jobs"]["POST"].Case(body={"task": {}, "source": source}, media_type="application/json")
    answer = case.call_and_validate(headers=TOKEN, excluded_checks=EXCLUDED, timeout=10)
    assert answer.status_code == 413
