"""What programs change of classes, of what a call walks through and of what it refers to: a kernel overlooks
none of it. Rows are as in test_program_state.py.
"""

from __future__ import annotations

import datetime
import decimal
import math
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import nn

from tests.capture.test_program_state import (
    Change,
    Row,
    check,
    evaluating,
    makes,
    patches,
    sets,
    state_capture,
)

__all__ = ["evaluating", "state_capture"]
BASE = """
class Base(nn.Module):
    gain = 2.0
    def act(self, x):
        return torch.relu(x)
Model.__bases__ = (Base,)
"""


def nothing(module: ModuleType, model: Any, undo: ExitStack) -> None:
    """A program that only calls again."""


def mixed(name: str, value: Any) -> Callable[[ModuleType], Any]:
    """A model of a class that another one stands in between, and its base."""

    def make(module: ModuleType) -> Any:
        between = type("Between", (module.Base,), {name: value})
        return type("Sub", (module.Model, between), {})()

    return make


def other_class(attribute: str, text: str, name: str) -> Change:
    """A program that has an object of a class of the same name, from another file."""

    def change(module: ModuleType, model: Any, undo: ExitStack) -> None:
        other = ModuleType("elsewhere")
        exec(compile(text, "/elsewhere/model.py", "exec"), vars(other))
        setattr(model, attribute, getattr(other, name)())

    return change


def replaced_module(name: str, **functions: Any) -> Change:
    """A program that puts another module among those that are imported."""
    other = ModuleType(name)
    vars(other).update(functions)
    return lambda module, model, undo: undo.enter_context(patch.dict(sys.modules, {name: other})) and None


class Halved:
    """What stands for torch.nn.functional."""

    gelu = staticmethod(lambda x: x / 2.0)


