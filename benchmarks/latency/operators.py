"""Runs the public operators that measurements name, in timing mode, with their own tiling."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import field, frozen

from benchmarks.latency.rows import Row
from benchmarks.latency.samples import Prediction
from evokernel_core.twin.operators.report import ran_case
from evokernel_core.twin.run import Limits, Mode

_SOURCE = re.compile(r"hicann/[\w-]+:([\w/]+)/op_kernel/")
_SECONDS = 580.0


@frozen
class Signature:
    """The operator's inputs in the order of a row's shapes, and the row's attributes by the operator's names.

    ``scalar`` is an input that a row has as an attribute. A row of a list of tensors has a list of shapes.
    """

    operator: str
    inputs: tuple[str, ...]
    attributes: Mapping[str, str] = field(factory=dict)
    fixed: Mapping[str, Any] = field(factory=dict)
    scalar: str = ""
    outputs_like: Mapping[str, str] = field(factory=dict)


SIGNATURES: Mapping[str, Signature] = {
    "foreach/foreach_addcdiv_scalar": Signature(
        "ForeachAddcdivScalar", ("x1", "x2", "x3"), scalar="scalar", outputs_like={"y": "x1"}
    ),
    "quant/dynamic_quant": Signature("DynamicQuant", ("x", "smooth_scales")),
    "activation/swi_glu": Signature("SwiGlu", ("x",), {"dim": "dim"}),
    "norm/group_norm_silu": Signature(
        "GroupNormSilu",
        ("x", "gamma", "beta"),
        {"num_groups": "num_groups", "epsilon": "eps"},
        fixed={"activate_silu": False},  # as aclnnGroupNorm calls it
    ),
    "norm/add_rms_norm_dynamic_quant": Signature(
        "AddRmsNormDynamicQuant",
        ("x1", "x2", "gamma", "smooth_scale1", "smooth_scale2"),
        {"epsilon": "epsilon"},
    ),
}
"""Parameters and attributes by folder of the operator's project, as its definition names them."""


def run_operator(row: Row, projects: Sequence[Path]) -> Prediction | None:
    """Runs the row's operator; None where no folder of ``projects`` has it, or its signature is not known."""
    named = _SOURCE.search(str(row.data["kernel_source"]))
    signature = SIGNATURES.get(named[1]) if named else None
    folder = next((root / named[1] for root in projects if named and (root / named[1]).is_dir()), None)
    if signature is None or folder is None:
        return None
    with tempfile.TemporaryDirectory(prefix="evokernel-latency-") as name:
        case = Path(name) / "case.json"
        case.write_text(json.dumps(_case(row, signature, Path(name))))
        how = (Mode.TIME, Limits(_SECONDS, 16 << 30, 1 << 30), True)
        ran = ran_case(folder, None, row.chip, case, how)
    if not ran["ran"]:
        return Prediction(None, "executed", str(ran["error"]).splitlines()[0][:200])
    return Prediction(float(ran["latency_us"]), "executed")


def _case(row: Row, signature: Signature, work: Path) -> dict[str, Any]:
    shapes, dtypes = row.data["shapes"], row.data["dtype"]
    attributes = row.data["counters"].get("attrs", {})
    inputs = dict(_inputs(signature, shapes, dtypes, work))
    if signature.scalar:
        dtype = "float32" if dtypes[0] == "bfloat16" else dtypes[0]
        number = np.full(1, attributes[signature.scalar], dtype)
        np.save(work / "scalar.npy", number)
        inputs[signature.scalar] = "scalar.npy"
    outputs = {
        name: _like(shapes[signature.inputs.index(like)], dtypes[0])
        for name, like in signature.outputs_like.items()
    }
    known = {signature.attributes[name]: value for name, value in attributes.items()
             if name in signature.attributes and value is not None}  # fmt: skip
    return {
        "operator": signature.operator,
        "inputs": inputs,
        "outputs": outputs,
        "attributes": {**signature.fixed, **known},
    }


def _inputs(
    signature: Signature, shapes: Sequence[Any], dtypes: Sequence[str], work: Path
) -> Iterator[tuple[str, Any]]:
    for index, (name, shape) in enumerate(zip(signature.inputs, shapes, strict=False)):
        dtype = dtypes[min(index, len(dtypes) - 1)]
        if shape is None:
            yield name, None
        elif shape and isinstance(shape[0], list):
            yield name, [_saved(f"{name}{i}", part, dtype, work) for i, part in enumerate(shape)]
        else:
            yield name, _saved(name, shape, dtype, work)


def _saved(name: str, shape: Sequence[int], dtype: str, work: Path) -> Any:
    """Empty space of the size: no data moves in timing mode."""
    stored = "uint16" if dtype == "bfloat16" else dtype
    array = np.lib.format.open_memmap(work / f"{name}.npy", "w+", np.dtype(stored), tuple(shape))
    array.flush()
    return {"file": f"{name}.npy", "dtype": dtype}


def _like(shape: Any, dtype: str) -> Any:
    if shape and isinstance(shape[0], list):
        return [{"shape": part, "dtype": dtype} for part in shape]
    return {"shape": shape, "dtype": dtype}
