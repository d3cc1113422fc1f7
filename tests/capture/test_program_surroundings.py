"""What programs change around a model, in containers, registries, settings of torch's and a second import of
its file: a kernel overlooks none of it. Rows are as in test_program_state.py.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from tests.capture.edited import imported as imported_edit
from tests.capture.edited import runs, write_edited
from tests.capture.test_program_state import (
    Change,
    Row,
    check,
    evaluating,
    imported,
    outcome,
    same,
    sets,
    state_capture,
)

__all__ = ["evaluating", "state_capture"]
ONES = torch.ones(64)


def does(action: Callable[[ModuleType, Any], Any]) -> Change:
    """A program that does something to its module and its model."""
    return lambda module, model, undo: action(module, model) and None


def setting_of_torch(owner: Any, name: str, value: Any) -> Change:
    """A program that sets one of torch's settings; it is as before in the end."""

    def change(module: ModuleType, model: Any, undo: ExitStack) -> None:
        undo.callback(setattr, owner, name, getattr(owner, name))
        setattr(owner, name, value)

    return change


def of_subclass(attribute: str, **members: Any) -> Change:
    """A program that has a container of a subclass in the place of one: what it holds is the same."""

    def change(module: ModuleType, model: Any, undo: ExitStack) -> None:
        held = getattr(model, attribute)
        kind = type("Sub", (type(held),), members)
        setattr(model, attribute, kind(*held) if hasattr(held, "_fields") else kind(held))

    return change