ROWS: dict[str, Row] = {
    "what a base class computes": Row(
        "return super().act(x) * 2.0 + 1.0", sets("module.Base.act", lambda self, x: x - 5.0), tail=BASE),
    "a class between a class and its base": Row(
        "return super().act(x) * 2.0 + 1.0", makes(mixed("act", lambda self, x: x - 5.0)), tail=BASE),
    "a number of a base class": Row(
        "return torch.relu(x) * super().gain + 1.0", sets("module.Base.gain", 5.0), tail=BASE),
    "a number of a class between": Row(
        "return torch.relu(x) * super().gain + 1.0", makes(mixed("gain", 5.0)), tail=BASE),
    "a number of a base class, by a text": Row(
        "return torch.relu(x) * getattr(super(), 'gain') + 1.0", sets("module.Base.gain", 5.0), tail=BASE),
    "what the base class of a layer computes": Row(
        "return self.layer(x) * 2.0", sets("module.First.forward", lambda self, x: x - 5.0),
        init="self.layer = Second()",
        tail="""
        class First(nn.Module):
            def forward(self, x):
                return torch.relu(x)
        class Second(First):
            def forward(self, x):
                return super().forward(x) + 1.0
        """),
    "the call of an object": Row(
        "return self.act(x) + 1.0", sets("module.Act.__call__", lambda self, x: x - 5.0),
        init="self.act = Act()",
        tail="\nclass Act:\n    def __call__(self, x):\n        return torch.relu(x) * 2.0\n"),
    "the call of an object of a class below": Row(
        "return self.act(x) + 1.0",
        lambda module, model, undo: setattr(module.Below, "__call__", lambda self, x: x - 5.0),
        init="self.act = Below()",
        tail="""
        class Act:
            def __call__(self, x):
                return torch.relu(x) * 2.0
        class Below(Act):
            pass
        """),
    "an operator of an object": Row(
        "return torch.relu(x) * (self.gain + 1.0) + 1.0",
        sets("module.Gain.__add__", lambda self, other: 9.0), init="self.gain = Gain()",
        tail="\nclass Gain:\n    def __add__(self, other):\n        return 2.0 + other\n"),
    "the length of an object": Row(
        "return torch.relu(x) * len(self.gain) + 1.0",
        sets("module.Gain.__len__", lambda self: 9), init="self.gain = Gain()",
        tail="\nclass Gain:\n    def __len__(self):\n        return 2\n"),
    "the forward of a function of autograd": Row(
        "return Fn.apply(x) + 1.0", sets("module.Fn.forward", staticmethod(lambda ctx, x: x - 5.0)),
        tail="""
        class Fn(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return torch.relu(x) * 2.0
            @staticmethod
            def backward(ctx, gradient):
                return gradient
        """),
    "a static method of a class": Row(
        "return Own.scaled(torch.relu(x)) + 1.0",
        sets("module.Own.scaled", staticmethod(lambda x: x - 5.0)),
        tail="\nclass Own:\n    @staticmethod\n    def scaled(x):\n        return x * 3.0\n"),
    "the class method that a class method calls": Row(
        "return self.scaled(torch.relu(x))",
        lambda module, model, undo: setattr(module.Model, "factor", classmethod(lambda cls: 9.0)),
        of_class="""
        @classmethod
        def factor(cls):
            return 2.0
        @classmethod
        def scaled(cls, x):
            return x + cls.factor()
        """),
    "a method of an object that the call makes": Row(
        "return Own(3.0).scaled(torch.relu(x)) + 1.0",
        sets("module.Own.scaled", lambda self, x: x - 5.0),
        tail="""
        class Own:
            def __init__(self, gain):
                self.gain = gain
            def scaled(self, x):
                return x * self.gain
        """),
    "whether a class has an attribute": Row(
        "k = 3.0 if hasattr(type(self), 'flag') else 2.0\nreturn torch.relu(x) * k",
        sets("module.Model.flag", 1)),
    "an attribute of a class that may not be there": Row(
        "return torch.relu(x) * getattr(type(self), 'factor', 2.0)", sets("module.Model.factor", 9.0)),
    "whether a layer is of a class": Row(
        "y = torch.relu(x)\nif isinstance(self.layer, nn.Identity):\n    y = y * 2.0\nreturn y + 1.0",
        sets("model.layer", nn.ReLU()), init="self.layer = nn.Identity()"),
    "which class a layer is of": Row(
        "y = torch.relu(x)\nif type(self.layer) is nn.Identity:\n    y = y * 2.0\nreturn y + 1.0",
        sets("model.layer", nn.ReLU()), init="self.layer = nn.Identity()"),
    "whether a module is of a class": Row(
        "k = 3.0 if isinstance(self, Mixed) else 2.0\nreturn torch.relu(x) * k",
        makes(lambda module: type("Sub", (module.Model, module.Mixed), {})()),
        tail="\nclass Mixed:\n    pass\n"),
    "which class a module is of": Row(
        "k = 3.0 if type(self) is Model else 2.0\nreturn torch.relu(x) * k",
        makes(lambda module: type("Sub", (module.Model,), {})())),
    "the name of a class": Row(
        "k = 3.0 if type(self).__name__ == 'Model' else 2.0\nreturn torch.relu(x) * k",
        makes(lambda module: type("Sub", (module.Model,), {})())),
    "what a forward of a class encloses": Row(
        "return self.layer(x) * 2.0", lambda module, model, undo: setattr(model, "layer", module.made(9.0)()),
        init="self.layer = made(3.0)()",
        tail="""
        def made(gain):
            class Made(nn.Module):
                def forward(self, x):
                    return torch.relu(x) * gain
            return Made
        """),
    "the dtype of the first parameter": Row(
        "kind = next(self.parameters()).dtype\nreturn (torch.relu(x) * 2.0).to(kind)",
        lambda module, model, undo: model.half() and None, init="self.norm = nn.LayerNorm(8)"),
    "the dtype of the first parameter, in an expression": Row(
        "return (torch.relu(x) * 2.0).to(next(self.parameters()).dtype)",
        lambda module, model, undo: model.half() and None, init="self.norm = nn.LayerNorm(8)"),
    "the dtype of the first buffer": Row(
        "return (torch.relu(x) * 2.0).to(next(self.buffers()).dtype)",
        lambda module, model, undo: model.half() and None,
        init="self.register_buffer('gain', torch.ones(2))"),
    "the dtype of a property": Row(
        "return (torch.relu(x) * 2.0).to(self.kind)",
        lambda module, model, undo: model.half() and None, init="self.norm = nn.LayerNorm(8)",
        of_class="@property\ndef kind(self):\n    return next(self.parameters()).dtype"),
    "the entries of a state": Row(
        "return torch.relu(x) * len(self.state_dict())",
        lambda module, model, undo: model.register_buffer("other", torch.ones(2)),
        init="self.norm = nn.LayerNorm(8)"),
    "the number of parameters": Row(
        "return torch.relu(x) * sum(item.numel() for item in self.parameters())",
        lambda module, model, undo: model.register_parameter("other", nn.Parameter(torch.ones(2))),
        init="self.norm = nn.LayerNorm(8)"),
    "the layers below": Row(
        "return torch.relu(x) * len(list(self.modules()))",
        lambda module, model, undo: model.norm.add_module("other", nn.ReLU()),
        init="self.norm = nn.LayerNorm(8)"),
    "one layer of two names, then two": Row(
        "return self.b(torch.relu(self.a(x)))", sets("model.b", nn.LayerNorm(64, eps=0.5)),
        init="self.a = nn.LayerNorm(64)\nself.b = self.a"),
    "one activation of two names, then two": Row(
        "return self.b(torch.relu(x) + self.a(x))", sets("model.b", nn.SiLU()),
        init="self.a = nn.GELU()\nself.b = self.a"),
    "one object of two names, then two": Row(
        "return torch.relu(x) + int(self.a.scale) * int(self.b.scale)",
        lambda module, model, undo: setattr(model, "b", module.Config(9.0)),
        init="self.a = CONFIG\nself.b = CONFIG"),
    "one layer of a list and a name, then two": Row(
        "return self.layers[0](torch.relu(x) + self.a(x))", lambda module, model, undo:
        model.layers.__setitem__(0, nn.SiLU()),
        init="self.a = nn.GELU()\nself.layers = nn.ModuleList([self.a])"),
    "one layer of a plain list and a name, then two": Row(
        "return self.layers[0](torch.relu(x) + self.a(x))", lambda module, model, undo:
        model.layers.__setitem__(0, nn.SiLU()),
        init="self.a = nn.GELU()\nself.layers = [self.a]"),
    "one parameter of two names, then two": Row(
        "return torch.relu(x) * self.a + self.b", sets("model.b", nn.Parameter(torch.full((64,), 5.0))),
        init="self.a = nn.Parameter(torch.full((64,), 2.0))\nself.b = self.a"),
    "which class a parameter is of": Row(
        "k = 2.0 if type(self.gain) is nn.Parameter else 3.0\nreturn torch.relu(x) * k * self.gain",
        lambda module, model, undo: model.__dict__.update(gain=model._parameters.pop("gain").detach()),
        init="self.gain = nn.Parameter(torch.ones(64))"),
    "which class a parameter is of, unread": Row(
        "k = 2.0 if type(self.gain) is nn.Parameter else 3.0\nreturn torch.relu(x) * k",
        lambda module, model, undo: model.__dict__.update(gain=model._parameters.pop("gain").detach()),
        init="self.gain = nn.Parameter(torch.ones(64))"),
    "which class a tensor is of": Row(
        "k = 2.0 if type(x) is torch.Tensor else 3.0\nreturn torch.relu(x) * k",
        lambda module, model, undo: lambda x: model(nn.Parameter(x))),
    "which class a tensor is of, by its attribute": Row(
        "k = 2.0 if x.__class__ == torch.Tensor else 3.0\nreturn torch.relu(x) * k",
        lambda module, model, undo: lambda x: model(nn.Parameter(x))),
    "a class of the same name in another file": Row(
        "return torch.relu(x) + int(self.config.scale) * self.config.factor()",
        other_class("config",
        "class Config:\n    scale = 2.0\n    def factor(self):\n        return 9\n", "Config"),
        init="self.config = Config()",
        tail="""
        class Config:
            def __init__(self):
                self.scale = 2.0
            def factor(self):
                return 2
        """),
    "a plain class of the same name in another file": Row(
        "k = 2.0 if isinstance(self.config, Config) else 9.0\nreturn torch.relu(x) * k * self.config.scale",
        other_class("config", "class Config:\n    scale = 2.0\n", "Config"),
        init="self.config = Config()"),
    "what the globals say": Row(
        "return torch.relu(x) * globals().get('OTHER', 2.0)", sets("module.OTHER", 5.0)),
    "what the globals of a module say": Row(
        "return torch.relu(x) * vars(module_of(self)).get('OTHER', 2.0)", sets("module.OTHER", 5.0),
        tail="\nimport sys\ndef module_of(model):\n    return sys.modules[type(model).__module__]\n"),
    "a global that is not there yet": Row(
        "try:\n    k = OTHER\nexcept NameError:\n    k = 2.0\nreturn torch.relu(x) * k",
        sets("module.OTHER", 5.0)),
    "the attributes of a module as a dictionary": Row(
        "return torch.relu(x) * self.__dict__.get('other', 2.0)", sets("model.other", 5.0)),
    "the attributes of a module by vars": Row(
        "return torch.relu(x) * vars(self).get('other', 2.0)", sets("model.other", 5.0)),
    "the attributes of an object as a dictionary": Row(
        "return torch.relu(x) * self.config.__dict__.get('other', 2.0)", sets("model.config.other", 5.0),
        init="self.config = Config()"),
    "a copy of an object": Row(
        "return torch.relu(x) * copy.copy(self.config).scale", sets("model.config.scale", 5.0),
        init="self.config = Config()", tail="\nimport copy\n"),
    "an attribute that a call takes once": Row(
        "k = self.__dict__.pop('once', 2.0)\nreturn torch.relu(x) * k", sets("model.once", 5.0)),
    "an attribute that a call deletes": Row(
        "k = 2.0\nif hasattr(self, 'once'):\n    del self.once\n    k = 3.0\nreturn torch.relu(x) * k",
        nothing, init="self.once = True"),
    "an attribute that a call deletes by a text": Row(
        "k = 2.0\nif hasattr(self, 'once'):\n    delattr(self, 'once')\n    k = 3.0\n"
        "return torch.relu(x) * k",
        nothing, init="self.once = True"),
    "an attribute that a call tries to delete": Row(
        "k = 2.0\ntry:\n    del self.once\nexcept AttributeError:\n    k = 3.0\nreturn torch.relu(x) * k",
        sets("model.once", 5.0)),
    "a global that a call deletes": Row(
        "k = dropped()\nreturn torch.relu(x) * k", sets("module.OTHER", 5.0),
        tail="""
        def dropped():
            global OTHER
            try:
                del OTHER
            except NameError:
                return 2.0
            return 3.0
        """),
    "an entry that a call deletes": Row(
        "k = 2.0\nif 'once' in self.table:\n    del self.table['once']\n    k = 3.0\n"
        "return torch.relu(x) * k",
        nothing, init="self.table = {'once': 1}"),
    "a weak reference": Row(
        "held = self.held()\nreturn torch.relu(x) * (held.scale if held is not None else 9.0)",
        lambda module, model, undo: setattr(model, "own", None),
        init="self.own = Config()\nself.held = weakref.ref(self.own)", tail="\nimport weakref\n"),
    "what a weak reference refers to": Row(
        "return torch.relu(x) * self.held().scale", sets("model.own.scale", 9.0),
        init="self.own = Config()\nself.held = weakref.ref(self.own)", tail="\nimport weakref\n"),
    "a weak reference to another object": Row(
        "return torch.relu(x) * self.held().scale",
        lambda module, model, undo: setattr(model, "held", module.weakref.ref(module.OTHER)),
        init="self.own = Config()\nself.held = weakref.ref(self.own)",
        tail="\nimport weakref\nOTHER = Config(9.0)\n"),
    "a weak reference to a layer": Row(
        "return self.held()(torch.relu(x)) * 2.0", sets("model.own", None),
        init="self.own = nn.Sequential(nn.GELU())\nself.__dict__['held'] = weakref.ref(self.own)",
        tail="\nimport weakref\n"),
    "a weak proxy": Row(
        "return torch.relu(x) * self.held.scale", sets("model.own.scale", 9.0),
        init="self.own = Config()\nself.held = weakref.proxy(self.own)", tail="\nimport weakref\n"),
    "a weak set": Row(
        "return torch.relu(x) * len(self.held)", sets("model.own", None),
        init="self.own = Config()\nself.held = weakref.WeakSet([self.own])", tail="\nimport weakref\n"),
    "a dictionary of weak values": Row(
        "return torch.relu(x) * len(self.held)", sets("model.own", None),
        init="self.own = Config()\nself.held = weakref.WeakValueDictionary(a=self.own)",
        tail="\nimport weakref\n"),
    "a function of a library that is imported within": Row(
        "import math\nreturn torch.relu(x) * math.sqrt(self.gain) + 1.0",
        patches(math, "sqrt", lambda value: 9.0), init="self.gain = 4"),
    "a library that is imported within and replaced": Row(
        "import statistics\nreturn torch.relu(x) * statistics.mean(self.gains) + 1.0",
        replaced_module("statistics", mean=lambda values: 9.0), init="self.gains = [4.0]"),
    "a function of a library that is imported by name within": Row(
        "from math import sqrt\nreturn torch.relu(x) * sqrt(self.gain) + 1.0",
        patches(math, "sqrt", lambda value: 9.0), init="self.gain = 4"),
    "a layer's module that is replaced": Row(
        "from torch.nn import functional\nreturn functional.gelu(x) * 2.0",
        lambda module, model, undo: undo.enter_context(patch.object(nn, "functional", Halved)) and None),
    "a set that a call adds to": Row(
        "self.seen.add(len(self.seen))\nreturn torch.relu(x) * len(self.seen)", nothing,
        init="self.seen = set()"),
    "a set that a call takes from": Row(
        "k = 3.0 if self.seen else 2.0\nself.seen.discard(1)\nreturn torch.relu(x) * k", nothing,
        init="self.seen = {1}"),
    "a set of the file that a call adds to": Row(
        "SEEN.add(len(SEEN))\nreturn torch.relu(x) * len(SEEN)", nothing, tail="\nSEEN = set()\n"),
    "a set in a list that a call adds to": Row(
        "self.seen[0].add(len(self.seen[0]))\nreturn torch.relu(x) * len(self.seen[0])", nothing,
        init="self.seen = [set()]"),
    "bytes that a call writes": Row(
        "self.seen[0] += 1\nreturn torch.relu(x) * self.seen[0]", nothing, init="self.seen = bytearray(2)"),
    "an array that a call writes": Row(
        "self.seen[0] += 1\nreturn torch.relu(x) * self.seen[0]", nothing,
        init="self.seen = array.array('i', [0])", tail="\nimport array\n"),
    "bytes": Row(
        "return torch.relu(x) * self.seen[0]", lambda module, model, undo: model.seen.__setitem__(0, 9),
        init="self.seen = bytearray([2, 3])"),
    "a list that a call appends to": Row(
        "self.seen.append(1)\nreturn torch.relu(x) * len(self.seen)", nothing, init="self.seen = []"),
    "a list in a set of lists that a call appends to": Row(
        "self.seen[0].append(1)\nreturn torch.relu(x) * len(self.seen[0])", nothing,
        init="self.seen = ([],)"),
    "a list in an object that a call appends to": Row(
        "self.config.seen.append(1)\nreturn torch.relu(x) * len(self.config.seen)", nothing,
        init="self.config = Config()\nself.config.seen = []"),
    "a set in an object that a call adds to": Row(
        "self.config.seen.add(len(self.config.seen))\nreturn torch.relu(x) * len(self.config.seen)", nothing,
        init="self.config = Config()\nself.config.seen = set()"),
    "a list of a class that a call appends to": Row(
        "self.seen.append(1)\nreturn torch.relu(x) * len(self.seen)", nothing, of_class="seen = []"),
    "a default that a call appends to": Row(
        "return torch.relu(x) * grown()", nothing,
        tail="\ndef grown(seen=[]):\n    seen.append(1)\n    return len(seen)\n"),
    "a counter of a library": Row(
        "self.seen['a'] += 1\nreturn torch.relu(x) * self.seen['a']", nothing,
        init="self.seen = collections.Counter()", tail="\nimport collections\n"),
    "a spectral norm": Row(
        "return torch.relu(self.layer(x)) * 2.0",
        sets("model.layer.bias", nn.Parameter(torch.full((64,), 5.0))),
        init="torch.manual_seed(0)\nself.layer = nn.utils.parametrizations.spectral_norm(nn.Linear(64, 64))"),
    "a weight norm": Row(
        "return torch.relu(self.layer(x)) * 2.0",
        sets("model.layer.bias", nn.Parameter(torch.full((64,), 5.0))),
        init="torch.manual_seed(0)\nself.layer = nn.utils.parametrizations.weight_norm(nn.Linear(64, 64))"),
    "a spectral norm by hooks": Row(
        "return torch.relu(self.layer(x)) * 2.0",
        sets("model.layer.bias", nn.Parameter(torch.full((64,), 5.0))),
        init="torch.manual_seed(0)\nself.layer = nn.utils.spectral_norm(nn.Linear(64, 64))"),
    "a weight norm by hooks": Row(
        "return torch.relu(self.layer(x)) * 2.0",
        sets("model.layer.bias", nn.Parameter(torch.full((64,), 5.0))),
        init="torch.manual_seed(0)\nself.layer = nn.utils.weight_norm(nn.Linear(64, 64))"),
    "a range": Row(
        "return torch.relu(x) * len(self.steps)", sets("model.steps", range(5)),
        init="self.steps = range(3)"),
    "a date": Row(
        "return torch.relu(x) * self.day.year", sets("model.day", datetime.date(2001, 1, 1)),
        init="self.day = datetime.date(2000, 1, 1)", tail="\nimport datetime\n"),
    "a decimal number": Row(
        "return torch.relu(x) * float(self.gain)", sets("model.gain", decimal.Decimal("3.5")),
        init="self.gain = decimal.Decimal('2.5')", tail="\nimport decimal\n"),
    "a class that is replaced": Row(
        "k = 2.0 if isinstance(self.config, Config) else 9.0\nreturn torch.relu(x) * k",
        sets("module.Config", type("Config", (), {})), init="self.config = Config()"),
    "what a decorator of a method encloses": Row(
        "return self.scaled(x)", lambda module, model, undo:
        setattr(module.Model, "scaled", module.Model.shifted),
        of_class="""
        def plus(function):
            def call(self, x):
                return function(self, x) + 1.0
            return call
        @plus
        def scaled(self, x):
            return torch.relu(x) * 3.0
        @plus
        def shifted(self, x):
            return torch.relu(x) - 5.0
        """),
    "what a decorator of torch holds": Row(
        "return scaled(x)", lambda module, model, undo: setattr(module, "scaled", module.shifted),
        tail="""
        @torch.no_grad()
        def scaled(x):
            return torch.relu(x) * 3.0
        @torch.no_grad()
        def shifted(x):
            return torch.relu(x) - 5.0
        """),
    "a method below a decorator of torch": Row(
        "return self.scaled(x)", lambda module, model, undo:
        setattr(module.Model, "scaled", module.Model.shifted),
        of_class="""
        @torch.no_grad()
        def scaled(self, x):
            return torch.relu(x) * 3.0
        @torch.no_grad()
        def shifted(self, x):
            return torch.relu(x) - 5.0
        """),
}  # fmt: skip
REFUSED = frozenset(
    {
        "a weak proxy",
        "a weak set",
    }
)
"""Of these no kernel need be offered."""
QUICK = frozenset(
    {
        "what a base class computes",
        "a number of a class between",
        "the call of an object of a class below",
        "the forward of a function of autograd",
        "a method of an object that the call makes",
        "whether a class has an attribute",
        "whether a layer is of a class",
        "which class a module is of",
        "what a forward of a class encloses",
        "the dtype of the first parameter",
        "the layers below",
        "one object of two names, then two",
        "which class a tensor is of",
        "a class of the same name in another file",
        "what the globals say",
        "a global that is not there yet",
        "the attributes of a module by vars",
        "an attribute that a call tries to delete",
        "a weak reference to another object",
        "a library that is imported within and replaced",
        "bytes",
        "what a decorator of a method encloses",
        "a spectral norm",
    }
)
"""Those of which each stands for a kind."""
SINGLE = ("the length of an object", "the dtype of the first parameter", "one layer of two names, then two")
"""Those that tell of kernels of single expressions."""
CASES = [
    pytest.param(name, whole, marks=[] if name in (QUICK if whole else SINGLE) else [pytest.mark.thorough])
    for name in ROWS
    for whole in (False, True)
]


@pytest.mark.parametrize(("name", "whole"), CASES)
def test_nothing_that_a_program_changes_is_overlooked(
    name: str, whole: bool, state_capture: Any, tmp_path: Path
) -> None:
    faults = list(check(ROWS[name], whole, state_capture, tmp_path))
    only = ["no kernel ran"] if name in ONCE else ["no kernel"]
    assert faults == [] or (faults == only and (whole or name in REFUSED)), faults


ONCE = ("a set that a call takes from",)
"""Of these a kernel stands for every call but the first."""


@pytest.mark.parametrize(
    "name", [name for name, row in ROWS.items() if row.change is nothing and name not in ONCE]
)
def test_what_each_call_changes_is_named(name: str, state_capture: Any) -> None:
    """Rather than a kernel being offered whose guard holds in no call."""
    reasons = [str(region.reason) for region in state_capture(ROWS[name].text, whole=True)]
    assert any(" call " in reason for reason in reasons), reasons
