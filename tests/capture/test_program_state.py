"""The ways in which programs give state to a model: none of them is overlooked by the kernel in its place.

Each row is a model and what a program does between two calls of it. The edited model computes what the
original computes then, and a kernel ran before.
"""

from __future__ import annotations

import builtins
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent, indent
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - as everybody writes it
from attrs import frozen
from torch import nn
from torch.autograd import forward_ad
from torch.nn.utils.parametrize import register_parametrization
from torch.utils._python_dispatch import TorchDispatchMode

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.region import Region
from evokernel_core.targets.ascendc.target import ASCENDC
from tests import warm
from tests.capture.edited import edited_module, runs

Change = Callable[[ModuleType, Any, ExitStack], Any]
"""What the program does with its module and its model; what is put on the stack is undone. It gives the model
that is called then, None for the same one."""

HEAD = """
import types
import torch
from torch import nn
import torch.nn.functional as F
from torch.nn.functional import silu

class Config:
    def __init__(self, scale=2.0):
        self.scale = scale

CONFIG = Config()
FACTOR = 3.0
"""
TAIL = """

def get_inputs():
    return [torch.randn(16, 64)]
"""


@frozen
class Row:
    """``forward`` and ``init`` are bodies of the model's methods, ``of_class`` stands in its class and
    ``tail`` behind it."""

    forward: str
    change: Change
    init: str = "pass"
    of_class: str = "pass"
    tail: str = ""

    @property
    def text(self) -> str:
        body = f"class Model(nn.Module):\n{indent(dedent(self.of_class).strip(), '    ')}\n"
        methods = (("__init__(self, scale=2.0)", f"super().__init__()\n{dedent(self.init).strip()}"),
                   ("forward(self, x)", dedent(self.forward).strip()))  # fmt: skip
        for head, lines in methods:
            body += f"    def {head}:\n{indent(lines, ' ' * 8)}\n"
        return f"{HEAD}\n{body}{dedent(self.tail)}{TAIL}"


def sets(path: str, value: Any) -> Change:
    """A program that sets an attribute below its module or its model."""

    def change(module: ModuleType, model: Any, undo: ExitStack) -> None:
        first, *names = path.split(".")
        owner: Any = {"module": module, "model": model}[first]
        *between, last = names
        for name in between:
            owner = getattr(owner, name)
        setattr(owner, last, value)

    return change


def sets_count(value: float) -> Change:
    return lambda module, model, undo: module.LOG.__setitem__(0, value)


def patches(owner: Any, name: str, value: Any, create: bool = False) -> Change:
    """``create``: the owner need not have it."""
    return lambda module, model, undo: (
        undo.enter_context(patch.object(owner, name, value, create=create)) and None
    )


def enters(context: Callable[[], Any]) -> Change:
    return lambda module, model, undo: undo.enter_context(context()) and None


def makes(call: Callable[[ModuleType], Any]) -> Change:
    """A program that makes another model, and calls that."""
    return lambda module, model, undo: call(module).eval()


