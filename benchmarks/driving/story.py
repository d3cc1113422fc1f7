"""What the mock asks for, and the project in which it does."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from driving.mock import Step

MODEL = """\
import torch


# evokernel: x=f32[64,256], y=f32[64,256]
def blend(x, y):
    return torch.relu(x) * 2.0 + y
"""
KERNEL = Path(__file__).parents[2] / "tests" / "twin" / "data" / "scale.cpp"
_LOOP = "    volatile uint32_t turns = 0;\n    while (turns < 9) { turns = turns % 7; }\n    TPipe pipe;\n"
ENDLESS_S = 600


def project(folder: Path, other: Path | None) -> None:
    """A model, a bare kernel, one that does not end, and a model of somebody else as other.py."""
    folder.mkdir()
    (folder / "model.py").write_text(MODEL)
    text = KERNEL.read_text()
    (folder / "scale.cpp").write_text(text)
    (folder / "endless.cpp").write_text(text.replace("    TPipe pipe;\n", _LOOP))
    (folder / "tiling.bin").write_bytes(bytes(8))
    if other is not None:
        shutil.copyfile(other, folder / "other.py")


def _region(results: tuple[str, ...]) -> str:
    """The region's id in the first result, however the agent quotes it."""
    found = re.search(r'\\*"id\\*":\s*\\*"([0-9a-f]{6,64})', results[0])
    return found[1] if found else "none"


def _run(source: str, seconds: int) -> dict[str, Any]:
    args = [
        {"in": {"fill": "random", "shape": [8, 256], "dtype": "float32"}},
        {"out": "z.npy", "shape": [8, 256], "dtype": "float32"},
        {"scalar": "uint32", "value": 2048},
        {"scalar": "float32", "value": 3},
        {"bytes": "tiling.bin"},
        {"workspace": 0},
    ]
    launch = {"block_dim": 8, "args": args}
    return {"path": source, "entry": "scale", "launch": launch, "limit_s": seconds}


def story(other: bool) -> tuple[Step, ...]:
    """A day: plan, generate, what a guide says, a run, two looks into pages, and two mistakes."""
    here = {"path": "model.py"}
    return (
        Step("plan", lambda _: here),
        Step("generate", lambda seen: {**here, "region": _region(seen), "budget": 2}),
        Step("brief", lambda seen: {**here, "region": _region(seen)}),
        Step("read", lambda seen: {"uri": f"evokernel://guide/{_region(seen)}"}),
        Step("kernels", lambda seen: {**here, "region": _region(seen), "limit": 100}),
        Step("run", lambda _: _run("scale.cpp", 60)),
        Step("read", lambda _: {"uri": "evokernel://docs/hazards"}),
        Step("explain", lambda _: {"code": "no-such-code"}),
        Step("plan", lambda _: {"path": "absent.py"}),
        *([Step("plan", lambda _: {"path": "other.py"})] if other else []),
    )


LONG = (Step("run", lambda _: _run("endless.cpp", ENDLESS_S)),)
"""A call that goes on until somebody ends it."""
