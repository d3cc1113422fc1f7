"""The story in headless Neovim, a client that none of ours wrote."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import eventually, guarded
from tests.server.documented import neovim as find_neovim
from tests.server.documented import neovim_configuration
from tests.server.story import bring_back_the_slowest

DOCUMENTED = Path(__file__).with_name("neovim_documented.lua")
STORY = Path(__file__).with_name("neovim_story.lua")
REVIEW = Path(__file__).with_name("neovim_review.lua")
EVOKERNEL = str(Path(sys.executable).with_name("evokernel"))
MODEL = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, y):
        # µ😀 before the operations: Neovim counts in utf-16
        first = ("😀", torch.softmax(x, dim=-1))
        second = ("😀", torch.softmax(y, dim=-1))
        return first[1], second[1]
"""


REAL_MODEL = """\
import torch


# evokernel: x=f32[1024,1000], y=f16[1024,1000]
def attend(x, y):
    # µ😀 before the operations: Neovim counts in utf-16
    first = ("😀", torch.softmax(x * 0.125, dim=-1))
    second = ("😀", torch.softmax(y * 0.125, dim=-1))
    return first[1], second[1]
"""


@pytest.fixture(params=["system", "newer"])
def neovim(request: pytest.FixtureRequest) -> str:
    """Each Neovim that the documents speak of."""
    return find_neovim(request.param)


