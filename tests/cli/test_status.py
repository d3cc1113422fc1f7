"""`evokernel status`: which accepted kernels of a file can run here, asked of the file's own Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from evokernel_core.cli.status import kernel_calls, summary
from evokernel_core.domain.errors import UsageError
from tests import warm

pytestmark = pytest.mark.usefixtures("warm_torch")
EXAMPLE = Path(__file__).parents[2] / "examples" / "triton"
NAME = "smoothed_cross_entropy_log_softmax_b0bbbf8f"


def status(folder: Path, *arguments: str, emulate: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "EVOKERNEL_HOME": str(folder / "home"), "CUDA_VISIBLE_DEVICES": ""}
    environment |= {"EVOKERNEL_EMULATE": "1"} if emulate else {}
    command = warm.evokernel("status", folder / "losses.py", *arguments)
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "project"))


CHANGES = {
    "nothing": "",
    "its file": "package changed",
    "its folder": "package missing",
    "the code": "code changed",
    "the device": "no GPU",
}


@pytest.mark.parametrize("changed", CHANGES)
def test_a_kernel_that_cannot_run_here_says_why(changed: str, example: Path) -> None:
    folder, file = example / "evokernel_kernels" / NAME, example / "losses.py"
    if changed == "its file":
        (folder / "kernel.py").write_text("# mine\n")
    if changed == "its folder":
        shutil.rmtree(folder)
    if changed == "the code":
        file.write_text(file.read_text().replace("= F.log_softmax", "= 2 * F.log_softmax"))
    done = status(example, "--json", emulate=changed != "the device")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["kernels"]
    assert (row["kernel"], row["absent"]) == (NAME, CHANGES[changed])


def test_what_people_read_is_one_sentence_and_a_row_for_each_call(example: Path) -> None:
    first, *rows = status(example).stdout.splitlines()
    assert first == "losses.py: 1 of 1 kernels can run here, if their guards hold"
    assert any(NAME in row and "34.6 estimated on nvidia_h200" in row and "yes" in row for row in rows)


@pytest.mark.parametrize("gone", ["report.py", "guards.py"])
def test_what_cannot_be_asked_is_one_sentence(gone: str, example: Path) -> None:
    (example / "evokernel_kernels" / gone).unlink()
    done = status(example)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    said = {
        "report.py": "was written by an earlier version",
        "guards.py": "cannot import the kernels of losses.py",
    }
    assert said[gone] in done.stderr


CALLS = {
    "from evokernel_kernels import a\nx = a.run(y) if a.holds(y) else y\n": {2: "a"},
    "from evokernel_kernels import (\n    b,\n    a,\n)\nb.run(1)\na.run(1)\nc.run(1)\n": {5: "b", 6: "a"},
    "a.run(1)\n": {},
    "": {},
}


@pytest.mark.parametrize("text", CALLS)
def test_the_calls_of_a_file(text: str) -> None:
    assert kernel_calls(text) == CALLS[text]


def test_no_python_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="no Python"):
        kernel_calls("def (")


def test_the_summary_counts_reasons() -> None:
    assert summary(["", "no NPU", "no NPU"]) == "1 of 3 kernels can run here; 2 not: no NPU (2)"
