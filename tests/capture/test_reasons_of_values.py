"""Code that is right for tensors with elements is never called wrong because those of a capture have none."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.targets.ascendc.target import ASCENDC

HEAD = """
import copy
import io
import pickle

import torch
from torch import nn


OFFSETS = torch.tensor([0, *torch.tensor([2, 3, 1, 4, 5]).cumsum(0).tolist()])
"""
BODIES = {
    "deep_copy_of_a_layer": "layer = nn.Linear(6, 6)\nreturn copy.deepcopy(layer)(x)",
    "deep_copy": "return copy.deepcopy(x.detach()) * 2",
    "pickled": "return pickle.loads(pickle.dumps(x)) * 2",
    "saved": "file = io.BytesIO()\ntorch.save(x, file)\nfile.seek(0)\nreturn torch.load(file) * 2",
    "pointer": "return torch.relu(x) if x.data_ptr() % 2 == 0 else x",
    "storage": "return x * x.untyped_storage()[0]",
    "array": "return torch.from_numpy(x.numpy() * 2)",
    "listed": "return torch.tensor(x.tolist()) * 2",
    "element": "return x * float(x[0, 0])",
    "truth": "return torch.relu(x) if x.sum() > 0 else x",
    "written": "name = f'{x.sum():.3f}'\nreturn torch.relu(x) * len(name)",
    "offsets": "return x * x.new_tensor(OFFSETS.tolist())",
    "offset": "return x * 2 + x.new_tensor([OFFSETS[1].item()])",
}
WRONG = {
    "shapes": ("return x @ x", "shapes of the inputs"),
    "devices": ("return x + torch.ones(6, device='meta')", "shapes of the inputs"),
}
ARTEFACTS = ("correct it", "meta", "fake", "export", "unhinted", "Guard", "storage of a tensor")


@pytest.fixture(scope="module")
def reasons(agent: AgentClient, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Those of each function, of a region or of why there is none, both ways of capturing."""
    bodies = BODIES | {name: body for name, (body, _) in WRONG.items()}
    text = HEAD + "".join(
        f"\n\n# evokernel: x=f32[4,6]\ndef {name}(x):\n{indent(body, '    ')}\n"
        for name, body in bodies.items()
    )
    path = tmp_path_factory.mktemp("values") / "net.py"
    result: dict[str, list[str]] = {name: [] for name in bodies}
    for whole in (False, True):
        for region in agent.capture(path, text, covered_ops(ASCENDC), whole=whole):
            result[region.symbol].append("" if region.task else str(region.reason))
    return result


@pytest.mark.parametrize("name", BODIES)
def test_right_code_is_not_called_wrong(reasons: dict[str, list[str]], name: str) -> None:
    assert reasons[name]
    for reason in reasons[name]:
        assert not any(word.lower() in reason.lower() for word in ARTEFACTS), reason


@pytest.mark.parametrize("name", WRONG)
def test_wrong_code_is(reasons: dict[str, list[str]], name: str) -> None:
    assert any(WRONG[name][1] in reason for reason in reasons[name]), reasons[name]


STOPPED = """
import torch
from torch import nn


class Inner(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        y = torch.sigmoid(x) * 3
        {stop}
        return self.inner(y)


def get_inputs():
    return [torch.randn(4, 6)]
"""


@pytest.mark.parametrize("stop", ["y = y[y > 0]", "y = y * float(y[0, 0])", "y = y @ y", "pass"])
def test_what_a_run_did_not_reach_is_not_told_to_add_what_the_file_has(
    agent: AgentClient, tmp_path: Path, stop: str
) -> None:
    text = STOPPED.format(stop=stop)
    regions = agent.capture(tmp_path / "net.py", text, covered_ops(ASCENDC), whole=True)
    reasons = [str(region.reason) for region in regions if region.symbol.startswith("Inner")]
    assert not any("add get_inputs()" in reason for reason in reasons)
    assert any("stopped at line 18" in reason for reason in reasons) == (stop != "pass")
