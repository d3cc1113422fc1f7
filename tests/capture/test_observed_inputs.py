"""Captures of files that say nothing of their inputs, from what a program was seen to do with them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch

from evokernel_core.capture.client import AgentClient
from evokernel_core.capture.observations import ObservationStore
from evokernel_core.capture.observe import observe
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.region import Region, RegionStatus
from evokernel_core.targets.ascendc.target import ASCENDC
from tests.capture.edited import edited_module, runs

CONFIG = """
from dataclasses import dataclass

@dataclass
class Config:
    width: int = 16
    eps: float = 1e-5
"""
MODEL = """
import torch
from torch import nn
from .config import Config


def scaled(x, factor):
    return x * factor + 1.0


class Norm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Net(nn.Module):
    def __init__(self, config, act):
        super().__init__()
        self.norm = Norm(config.width, config.eps)
        self.act = act

    def forward(self, x, scale=1.0):
        return self.act(self.norm(x)) * scale


class Unused(nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1.0
"""
PROGRAM = """
import torch
from torch import nn
from pkg.config import Config
from pkg.model import Net, scaled

net = Net(Config(width=8), nn.SiLU())
for _ in range(3):
    net(torch.randn(4, 8))
net.half()(torch.randn(32, 8).half(), scale=2.0)
scaled(torch.randn(5), 2.0)
"""


def written(folder: Path) -> Path:
    (folder / "pkg").mkdir(parents=True, exist_ok=True)
    for name, text in {"pkg/__init__": "", "pkg/config": CONFIG, "pkg/model": MODEL, "run": PROGRAM}.items():
        (folder / f"{name}.py").write_text(text)
    return folder


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVOKERNEL_HOME", str(tmp_path / "home"))
    return written(tmp_path / "project")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a home in which the project's program was observed once."""
    folder = tmp_path_factory.mktemp("seen")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVOKERNEL_HOME", str(folder / "home"))
        run(written(folder / "project"))
    return folder


@pytest.fixture
def observed(seen: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project as its program was observed with it."""
    monkeypatch.setenv("EVOKERNEL_HOME", str(seen / "home"))
    return written(seen / "project")


def run(project: Path) -> None:
    finished = observe((sys.executable, str(project / "run.py")), [project], ObservationStore())
    assert finished.status == 0
    assert finished.run.observed


RUN_ALL = """
import runpy
import sys

import torch

for folder in sys.argv[1:]:
    sys.path.insert(0, folder)
    torch.set_default_dtype(torch.float32)
    runpy.run_path(f"{folder}/run.py", run_name="__main__")
    sys.path.remove(folder)
    for name in [name for name in sys.modules if name.split(".")[0] == "pkg"]:
        del sys.modules[name]
"""


@pytest.fixture(scope="module")
def all_seen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a project for each of ``PROGRAMS``, and a home in which all were observed in one run."""
    folder = tmp_path_factory.mktemp("all")
    (folder / "run_all.py").write_text(RUN_ALL)
    for name, files in PROGRAMS.items():
        project = written(folder / name)
        for file, text in files.items():
            (project / file).write_text(text)
    projects = [folder / name for name in PROGRAMS]
    command = (sys.executable, str(folder / "run_all.py"), *map(str, projects))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVOKERNEL_HOME", str(folder / "home"))
        finished = observe(command, projects, ObservationStore())
    assert finished.status == 0
    return folder


@pytest.fixture
def program(all_seen: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """The project of a name, as its program was observed with it."""
    monkeypatch.setenv("EVOKERNEL_HOME", str(all_seen / "home"))
    return all_seen.joinpath


def captured(agent: AgentClient, project: Path, fusible: Mapping[str, str]) -> dict[str, list[Region]]:
    regions: dict[str, list[Region]] = {}
    for region in agent.capture(project / "pkg" / "model.py", None, fusible):
        regions.setdefault(region.symbol, []).append(region)
    return regions


def shapes(region: Region) -> list[tuple[Any, str]]:
    assert region.task is not None
    sizes = region.task.sizes
    specs = (item.spec for item in region.task.graph.inputs if item.expression == "x")
    return [(spec.sizes(sizes), spec.dtype) for spec in specs]


def test_every_observed_definition_gets_regions(
    agent: AgentClient, observed: Path, fusible: dict[str, str]
) -> None:
    found = captured(agent, observed, fusible)
    (norm,) = found["Norm.forward"]
    assert shapes(norm) == [((4, 8), "float32")]  # the most frequent call
    assert shapes(found["scaled"][0]) == [((5,), "float32")]
    assert [item.status for item in found["Net.forward"]] == [RegionStatus.CANDIDATE]
    (unused,) = found["Unused"]
    assert unused.status is RegionStatus.NEEDS_SHAPES
    assert "evokernel observe -- COMMAND" in unused.reason


def test_parameters_have_the_type_that_they_had(
    agent: AgentClient, program: Callable[[str], Path], fusible: dict[str, str]
) -> None:
    (norm,) = captured(agent, program("half"), fusible)["Norm.forward"]
    assert shapes(norm) == [((32, 8), "float16")]


def test_suppliers_of_the_file_come_first(
    agent: AgentClient, observed: Path, fusible: dict[str, str]
) -> None:
    model = observed / "pkg" / "model.py"
    supplied = "\n\ndef get_inputs():\n    return [torch.rand(3, 7)]\n"
    model.write_text(MODEL.replace("class Unused", "class Model") + supplied)
    found = captured(agent, observed, fusible)
    assert shapes(found["Model.forward"][0]) == [((3, 7), "float32")]
    assert shapes(found["Norm.forward"][0]) == [((4, 8), "float32")]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("def __init__(self, width, eps):", "def __init__(self, width, eps, more):", "missing 1 required"),
        ("class Norm", "class Other", "it has no Norm"),
        ("from .config import Config", "from .config import Config\nConfig.__init__ = None", ""),
    ],
)
def test_what_no_longer_fits_costs_a_sentence(
    agent: AgentClient, observed: Path, fusible: dict[str, str], old: str, new: str, words: str
) -> None:
    model = observed / "pkg" / "model.py"
    model.write_text(MODEL.replace(old, new))
    found = captured(agent, observed, fusible)
    assert found["scaled"][0].status is RegionStatus.CANDIDATE
    for region in chain.from_iterable(found.values()):
        assert region.status is RegionStatus.CANDIDATE or region.reason.endswith(".")
    if words and "Norm" in found:
        assert words in found["Norm"][0].reason
        assert "Run evokernel observe again" in found["Norm"][0].reason
        assert "the program changes what the file imports" in found["Norm"][0].reason


def test_what_has_no_name_is_asked_for(
    agent: AgentClient, program: Callable[[str], Path], fusible: dict[str, str]
) -> None:
    (net,) = captured(agent, program("nameless"), fusible)["Net"]
    assert "a function that has no name that reaches it" in net.reason
    assert "get_inputs() and get_init_inputs()" in net.reason


def test_a_script_that_trains_on_data_is_observed(
    agent: AgentClient, project: Path, fusible: dict[str, str]
) -> None:
    """Classes of the script itself, whose own run in the agent ends at its command line."""
    text = MODEL.replace("from .config", "from pkg.config")
    script = project / "train.py"
    script.write_text(
        f"import argparse, sys\n{text}\n"
        "parser = argparse.ArgumentParser()\nparser.add_argument('width', type=int)\n"
        "args = parser.parse_args()\nNet(Config(args.width), nn.Tanh())(torch.randn(2, args.width))\n"
    )
    finished = observe((sys.executable, str(script), "8"), [project], ObservationStore())
    assert finished.status == 0
    regions = agent.capture(script, None, fusible)
    good = {item.symbol for item in regions if item.status is RegionStatus.CANDIDATE}
    assert good == {"Norm.forward", "Net.forward"}


GATES = """
import torch


def gated(a, b):
    return torch.sigmoid(a) * b + 1.0


def spaced(a, step):
    return torch.sigmoid(a) * (torch.arange(a.shape[-1]) * step)
"""
SET_DEFAULT = """
import torch

torch.set_default_dtype(torch.bfloat16)

from pkg.gates import gated, spaced

gated(torch.randn(3, 4), torch.randn(3, 4))
spaced(torch.randn(3, 4), 0.5)
"""


@pytest.fixture
def default_dtype() -> Iterator[None]:
    yield
    torch.set_default_dtype(torch.float32)


def gates_of(agent: AgentClient, project: Path, fusible: Mapping[str, str]) -> dict[str, list[Region]]:
    regions: dict[str, list[Region]] = {}
    for region in agent.capture(project / "pkg" / "gates.py", None, fusible):
        regions.setdefault(region.symbol, []).append(region)
    return regions


def test_a_kernel_holds_under_the_default_dtype_of_the_program(
    agent: AgentClient, program: Callable[[str], Path], fusible: dict[str, str], default_dtype: None
) -> None:
    """Programs of large models set it to half precision in their first lines."""
    (region,) = gates_of(agent, program("set default"), fusible)["gated"]
    assert region.site is not None and region.site.default_dtype == "bfloat16"
    model = edited_module(GATES, region)
    a = torch.randn(3, 4, dtype=torch.bfloat16)
    model.gated(a, a)
    assert not runs(model)
    torch.set_default_dtype(torch.bfloat16)
    torch.testing.assert_close(model.gated(a, a), torch.sigmoid(a) * a + 1.0)
    assert runs(model)


def test_a_float_of_the_default_dtype_gets_a_sentence(
    agent: AgentClient, program: Callable[[str], Path], fusible: dict[str, str], default_dtype: None
) -> None:
    """A number times integers is of another type in a kernel, which is verified under the usual default."""
    found = gates_of(agent, program("set default"), fusible)["spaced"]
    assert any("torch.set_default_dtype" in item.reason for item in found)
    torch.set_default_dtype(torch.bfloat16)
    model = edited_module(GATES, *(item for item in found if item.task))
    a = torch.randn(3, 4)
    assert model.spaced(a, 0.5).dtype is torch.bfloat16


def test_runs_that_disagree_are_taken_under_the_usual_default(
    agent: AgentClient, project: Path, fusible: dict[str, str]
) -> None:
    both = (
        SET_DEFAULT + "torch.set_default_dtype(torch.float32)\ngated(torch.randn(5, 4), torch.randn(5, 4))\n"
    )
    (project / "run.py").write_text(both)
    (project / "pkg" / "gates.py").write_text(GATES)
    run(project)
    (region,) = gates_of(agent, project, fusible)["gated"]
    assert region.site is not None and region.site.default_dtype == "float32"


CACHED = """
import torch
from torch import nn


class Cached(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(8, 4))

    def forward(self, x, position):
        y = torch.sigmoid(x) * x + 1.0
        self.cache[position : position + 1] = y
        return self.cache * y
"""


def cached(*positions: int) -> dict[str, str]:
    """A project's files with a program that calls at these positions."""
    calls = "".join(f"cached(torch.randn(1, 4), {position})\n" for position in positions)
    text = f"import torch\nfrom pkg.cached import Cached\n\ncached = Cached()\n{calls}"
    return {"run.py": text, "pkg/cached.py": CACHED}


TOOLS = """
import functools


class Mixin:
    pass


def same(cls):
    return cls


def subclass(cls):
    class Registered(cls):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.made_with = (args, kwargs)

    Registered.__name__ = cls.__name__
    return Registered


def updated(cls):
    return functools.update_wrapper(subclass(cls), cls, updated=())


def by_type(cls):
    return type(cls.__name__, (Mixin, cls), {})


def by_forward(cls):
    class Doubled(cls):
        def forward(self, x):
            return super().forward(x) * 2

    return Doubled


def factory(cls):
    @functools.wraps(cls, updated=())
    def make(*args, **kwargs):
        return cls(*args, **kwargs)

    return make


def partial(cls):
    return functools.partial(cls, scale=3.0)
"""
DECORATORS = (
    "same", "subclass", "updated", "by_type", "by_forward", "factory", "partial",
    "subclass subclass", "by_type subclass", "factory subclass", "subclass same by_type",
)  # fmt: skip
"""Of classes, as programs have them: those that register a class, keep what it is made with, or give another
one in its place."""


def decorated() -> str:
    """A class for each decorator, with a number as its name."""
    classes = [
        "".join(f"@tools.{name}\n" for name in decorators.split())
        + f"class Net{number}(nn.Module):\n    def __init__(self, dim=8, scale=1.0):\n"
        "        super().__init__()\n        self.norm = nn.LayerNorm(dim)\n"
        "        self.scale = scale\n\n    def forward(self, x):\n"
        "        return torch.sigmoid(self.norm(x)) * torch.tanh(x)\n"
        for number, decorators in enumerate(DECORATORS)
    ]
    return "import torch\nfrom torch import nn\nfrom pkg import tools\n\n\n" + "\n\n".join(classes)


DECORATED = decorated()
MAKE_ALL = "import torch\nfrom pkg import decorated\n\nfor number in range(NUMBER):\n"
MAKE_ALL += "    getattr(decorated, f'Net{number}')(dim=16)(torch.randn(4, 16))\n"
PROGRAMS: Mapping[str, Mapping[str, str]] = {
    "decorated": {
        "pkg/tools.py": TOOLS,
        "pkg/decorated.py": DECORATED,
        "run.py": MAKE_ALL.replace("NUMBER", str(len(DECORATORS))),
    },
    "half": {"run.py": PROGRAM.replace("range(3)", "range(0)")},
    "nameless": {"run.py": PROGRAM.replace("nn.SiLU()", "lambda x: x")},
    "set default": {"run.py": SET_DEFAULT, "pkg/gates.py": GATES},
    "positions 0 1 2": cached(0, 1, 2),
    "positions 1 1 2": cached(1, 1, 2),
}
"""What differs from the project above, by the name of a project."""


@pytest.mark.parametrize("positions", ["positions 0 1 2", "positions 1 1 2"])
def test_a_number_that_differs_from_call_to_call_is_not_taken_for_good(
    agent: AgentClient, program: Callable[[str], Path], positions: str
) -> None:
    """A kernel of one position in a text would run once in it; one of most calls is worth having."""
    regions = agent.capture(program(positions) / "pkg" / "cached.py", None, covered_ops(ASCENDC), whole=True)
    texts = [item.source for item in regions if item.task]
    if positions == "positions 1 1 2":
        assert any("self.cache[position" in text for text in texts)
    else:
        assert any("torch.sigmoid" in text for text in texts)
        assert not any("self.cache[position" in text for text in texts)
        assert any("Its position was another number" in item.reason for item in regions)


@pytest.fixture(scope="module")
def of_decorated(agent: AgentClient, all_seen: Path) -> Mapping[str, Region]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVOKERNEL_HOME", str(all_seen / "home"))
        regions = agent.capture(all_seen / "decorated" / "pkg" / "decorated.py", None, covered_ops(ASCENDC))
    return {region.symbol: region for region in regions}


@pytest.mark.parametrize("number", range(len(DECORATORS)), ids=DECORATORS)
def test_a_decorator_does_not_hide_a_class(of_decorated: Mapping[str, Region], number: int) -> None:
    region = of_decorated.get(f"Net{number}.forward")
    assert region is not None, of_decorated.get(f"Net{number}")
    assert region.status is RegionStatus.CANDIDATE, region.reason
    assert shapes(region) == [((4, 16), "float32")]


@pytest.mark.parametrize("number", range(len(DECORATORS)), ids=DECORATORS)
def test_a_comment_speaks_of_the_class_below_its_decorators(
    with_comments: Mapping[str, Region], number: int
) -> None:
    region = with_comments.get(f"Net{number}.forward")
    assert region is not None, with_comments.get(f"Net{number}")
    assert shapes(region) == [((2, 32), "float32")]


@pytest.fixture(scope="module")
def with_comments(agent: AgentClient, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Region]:
    folder = written(tmp_path_factory.mktemp("comments"))
    (folder / "pkg" / "tools.py").write_text(TOOLS)
    file = folder / "pkg" / "decorated.py"
    file.write_text(DECORATED.replace("(nn.Module):", "(nn.Module):  # evokernel: x=f32[2,32], dim=32"))
    return {region.symbol: region for region in agent.capture(file, None, covered_ops(ASCENDC))}
