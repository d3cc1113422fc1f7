"""The text of single instructions and of the helper methods that they call."""

from __future__ import annotations

CPP_TYPE = {
    "float32": "float",
    "float16": "half",
    "bfloat16": "bfloat16_t",
    "bool": "uint8_t",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
}
STAGES = {"float16": "halfStage", "bool": "halfStage", "bfloat16": "bfloat16Stage"}
"""Tiles in a 16-bit type, through which tensors of one byte and rounded numbers pass."""
ONE_BYTE = frozenset({"int8", "uint8", "bool"})
REDUCTION_NAMES = {"reduce_sum": "Sum", "reduce_max": "Max", "reduce_min": "Min"}
