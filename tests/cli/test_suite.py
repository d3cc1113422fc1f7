"""Which files of a folder are problems, in which order, and what they are called."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from evokernel_core.cli.main import cli
from evokernel_core.domain.errors import UsageError
from evokernel_core.synthesis.suite import labels, suite_of

pytestmark = pytest.mark.usefixtures("warm_torch")

PROBLEM = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1


def get_inputs():
    return [torch.rand(40, 33)]
"""
HELPER = "import reference\n\n\ndef check():\n    return reference.get_inputs()\n"


def written(folder: Path, *names: str, text: str = PROBLEM) -> Path:
    for name in names:
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def keys(folder: Path, *levels: int, pattern: str = "*") -> list[str]:
    return [problem.key for problem in suite_of(folder, levels, pattern).problems]


def test_problems_come_in_the_order_of_their_folders_and_numbers(tmp_path: Path) -> None:
    written(tmp_path, "level10/1_a", "level1/10_late", "level1/2_early", "level2/1_other")
    assert keys(tmp_path) == ["level1/2_early", "level1/10_late", "level2/1_other", "level10/1_a"]
    assert keys(tmp_path, 1, 10) == ["level1/2_early", "level1/10_late", "level10/1_a"]
    assert keys(tmp_path, pattern="*_o*") == ["level2/1_other"]
    assert keys(tmp_path, pattern="2_early") == ["level1/2_early"]
    assert keys(tmp_path / "level2") == ["level2/1_other"]
    assert keys(tmp_path / "level2", 2) == ["level2/1_other"]
    assert keys(tmp_path / "level2" / "1_other.py") == ["/1_other"]


def test_folders_below_folders_are_part_of_the_suite(tmp_path: Path) -> None:
    written(tmp_path, "tasks/level_1/task_10/forward", "tasks/level_1/task_9/forward", "tasks/level_2/one")
    found = suite_of(tmp_path)
    names = ["tasks/level_1/task_9/forward", "tasks/level_1/task_10/forward", "tasks/level_2/one"]
    assert [problem.key for problem in found.problems] == names
    assert list(labels(found.problems).values()) == [*sorted(names[:2])[::-1], "one"]
    assert keys(tmp_path, 2) == names[2:]


def test_what_is_no_problem_is_left_out(tmp_path: Path) -> None:
    written(tmp_path, "math/a", "math/__init__", "_old/b", ".hidden/c", "venv/lib/d")
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    (tmp_path / "notes.txt").touch()
    os.mkfifo(tmp_path / "pipe.py")
    assert keys(tmp_path) == ["math/a"]


def test_links_that_lead_in_circles_are_followed_once(tmp_path: Path) -> None:
    written(tmp_path, "math/a")
    (tmp_path / "math" / "up").symlink_to(tmp_path)
    (tmp_path / "again").symlink_to(tmp_path / "math")
    (tmp_path / "self").symlink_to("self")
    assert keys(tmp_path) == ["math/a"]


@pytest.mark.parametrize(
    "text",
    [
        "from shared import *\n",
        "from shared import get_inputs\n",
        "import shared\nget_inputs = shared.inputs\n",
        "def forward(x):\n    return x + 1\n\n\ndef get_input_groups():\n    return []\n",
        "# evokernel: x=f16[32,1024]\ndef forward(x):\n    return x + 1\n",
        "import torch.nn as nn\n\n\nclass Net(nn.Module):\n    pass\n",
        "def f(:\n",
    ],
)
def test_helpers_are_told_from_problems(tmp_path: Path, text: str) -> None:
    written(tmp_path, "one/reference")
    written(tmp_path, "one/check", text=HELPER)
    written(tmp_path, "one/other", text=text)
    found = suite_of(tmp_path)
    assert [problem.file.stem for problem in found.problems] == ["other", "reference"]
    assert [file.stem for file in found.helpers] == ["check"]


def test_where_no_file_is_a_problem_each_says_why(tmp_path: Path) -> None:
    written(tmp_path, "check", text=HELPER)
    assert keys(tmp_path) == ["/check"]


def test_a_suite_without_problems_says_what_to_correct(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no Python files"):
        suite_of(tmp_path)
    written(tmp_path, "level1/1_a")
    with pytest.raises(UsageError, match="named level7; correct --levels"):
        suite_of(tmp_path, (7,))
    with pytest.raises(UsageError, match=r"matches 'nothing\*'.*correct --filter"):
        suite_of(tmp_path, (), "nothing*")


def test_odd_names_and_a_mark_of_utf_8(tmp_path: Path) -> None:
    suite = written(tmp_path / "a suite", "\u7b97\u5b50/soft max (1)", "\u7b97\u5b50/b")
    written(suite, "other/b", text="\ufeff" + PROBLEM.replace("relu", "tanh"))
    written(suite, "other/check", text=HELPER)
    done = CliRunner().invoke(cli, ["bench", str(suite), "--budget", "1", "--json", "-"])
    problems = json.loads(done.stdout)["problems"]
    assert all(item["feasible"] for item in problems), problems
    assert [item["level"] for item in problems] == ["other", "\u7b97\u5b50", "\u7b97\u5b50"]
    assert "Left out, for want of inputs and of a module: other/check.py." in done.stderr
    assert "other/b: " in done.stderr
