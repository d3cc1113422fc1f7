"""`evokernel synth` on a small model, with nothing replaced: capture, kernels, twin, edit."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from evokernel_core.hardware.accuracy import error_of_quotient
from tests import warm

pytestmark = pytest.mark.usefixtures("warm_torch")

MODEL = """
import torch
from torch import nn


class Block(nn.Module):
    def forward(self, x):
        h = torch.relu(x) * 2.0 + 1.0
        return torch.fft.fft(h)


def get_inputs():
    return [torch.rand(512, 1024)]


def get_init_inputs():
    return []
"""
NORM = """\
import torch


# evokernel: x=f16[2048,4096], w=f16[4096]
def norm(x, w):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w
"""
NO_SHAPES = "import torch\n\n\ndef f(x):\n    return torch.relu(x) + 1\n"


def run(home: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"EVOKERNEL_HOME": str(home)}
    command = warm.evokernel(*arguments)
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def regions(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    data: dict[str, Any] = json.loads(done.stdout)
    found: list[dict[str, Any]] = data["regions"]
    return found


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "project" / "model.py"
    path.parent.mkdir()
    path.write_text(MODEL)
    return path


def test_from_file_to_applied_kernel_and_on(model: Path, tmp_path: Path) -> None:
    first = run(tmp_path / "home", "synth", model, "--budget", "3", "--json")
    assert first.returncode == 0, first.stderr
    (row,) = [row for row in regions(first) if row["status"] == "verified"]
    assert row["line"] == 8
    assert row["attempts"] == 3
    assert row["latency_source"] == "modelled"
    assert row["best_latency_us"] <= row["first_latency_us"]
    assert row["roofline_us"] <= row["best_latency_us"]
    staged = Path(row["kernel_dir"])
    assert (staged / "op_kernel.cpp").is_file()
    assert staged.is_relative_to(tmp_path / "home"), "to be read and verified, outside the project"
    assert model.read_text() == MODEL, "no edit unasked"
    assert not (model.parent / "evokernel_kernels").exists()

    second = run(tmp_path / "home", "synth", model, "--budget", "1", "--apply", "--json")
    (again,) = [row for row in regions(second) if row["status"] == "verified"]
    assert again["first_latency_us"] == row["best_latency_us"], "it starts from what the first run learned"
    folder = Path(again["kernel_dir"])
    assert (folder / "op_kernel.cpp").is_file()
    assert folder.parent == model.parent / "evokernel_kernels"
    assert f"{folder.name}.run(" in model.read_text()
    same_results(model)

    third = run(tmp_path / "home", "synth", model, "--budget", "1", "--json")
    assert not [row for row in regions(third) if row["status"] == "verified"], "nothing is left to replace"
    assert third.stderr.startswith("evokernel: Line "), "the line is said once"


def same_results(edited: Path) -> None:
    original = edited.with_name("original.py")
    original.write_text(MODEL)
    script = (
        "import torch, original, model\n"
        "x = torch.rand(48, 100)\n"
        "torch.testing.assert_close(model.Block()(x), original.Block()(x), {tolerance})\n"
        "import evokernel_kernels\n"
        "assert len(evokernel_kernels.calls()) == {kernels}\n"
    )
    for emulate, tolerance, kernels in (("", "rtol=0, atol=0", 0), ("1", "rtol=1e-5, atol=1e-6", 1)):
        code = script.format(tolerance=tolerance, kernels=kernels)
        done = warm.run(code, edited.parent, {**os.environ, "EVOKERNEL_EMULATE": emulate})
        assert done.returncode == 0, done.stderr


def test_the_unsupported_says_why(model: Path, tmp_path: Path) -> None:
    done = run(tmp_path / "home", "synth", model, "--line", "9", "--json")
    assert done.returncode == 1
    assert done.stderr.startswith("evokernel: ")
    assert all(row["status"] == "unsupported" and row["reason"] for row in regions(done))


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["--symbol", "Nothing"], "Nothing of model.py"),
        (["--symbol", "Block", "--line", "2"], "Block of line 2 of model.py"),
    ],
)
def test_a_place_without_tensor_code_is_named(
    model: Path, tmp_path: Path, arguments: list[str], place: str
) -> None:
    done = run(tmp_path / "home", "synth", model, *arguments)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"evokernel: No candidate in {place};")


def test_missing_shapes(tmp_path: Path) -> None:
    path = tmp_path / "plain.py"
    path.write_text(NO_SHAPES)
    done = run(tmp_path / "home", "synth", path, "--json")
    assert done.returncode == 1
    assert {row["status"] for row in regions(done)} == {"needs_shapes"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.py"], "does not exist"),
        (["--budget", "0"], "budget"),
        (["--chip", "ascend1", "model.py"], "choose one of"),
        (["--proposer", "llm", "model.py"], ""),
    ],
)
def test_wrong_usage(model: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    done = run(tmp_path / "home", "synth", *[model if item == "model.py" else item for item in arguments])
    assert done.returncode == 2
    assert message in done.stderr


def error_of(row: dict[str, Any]) -> float:
    assert row["baseline_source"] == "modelled"
    return error_of_quotient(row["baseline_interval"][0] / row["baseline_us"])


def test_a_kernel_that_gains_too_little_takes_its_name(tmp_path: Path) -> None:
    path = tmp_path / "plain.py"
    path.write_text("import torch\n\n\n# evokernel: x=f32[4096,4096]\ndef f(x):\n    return x + 1.0\n")
    before = path.read_text()
    done = run(tmp_path / "home", "synth", path, "--budget", "1", "--apply", "--json")
    (untried,) = regions(done)
    assert (untried["status"], untried["left_alone"], untried["attempts"]) == ("candidate", True, 0)
    assert untried["reason"].startswith("skipped: ") and "--all tries it" in untried["reason"]

    every = run(tmp_path / "home", "synth", path, "--budget", "1", "--apply", "--all", "--json")
    (row,) = regions(every)
    assert every.returncode == 0, every.stderr
    assert (row["status"], row["left_alone"], row["kernel_dir"]) == ("verified", True, None)
    assert row["gain"] <= error_of(row)
    assert row["reason"].startswith("skipped: ")
    assert path.read_text() == before
    shown = run(tmp_path / "home", "synth", path, "--budget", "1", "--apply", "--all")
    assert "gain" in shown.stdout
    assert f"f:6, {row['title']}: {row['reason']}" in shown.stdout
    began, tried, done_ = shown.stderr.splitlines()
    assert (began, tried) == ("plain.py: capturing its code with torch", "1 of 1 regions are tried")
    assert done_.startswith("[1 of 1] f:6, "), "a line for each region, without a terminal"

    named = run(tmp_path / "home", "synth", path, "--budget", "1", "--apply", "--json", "--line", row["line"])
    (again,) = regions(named)
    assert (again["left_alone"], Path(again["kernel_dir"]).is_dir()) == (False, True)
    assert "evokernel_kernels" in path.read_text()


def test_the_smallest_is_tried_first_and_told_in_source_order(tmp_path: Path) -> None:
    path = tmp_path / "two.py"
    bodies = {"large": "torch.softmax(x * 2, -1) + torch.exp(x)", "small": "x + 1.0"}
    functions = (
        f"# evokernel: x=f32[64,64]\ndef {name}(x):\n    return {body}\n" for name, body in bodies.items()
    )
    path.write_text("import torch\n\n\n" + "\n\n".join(functions))
    done = run(tmp_path / "home", "synth", path, "--budget", "1", "--all")
    told = [line.split()[3].partition(":")[0] for line in done.stderr.splitlines() if line.startswith("[")]
    assert told == ["small", "large"]
    assert 0 < done.stdout.index(" large:") < done.stdout.index(" small:")


def test_a_sentence_is_printed_once_with_its_lines(tmp_path: Path) -> None:
    text = "import torch\n\n\n# evokernel: x=f32[64,64]\ndef f(x):\n"
    path = tmp_path / "plain.py"
    path.write_text(f"{text}    y = torch.fft.fft(x)\n    z = torch.fft.fft(x)\n    return y, z\n")
    done = run(tmp_path / "home", "synth", path, "--single")
    (line,) = [line for line in done.stdout.splitlines() if "unsupported" in line]
    assert line.startswith("lines 6, 7: unsupported: Line 6 ")


def test_a_kernel_has_to_beat_the_vendors_operator(tmp_path: Path) -> None:
    path = tmp_path / "norm.py"
    path.write_text(NORM)
    done = run(tmp_path / "home", "synth", path, "--budget", "1", "--apply", "--all", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = regions(done)
    assert row["shape"] == "float16 [2048, 4096]"
    assert (row["vendor"], row["vendor_source"]) == ("torch_npu.npu_rms_norm", "modelled")
    assert row["vendor_us"] < row["baseline_us"]
    better = min(row["vendor_us"], row["baseline_us"])
    assert row["gain"] == pytest.approx(1 - row["best_latency_us"] / better, abs=1e-3)
    assert row["left_alone"] == (row["gain"] <= error_of(row))
    assert row["left_alone"] == (path.read_text() == NORM)
    assert not row["left_alone"] or "torch_npu.npu_rms_norm" in row["reason"]
    shown = run(tmp_path / "home", "synth", path, "--budget", "1", "--all").stdout
    assert "vendor us" in shown
    assert f"{row['vendor_us']:.1f} estimated" in shown


def test_what_a_model_would_be_asked_is_printed_and_not_sent(model: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    nowhere = ("--proposer", "hybrid", "--model-url", "http://127.0.0.1:9/v1", "--model", "none")
    exact = run(home, "synth", model, "--preview", "--json", *nowhere)
    assert exact.returncode == 0, exact.stderr
    question = json.loads(exact.stdout)["messages"][1]["content"]
    assert "aten.relu.default(x0)" in question
    named = run(home, "synth", model, "--preview", *nowhere).stdout
    assert re.match(
        r"Asked of none at http://127.0.0.1:9/v1: about \d+,\d+ tokens \(estimated\), for one ", named
    )
    assert question.strip() in named, "as text, with its line ends"
    assert re.search(r"^----- user message, about \d+,\d+ tokens -----$", named, re.MULTILINE)
    without = run(home, "synth", model, "--preview", "--proposer", "llm")
    assert without.returncode == 0, without.stderr
    assert without.stdout.startswith("Asked of no model yet at no endpoint yet: about ")
    names = ("model.py", "project", "Block.forward", str(tmp_path))
    assert not [word for word in names if word in exact.stdout + named + without.stdout]
    for none in (("--proposer", "llm"), ()):
        refused = run(home, "synth", model, "--preview", "--json", *none)
        assert refused.returncode == 2
        assert ("needs a model endpoint" if none else "nothing leaves") in refused.stderr