async def tell(
    neovim: str,
    tmp_path: Path,
    workspace: Path,
    settings: dict[str, Any],
    answers: list[str],
    signals: Path | None = None,
) -> Any:
    """Runs the story; gives Neovim's record of it."""
    cast = {
        "cmd": [EVOKERNEL, "lsp", "--stdio"],
        "root": str(workspace),
        "file": str(workspace / "model.py"),
        "settings": settings,
        "answers": answers,
        "places": ["torch.softmax(x", "torch.softmax(y"],
        "patience_ms": 200_000 if signals else 20_000,
        "signals": str(signals) if signals else None,
        "settle_ms": 700,
        "out": str(tmp_path / "out.json"),
    }
    cast = {key: value for key, value in cast.items() if value is not None}
    (tmp_path / "story.json").write_text(json.dumps(cast), "utf-8")
    process = await asyncio.create_subprocess_exec(
        neovim, "--headless", "-u", "NONE", "-i", "NONE", "-n", "-c", f"luafile {STORY}",
        env={**os.environ, "STORY": str(tmp_path / "story.json"), "HOME": str(tmp_path)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await asyncio.wait_for(process.communicate(), 600)
    assert (tmp_path / "out.json").exists(), output.decode()
    return json.loads((tmp_path / "out.json").read_text("utf-8"))


@pytest.mark.usefixtures("scripted")
async def test_the_story_in_neovim(
    neovim: str, tmp_path: Path, workspace: Path, database: Any, test_settings: dict[str, Any]
) -> None:
    (workspace / "model.py").write_text(MODEL, "utf-8")
    log = await tell(neovim, tmp_path, workspace, test_settings, ["Accept", "Reject"])
    assert log.get("failure") is None, log
    assert log["encoding"] == ("utf-16" if "0.7" in log["version"] else "utf-8")
    assert any("est." in label for label in log["hints"])
    assert all("est." in label for label in log["hints"] if "µs" in label)
    first, second = (answer["name"] for answer in log["answers"][:2])
    generated, reverted = log["texts"]
    assert guarded(first, "x") in generated
    assert guarded(second, "y") in generated
    assert '("😀", torch.softmax(x, dim=-1))' in reverted
    assert guarded(second, "y") in reverted
    assert any(line.startswith("begin EvoKernel") for line in log["progress"])
    assert any("attempt 1/30" in line for line in log["progress"])
    kinds = [kind for kind, _ in database.outcomes()]
    assert kinds.count("accepted") == 3  # two generated, one refined
    assert {"shown", "rejected", "reverted"} <= set(kinds)
    values = database.values()
    assert values["item-1"] > 0
    assert min(values.values()) < 0


@pytest.mark.usefixtures("scripted")
def test_the_documented_configuration_attaches(
    neovim: str, tmp_path: Path, workspace: Path, home: Path
) -> None:
    seen = attach(neovim, tmp_path, tmp_path / "models")
    assert seen["attached"], "the snippet attaches to Python files"
    assert seen["budget"] == 30
    needed, *rest = seen["diagnostics"]
    assert needed == "Nothing says the shapes of needy's inputs."
    known = ("Worth fusing: softmax, 12x, 412", "Worth fusing: program, 12x, 412")
    assert all(item.startswith(known) for item in rest), "the program around them comes a moment later"
    assert any(title.startswith("Generate NPU kernel (softmax: 12x  35 µs est.") for title in seen["titles"])


@pytest.mark.usefixtures("scripted")
def test_the_documented_configuration_trusts_no_other_folder(
    neovim: str, tmp_path: Path, workspace: Path, home: Path
) -> None:
    seen = attach(neovim, tmp_path, workspace)
    assert [item.split(":")[0] for item in seen["diagnostics"]] == [
        "This folder is not trusted, so nothing of it is run"
    ]
    assert [title for title in seen["titles"] if title.startswith(f"Trust {workspace} and run")]


def attach(neovim: str, tmp_path: Path, folder: Path) -> Any:
    """Opens a model of ``folder`` with the documented configuration."""
    folder.mkdir(exist_ok=True)
    (folder / "model.py").write_text(MODEL + "\n\ndef needy(x):\n    return torch.relu(x)\n", "utf-8")
    return run_documented(neovim, tmp_path, folder, DOCUMENTED)


def run_documented(neovim: str, tmp_path: Path, folder: Path, script: Path) -> Any:
    """Runs a script in Neovim with ``model.py`` of a folder and the documented configuration; gives what it
    writes to OUT. The home folder is ``tmp_path``."""
    init = tmp_path / "init.lua"
    init.write_text(neovim_configuration(neovim), "utf-8")
    path = os.pathsep.join((str(Path(EVOKERNEL).parent), os.environ["PATH"]))
    subprocess.run(
        [neovim, "--headless", "-i", "NONE", "-n", "-u", str(init), "model.py", "-c", f"luafile {script}"],
        env={**os.environ, "PATH": path, "HOME": str(tmp_path), "OUT": str(tmp_path / "out.json")},
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=240, check=True,
    )  # fmt: skip
    return json.loads((tmp_path / "out.json").read_text("utf-8"))


REVIEWED = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, y, z):
        # µ😀 before the operations: Neovim counts in utf-16
        first = ("😀", torch.softmax(x, dim=-1))
        second = ("😀", torch.softmax(y, dim=-1))
        third = ("😀", torch.softmax(z, dim=-1))
        return first[1], second[1], third[1]
"""


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("scripted")
def test_a_kernel_is_reviewed_with_code_actions_alone(
    neovim: str, tmp_path: Path, home: Path, database: Any
) -> None:
    models = tmp_path / "models"
    models.mkdir()
    (models / "model.py").write_text(REVIEWED, "utf-8")
    seen = run_documented(neovim, tmp_path, models, REVIEW)
    assert seen.get("failure") is None, seen
    steps = seen["steps"]
    (package,) = steps["accepted"]["packages"]
    name = Path(package).name
    for step, called in {"ready": 0, "accepted": 1, "undone": 0, "accepted again": 1}.items():
        expected = REVIEWED if not called else steps["accepted"]["text"]
        assert (steps[step]["text"].rstrip(), len(steps[step]["packages"])) == (expected.rstrip(), called), (
            step
        )
    assert guarded(name, "x") in steps["accepted"]["text"]
    page = seen["page"]
    assert Path(page["name"]).is_relative_to(home), "the page is the server's own file"
    for words in (
        "| this kernel | 55.0 µs estimated",
        f"+from evokernel_kernels import {name}",
        "x is float16",
    ):
        assert words in page["text"]
    question = seen["questions"][-1]
    assert "Hard to read" in question["answers"] and "what was wrong" in question["asked"]
    assert [title for title in seen["rejected"] if title.startswith("Generate NPU kernel (softmax")]
    assert not [title for title in seen["never"] if "softmax" in title]
    outcomes = [found for found in database.outcomes() if found[0] not in {"survived", "shown"}]
    assert outcomes == [
        ("ready", ""), ("opened_diff", ""), ("accepted", ""), ("reverted", "undo"), ("accepted", ""),
        ("ready", ""), ("snoozed", ""), ("rejected", ""), ("explained", "hard to read"),
        ("ready", ""), ("never", ""), ("offered_again", ""),
    ]  # fmt: skip
    assert (
        len([path for path in (models / "evokernel_kernels").iterdir() if path.name.startswith("softmax")])
        == 1
    )


@pytest.mark.thorough  # the same story as with the scripted worker; test_story has the real one
@pytest.mark.timeout(900)
async def test_the_story_in_neovim_with_the_real_worker(
    neovim: str, tmp_path: Path, workspace: Path, database: Any, test_settings: dict[str, Any]
) -> None:
    path = workspace / "model.py"
    path.write_text(REAL_MODEL, "utf-8")
    signals = tmp_path / "signals"
    signals.mkdir()
    settings = {**test_settings, "budget": 6, "leastGain": 0.002}
    telling = asyncio.ensure_future(
        tell(neovim, tmp_path, workspace, settings, ["Accept", "Reject"], signals)
    )
    helping = asyncio.ensure_future(bring_packages_back(path, database, signals))
    log = await telling
    helping.cancel()
    assert log.get("failure") is None, log
    assert any("est." in label for label in log["hints"])
    assert all("est." in label for label in log["hints"] if "µs" in label)
    assert "reverted" in [answer["status"] for answer in log["answers"]]
    assert '("😀", torch.softmax(x * 0.125, dim=-1))' in log["texts"][1]
    kinds = [kind for kind, _ in database.outcomes()]
    assert kinds.count("accepted") == 3
    assert {"shown", "rejected", "reverted"} <= set(kinds)
    assert any(q > 0 for q in database.values().values())


async def bring_packages_back(path: Path, database: Any, signals: Path) -> None:
    """Once a kernel was generated and refined, its slowest version returns, as by a checkout."""
    seen: set[str] = set()
    for number in (1, 2):
        await eventually(lambda n=number: database.jobs().count(("refine", "done")) == 2 * n - 1, 240.0)
        folders = {item.name for item in (path.parent / "evokernel_kernels").iterdir() if item.is_dir()}
        (name,) = {name for name in folders - seen if name.isidentifier() and not name.startswith("__")}
        seen |= folders
        bring_back_the_slowest(path, database.path, name)
        (signals / str(number)).touch()
