"""What a program gave to its models comes back from JSON as it was, or says why it cannot."""

from __future__ import annotations

import argparse
import collections
import enum
import functools
import json
import math
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from evokernel_core.capture.agent.observation.decode import CannotBuild, Decoder
from evokernel_core.capture.agent.observation.encode import MOST_VALUES, Encoder, is_opaque

HERE = sys.modules[__name__]


@dataclass
class Config:
    width: int = 8
    rope: dict[str, float] = field(default_factory=lambda: {"theta": 1e4})


@dataclass(frozen=True)
class Inner:
    config: Config
    kind: torch.dtype


class Attributes(dict):
    """A dict whose items are attributes, as configuration libraries have it."""

    __getattr__ = dict.__getitem__


class Slotted:
    __slots__ = ("a",)

    def __init__(self, a: int) -> None:
        self.a = a


class Sized:
    """An object with a way of its own to be pickled."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __reduce__(self) -> tuple[Any, ...]:
        return Sized, (self.size,)


class Colour(enum.Enum):
    RED = 1


Pair = collections.namedtuple("Pair", "first second")
HERE.__file__ = str(Path(__file__).resolve())


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The classes above are found by name, whatever this module was imported as."""
    monkeypatch.setitem(sys.modules, __name__, HERE)


def there_and_back(value: Any) -> Any:
    encoded = Encoder(lambda module: None).call((value,), {})
    data = json.loads(json.dumps(encoded, allow_nan=False))
    ((found,), _) = Decoder(types.ModuleType("model"), "/nowhere/model.py").call(data)
    return found


@pytest.mark.parametrize(
    "value",
    [
        None, True, -3, 2.5, math.inf, "text", 1 + 2j, b"bytes", ..., slice(1, None), range(3),
        torch.float16, torch.device("cuda:1"), torch.Size([2, 3]), Path("a/b"), Colour.RED,
        [1, (2, {"a": [3]})], {1: "one", (2, 3): None}, {1, 2}, frozenset({3}), Pair(1, [2]),
        Config(4), Inner(Config(), torch.bfloat16), Attributes(a=1, b=Attributes(c=2)),
        collections.OrderedDict(b=1, a=2), argparse.Namespace(lr=0.1), types.SimpleNamespace(x=1),
        nn.LayerNorm, torch.nn.functional.gelu, torch.relu, math.sqrt,
    ],
    ids=repr,
)  # fmt: skip
def test_a_value_comes_back_equal_and_of_its_type(value: Any) -> None:
    found = there_and_back(value)
    assert type(found) is type(value)
    assert found == value


def test_objects_come_back_by_their_state_or_their_own_pickling() -> None:
    assert there_and_back(Slotted(3)).a == 3
    assert there_and_back(Sized(7)).size == 7
    partial = there_and_back(functools.partial(nn.LayerNorm, eps=1e-6))
    assert partial.func is nn.LayerNorm
    assert partial.keywords == {"eps": 1e-6}


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(2, 3, dtype=torch.bfloat16), torch.zeros(3, 4).t(), torch.zeros(2, requires_grad=True),
        torch.zeros(0, 5, dtype=torch.int64), torch.tensor(True), nn.Parameter(torch.zeros(4)),
    ],
)  # fmt: skip
def test_a_tensor_keeps_all_but_its_elements(tensor: torch.Tensor) -> None:
    found = there_and_back(tensor)
    for name in ("shape", "dtype", "requires_grad"):
        assert getattr(found, name) == getattr(tensor, name)
    assert found.stride() == tensor.stride()
    assert type(found) is type(tensor)


def holds_itself() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


class Broken:
    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("do not look")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (lambda x: x, "function that has no name"),
        (holds_itself(), "list that holds itself"),
        (list(range(MOST_VALUES + 1)), "list that is too large"),
        ("x" * 10_000, "long text"),
        (nn.Linear(2, 2), "Linear that is a module that was not built"),
        (torch.zeros(3).to_sparse(), "layout of its own"),
        (memoryview(b""), "cannot be pickled"),
    ],
    ids=str,
)
def test_what_cannot_be_made_again_says_so(value: Any, reason: str) -> None:
    encoded = Encoder(lambda module: None).call((value,), {})
    assert reason in is_opaque(encoded)
    with pytest.raises(CannotBuild, match="that"):
        Decoder(types.ModuleType("model"), "/nowhere/model.py").call(encoded)


def test_an_object_that_must_not_be_looked_at_costs_itself_alone() -> None:
    encoded = Encoder(lambda module: None).call((Broken(), 3), {})
    assert encoded["args"][1] == 3
    assert is_opaque(encoded["args"][0])
