"""`evokernel observe`: a program runs as it is, and what it showed is kept, listed and forgotten."""

from __future__ import annotations

import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests import warm

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.line = nn.Linear(width, width)

    def forward(self, x, *, scale=1.0):
        return torch.relu(self.line(x)) * scale


def doubled(x, factor: float = 2.0):
    \"\"\"Twice.\"\"\"
    return x * factor
"""
CALL = "import torch\nfrom net import Net\nNet(4)(torch.randn(2, 4), scale=3.0)\n"

PREPARED = """
import importlib.machinery, runpy, sys

sys.modules.pop("sitecustomize", None)
import sitecustomize

importlib.machinery.SourceFileLoader("torch", {empty!r}).exec_module(sys.modules["torch"])
sys.argv = [{script!r}]
runpy.run_path({script!r}, run_name="__main__")
"""
"""A script in a process that has imported torch: it begins as Python does, and hears of torch's import."""

Done = subprocess.CompletedProcess[str]


class Project:
    """A folder with a model, and a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder / "project", folder / "home"
        self.folder.mkdir()
        self.write("net", NET)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def environment(self) -> dict[str, str]:
        return os.environ | {"EVOKERNEL_HOME": str(self.home)}

    def evokernel(self, *arguments: object) -> Done:
        return subprocess.run(
            warm.evokernel("observe", *arguments), cwd=self.folder, env=self.environment(),
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    def run(self, *command: object) -> Done:
        return self.evokernel("--", *command)

    def prepared(self, script: str = "run.py") -> list[str]:
        """A command that runs a script without the seconds that torch's import takes."""
        empty = self.folder.with_name("empty.py")
        empty.touch()
        return [warm.interpreter(), "-c", PREPARED.format(empty=str(empty), script=script)]

    def known(self) -> dict[str, list[dict[str, Any]]]:
        """The observations by definition."""
        found: dict[str, list[dict[str, Any]]] = {}
        for file in json.loads(self.evokernel("--list", "--json").stdout):
            for item in file["observations"]:
                found.setdefault(item["qualname"], []).append(item)
        return found


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_script_is_observed_listed_and_forgotten(project: Project) -> None:
    project.write("run", CALL + "print('out')\nraise SystemExit(7)\n")
    done = project.run(sys.executable, "run.py")
    assert (done.returncode, done.stdout) == (7, "out\n")
    assert f"observed Net of {project.folder / 'net.py'}" in done.stderr
    (net,) = project.known()["Net"]
    assert net["built"]["args"] == [4]
    assert net["call"]["kwargs"] == {"scale": 3.0}
    assert net["call"]["args"][0]["tensor"]["shape"] == [2, 4]
    assert "f32[2,4], scale=3.0" in project.evokernel("--show", "net.py").stdout
    assert "Nothing is known" in project.evokernel("--list", "elsewhere.py").stdout
    assert_kept_for_the_person_alone(project)
    assert "1 files" in project.evokernel("--forget").stdout
    assert project.known() == {}


def assert_kept_for_the_person_alone(project: Project) -> None:
    folder = project.home / "cache" / "observations"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not [item for item in project.folder.rglob("*") if item.suffix not in (".py", ".pyc", "")]


_SPAWN = """
import multiprocessing


def work(width):
    {call}


if __name__ == "__main__":
    process = multiprocessing.get_context({method!r}).Process(target=work, args=(4,))
    process.start()
    process.join()
"""
_IN_WORK = "import torch; from net import Net; Net(4)(torch.randn(2, 4), scale=3.0)"


@pytest.mark.parametrize(
    ("text", "options"),
    [(CALL, ["-m", "run"]), (_SPAWN.format(call=_IN_WORK, method="spawn"), ["run.py"])],
    ids=["module", "spawn"],
)
def test_any_command_is_observed(project: Project, text: str, options: list[str]) -> None:
    project.write("run", text)
    assert_observed(project, [sys.executable, *options])


def assert_observed(project: Project, command: list[str]) -> None:
    done = project.run(*command)
    assert done.returncode == 0, done.stderr
    assert [item["call"]["kwargs"] for item in project.known()["Net"]] == [{"scale": 3.0}]