class Doubled(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
    """A torch function mode, as libraries for quantisation and tracing have."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result + 1.0 if func in (torch.relu, F.relu, torch.Tensor.mul) else result


class Dispatched(TorchDispatchMode):  # type: ignore[misc]
    """A mode below autograd, as those that count or record operators are."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result + 1.0 if func is torch.ops.aten.relu.default else result


def gives_tangents(module: ModuleType, model: Any, undo: ExitStack) -> Callable[[torch.Tensor], Any]:
    """A program that computes derivatives forwards: each call gives that of its result."""
    undo.enter_context(forward_ad.dual_level())
    return lambda x: forward_ad.unpack_dual(model(forward_ad.make_dual(x, torch.ones_like(x)))).tangent


class Negated(nn.Module):
    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return -weight


def plus_one(function: Any) -> Any:
    return lambda *args, **kwargs: function(*args, **kwargs) + 1.0


def hooked(module: ModuleType, model: Any, undo: ExitStack) -> None:
    model.layer.register_forward_hook(lambda layer, given, result: result + 1.0)


def pre_hooked(module: ModuleType, model: Any, undo: ExitStack) -> None:
    model.layer.register_forward_pre_hook(lambda layer, given: (given[0] + 1.0,))


def same_name(module: ModuleType, model: Any, undo: ExitStack) -> None:
    """A class of the same qualified name and module name, from another file."""
    text = "from torch import nn\nclass Own(nn.Module):\n    def forward(self, x):\n        return x - 5.0\n"
    other = ModuleType("model")
    exec(compile(text, "/elsewhere/model.py", "exec"), vars(other))
    model.layer = other.Own()


def executed(text: str, name: str) -> Any:
    """What a text defines, as a notebook or a plug-in has it."""
    names: dict[str, Any] = {}
    exec(text, names)
    return names[name]


COUNTED = """
LOG = [2]
def counted():
    return LOG[0]
"""
OWN = """
class Own(nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1.0
"""
MODE = "\nimport enum\nclass Mode(enum.Enum):\n    SLOW = 1\n    FAST = 2\n"
RELU = "return torch.relu(x) * 2.0"
ROWS: dict[str, Row] = {
    "an instance of the file, another one is called": Row(
        "return torch.relu(x) * self.scale", makes(lambda module: module.Model(5.0)),
        init="self.scale = scale", tail="\nmodel = Model()\n"),
    "a size of another instance": Row(
        "return torch.relu(x).view(x.shape[0], self.heads, -1).sum(1)",
        makes(lambda module: module.Model(4)), init="self.heads = 2 if scale == 2.0 else 4",
        tail="\nmodel = Model()\n"),
    "an object of the file, in another one": Row(
        "return torch.relu(x) * self.config.scale + int(self.config.scale)",
        sets("model.config", type("Config", (), {"scale": 7.0})()), init="self.config = CONFIG"),
    "an object of the file, changed": Row(
        "return torch.relu(x) + int(CONFIG.scale)", sets("module.CONFIG.scale", 9.0)),
    "an object of the file, replaced": Row(
        "return torch.relu(x) + int(CONFIG.scale)",
        lambda module, model, undo: setattr(module, "CONFIG", module.Config(9.0))),
    "an object that is an attribute and a global": Row(
        "return torch.relu(x) + int(CONFIG.scale) * int(self.config.scale)",
        lambda module, model, undo: setattr(model, "config",
        module.Config(4.0)), init="self.config = CONFIG"),
    "a global number": Row("return torch.relu(x) * int(FACTOR)", sets("module.FACTOR", 5.0)),
    "a class attribute by type(self)": Row(
        "return torch.relu(x) + type(self).offset",
        sets("module.Model.offset", 4.5), of_class="offset = 1.5"),
    "a class attribute by __class__": Row(
        "return torch.relu(x) + self.__class__.offset",
        sets("module.Model.offset", 4.5), of_class="offset = 1.5"),
    "a class attribute of a subclass": Row(
        "return torch.relu(x) + type(self).offset",
        makes(lambda module: type("Strong", (module.Model,), {"offset": 6.5})()), of_class="offset = 1.5"),
    "a class attribute by self": Row(
        "return torch.relu(x) + self.offset", sets("module.Model.offset", 4.5), of_class="offset = 1.5"),
    "a property": Row(
        "return torch.relu(x) + self.offset",
        lambda module, model, undo: setattr(module.Model, "offset", property(lambda self: 9)),
        of_class="@property\ndef offset(self):\n    return 2"),
    "__getattr__": Row(
        "return torch.relu(x) + self.proxy.offset", sets("model.proxy.held", {"offset": 8}),
        init="self.proxy = Proxy()",
        tail="""
        class Proxy:
            def __init__(self):
                self.held = {"offset": 3}
            def __getattr__(self, name):
                return self.held[name]
        """),
    "a descriptor": Row(
        "return torch.relu(x) + self.offset", sets("module.Offset.value", 9), of_class="offset = None",
        tail="""
        class Offset:
            value = 3
            def __get__(self, owner, kind):
                return self.value
        Model.offset = Offset()
        """),
    "slots": Row(
        "return torch.relu(x) + self.held.offset", sets("model.held.offset", 9), init="self.held = Held()",
        tail="""
        class Held:
            __slots__ = ("offset",)
            def __init__(self):
                self.offset = 3
        """),
    "an entry of a dictionary": Row(
        "return torch.relu(x) + self.table['offset']",
        lambda module, model, undo: model.table.update(offset=9), init="self.table = {'offset': 3}"),
    "an entry of a list": Row(
        "return torch.relu(x) + self.items[0]",
        lambda module, model, undo: model.items.__setitem__(0, 9), init="self.items = [3]"),
    "a closure": Row(
        "return self.function(x) + 1.0",
        lambda module, model, undo: setattr(model, "function", module.made(9)),
        init="self.function = made(3)",
        tail="\ndef made(offset):\n    return lambda x: torch.relu(x) + offset\n"),
    "a default of an argument": Row(
        "return scaled(torch.relu(x))",
        lambda module, model, undo: setattr(module.scaled, "__defaults__", (9,)),
        tail="\ndef scaled(x, factor=3):\n    return x + factor\n"),
    "a default of a keyword": Row(
        "return scaled(torch.relu(x))",
        lambda module, model, undo: module.scaled.__kwdefaults__.update(factor=9),
        tail="\ndef scaled(x, *, factor=3):\n    return x + factor\n"),
    "a function of the file": Row(
        "return scaled(torch.relu(x))", sets("module.scaled", lambda x: x - 5.0),
        tail="\ndef scaled(x):\n    return x * 3.0\n"),
    "a method of the class": Row(
        "return self.scaled(torch.relu(x))", sets("module.Model.scaled", lambda self, x: x - 5.0),
        of_class="def scaled(self, x):\n    return x * 3.0"),
    "a method of the instance": Row(
        "return self.scaled(torch.relu(x))", sets("model.scaled", lambda x: x - 5.0),
        of_class="def scaled(self, x):\n    return x * 3.0"),
    "code of a function": Row(
        "return scaled(torch.relu(x))",
        lambda module, model, undo: setattr(module.scaled, "__code__", (lambda x: x - 5.0).__code__),
        tail="\ndef scaled(x):\n    return x * 3.0\n"),
    "a function of torch": Row("return torch.softmax(x, -1)",
        patches(torch, "softmax", plus_one(torch.softmax))),
    "a function of torch.nn.functional": Row(
        "return F.gelu(x) * 2.0", patches(F, "gelu", plus_one(F.gelu))),
    "a Python function of torch.nn.functional": Row(
        "return F.softmax(x, -1) * 2.0", patches(F, "softmax", plus_one(F.softmax))),
    "attention": Row(
        "q = x.view(1, 2, 8, 64)\nreturn F.scaled_dot_product_attention(q, q, q)",
        patches(F, "scaled_dot_product_attention", plus_one(F.scaled_dot_product_attention))),
    "a function that is imported by name": Row("return silu(x) * 2.0", sets("module.silu", F.relu)),
    "an alias of a module": Row(
        "return F.gelu(x) * 2.0", sets("module.F", type("F", (), {"gelu": staticmethod(torch.relu)}))),
    "a module that is imported within": Row(
        "import torch.nn.functional as G\nreturn G.gelu(x) * 2.0", patches(F, "gelu", plus_one(F.gelu))),
    "what a layer of torch calls": Row(
        "return self.layer(x) * 2.0", patches(F, "gelu", plus_one(F.gelu)), init="self.layer = nn.GELU()"),
    "the forward of a layer's class": Row(
        "return self.layer(x) * 2.0",
        patches(nn.GELU, "forward", lambda self, x: x), init="self.layer = nn.GELU()"),
    "the forward of a layer": Row(
        "return self.layer(x) * 2.0",
        sets("model.layer.forward", lambda x: x), init="self.layer = nn.GELU()"),
    "the call of modules": Row(
        "return self.layer(x) * 2.0",
        patches(nn.Module, "__call__", lambda self, *given: self.forward(*given) + 1.0),
        init="self.layer = nn.GELU()"),
    "a method of tensors": Row(
        "return x.softmax(-1) * 2.0", patches(torch.Tensor, "softmax", plus_one(torch.Tensor.softmax))),
    "an operator of tensors": Row(
        "return torch.relu(x) * 2.0", patches(torch.Tensor, "__mul__", lambda self, other: self)),
    "a mode of torch functions": Row(RELU, enters(Doubled)),
    "a mode of dispatch": Row(RELU, enters(Dispatched)),
    "a default device": Row("return torch.relu(x) + torch.arange(64)", enters(lambda: torch.device("meta"))),
    "a default device that is set": Row(
        "return torch.relu(x) + torch.full((64,), 2.0)", enters(lambda: _default_device("meta"))),
    "tangents": Row(RELU, gives_tangents),
    "a hook": Row("return self.layer(x) * 2.0", hooked, init="self.layer = nn.GELU()"),
    "a hook before": Row("return self.layer(x) * 2.0", pre_hooked, init="self.layer = nn.GELU()"),
    "a layer that is replaced": Row(
        "return self.layer(x) * 2.0", sets("model.layer", nn.SiLU()), init="self.layer = nn.GELU()"),
    "a layer of the same name": Row(
        "return self.layer(x) * 2.0", same_name, init="self.layer = Own()", tail=OWN),
    "a setting of a layer": Row(
        "return self.layer(x) * 2.0", sets("model.layer.approximate", "tanh"), init="self.layer = nn.GELU()"),
    "training": Row(
        "return self.layer(torch.relu(x)) * 2.0", lambda module, model, undo: model.train(),
        init="self.layer = nn.Dropout(1.0)"),
    "a buffer that is none": Row(
        "y = torch.relu(x)\nreturn y * 2.0 if self.bias is None else y * 2.0 + self.bias",
        sets("model.bias", torch.ones(64)), init="self.register_buffer('bias', None)"),
    "the default dtype": Row(
        "return torch.relu(x) * torch.full((64,), 0.1)", enters(lambda: _default_dtype(torch.float64))),
    "the length of a list of layers": Row(
        "for layer in self.layers:\n    x = layer(x)\nreturn x * 2.0",
        lambda module, model, undo: model.layers.append(nn.SiLU()) and None,
        init="self.layers = nn.ModuleList([nn.GELU(), nn.ReLU()])"),
    "a buffer in place": Row(
        "return torch.relu(x) * self.gain",
        lambda module, model, undo: (model.gain.fill_(5.0), None)[1],
        init="self.register_buffer('gain', torch.full((64,), 2.0))"),
    "a buffer that is another": Row(
        "return torch.relu(x) * self.gain", sets("model.gain", torch.full((64,), 5.0)),
        init="self.register_buffer('gain', torch.full((64,), 2.0))"),
    "a tensor of the file": Row(
        "return torch.relu(x) * TABLE", sets("module.TABLE", torch.full((64,), 5.0)),
        tail="\nTABLE = torch.full((64,), 2.0)\n"),
    "a tensor of the file in place": Row(
        "return torch.relu(x) * TABLE",
        lambda module, model, undo: (module.TABLE.fill_(5.0), None)[1],
        tail="\nTABLE = torch.full((64,), 2.0)\n"),
    "a parametrization": Row(
        "return torch.relu(self.layer(x))", lambda module, model, undo: register_parametrization(
            model.layer, "weight", Negated()) and None, init="self.layer = nn.LayerNorm(64)"),
    "an environment variable": Row(
        "return torch.relu(x) * (3.0 if os.environ.get('GAIN') else 2.0)",
        enters(lambda: patch.dict(os.environ, GAIN="four")), tail="\nimport os\n"),
    "a constant of another module": Row(
        "return torch.relu(x) * round(math.pi)", patches(math, "pi", 7.0), tail="\nimport math\n"),
    "a cache that is built lazily": Row(
        """
        if self.table is None:
            self.table = torch.full((64,), 2.0)
        return torch.relu(x) * self.table
        """, sets("model.table", torch.full((64,), 5.0)), init="self.table = None"),
    "a class decorator that returns a subclass": Row(
        "return torch.relu(x) * self.gain", sets("model.gain", 5.0), init="self.gain = 2.0",
        tail="""
        def tagged(kind):
            return type(kind.__name__, (kind,), {"tag": 1})
        Model = tagged(Model)
        """),
    "the dictionary of a module": Row(
        "return torch.relu(x) + self.gain", lambda module, model, undo: model.__dict__.update(gain=9),
        init="self.gain = 2"),
    "a variable of a context": Row(
        "return torch.relu(x) + GAIN.get()", lambda module, model, undo: module.GAIN.set(9.0) and None,
        tail="\nimport contextvars\nGAIN = contextvars.ContextVar('gain', default=2.0)\n"),
    "a variable of a thread": Row(
        "return torch.relu(x) + LOCAL.gain", sets("module.LOCAL.gain", 9),
        tail="\nimport threading\nLOCAL = threading.local()\nLOCAL.gain = 2\n"),
    "an enumeration": Row(
        "return torch.relu(x) + (1 if self.mode is Mode.SLOW else 2)",
        lambda module, model, undo: setattr(model, "mode", module.Mode.FAST), init="self.mode = Mode.SLOW",
        tail="\nimport enum\nclass Mode(enum.Enum):\n    SLOW = 1\n    FAST = 2\n"),
    "a partial": Row(
        "return self.act(x) * 2.0",
        lambda module, model, undo: setattr(model, "act", module.partial(F.leaky_relu, negative_slope=0.5)),
        init="self.act = partial(F.leaky_relu, negative_slope=0.1)",
        tail="\nfrom functools import partial\n"),
    "the keywords of a partial": Row(
        "return self.act(x) * 2.0",
        lambda module, model, undo: model.act.keywords.update(negative_slope=0.5),
        init="self.act = partial(F.leaky_relu, negative_slope=0.1)",
        tail="\nfrom functools import partial\n"),
    "a cached function": Row(
        "return torch.relu(x) + gain()",
        lambda module, model, undo: (setattr(module, "GAIN", 9), module.gain.cache_clear())[1],
        tail="""
        import functools
        GAIN = 2
        @functools.lru_cache
        def gain():
            return GAIN
        """),
    "a static method": Row(
        "return self.scaled(torch.relu(x))", sets("module.Model.scaled", staticmethod(lambda x: x - 5.0)),
        of_class="@staticmethod\ndef scaled(x):\n    return x * 3.0"),
    "a class method": Row(
        "return self.scaled(torch.relu(x))", sets("module.Model.offset", 9),
        of_class="offset = 2\n@classmethod\ndef scaled(cls, x):\n    return x + cls.offset"),
    "an attribute of the metaclass": Row(
        "return torch.relu(x) + float(type(self).offset)", sets("module.Meta.offset", 9.5),
        tail="""
        class Meta(type):
            offset = 2.5
        Model = Meta("Model", (Model,), {})
        """),
    "a named tuple": Row(
        "return torch.relu(x) + self.sizes.gain",
        lambda module, model, undo: setattr(model, "sizes", model.sizes._replace(gain=9)),
        init="self.sizes = Sizes(2, 3)",
        tail="\nfrom collections import namedtuple\nSizes = namedtuple('Sizes', 'gain other')\n"),
    "a data class": Row(
        "return torch.relu(x) + self.sizes.gain", sets("model.sizes.gain", 9), init="self.sizes = Sizes()",
        tail="\nfrom dataclasses import dataclass\n@dataclass\nclass Sizes:\n    gain: int = 2\n"),
    "a number that the call counts": Row(
        "self.count += 1\nreturn torch.relu(x) * self.count", sets("model.count", 7.0),
        init="self.count = 1.0"),
    "a layer of a dictionary of layers": Row(
        "return self.layers['act'](x) * 2.0",
        lambda module, model, undo: model.layers.update({"act": nn.SiLU()}),
        init="self.layers = nn.ModuleDict({'act': nn.GELU()})"),
    "whether a parameter wants a gradient": Row(
        "k = 2.0 if self.norm.weight.requires_grad else 3.0\nreturn torch.relu(x) * k",
        sets("model.norm.weight.requires_grad", False), init="self.norm = nn.LayerNorm(8)"),
    "whether a parameter wants a gradient, by a text": Row(
        "k = 2.0 if getattr(self.norm.weight, 'requires_grad') else 3.0\nreturn torch.relu(x) * k",
        sets("model.norm.weight.requires_grad", False), init="self.norm = nn.LayerNorm(8)"),
    "whether a buffer is a parameter": Row(
        "k = 2.0 if isinstance(self.gain, nn.Parameter) else 3.0\nreturn torch.relu(x) * k",
        lambda module, model, undo: setattr(model, "gain", nn.Parameter(torch.ones(64))),
        init="self.gain = torch.ones(64)"),
    "whether a parameter is one": Row(
        "k = 2.0 if isinstance(self.gain, nn.Parameter) else 3.0\nreturn torch.relu(x) * k",
        lambda module, model, undo: model.__dict__.update(gain=model._parameters.pop("gain").detach()),
        init="self.gain = nn.Parameter(torch.ones(64))"),
    "whether a parameter has a gradient": Row(
        "k = 2.0 if self.gain.grad is None else 3.0\nreturn torch.relu(x) * k",
        sets("model.gain.grad", torch.ones(64)), init="self.gain = nn.Parameter(torch.ones(64))"),
    "an attribute of a parameter": Row(
        "return torch.relu(x) * getattr(self.gain, 'factor', 2.0)",
        sets("model.gain.factor", 5.0), init="self.gain = nn.Parameter(torch.ones(64))"),
    "a whole number of a call": Row(
        "k = counted()\nreturn torch.relu(x) * 2.0 + k", sets_count(7), tail=COUNTED),
    "a whole number of a call that is no name": Row(
        "return torch.relu(x) * 2.0 + counted()", sets_count(7), tail=COUNTED),
    "a whole number that becomes a float": Row(
        "k = counted()\nreturn torch.relu(x) * 2.0 + k", sets_count(2.5), tail=COUNTED),
    "a float that becomes a whole number": Row(
        "k = counted()\nreturn torch.relu(x) * 2.0 + k", sets_count(7),
        tail=COUNTED.replace("[2]", "[2.5]")),
    "a whole number and truths": Row(
        "k = counted()\ny = torch.relu(x) * 2.0\nreturn y + torch.sin((x > 0) * k)",
        sets_count(3.5), tail=COUNTED),
    "the mode of a layer below": Row(
        "return self.layer(torch.relu(x)) * 2.0", lambda module, model, undo: model.layer.train() and None,
        init="self.layer = nn.Dropout(1.0)"),
    "the call of a layer's own class": Row(
        "return self.layer(x) * 2.0", patches(nn.GELU, "__call__", lambda self, x: x - 5.0, create=True),
        init="self.layer = nn.GELU()"),
    "what the call of a layer's class calls": Row(
        "return self.layer(x) * 2.0", patches(nn.GELU, "_call_impl", lambda self, x: x - 5.0, create=True),
        init="self.layer = nn.GELU()"),
    "the forward of another class of torch": Row(
        "return self.layer(x) * 2.0", patches(nn.GELU, "forward", nn.Softsign.forward),
        init="self.layer = nn.GELU()"),
    "what the call of a layer calls": Row(
        "return self.layer(x) * 2.0", sets("model.layer._call_impl", lambda x: x - 5.0),
        init="self.layer = nn.GELU()"),
    "a compiled call of a layer": Row(
        "return self.layer(x) * 2.0", sets("model.layer._compiled_call_impl", lambda x: x - 5.0),
        init="self.layer = nn.GELU()"),
    "the call of a class of the file": Row(
        "return self.layer(x) * 2.0", sets("module.Own.__call__", lambda self, x: x - 5.0),
        init="self.layer = Own()", tail=OWN),
    "a call that a class of the file has": Row(
        "return self.layer(x) * 2.0", sets("module.Called.__call__", lambda self, x: x - 5.0),
        init="self.layer = Called()",
        tail=f"""{OWN}
class Called(Own):
    def __call__(self, x):
        return super().__call__(x) + 2.0
"""),
    "a method that a layer of torch calls": Row(
        "return self.layer(x) + 2.0", sets("model.layer._conv_forward", lambda x, weight, bias: x - 5.0),
        init="self.layer = nn.Conv1d(16, 16, 1, bias=False)\nnn.init.constant_(self.layer.weight, 0.1)"),
    "a lambda of the same method": Row(
        "return self.act(x) + 1.0", lambda module, model, undo: setattr(model, "act", model.acts[1]),
        init="""
        self.acts = [lambda x: torch.relu(x) * 2.0, lambda x: torch.tanh(x) * 3.0]
        self.act = self.acts[0]
        """),
    "a lambda of the same file": Row(
        "return ACT(x) + 1.0", lambda module, model, undo: setattr(module, "ACT", module.ACTS[1]),
        tail="\nACTS = [lambda x: torch.relu(x) * 2.0, lambda x: torch.tanh(x) * 3.0]\nACT = ACTS[0]\n"),
    "a function of the same name": Row(
        "return scaled(torch.relu(x))",
        lambda module, model, undo: setattr(
            module, "scaled", executed("def scaled(x):\n    return x - 5.0", "scaled")),
        tail="\ndef scaled(x):\n    return x * 3.0\n"),
    "a function that is defined again": Row(
        "return scaled(torch.relu(x))", lambda module, model, undo: setattr(module, "scaled", module.FIRST),
        tail="""
        def scaled(x):
            return x - 5.0
        FIRST = scaled
        def scaled(x):
            return x * 3.0
        """),
    "what a decorator encloses": Row(
        "return scaled(x)", lambda module, model, undo: setattr(module, "scaled", module.shifted),
        tail="""
        def plus(function):
            def call(x):
                return function(x) + 1.0
            return call
        @plus
        def scaled(x):
            return torch.relu(x) * 3.0
        @plus
        def shifted(x):
            return torch.relu(x) - 5.0
        """),
    "a forward of the same name": Row(
        "return self.layer(x) * 2.0",
        lambda module, model, undo: setattr(module.Own, "forward", executed(
            "class Own:\n    def forward(self, x):\n        return x - 5.0", "Own").forward),
        init="self.layer = Own()", tail=OWN),
    "a global that hides a builtin": Row(
        "return torch.relu(x) * len(self.held) + 1.0", sets("module.len", lambda held: 7),
        init="self.held = [1, 2]"),
    "a global that hides a class of Python": Row(
        "return torch.relu(x) * float(self.gain) + 1.0", sets("module.float", lambda value: 9.0),
        init="self.gain = 3"),
    "a global that hides what asks for a class": Row(
        "k = 1.0 if isinstance(self.gain, int) else 2.0\nreturn torch.relu(x) * k + 1.0",
        sets("module.isinstance", lambda value, kind: False), init="self.gain = 3"),
    "a builtin that is replaced": Row(
        "return torch.relu(x) * max(self.held) + 1.0", patches(builtins, "max", min),
        init="self.held = [1.0, 2.0]"),
    "a function of another module": Row(
        "return torch.relu(x) * math.sqrt(self.gain) + 1.0", patches(math, "sqrt", lambda value: 9.0),
        init="self.gain = 4", tail="\nimport math\n"),
    "another module that is replaced": Row(
        "return torch.relu(x) * math.sqrt(self.gain) + 1.0",
        sets("module.math", type("Other", (), {"sqrt": staticmethod(lambda value: 9.0)})),
        init="self.gain = 4", tail="\nimport math\n"),
    "a zero of the other sign": Row(
        "return torch.where(x > 0, 1.0 / x, self.gain).reciprocal()", sets("model.gain", -0.0),
        init="self.gain = 0.0"),
    "a zero of the other sign in a list": Row(
        "return torch.where(x > 0, 1.0 / x, self.gains[0]).reciprocal()", sets("model.gains", [-0.0]),
        init="self.gains = [0.0]"),
    "the order of a dictionary": Row(
        "y = torch.relu(x)\nfor value in self.table.values():\n    y = (y + value) * value\nreturn y",
        sets("model.table", {"b": 3.0, "a": 2.0}), init="self.table = {'a': 2.0, 'b': 3.0}"),
    "the type of an entry": Row(
        "y = torch.relu(x).to(torch.int32)\nfor value in self.table.values():\n    y = y + value\nreturn y",
        sets("model.table", {"a": 2.0}), init="self.table = {'a': 2}"),
    "a number of a class of its own": Row(
        "return torch.relu(x) * self.gain + 1.0",
        lambda module, model, undo: setattr(model, "gain", module.Half(3.0)), init="self.gain = Half(2.0)",
        tail="\nclass Half(float):\n    pass\n"),
    "a count of a class of its own": Row(
        "return torch.relu(x) * self.gain + 1.0",
        lambda module, model, undo: setattr(model, "gain", module.Count(3)), init="self.gain = Count(2)",
        tail="\nclass Count(int):\n    pass\n"),
    "a text of a class of its own": Row(
        "return torch.relu(x) * (2.0 if self.kind == 'strong' else 3.0)",
        lambda module, model, undo: setattr(model, "kind", module.Kind("strong")),
        init="self.kind = Kind('weak')",
        tail="\nclass Kind(str):\n    pass\n"),
    "the value of an entry of an enumeration": Row(
        "return torch.relu(x) + self.mode.value",
        lambda module, model, undo: setattr(model, "mode", module.enum.Enum("Mode", {"SLOW": 5}).SLOW),
        init="self.mode = Mode.SLOW", tail=MODE),
    "an enumeration of the same name": Row(
        "return torch.relu(x) + (1 if self.mode is Mode.SLOW else 2)",
        lambda module, model, undo: setattr(module, "Mode", module.enum.Enum("Mode", "SLOW FAST")),
        init="self.mode = Mode.SLOW", tail=MODE),
    "a subclass of tensors": Row(RELU, lambda module, model, undo: None),
}  # fmt: skip
REFUSED = {"a closure", "a descriptor", "__getattr__", "a default of an argument", "a default of a keyword"}
"""Of these no kernel need be offered."""


class _default_dtype:  # noqa: N801 - a context
    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype

    def __enter__(self) -> None:
        self.before = torch.get_default_dtype()
        torch.set_default_dtype(self.dtype)

    def __exit__(self, *_: object) -> None:
        torch.set_default_dtype(self.before)


class _default_device:  # noqa: N801 - a context
    def __init__(self, device: str) -> None:
        self.device = device

    def __enter__(self) -> None:
        torch.set_default_device(self.device)

    def __exit__(self, *_: object) -> None:
        torch.set_default_device(None)


def imported(text: str, folder: Path) -> ModuleType:
    """The original, as a module of a file of its own."""
    path = folder / "original.py"
    path.write_text(text)
    module = ModuleType("original")
    module.__file__ = str(path)
    sys.modules["original"] = module
    exec(compile(text, str(path), "exec"), vars(module))
    return module


def outcome(module: ModuleType, model: Any, x: torch.Tensor) -> Any:
    """What a call gives, or the type of what it raises."""
    try:
        with torch.no_grad():
            return model(x)
    except Exception as error:
        return type(error)


def check(row: Row, whole: bool, capture: Any, folder: Path) -> Iterator[str]:
    """What differs, and why the row says nothing, where that is so."""
    regions: list[Region] = [region for region in capture(row.text, whole=whole) if region.task]
    if not regions:
        yield "no kernel"
        return
    original, edited = imported(row.text, folder), edited_module(row.text, regions[0])
    x = torch.randn(16, 64)
    models = [module.Model().eval() for module in (original, edited)]
    before = [outcome(module, model, x) for module, model in zip((original, edited), models, strict=True)]
    if not runs(edited):
        yield "no kernel ran"
    if not same(*before):
        yield "differs at first"
    after = []
    for module, model in zip((original, edited), models, strict=True):
        with ExitStack() as undo:
            other = row.change(module, model, undo)
            after.append(outcome(module, model if other is None else other, x))
    if same(before[0], after[0]) and row.change is not ROWS["a subclass of tensors"].change:
        yield "the change changes nothing"
    if not same(*after):
        yield "SILENT DIFFERENCE"


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return (
            one.dtype == other.dtype
            and one.shape == other.shape
            and torch.allclose(one, other, 1e-4, 1e-5, equal_nan=True)
        )
    return bool(one is other)


OF_TORCH = (
    *("a function of torch", "a function of torch.nn.functional", "a Python function of torch.nn.functional"),
    *("attention", "a module that is imported within", "what a layer of torch calls", "the call of modules"),
    *("the forward of a layer's class", "a method of tensors", "an operator of tensors"),
)
"""Of these the program changes torch alone."""


@pytest.mark.parametrize("name", OF_TORCH)
def test_what_was_changed_before_the_import_counts_like_a_later_change(
    name: str, state_capture: Any, tmp_path: Path
) -> None:
    row, x = ROWS[name], torch.randn(16, 64)
    (region, *_) = [region for region in state_capture(row.text, whole=False) if region.task]
    with ExitStack() as undo:
        row.change(ModuleType("none"), None, undo)
        original, edited = imported(row.text, tmp_path), edited_module(row.text, region)
        results = [outcome(module, module.Model().eval(), x) for module in (original, edited)]
    assert same(*results)
    assert not runs(edited)


OF_PROGRAMS = (
    *("a default of an argument", "a default of a keyword", "a function of torch.nn.functional", "attention"),
    *("whether a parameter wants a gradient", "whether a parameter is one", "an attribute of a parameter"),
    *("a layer of the same name", "a cached function", "a class method", "an environment variable", "a hook"),
    *(
        "an object of the file, in another one",
        "a class attribute by type(self)",
        "a mode of torch functions",
    ),
)
"""What kernels of a whole forward take another way to than single ones."""
CASES = [
    pytest.param(name, whole, marks=[pytest.mark.thorough] if whole and name not in OF_PROGRAMS else [])
    for name in ROWS
    for whole in (False, True)
]


@pytest.mark.parametrize("device", ["cpu", "cpu:0"])
def test_a_default_device_that_is_that_of_the_operands_changes_nothing(
    device: str, state_capture: Any
) -> None:
    text = ROWS["a default device"].text
    (region, *_) = [region for region in state_capture(text, whole=False) if region.task]
    edited, x = edited_module(text, region), torch.randn(16, 64)
    with torch.no_grad(), torch.device(device):
        edited.Model()(x)
    assert runs(edited) == 1


@pytest.mark.parametrize(("name", "whole"), CASES)
def test_nothing_that_a_program_changes_is_overlooked(
    name: str, whole: bool, state_capture: Any, tmp_path: Path
) -> None:
    faults = list(check(ROWS[name], whole, state_capture, tmp_path))
    assert faults == [] or (faults == ["no kernel"] and (whole or name in REFUSED)), faults


@pytest.fixture(scope="module")
def evaluating() -> Iterator[AgentClient]:
    """Modules are captured in evaluation, as the product does unless it is told otherwise."""
    with AgentClient(warm.interpreter(), evaluation=True) as client:
        yield client


@pytest.fixture
def state_capture(evaluating: AgentClient, tmp_path: Path) -> Callable[..., tuple[Region, ...]]:
    return lambda text, whole: evaluating.capture(
        tmp_path / "model.py", text, covered_ops(ASCENDC), whole=whole
    )
