"""Answers say nothing that is empty, and fit their schemas all the same."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from evokernel_mcp import answers
from evokernel_mcp.access import Rules
from evokernel_mcp.app import EXAMPLES, server
from evokernel_mcp.plain import short, without_empty
from evokernel_mcp.twin_tools import _run_answer
from pydantic import BaseModel

from evokernel_core.domain.region import Region, RegionStatus, Span
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.settings import Settings
from evokernel_core.synthesis.offers import Estimate, Offer

MODELS = [
    item
    for item in vars(answers).values()
    if isinstance(item, type) and issubclass(item, BaseModel) and item is not BaseModel
]
REGION = {"id": "r", "symbol": "f", "lines": "1-2", "category": "other"}


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
    told = slim(answers.PlanAnswer, path="m.py", trusted=False, regions=[region, region], total=0)
    kept = {**REGION, "status": "unsupported", "reason": "Why."}
    assert told == {"path": "m.py", "trusted": False, "regions": [kept, kept], "total": 0}


def test_what_is_required_stays_though_it_is_empty() -> None:
    told = slim(answers.OutputAnswer, name="z", elements=0, min=None, max=None, not_finite=0, first=[])
    assert told == {"name": "z", "elements": 0, "min": None, "max": None, "not_finite": 0, "first": []}
    latency = slim(
        answers.LatencyAnswer, us=1.0, source="modelled", chip="c", baseline_us=2.0,
        baseline_source="modelled", bound_us=0.0, gain=0.0,
        block_dim=1, pipes={}, bottleneck="",
    )  # fmt: skip
    assert latency["pipes"] == {} and latency["bottleneck"] == "" and "hot_lines" not in latency


OFFERS = [
    Offer(
        Region(
            f"{number:016x}", "model.py", "TransformerBlock.forward", Span(100 + number, 4, 112 + number, 60),
            "y", "0" * 64, "normalization", RegionStatus.CANDIDATE,
        ),
        Estimate(1234.56, 234.56, 123.45, "ascend910b1"),
    )
    for number in range(20)
]  # fmt: skip
REFUSED = [
    Offer(
        Region(
            f"{number:016x}", "model.py", "TransformerBlock.forward", Span(200 + number, 4, 200 + number, 60),
            "y", "0" * 64, "other", RegionStatus.UNSUPPORTED, Sentence("Why. " * 100),
        ),
        None,
    )
    for number in range(8)
]  # fmt: skip


@pytest.mark.parametrize(("offers", "most"), [(OFFERS, 4_000), (OFFERS + REFUSED, 5_000)])
def test_a_plan_is_read_at_a_glance(offers: list[Offer], most: int) -> None:
    """Bytes, with every number that a candidate has."""
    plan = slim(
        answers.PlanAnswer, path="/home/user/project/model.py", trusted=True, total=len(offers),
        regions=[answers.planned_answer(offer, answers.longest_reason(len(offers))) for offer in offers],
        interpreter='"/home/user/project/.venv/bin/python [.venv in /home/user/project]"', chip="ascend910b1",
    )  # fmt: skip
    assert len(json.dumps(plan, separators=(",", ":"), ensure_ascii=False).encode()) <= most
    assert all(row["gain"] and "within_error" not in row for row in plan["regions"][:20])


async def test_tools_and_their_schemas_are_told_in_few_characters() -> None:
    tools = await server(Settings(), Rules(may_write=True)).list_tools()
    told = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    assert len(json.dumps(told, separators=(",", ":"))) < 20_000
    for tool in tools:
        example = EXAMPLES[tool.name]
        assert json.dumps(example, separators=(",", ":")) in (tool.description or "")
        jsonschema.validate(example, tool.input_schema)


def test_what_is_short_admits_the_same() -> None:
    schema = answers.RegionAnswer.model_json_schema()
    assert "title" not in json.dumps(short(schema)) and len(json.dumps(short(schema))) < len(
        json.dumps(schema)
    )
    assert "maxItems" not in json.dumps(
        short({"anyOf": [{"type": "array", "maxItems": 3}, {"type": "null"}]})
    )
    jsonschema.validate({**REGION, "gain": 0.5}, short(schema))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**REGION, "gain": "half"}, short(schema))


def test_root_causes_come_before_what_follows_from_them() -> None:
    seen = [("uninitialised-read", "error"), ("overflow-inf", "warning"), ("missing-sync", "error")]
    hazards = [{"code": code, "severity": how, "message": "", "file": "", "line": 1} for code, how in seen]
    shown, more = answers.hazard_answers(hazards)
    assert [item.code for item in shown] == [
        "missing-sync",
        "uninitialised-read",
        "overflow-inf",
    ] and not more


@pytest.mark.parametrize("ok", [True, False])
def test_a_run_that_failed_has_no_latency(ok: bool) -> None:
    launch = {"kernel": "k", "block_dim": 8, "latency_us": 3.0, "pipes": {"V": 1.0}, "bottleneck": "V-bound."}
    known = {
        "ok": ok, "error": "", "hazards": [], "launches": [launch], "latency_us": 3.0, "outputs": [],
        "output": "", "compile_s": 1.0, "run_s": 1.0,
    }  # fmt: skip
    told = slim(answers.RunAnswer, **_run_answer(known).model_dump())
    assert ("latency_us" in told) is ok and ("latency_us" in told["launches"][0]) is ok
