"""Answers say nothing that is empty, and fit their schemas all the same."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from evokernel_mcp import answers
from evokernel_mcp.slim import without_empty
from pydantic import BaseModel

MODELS = [
    item
    for item in vars(answers).values()
    if isinstance(item, type) and issubclass(item, BaseModel) and item is not BaseModel
]
REGION = {"id": "r", "symbol": "f", "line": 1, "end_line": 2, "code": "y", "category": "other"}


def slim(model: type[BaseModel], **given: Any) -> Any:
    schema = model.model_json_schema(mode="serialization")
    told = without_empty(model(**given).model_dump(mode="json"), schema)
    jsonschema.validate(told, schema)
    return told


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_what_is_left_out_is_not_required(model: type[BaseModel]) -> None:
    """With every field empty that may be."""
    schema = model.model_json_schema(mode="serialization")
    whole = model.model_construct().model_dump(mode="json", warnings=False)
    told = without_empty(whole, schema)
    assert not any(item in (None, "", [], {}) and item is not False and item != 0 for item in told.values())
    assert {name for name, item in whole.items() if item is False or item == 0} <= told.keys()


def test_fields_of_models_in_models_too() -> None:
    region = answers.RegionAnswer(**REGION, status="unsupported", reason="Why.")
    told = slim(answers.PlanAnswer, file="m.py", trusted=False, regions=[region, region], total=0)
    kept = {**REGION, "status": "unsupported", "reason": "Why.", "verified": False, "worth_it": False}
    assert told == {"file": "m.py", "trusted": False, "regions": [kept, kept], "total": 0}


def test_what_is_required_stays_though_it_is_empty() -> None:
    told = slim(answers.OutputAnswer, name="z", elements=0, min=None, max=None, not_finite=0, first=[])
    assert told == {"name": "z", "elements": 0, "min": None, "max": None, "not_finite": 0, "first": []}
    latency = slim(
        answers.LatencyAnswer, us=1.0, source="modelled", chip="c", baseline_us=2.0,
        baseline_source="modelled", bound_us=0.0, gain=0.0,
        block_dim=1, pipes={}, bottleneck="",
    )  # fmt: skip
    assert latency["pipes"] == {} and latency["bottleneck"] == "" and "hot_lines" not in latency