@pytest.mark.parametrize(
    "text",
    [
        _SPAWN.format(call=_IN_WORK, method="fork"),
        f"import threading\ndef f():\n    {_IN_WORK}\nt = threading.Thread(target=f)\nt.start()\nt.join()\n",
        "import pytest\nraise SystemExit(pytest.main(['-q', 'test_net.py']))\n",
    ],
    ids=["fork", "thread", "pytest"],
)
def test_all_that_a_program_does_is_observed(
    project: Project, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    project.write("run", text)
    project.write("test_net", f"def test():\n    {_IN_WORK}\n")
    assert_observed(project, project.prepared())


def test_what_a_program_starts_is_observed(project: Project) -> None:
    project.write("inner", CALL)
    project.write("run", f"import subprocess\nsubprocess.run({project.prepared('inner.py')!r})\n")
    assert_observed(project, [sys.executable, "run.py"])


def test_what_a_shell_starts_is_observed(project: Project) -> None:
    project.write("run", CALL)
    assert_observed(project, ["sh", "-c", shlex.join(project.prepared())])


def test_distinct_calls_are_counted_and_bounded(project: Project) -> None:
    project.write(
        "run",
        "import torch\nfrom net import Net, doubled\nnet = Net(4)\n"
        "for n in [1] * 200 + list(range(2, 30)):\n    net(torch.randn(n, 4))\n"
        "net.eval()\ndoubled(torch.ones(3), 4.0)\ndoubled(5)\n",
    )
    project.run(*project.prepared())
    found = project.known()
    assert len(found["Net"]) == 8
    assert found["Net"][0]["count"] > 150
    assert [item["call"]["args"][1:] for item in found["doubled"]] == [[4.0]]


def test_a_call_in_another_mode_is_seen_after_many(project: Project) -> None:
    project.write(
        "run",
        "import torch\nfrom net import Net\nnet = Net(4)\nfor n in range(500):\n    net(torch.randn(2, 4))\n"
        "net.eval()(torch.randn(9, 4))\n",
    )
    project.run(*project.prepared())
    assert {(item["training"], item["call"]["args"][0]["tensor"]["shape"][0])
            for item in project.known()["Net"]} == {(True, 2), (False, 9)}  # fmt: skip


def test_the_program_sees_no_difference(project: Project) -> None:
    project.write(
        "run",
        "import copy, inspect, pickle, sys\nimport torch\nfrom net import Net, doubled\n"
        "net = Net(4)\nnet(torch.zeros(1, 4))\ncopied = copy.deepcopy(net)\ncopied(torch.zeros(1, 4))\n"
        "print(inspect.signature(doubled), inspect.getfullargspec(doubled), doubled.__doc__)\n"
        "print(inspect.signature(Net), inspect.getsource(doubled), doubled.__code__.co_varnames)\n"
        "print(sorted(vars(net)), [p for p in sys.path if 'startup' in p])\n"
        "print(torch.jit.script(doubled)(torch.ones(2), 3.0))\nprint(type(pickle.loads(pickle.dumps(net))))\n"
        "try:\n    Net(4, 5)\nexcept TypeError as error:\n    print(error)\n"
        "try:\n    Net(4)(torch.zeros(1, 5))\nexcept RuntimeError as error:\n    print(error)\n",
    )
    begin = "import runpy; runpy.run_path('run.py', run_name='__main__')"
    plain = warm.run(begin, project.folder, os.environ)
    assert plain.returncode == 0, plain.stderr
    done = project.run(sys.executable, "run.py")
    assert done.stdout == plain.stdout


def test_copies_are_built_like_their_originals(project: Project) -> None:
    project.write(
        "run",
        "import copy, torch\nfrom torch import nn\nfrom net import Net\n"
        "layers = nn.ModuleList([copy.deepcopy(Net(4)) for _ in range(2)])\nlayers[1](torch.randn(2, 4))\n",
    )
    project.run(*project.prepared())
    (net,) = project.known()["Net"]
    assert net["built"]["args"] == [4]


@pytest.mark.parametrize(
    ("changed", "seen"),
    [
        ("pass", {"Net"}),
        ("def __call__(self, x):\n            return nn.Module.__call__(self, x)", {"Net"}),
        ("def forward(self, x):\n            return x", set()),
        ("def __init__(self):\n            super().__init__(4)", set()),
    ],
)
def test_a_subclass_shows_the_class_whose_code_it_runs(
    project: Project, changed: str, seen: set[str]
) -> None:
    """Where it is made in a function, no name reaches it; what differs is none of the class's."""
    text = f"def make():\n    class Own(Net):\n        {changed}\n    return Own"
    given = "" if "__init__" in changed else "4"
    imports = "import torch\nfrom torch import nn\nfrom net import Net\n"
    project.write("run", f"{imports}{text}\nmake()({given})(torch.ones(2, 4))\n")
    assert project.run(*project.prepared()).returncode == 0
    assert set(project.known()) == seen


def test_the_environments_own_sitecustomize_still_runs(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("site/sitecustomize", "import builtins\nbuiltins.MARK = 'customised'\n")
    project.write("run", CALL + "print(MARK)\n")
    monkeypatch.setenv("PYTHONPATH", f"{project.folder / 'site'}:{os.environ.get('PYTHONPATH', '')}")
    done = project.run(sys.executable, "run.py")
    assert done.stdout == "customised\n", done.stderr
    assert "Net" in project.known()


@pytest.mark.parametrize("flags", [["-I"], ["-E"], ["-uS"], ["-W", "ignore", "-I"]])
def test_an_interpreter_that_ignores_its_environment_is_refused(project: Project, flags: list[str]) -> None:
    project.write("run", CALL)
    done = project.run(sys.executable, *flags, "run.py")
    assert done.returncode == 2
    assert "out for this run." in done.stderr


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        (["true"], 0, "ran no Python that could be observed"),
        ([sys.executable, "-c", "pass"], 0, "did not import torch"),
        (["no-such-program"], 2, "is no program that can be found"),
        ([], 2, "There is no command to observe"),
        ([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], 137, "was ended by SIGKILL before"),
        ([sys.executable, "-c", "raise SystemExit(1)"], 1, "failed (exit status 1) before it called"),
        ([sys.executable, "no_such.py"], 2, "no_such.py failed (exit status 2) before it called"),
        (["sh", "-c", "exit 130"], 130, "was ended by SIGINT before"),
        (["false"], 1, "false failed (exit status 1) before it called"),
    ],
)
def test_a_run_that_shows_nothing_says_why(
    project: Project, command: list[str], status: int, words: str
) -> None:
    done = project.run(*command)
    assert (done.returncode, words in done.stderr) == (status, True), done.stderr
    assert "Traceback" not in done.stderr


