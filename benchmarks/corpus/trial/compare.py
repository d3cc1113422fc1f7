"""Compare the outcomes of two programs under the same perturbations; prints one JSON object a line.

    python compare.py ORIGINAL EDITED

Each line is ``{"kind", "number", "mode", "notes", "verdict", "difference", "kernels"}``; the verdict is
``same``, ``skipped``, ``timeout``, ``differs`` (silently), ``raised`` (only the edited program, so a person
sees it) or ``lost`` (its process ended). ``strides`` says whether only the layout of results differs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch

TOLERANCE = {"torch.float64": 1e-4, "torch.float32": 1e-3, "torch.float16": 2e-2, "torch.bfloat16": 8e-2}
"""Of the largest magnitude of a tensor. Kernels sum in another order; what a guard that is missing changes is
a tenth and more, since perturbations change values by half."""
COARSE = {"torch.float64": 0, "torch.float32": 1, "torch.float16": 2, "torch.bfloat16": 3}


def main() -> None:
    original, edited = map(Path, sys.argv[1:3])
    for index, (case, again) in enumerate(zip_longest(_journal(original), _journal(edited))):
        if isinstance(case, list) and again is not None:
            row = dict(zip(("kind", "number", "mode"), case, strict=True), index=index)
            print(json.dumps(row | compared(_read(original, index), _read(edited, index))), flush=True)


def _journal(folder: Path) -> list[Any]:
    """What was done: a case, null where it was left out, or how the process ended in it."""
    path = folder / "done.jsonl"
    return list(map(json.loads, path.read_text().splitlines())) if path.exists() else []


def _read(folder: Path, index: int) -> dict[str, Any] | None:
    path = folder / f"{index}.pt"
    return torch.load(path, weights_only=False) if path.exists() else None


def compared(a: dict[str, Any] | None, b: dict[str, Any] | None) -> dict[str, Any]:
    if a is None or b is None:
        return {
            "notes": [],
            "verdict": "lost",
            "difference": "the process of one program ended in this",
            "kernels": {},
        }
    verdict, difference, strides = _judged(a, b)
    return {
        "notes": a["notes"], "verdict": verdict, "difference": difference,
        "strides": strides, "kernels": b["kernels"],
    }  # fmt: skip


def _judged(a: dict[str, Any], b: dict[str, Any]) -> tuple[str, str, bool]:
    if "TooLong" in (a.get("error"), b.get("error")):
        return "timeout", "", False
    if "skipped" in a and "skipped" in b:
        return "skipped", "", False
    if a["notes"] != b["notes"]:
        return "differs", f"the perturbation found another model: {a['notes']}, {b['notes']}", False
    if "error" in a or "error" in b:
        return _errors(a, b)
    coarsest = max(COARSE[a["precision"]], *(COARSE.get(x.get("dtype"), 0) for x in a["result"]), 1)
    difference = next(_differences(a, b, coarsest), "")
    strides = [x.get("strides") for x in a["result"]] != [x.get("strides") for x in b["result"]]
    return ("differs" if difference else "same"), difference, strides


def _errors(a: dict[str, Any], b: dict[str, Any]) -> tuple[str, str, bool]:
    if a.get("error") == b.get("error"):
        return "same", "", False
    words = [f"{x['error']}: {x['message']}" if "error" in x else "no exception" for x in (a, b)]
    return ("differs" if "error" in a else "raised"), f"{words[0]} -> {words[1]}", False


def _differences(a: dict[str, Any], b: dict[str, Any], coarsest: int) -> Iterator[str]:
    for part in ("result", "inputs"):
        if a[f"{part}_structure"] != b[f"{part}_structure"]:
            yield f"{part}: another structure"
            return
        for number, (x, y) in enumerate(zip(a[part], b[part], strict=True)):
            yield from _leaves(f"{part} {number}", x, y, coarsest)
    if a["draws"] != b["draws"]:
        yield "another number of random draws"
    for part in ("gradients", "state"):
        before, after = a.get(part, {}), b.get(part, {})
        if before.keys() != after.keys():
            yield f"{part}: {sorted(before.keys() ^ after.keys())[:3]} in one only"
            return
        for name, value in before.items():
            yield from _leaves(f"{part} {name}", value, after[name], coarsest, slack=4.0)


def _leaves(
    what: str, x: dict[str, Any], y: dict[str, Any], coarsest: int, slack: float = 1.0
) -> Iterator[str]:
    for key in ("value", "type", "dtype", "shape", "requires_grad"):
        if x.get(key) != y.get(key):
            yield f"{what}: {key} {x.get(key)} -> {y.get(key)}"
            return
    one, two = x.get("data"), y.get("data")
    if one is None or not one.numel() or torch.equal(one, two):
        return
    if not (one.is_floating_point() or one.is_complex()):
        moved = (one != two).float().mean().item()
        if moved > (0.02 if coarsest > 1 else 0.005):
            yield f"{what}: {moved:.1%} of the numbers differ"
        return
    yield from _numbers(what, one, two, coarsest, slack)


def _numbers(what: str, one: torch.Tensor, two: torch.Tensor, coarsest: int, slack: float) -> Iterator[str]:
    one, two = (torch.view_as_real(x) if x.is_complex() else x for x in (one, two))
    one, two = one.double(), two.double()
    wild = ~(one.isfinite() & two.isfinite())
    if not torch.equal(one[wild].nan_to_num(7.0), two[wild].nan_to_num(7.0)):
        yield f"{what}: infinities or NaNs at other places"
        return
    one, two = one[~wild], two[~wild]
    names = sorted(COARSE, key=COARSE.get)
    allowed = TOLERANCE[names[coarsest]] * slack
    error = (one - two).abs().max().item() if one.numel() else 0.0
    scale = one.abs().max().item() if one.numel() else 1.0
    if error > allowed * max(scale, 1e-30) and error > 1e-9:
        yield f"{what}: differs by {error / max(scale, 1e-30):.2g} of its largest value"


if __name__ == "__main__":
    main()
