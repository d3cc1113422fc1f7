"""What may differ between the run that a capture saw and the runs of its model's life.

Each kind is a function ``(run, rng, number)`` that changes a ``Run`` and says what it did. Kinds marked early
act before the model is built. Nothing here knows of kernels: the same changes are made to both programs.
"""

from __future__ import annotations

import copy
import functools
import inspect
import io
import pickle
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, is_dataclass
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

HALF = (torch.float16, torch.bfloat16)
PLAIN = (bool, int, float, str, type(None))


class NotApplicable(Exception):
    """The model has nothing that this kind could change."""


@dataclass
class Run:
    """One build and call of a model. ``mode`` is ``infer`` (evaluation without gradients) or ``train``."""

    driver: Any
    file: str
    mode: str
    options: dict[str, Any] = field(default_factory=dict)
    shape: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    scope: ExitStack = field(default_factory=ExitStack)
    precision: torch.dtype = torch.float32
    model: Any = None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    call: Callable[[], Any] | None = None

    def say(self, text: str) -> None:
        self.notes.append(text)

    def build(self) -> None:
        self.model = self.driver.build(**self.options)
        self.model.train(self.mode == "train")

    def supply(self) -> None:
        given = self.driver.inputs(**self.shape)
        self.args, self.kwargs = ((), dict(given)) if isinstance(given, dict) else (tuple(given), {})

    def __call__(self) -> Any:
        return self.call() if self.call else self.model(*self.args, **self.kwargs)

    def map_inputs(self, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
        """Changes each tensor among the inputs."""
        self.args, self.kwargs = pytree.tree_map_only(torch.Tensor, change, (self.args, self.kwargs))

    @property
    def tensors(self) -> list[torch.Tensor]:
        return [x for x in pytree.tree_leaves((self.args, self.kwargs)) if isinstance(x, torch.Tensor)]

    def coarser(self, dtype: torch.dtype) -> None:
        """Notes that values are rounded to a type somewhere."""
        if dtype in HALF and self.precision is not torch.bfloat16:
            self.precision = dtype

    def set(self, target: Any, name: str, value: Any) -> None:
        """Sets an attribute until the run ends: classes and modules of the file outlive it."""
        missing = object()
        before = vars(target).get(name, missing)
        restore = functools.partial(setattr, target, name, before)
        self.scope.callback(functools.partial(delattr, target, name) if before is missing else restore)
        setattr(target, name, value)


Kind = Callable[[Run, Any, int], None]
EARLY: dict[str, tuple[Kind, int]] = {}
LATE: dict[str, tuple[Kind, int]] = {}


def kind(name: str, times: int, *, early: bool = False) -> Callable[[Kind], Kind]:
    def add(function: Kind) -> Kind:
        (EARLY if early else LATE)[name] = (function, times)
        return function

    return add


def plan(driver: Any) -> Iterator[tuple[str, int, str]]:
    """Kind, number and mode of each perturbation, the most telling first; the same for every program."""
    counts = {name: times for name, (_, times) in {**EARLY, **LATE}.items()}
    counts["constructor"] = len(getattr(driver, "CHANGES", ()))
    for number in range(max(counts.values())):
        for name, times in counts.items():
            if number < times:
                yield name, number, "infer"
                yield name, number, "train"


@kind("as it is", 1)
def as_it_is(run: Run, rng: Any, number: int) -> None:
    run.say("nothing changed")


@kind("seed", 1, early=True)
def seed(run: Run, rng: Any, number: int) -> None:
    value = rng.randrange(1000)
    torch.manual_seed(value)
    run.say(f"torch.manual_seed({value})")


@kind("constructor", 0, early=True)
def constructor(run: Run, rng: Any, number: int) -> None:
    run.options = dict(run.driver.CHANGES[number])
    run.say(f"build(**{run.options})")


@kind("sizes", 6, early=True)
def sizes(run: Run, rng: Any, number: int) -> None:
    defaults = {name: item.default for name, item in inspect.signature(run.driver.inputs).parameters.items()}
    if not {"batch", "size"} <= defaults.keys():
        raise NotApplicable
    size = defaults["size"]
    choices = (
        {"batch": 1},
        {"batch": 5},
        {"size": size // 2},
        {"size": size * 2},
        {"batch": 0},
        {"size": size - 1},
    )
    run.shape = choices[number]
    run.say(f"inputs(**{run.shape})")


@kind("default dtype", 3, early=True)
def default_dtype(run: Run, rng: Any, number: int) -> None:
    dtype = (torch.float64, torch.bfloat16, torch.float16)[number]
    before = torch.get_default_dtype()
    run.scope.callback(torch.set_default_dtype, before)
    torch.set_default_dtype(dtype)
    run.coarser(dtype)
    run.say(f"torch.set_default_dtype({dtype}) before the model is built")


def _floating(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: change(x) if x.is_floating_point() else x


@kind("dtype", 4)
def dtype(run: Run, rng: Any, number: int) -> None:
    target = (torch.bfloat16, torch.float16, torch.float64, torch.bfloat16)[number]
    run.coarser(target)
    run.model.to(target)
    if number == 3:
        run.say("model.bfloat16(), inputs as they were")
        return
    run.map_inputs(_floating(lambda x: x.to(target)))
    run.say(f"model and inputs to {target}")


@kind("dtype of some", 4)
def dtype_of_some(run: Run, rng: Any, number: int) -> None:
    target = (torch.bfloat16, torch.float64, torch.float16, torch.float32)[number]
    path, module = _chosen(run, rng, lambda m: any(True for _ in m.parameters(recurse=False)))
    run.coarser(target)
    if number == 3:
        run.coarser(torch.bfloat16)
        run.model.to(torch.bfloat16)
        run.map_inputs(_floating(lambda x: x.to(torch.bfloat16)))
    module.to(target)
    run.say(f"{path}.to({target})" + (" in a model of bfloat16" if number == 3 else ""))


@kind("dtype of inputs", 3)
def dtype_of_inputs(run: Run, rng: Any, number: int) -> None:
    target = (torch.float64, torch.bfloat16, torch.int32)[number]
    run.coarser(target)
    whole = number == 2
    run.map_inputs(lambda x: x.to(target) if x.is_floating_point() != whole else x)
    run.say(f"inputs to {target}")


@kind("autocast", 3)
def autocast(run: Run, rng: Any, number: int) -> None:
    target = (torch.bfloat16, torch.float16, torch.bfloat16)[number]
    run.coarser(target)
    if number < 2:
        run.scope.enter_context(torch.autocast("cpu", target))
        run.say(f"torch.autocast('cpu', {target})")
        return
    path, module = _chosen(run, rng, lambda m: True)
    inner = module.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        with torch.autocast("cpu", enabled=False):
            return inner(*args, **kwargs)

    run.scope.enter_context(torch.autocast("cpu", target))
    module.forward = forward
    run.say(f"torch.autocast, switched off inside {path}")


# --- tensors that are given


def _transposed(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(-1, -2).contiguous().transpose(-1, -2) if x.dim() > 1 else x


def _strided(x: torch.Tensor) -> torch.Tensor:
    return torch.stack((x, x), -1)[..., 0]


def _shifted(x: torch.Tensor) -> torch.Tensor:
    """At an offset that no vector unit likes."""
    return torch.cat((x.new_zeros(1), x.flatten()))[1:].view(x.shape)


def _broadcast(x: torch.Tensor) -> torch.Tensor:
    return x[:1].expand_as(x) if x.dim() and len(x) else x


def _channels_last(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x


def _first_dimension_last(x: torch.Tensor) -> torch.Tensor:
    return x.movedim(0, -1).contiguous().movedim(-1, 0) if x.dim() > 1 else x


LAYOUTS = (_transposed, _strided, _shifted, _broadcast, _channels_last, _first_dimension_last)


@kind("layout", 6)
def layout(run: Run, rng: Any, number: int) -> None:
    run.map_inputs(LAYOUTS[number])
    run.say(f"inputs {LAYOUTS[number].__name__.strip('_').replace('_', ' ')}")


@kind("layout of parameters", 2)
def layout_of_parameters(run: Run, rng: Any, number: int) -> None:
    change = (_transposed, _channels_last)[number]
    for parameter in run.model.parameters():
        parameter.data = change(parameter.data)
    run.say(f"parameters {change.__name__.strip('_')}")


@kind("alias", 3)
def alias(run: Run, rng: Any, number: int) -> None:
    """The same tensor twice, a view of it, or one that overlaps it."""
    found = run.tensors
    pairs = [
        (a, b)
        for i, a in enumerate(found)
        for b in found[i + 1 :]
        if (a.shape, a.dtype) == (b.shape, b.dtype)
    ]
    if not pairs:
        raise NotApplicable
    first, second = rng.choice(pairs)
    if number == 2:
        if not first.dim() or not first.numel():
            raise NotApplicable
        wide = torch.cat((first.flatten(), second.flatten()))
        new = {
            id(first): wide[: first.numel()].view(first.shape),
            id(second): wide[1 : first.numel() + 1].view(first.shape),
        }
    else:
        new = {id(second): first if number == 0 else first.view_as(first)}
    run.map_inputs(lambda x: new.get(id(x), x))
    run.say(("one tensor given twice", "a tensor and a view of it", "two tensors that overlap")[number])


@kind("values", 5)
def values(run: Run, rng: Any, number: int) -> None:
    scale = (1e-4, 1e3, 0.0, float("nan"), float("inf"))[number]
    if number < 3:
        run.map_inputs(_floating(lambda x: x * scale))
    else:

        def put(x: torch.Tensor) -> torch.Tensor:
            flat = x.flatten().clone()
            flat[:1] = scale
            return flat.view(x.shape)

        run.map_inputs(_floating(put))
    run.say(f"inputs times {scale}" if number < 3 else f"an input is {scale}")


# --- gradients


@kind("gradients", 7)
def gradients(run: Run, rng: Any, number: int) -> None:
    parameters = list(run.model.parameters())
    if number == 0:
        run.scope.enter_context(torch.inference_mode())
        run.say("torch.inference_mode()")
    elif number == 1:
        run.scope.enter_context(torch.no_grad())
        run.say("torch.no_grad()")
    elif number == 2:
        run.model.requires_grad_(False)
        run.say("no parameter needs gradients")
    elif number == 3:
        run.map_inputs(_floating(lambda x: x.requires_grad_()))
        run.say("the inputs need gradients")
    elif number == 4:
        for parameter in parameters:
            parameter.requires_grad_(rng.random() < 0.5)
        run.say("half of the parameters frozen")
    elif number == 5:
        run.model.requires_grad_(False)
        run.scope.enter_context(torch.enable_grad())
        run.map_inputs(_floating(lambda x: x.requires_grad_()))
        run.say("frozen parameters, inputs that need gradients, gradients on")
    else:
        run.scope.enter_context(torch.enable_grad())
        run.say("evaluation with gradients on")


# --- the model after construction


def _modules(run: Run) -> list[tuple[str, nn.Module]]:
    return [("model" + (f".{name}" if name else ""), module) for name, module in run.model.named_modules()]


def _chosen(run: Run, rng: Any, condition: Callable[[nn.Module], bool]) -> tuple[str, nn.Module]:
    found = [item for item in _modules(run) if condition(item[1])]
    if not found:
        raise NotApplicable
    return rng.choice(found)


def _of_file(run: Run, module: Any) -> bool:
    """Whether an object's class is written in the file under test."""
    source = getattr(sys.modules.get(type(module).__module__), "__file__", None) or ""
    return source.endswith(run.file)


def _other(value: Any, rng: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + rng.choice((1, -1, value))
    if isinstance(value, float):
        return value * 1.5 + 0.25
    if isinstance(value, str):
        return rng.choice(("relu", "gelu", "none", "mean"))
    return 0.5


def _settings(module: nn.Module) -> list[str]:
    return [k for k, v in sorted(vars(module).items()) if isinstance(v, PLAIN) and not k.startswith("_")]


def _change_attribute(run: Run, rng: Any, found: list[tuple[str, Any, str]]) -> None:
    if not found:
        raise NotApplicable
    path, target, name = rng.choice(found)
    value = _other(getattr(target, name), rng)
    setattr(target, name, value)
    run.say(f"{path}.{name} = {value!r}")


@kind("attribute", 8)
def attribute(run: Run, rng: Any, number: int) -> None:
    own = [(p, m, k) for p, m in _modules(run) if _of_file(run, m) for k in _settings(m) if k != "training"]
    kinds = ((float,), (bool,), (int,), (str, type(None)), PLAIN)[min(number, 4)]
    _change_attribute(run, rng, [item for item in own if isinstance(getattr(item[1], item[2]), kinds)])


@kind("setting", 8)
def setting(run: Run, rng: Any, number: int) -> None:
    """p, eps, momentum, inplace, negative_slope ... of a module that is not the file's."""
    found = [
        (p, m, k) for p, m in _modules(run) if not _of_file(run, m) for k in _settings(m) if k != "training"
    ]
    kinds = ((float,), (bool,), PLAIN)[number % 3]
    _change_attribute(run, rng, [item for item in found if isinstance(getattr(item[1], item[2]), kinds)])


@kind("mode of a part", 3)
def mode_of_a_part(run: Run, rng: Any, number: int) -> None:
    path, module = _chosen(run, rng, lambda m: m is not run.model and (number or not list(m.children())))
    module.train(not module.training)
    run.say(f"{path}.train({module.training})")


@kind("mode of the outside", 1)
def mode_of_the_outside(run: Run, rng: Any, number: int) -> None:
    run.model.training = not run.model.training
    run.say("model.training changed, that of its parts not")


@kind("config", 5)
def config(run: Run, rng: Any, number: int) -> None:
    holders = {}
    for path, module in _modules(run):
        for name, value in sorted(vars(module).items()):
            if name.startswith("_") or isinstance(
                value, (*PLAIN, torch.Tensor, nn.Module, types.FunctionType, type)
            ):
                continue
            if is_dataclass(value) or hasattr(value, "__dict__"):
                holders.setdefault(id(value), (f"{path}.{name}", value))
    found = [
        (path, value, name)
        for path, value in holders.values()
        for name, item in sorted(vars(value).items())
        if isinstance(item, PLAIN) and not name.startswith("_")
    ]
    _change_attribute(run, rng, found)


@kind("container", 2)
def container(run: Run, rng: Any, number: int) -> None:
    """A layer less, or two in another order."""
    lists = (nn.ModuleList, nn.Sequential)
    path, module = _chosen(run, rng, lambda m: isinstance(m, lists) and len(m) > 1)
    if number:
        module[0], module[1] = module[1], module[0]
        run.say(f"{path}[0] and [1] exchanged")
    else:
        del module[len(module) - 1]
        run.say(f"del {path}[-1]")


ACTIVATIONS = (
    nn.ReLU,
    nn.GELU,
    nn.SiLU,
    nn.Sigmoid,
    nn.Tanh,
    nn.LeakyReLU,
    nn.ReLU6,
    nn.Hardswish,
    nn.ELU,
    nn.Softmax,
)


def _replace(run: Run, path: str, module: nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    setattr(run.model.get_submodule(parent.removeprefix("model").removeprefix(".")), name, module)
    run.say(f"{path} = {module}")


@kind("other module", 5)
def other_module(run: Run, rng: Any, number: int) -> None:
    norms = (nn.LayerNorm, nn.BatchNorm2d, nn.BatchNorm1d, nn.GroupNorm)
    if number == 0:
        path, found = _chosen(run, rng, lambda m: isinstance(m, ACTIVATIONS) and m is not run.model)
        _replace(run, path, nn.Softplus() if not isinstance(found, nn.Softplus) else nn.ReLU())
    elif number == 1:
        path, found = _chosen(run, rng, lambda m: isinstance(m, norms))
        new = copy.deepcopy(found)
        new.eps = 0.5
        _replace(run, path, new)
    elif number == 2:
        path, _ = _chosen(run, rng, lambda m: isinstance(m, (nn.Dropout, nn.Dropout2d)))
        _replace(run, path, nn.Identity())
    elif number == 3:
        path, found = _chosen(run, rng, lambda m: isinstance(m, nn.Linear) and m is not run.model)
        new = nn.Linear(found.in_features, found.out_features, found.bias is None, dtype=found.weight.dtype)
        _replace(run, path, new)
    else:
        path, _ = _chosen(run, rng, lambda m: isinstance(m, (*norms, nn.Identity)) and m is not run.model)
        _replace(run, path, nn.Sequential(nn.Identity(), nn.Hardtanh()))


def _scaled(result: Any) -> Any:
    return pytree.tree_map_only(torch.Tensor, _floating(lambda x: x * 1.5), result)


@kind("other class", 2)
def other_class(run: Run, rng: Any, number: int) -> None:
    """A subclass that a library swaps in, as quantisers and adapters do."""
    path, module = _chosen(run, rng, lambda m: not list(m.children()) if number else _of_file(run, m))
    old = type(module)

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _scaled(old.forward(self, *args, **kwargs))

    module.__class__ = type(old.__name__, (old,), {"forward": forward})
    run.say(f"{path}.__class__ is a subclass with a forward of its own")


@kind("forward of an object", 4)
def forward_of_an_object(run: Run, rng: Any, number: int) -> None:
    path, module = _chosen(run, rng, lambda m: number % 2 == 0 or _of_file(run, m))
    inner = module.forward
    module.forward = lambda *args, **kwargs: _scaled(inner(*args, **kwargs))
    run.say(f"{path}.forward replaced")


@kind("forward of a class", 2)
def forward_of_a_class(run: Run, rng: Any, number: int) -> None:
    path, module = _chosen(run, rng, lambda m: number == 0 or not _of_file(run, m))
    owner = next(base for base in type(module).__mro__ if "forward" in vars(base))
    inner = owner.forward
    run.set(owner, "forward", lambda self, *args, **kwargs: _scaled(inner(self, *args, **kwargs)))
    run.say(f"{owner.__name__}.forward replaced (found at {path})")


@kind("method", 3)
def method(run: Run, rng: Any, number: int) -> None:
    """Another method of a class of the file."""
    classes = sorted({type(m) for _, m in _modules(run) if _of_file(run, m)}, key=lambda c: c.__qualname__)
    found = [
        (owner, name)
        for owner in classes
        for name, value in sorted(vars(owner).items())
        if isinstance(value, types.FunctionType) and name != "forward" and not name.startswith("__")
    ]
    if not found:
        raise NotApplicable
    owner, name = rng.choice(found)
    inner = vars(owner)[name]
    run.set(owner, name, lambda *args, **kwargs: _scaled(inner(*args, **kwargs)))
    run.say(f"{owner.__name__}.{name} replaced")


def _file_modules(run: Run) -> list[types.ModuleType]:
    found = [m for m in list(sys.modules.values()) if (getattr(m, "__file__", None) or "").endswith(run.file)]
    if not found:
        raise NotApplicable
    return found[:1]


@kind("global", 4)
def changed_global(run: Run, rng: Any, number: int) -> None:
    """A constant, or a function, of the file."""
    (module,) = _file_modules(run)
    # torch.compile leaves names in a module, others with each program: "__resume_at_8_3", "_1402_c0/0"
    items = sorted((k, v) for k, v in vars(module).items() if k.isidentifier() and not k.startswith("__"))
    functions = [k for k, v in items if isinstance(v, types.FunctionType) and v.__module__ == module.__name__]
    constants = [k for k, v in items if isinstance(v, (bool, int, float))]
    names = functions if number % 2 else constants
    if not names:
        raise NotApplicable
    name = rng.choice(names)
    before = getattr(module, name)
    after = _other(before, rng) if name in constants else lambda *a, **k: _scaled(before(*a, **k))
    run.set(module, name, after)
    run.say(f"global {name} " + (f"= {after!r}" if name in constants else "replaced"))


# --- hooks


@kind("hook", 6)
def hook(run: Run, rng: Any, number: int) -> None:
    path, module = _chosen(run, rng, lambda m: number % 2 or not list(m.children()))
    if number < 2:
        module.register_forward_hook(lambda m, given, result: _scaled(result))
        run.say(f"{path}.register_forward_hook")
    elif number < 4:
        module.register_forward_pre_hook(lambda m, given: _scaled(given))
        run.say(f"{path}.register_forward_pre_hook")
    elif number == 4:
        module.register_full_backward_hook(lambda m, given, result: _scaled(given))
        run.say(f"{path}.register_full_backward_hook")
    else:
        add = nn.modules.module.register_module_forward_hook
        leaf = type(module)
        handle = add(lambda m, given, result: _scaled(result) if type(m) is leaf else None)
        run.scope.callback(handle.remove)
        run.say(f"register_module_forward_hook that changes what each {leaf.__name__} returns")


# --- parameters


def _parameter(run: Run, rng: Any) -> tuple[str, nn.Module, str]:
    found = [(p, m, k) for p, m in _modules(run) for k, v in sorted(m._parameters.items()) if v is not None]
    if not found:
        raise NotApplicable
    return rng.choice(found)


def _written(x: torch.Tensor) -> None:
    with torch.no_grad():
        x.mul_(1.5)


@kind("parameter", 8)
def parameter(run: Run, rng: Any, number: int) -> None:
    path, module, name = _parameter(run, rng)
    value = getattr(module, name)
    place = f"{path}.{name}"
    if number == 0:
        _written(value)
        run.say(f"{place} written to")
    elif number == 1:
        setattr(module, name, nn.Parameter(value.detach() * 1.5))
        run.say(f"{place} is a new parameter")
    elif number == 2:
        setattr(module, name, nn.Parameter(value.detach().bfloat16()))
        run.coarser(torch.bfloat16)
        run.say(f"{place} in bfloat16")
    elif number == 3:
        same = [(m, k) for _, m in _modules(run) for k, v in sorted(m._parameters.items())
                if v is not None and v.shape == value.shape and v is not value]  # fmt: skip
        if not same:
            raise NotApplicable
        other, key = rng.choice(same)
        setattr(other, key, value)
        run.say(f"{place} shared with another {key}")
    elif number == 4:
        delattr(module, name)
        setattr(module, name, value.detach() * 1.5)
        run.say(f"{place} is no parameter but a tensor")
    elif number == 5:
        if name != "bias":
            path, module, name = next(
                ((p, m, "bias") for p, m in _modules(run) if m._parameters.get("bias") is not None),
                (None, None, None),
            )
            if module is None:
                raise NotApplicable
        setattr(module, name, None)
        run.say(f"{path}.{name} = None")
    elif number == 6:

        class Scaled(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x * 1.5

        nn.utils.parametrize.register_parametrization(module, name, Scaled(), unsafe=True)
        run.say(f"{place} parametrized")
    else:
        value.requires_grad_(not value.requires_grad)
        run.say(f"{place}.requires_grad = {value.requires_grad}")


@kind("buffer", 2)
def buffer(run: Run, rng: Any, number: int) -> None:
    found = [(p, m, k) for p, m in _modules(run) for k, v in sorted(m._buffers.items()) if v is not None]
    if not found:
        raise NotApplicable
    path, module, name = rng.choice(found)
    value = getattr(module, name)
    if number and value.is_floating_point():
        setattr(module, name, value.double())
    elif value.is_floating_point():
        _written(value)
    else:
        raise NotApplicable
    run.say(f"buffer {path}.{name} {'in float64' if number else 'written to'}")


# --- copies, and calls in a row


@kind("copy", 4)
def copies(run: Run, rng: Any, number: int) -> None:
    if number == 0:
        run.model = copy.deepcopy(run.model)
        run.say("copy.deepcopy(model)")
    elif number == 1:
        run.model = pickle.loads(pickle.dumps(run.model))
        run.say("pickled and loaded")
    elif number == 2:
        state = io.BytesIO()
        torch.save(run.model.state_dict(), state)
        state.seek(0)
        with torch.random.fork_rng(devices=[]):
            run.build()
        run.model.load_state_dict(torch.load(state))
        run.say("another model with the same state_dict")
    else:
        first = run.model
        run()
        run.model = copy.deepcopy(first)
        run.say("called, then copied")


def _twice(run: Run, between: Callable[[], None]) -> None:
    def call() -> Any:
        first = run.model(*run.args, **run.kwargs)
        between()
        return first, run.model(*run.args, **run.kwargs)

    run.call = call


@kind("two calls", 5)
def two_calls(run: Run, rng: Any, number: int) -> None:
    if number == 0:
        _twice(run, lambda: None)
        run.say("called twice")
    elif number == 1:
        path, module = _chosen(
            run, rng, lambda m: any(isinstance(getattr(m, k), float) for k in _settings(m))
        )
        names = [k for k in _settings(module) if isinstance(getattr(module, k), float)]
        name = rng.choice(names)
        _twice(run, lambda: setattr(module, name, getattr(module, name) * 1.5 + 0.25))
        run.say(f"called, {path}.{name} changed, called")
    elif number == 2:
        _twice(run, lambda: run.model.train(not run.model.training))
        run.say("called, mode changed, called")
    elif number == 3:

        def lower() -> None:
            run.model.bfloat16()
            run.map_inputs(_floating(lambda x: x.bfloat16()))

        run.coarser(torch.bfloat16)
        _twice(run, lower)
        run.say("called, then in bfloat16")
    else:

        def step() -> None:
            for item in run.model.parameters():
                _written(item)

        _twice(run, step)
        run.say("called, all parameters written to, called")


# --- what else calls a model


class Passing(torch.overrides.TorchFunctionMode):
    """Sees every call, and changes none."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Tagged(torch.Tensor):
    """A subclass without a meaning of its own."""


@kind("caller", 12)
def caller(run: Run, rng: Any, number: int) -> None:  # noqa: PLR0912  one line for each caller
    model, args, kwargs = run.model, run.args, run.kwargs
    if number == 0:
        run.call = lambda: torch.compile(model, backend="eager")(*args, **kwargs)
        run.scope.callback(torch._dynamo.reset)
        run.say("torch.compile(backend='eager')")
    elif number == 1:
        run.call = lambda: torch.export.export(model, args, kwargs, strict=False).module()(*args, **kwargs)
        run.say("torch.export.export")
    elif number == 2:
        state = {k: v * 1.5 if v.is_floating_point() else v for k, v in model.state_dict().items()}
        run.call = lambda: torch.func.functional_call(model, state, args, kwargs)
        run.say("torch.func.functional_call with other parameters")
    elif number == 3:
        run.call = lambda: torch.utils.checkpoint.checkpoint(model, *args, use_reentrant=False, **kwargs)
        run.say("torch.utils.checkpoint")
    elif number == 4:
        given = [x if isinstance(x, torch.Tensor) else None for x in args]
        if kwargs or None in [x if x is None else 0 for x in given]:
            raise NotApplicable
        run.call = lambda: torch.func.vmap(model, randomness="different")(
            *(torch.stack((x, x)) for x in args)
        )
        run.say("torch.func.vmap")
    elif number == 5:
        floats = [x for x in args if isinstance(x, torch.Tensor) and x.is_floating_point()]
        if kwargs or len(floats) != len(args):
            raise NotApplicable
        run.call = lambda: torch.func.jvp(model, args, tuple(map(torch.ones_like, args)))
        run.say("torch.func.jvp")
    elif number == 6:
        model.to("meta")
        run.map_inputs(lambda x: x.to("meta"))
        run.say("on the meta device")
    elif number == 7:
        run.map_inputs(lambda x: x.as_subclass(Tagged))
        run.say("inputs of a subclass of Tensor")
    elif number == 8:
        run.call = lambda: torch.jit.trace(model, args, check_trace=False)(*args)
        run.say("torch.jit.trace")
    elif number == 9:
        other = model._get_name()
        parallel = torch.nn.DataParallel(model)
        run.call = lambda: parallel(*args, **kwargs)
        run.say(f"DataParallel({other})")
    elif number == 10:
        run.call = lambda: torch.compile(model, backend="aot_eager")(*args, **kwargs)
        run.scope.callback(torch._dynamo.reset)
        run.say("torch.compile(backend='aot_eager')")
    else:
        run.scope.enter_context(Passing())
        run.say("inside a torch function mode")


@kind("several", 12)
def several(run: Run, rng: Any, number: int) -> None:
    """Two or three of the others at once."""
    left_out = {"several", "caller", "as it is", "two calls", "copy"}
    names = [name for name in LATE if name not in left_out]
    for name in rng.sample(names, rng.choice((2, 3))):
        function, times = LATE[name]
        function(run, rng, rng.randrange(times))