PAIR = """
from typing import NamedTuple
class Pair(NamedTuple):
    weight: torch.Tensor
    gain: float
"""
ASKS_MATMUL = "torch.backends.cuda.matmul"
KINDS = """
import abc, typing
class Gated(abc.ABC):
    pass
class Answering(type):
    answer = False
    def __instancecheck__(cls, value):
        return cls.answer
class Asked(metaclass=Answering):
    pass
"""
DISPATCHED = """
import functools
@functools.singledispatch
def applied(kind, x):
    return torch.relu(x) * 2.0
class Own:
    @functools.singledispatchmethod
    def applied(self, kind, x):
        return torch.relu(x) * 2.0
"""
ROWS: dict[str, Row] = {
    "a tensor of a dictionary of the file": Row(
        "return torch.relu(x) * TABLE['gain'] + 1.0",
        does(lambda module, model: module.TABLE.update(gain=ONES * 9)),
        tail="\nTABLE = {'gain': torch.full((64,), 2.0)}\n"),
    "a tensor of a dictionary of the file, in place": Row(
        "return torch.relu(x) * TABLE['gain'] + 1.0",
        does(lambda module, model: module.TABLE["gain"].fill_(9.0).sum()),
        tail="\nTABLE = {'gain': torch.full((64,), 2.0)}\n"),
    "a tensor of a list in a dictionary of the file": Row(
        "return torch.relu(x) * TABLE['gains'][0] + 1.0",
        does(lambda module, model: module.TABLE["gains"].__setitem__(0, ONES * 9)),
        tail="\nTABLE = {'gains': [torch.arange(64.0)]}\n"),
    "a tensor of a dictionary of the class": Row(
        "return torch.relu(x) * self.table['gain'] + 1.0",
        does(lambda module, model: model.table.update(gain=torch.tensor(9.0))),
        of_class="table = {'gain': torch.tensor(3.0)}"),
    "a tensor of a dictionary of the module": Row(
        "return torch.relu(x) * self.table['gain'] + 1.0",
        does(lambda module, model: model.table["gain"].fill_(9.0).sum()),
        init="self.table = {'gain': torch.arange(64.0)}"),
    "a tensor of a list of the module, by a loop": Row(
        "for gain in self.gains:\n    x = torch.relu(x) * gain\nreturn x + 1.0",
        does(lambda module, model: model.gains.__setitem__(1, ONES * 9)),
        init="self.gains = [torch.arange(64.0), torch.full((64,), 2.0)]"),
    "a tensor of a helper's table": Row(
        "return scaled(torch.relu(x)) + 1.0",
        does(lambda module, model: module.TABLE.update(gain=ONES * 9)),
        tail="\nTABLE = {'gain': torch.arange(64.0)}\ndef scaled(x):\n    return x * TABLE['gain']\n"),
    "a tensor of a function's default": Row(
        "return scaled(torch.relu(x)) + 1.0",
        does(lambda module, model: module.scaled.__defaults__[0].fill_(9.0).sum()),
        tail="\ndef scaled(x, gain=torch.arange(64.0)):\n    return x * gain\n"),
    "a tensor that a function encloses": Row(
        "return self.act(x) + 1.0",
        does(lambda module, model: model.act.__closure__[0].cell_contents.fill_(9.0).sum()),
        init="self.act = made(torch.arange(64.0))",
        tail="\ndef made(gain):\n    return lambda x: torch.relu(x) * gain\n"),
    "a tensor of a partial function": Row(
        "return self.act(x) + 1.0",
        does(lambda module, model: model.act.keywords.update(other=ONES * 9)),
        init="self.act = functools.partial(torch.mul, other=torch.arange(64.0))",
        tail="\nimport functools\n"),
    "a named tuple of a subclass": Row(
        "return torch.relu(x) * self.pair.weight + self.pair.gain",
        of_subclass("pair", gain=property(lambda self: 9.0)),
        init="self.pair = Pair(torch.full((64,), 2.0), 3.0)", tail=PAIR),
    "a dictionary of a subclass": Row(
        "return torch.relu(x) * self.table['weight'] + 1.0",
        of_subclass("table", __getitem__=lambda self, key: ONES * 9),
        init="self.table = {'weight': torch.full((64,), 2.0)}"),
    "a list of a subclass": Row(
        "return torch.relu(x) * self.gains[0] + 1.0",
        of_subclass("gains", __getitem__=lambda self, key: ONES * 9),
        init="self.gains = [torch.full((64,), 2.0)]"),
    "a list that becomes a tuple": Row(
        "k = 2.0 if isinstance(self.gains, list) else 3.0\nreturn torch.relu(x) * self.gains[0] * k",
        does(lambda module, model: setattr(model, "gains", tuple(model.gains))),
        init="self.gains = [torch.full((64,), 2.0)]"),
    "a size of torch's": Row(
        "return torch.relu(F.layer_norm(x, self.sizes)) * 2.0",
        sets("model.sizes", torch.Size([16, 64])), init="self.sizes = torch.Size([64])"),
    "a size of torch's that becomes a tuple": Row(
        "k = 2.0 if isinstance(self.sizes, torch.Size) else 3.0\nreturn torch.relu(x) * k",
        sets("model.sizes", (64,)), init="self.sizes = torch.Size([64])"),
    "a precision of products": Row(
        f"return torch.relu(x) * (2.0 if {ASKS_MATMUL}.allow_tf32 else 3.0)",
        setting_of_torch(torch.backends.cuda.matmul, "allow_tf32", True)),
    "a precision of sums in products": Row(
        f"k = 2.0 if {ASKS_MATMUL}.allow_fp16_reduced_precision_reduction else 3.0\n"
        "return torch.relu(x) * k",
        setting_of_torch(torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction", False)),
    "a choice of convolutions": Row(
        "return torch.relu(x) * (2.0 if torch.backends.cudnn.benchmark else 3.0)",
        setting_of_torch(torch.backends.cudnn, "benchmark", True)),
    "a precision of products, of a helper": Row(
        "return torch.relu(x) * gain()",
        setting_of_torch(torch.backends.cuda.matmul, "allow_tf32", True),
        tail=f"\ndef gain():\n    return 2.0 if {ASKS_MATMUL}.allow_tf32 else 3.0\n"),
    "a class that is registered": Row(
        "return torch.relu(x) * (2.0 if isinstance(self.config, Gated) else 3.0)",
        does(lambda module, model: module.Gated.register(module.Config)),
        init="self.config = Config()", tail=KINDS),
    "a class that is registered, of a class": Row(
        "return torch.relu(x) * (2.0 if issubclass(Config, Gated) else 3.0)",
        does(lambda module, model: module.Gated.register(module.Config)), tail=KINDS),
    "a class of a layer that is registered": Row(
        "y = torch.relu(self.norm(x))\nreturn y * (2.0 if isinstance(self.norm, Gated) else 3.0)",
        does(lambda module, model: module.Gated.register(torch.nn.Identity)),
        init="self.norm = nn.Identity()", tail=KINDS),
    "a class that is registered, among several": Row(
        "return torch.relu(x) * (2.0 if isinstance(self.config, (int, Gated)) else 3.0)",
        does(lambda module, model: module.Gated.register(module.Config)),
        init="self.config = Config()", tail=KINDS),
    "a class that answers itself": Row(
        "return torch.relu(x) * (2.0 if isinstance(self.config, Asked) else 3.0)",
        sets("module.Answering.answer", True), init="self.config = Config()", tail=KINDS),
    "a pattern of a class that is registered": Row(
        "match self.config:\n    case Gated():\n        k = 2.0\n    case _:\n        k = 3.0\n"
        "return torch.relu(x) * k",
        does(lambda module, model: module.Gated.register(module.Config)),
        init="self.config = Config()", tail=KINDS),
    "a function for a class": Row(
        "return applied(self.config, x) + 1.0",
        does(lambda module, model: module.applied.register(module.Config, lambda kind, x: x - 5.0)),
        init="self.config = Config()", tail=DISPATCHED),
    "a method for a class": Row(
        "return self.own.applied(self.config, x) + 1.0",
        does(lambda module, model: vars(module.Own)["applied"].register(
            module.Config, lambda self, kind, x: x - 5.0)),
        init="self.config = Config()\nself.own = Own()", tail=DISPATCHED),
}  # fmt: skip
REFUSED = frozenset(
    {"a method for a class", "a tensor that a function encloses", "a tensor of a partial function"}
)
"""Of these no kernel need be offered."""
QUICK = frozenset(
    {
        "a tensor of a list in a dictionary of the file",
        "a tensor of a dictionary of the class",
        "a tensor of a helper's table",
        "a named tuple of a subclass",
        "a size of torch's",
        "a precision of products",
        "a class that is registered",
        "a function for a class",
    }
)
"""Those of which each stands for a kind."""
CASES = [
    pytest.param(name, whole, marks=[] if name in QUICK else [pytest.mark.thorough])
    for name in ROWS
    for whole in (False, True)
]


@pytest.mark.parametrize(("name", "whole"), CASES)
def test_nothing_that_a_program_changes_is_overlooked(
    name: str, whole: bool, state_capture: Any, tmp_path: Path
) -> None:
    faults = list(check(ROWS[name], whole, state_capture, tmp_path))
    assert faults == [] or (faults == ["no kernel"] and (not whole or name in REFUSED)), faults


ARGUMENTS = f"""
import torch
from torch import nn
{PAIR}
class Model(nn.Module):
    def forward(self, pair, table):
        return torch.relu(pair.weight) * 2.0 + table["gain"]

def get_inputs():
    return [Pair(torch.randn(16, 64), 3.0), {{"gain": torch.ones(64)}}]
"""


def test_arguments_of_a_subclass_are_others(state_capture: Any, tmp_path: Path) -> None:
    (region,) = [region for region in state_capture(ARGUMENTS, whole=True) if region.task]
    original, edited = (
        imported(ARGUMENTS, tmp_path),
        imported_edit(write_edited(tmp_path, ARGUMENTS, [region])),
    )
    x, other = torch.randn(16, 64), torch.randn(16, 64)

    def results(pair: Any, table: Any) -> list[Any]:
        return [
            outcome(module, functools.partial(module.Model(), pair(module)), table)
            for module in (original, edited)
        ]

    def plain(module: ModuleType) -> Any:
        return module.Pair(x, 3.0)

    def of_subclass(module: ModuleType) -> Any:
        return type("Sub", (module.Pair,), {"weight": property(lambda self: other)})(x, 3.0)

    table = {"gain": ONES}
    doubled = type("Sub", (dict,), {"__getitem__": lambda self, key: ONES * 9})(table)
    assert same(*results(plain, table))
    assert runs(edited) == 1
    for given in ((of_subclass, table), (plain, doubled)):
        assert same(*results(*given))
    assert runs(edited) == 1


TWICE = """
import torch
from torch import nn

SCALE = 2.0

def scaled(x):
    return torch.relu(x) * SCALE + 1.0

class Model(nn.Module):
    def forward(self, x):
        return scaled(x).exp()

def get_inputs():
    return [torch.randn(16, 64)]
"""


@pytest.mark.parametrize("whole", [False, True])
def test_a_file_that_is_loaded_twice_has_globals_of_its_own_each_time(
    whole: bool, state_capture: Any, tmp_path: Path
) -> None:
    """As ``__main__`` and by its name, which programs do without knowing."""
    regions = [region for region in state_capture(TWICE, whole=whole) if region.task]
    path = write_edited(tmp_path, TWICE, regions[:1])
    first, original, x = imported_edit(path), imported(TWICE, tmp_path), torch.randn(16, 64)
    assert same(*(outcome(module, module.Model(), x) for module in (first, original)))
    assert runs(first) == 1
    spec = importlib.util.spec_from_file_location("again", path)
    assert spec is not None and spec.loader is not None
    second = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(second)
    original.SCALE = second.SCALE = 5.0
    assert same(*(outcome(module, module.Model(), x) for module in (second, original)))
    original.SCALE = 2.0
    assert same(*(outcome(module, module.Model(), x) for module in (first, original)))
    assert runs(first) == 2