def test_a_program_without_a_call_in_the_workspace_says_where_it_was_looked_for(project: Project) -> None:
    project.write("run", "import torch\n")
    done = project.run(*project.prepared())
    assert (done.returncode, "was called: name its folder" in done.stderr) == (0, True), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("end", "status"),
    [("raise SystemExit(3)", 3), ("1 / 0", 1), ("Net(4)(torch.ones(2, 5))", 1), ("Net()", 1)],
)
def test_a_program_that_fails_is_named_as_such(project: Project, end: str, status: int) -> None:
    project.write("run", f"import torch\nfrom net import Net\n{end}\n")
    done = project.run(*project.prepared())
    assert done.returncode == status
    told = done.stderr.splitlines()[-1] if "Net(4)" not in end else done.stderr
    assert f"failed (exit status {status})" in told
    assert "--workspace" not in done.stderr
    assert ("before it called" in told) == ("Net(4)" not in end)


def test_what_a_program_called_before_it_failed_is_kept(project: Project) -> None:
    project.write("run", CALL + "1 / 0\n")
    done = project.run(*project.prepared())
    assert "failed (exit status 1); what it called until then is kept." in done.stderr
    assert "Net" in project.known()


def test_folders_that_modules_come_from_are_noted(project: Project) -> None:
    """What a program has in PYTHONPATH, or adds to Python's path, a capture looks through too."""
    project.write("lib/shared/ops", "def twice(x):\n    return x * 2\n")
    project.write(
        "app/other", NET.replace("import torch\n", "import torch\nfrom shared.ops import twice\n", 1)
    )
    project.write(
        "run", "import sys\nsys.path += ['lib', 'app', '/usr/lib']\n" + CALL.replace("net ", "other ")
    )
    project.run(*project.prepared())
    (net,) = project.known()["Net"]
    assert [Path(item) for item in net["paths"]][-2:] == [project.folder / "lib", project.folder / "app"]
    assert all(Path(item).is_relative_to(project.folder) for item in net["paths"])


def test_a_terminated_run_keeps_what_it_showed(project: Project) -> None:
    ready = project.folder / "ready"
    project.write("run", f"{CALL}open({str(ready)!r}, 'w').close()\nimport time\ntime.sleep(600)\n")
    start = "from evokernel_core.cli.main import main; main()"
    command = [sys.executable, "-c", start, "observe", "--", *project.prepared()]
    process = subprocess.Popen(command, cwd=project.folder, env=project.environment())
    while not ready.exists():
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 128 + signal.SIGTERM
    assert "Net" in project.known()


def test_our_packages_are_no_files_of_the_project(project: Project) -> None:
    project.write("evokernel_kernels/net2", NET)
    project.write("run", CALL.replace("net ", "evokernel_kernels.net2 ") + CALL)
    assert "observed Net of" in (said := project.run(*project.prepared()).stderr)
    assert "net.py" in said and "net2.py" not in said


def test_installed_packages_are_looked_at_only_when_named(project: Project) -> None:
    project.write("lib/site-packages/net2", NET)
    project.write("run", "import sys\nsys.path.append('lib/site-packages')\n" + CALL.replace("net ", "net2 "))
    assert "was called: name its folder" in project.run(*project.prepared()).stderr
    done = project.evokernel("--include", "lib/site-packages", "--", *project.prepared())
    assert "observed Net" in done.stderr


def test_a_program_whose_journal_cannot_be_written_runs_on(project: Project) -> None:
    """Nothing of ours may reach the program, not even a full or missing disk."""
    project.write(
        "run", "import os, shutil\nshutil.rmtree(os.environ['EVOKERNEL_OBSERVE'])\n" + CALL + "print('end')\n"
    )
    done = project.run(*project.prepared())
    assert (done.returncode, done.stdout) == (0, "end\n")
    assert "Traceback" not in done.stderr
