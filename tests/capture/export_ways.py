"""What PyTorch makes of two models of one folder, original.py and model.py, and whether it gives the same.

Run in that folder: prints a JSON object with a line for each way, empty where there is no difference.
"""

import copy
import io
import json
import pickle
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn


def script(model: nn.Module, x: torch.Tensor) -> Any:
    return torch.jit.script(model)


def saved_script(model: nn.Module, x: torch.Tensor) -> Any:
    held = io.BytesIO()
    torch.jit.save(torch.jit.script(model), held)
    held.seek(0)
    return torch.jit.load(held)


def script_of_a_parent(model: nn.Module, x: torch.Tensor) -> Any:
    return torch.jit.script(nn.Sequential(model.train(), nn.Identity()).eval())


def frozen_script(model: nn.Module, x: torch.Tensor) -> Any:
    return torch.jit.freeze(torch.jit.script(model))


def traced(model: nn.Module, x: torch.Tensor) -> Any:
    return torch.jit.trace(model, (x,), check_trace=True)


def exported(model: nn.Module, x: torch.Tensor) -> Any:
    return torch.export.export(model, (x,), strict=False).module()


def exported_strictly(model: nn.Module, x: torch.Tensor) -> Any:
    return torch.export.export(model, (x,), strict=True).module()


def exported_in_doubles(model: nn.Module, x: torch.Tensor) -> Any:
    double = torch.export.export(model.double(), (x.double(),), strict=False).module()
    return lambda given: double(given.double())


def converted_after_export(model: nn.Module, x: torch.Tensor) -> Any:
    """The graph of floats, with its weights in doubles."""
    double = torch.export.export(model, (x,), strict=False).module().double()
    return lambda given: double(given.double())


def saved_export(model: nn.Module, x: torch.Tensor) -> Any:
    held = io.BytesIO()
    torch.export.save(torch.export.export(model, (x,), strict=False), held)
    held.seek(0)
    return torch.export.load(held).module()


def derived_after_export(model: nn.Module, x: torch.Tensor) -> Any:
    """The gradients of what was exported without any: of the input, and of the weights."""
    with torch.no_grad():
        made = torch.export.export(model, (x,), strict=False).module()

    def call(given: torch.Tensor) -> list[torch.Tensor | None]:
        given = given.clone().requires_grad_()
        with torch.enable_grad():
            (_first(made(given)) * given).sum().backward()
        return [given.grad, *(value.grad for value in made.parameters())]

    return call


def compiled(model: nn.Module, x: torch.Tensor) -> Any:
    torch._dynamo.reset()
    return torch.compile(model, backend="eager", fullgraph=True)


def symbolic(model: nn.Module, x: torch.Tensor) -> Any:
    return torch.fx.symbolic_trace(model)


def pickled(model: nn.Module, x: torch.Tensor) -> Any:
    return pickle.loads(pickle.dumps(model))


def functional(model: nn.Module, x: torch.Tensor) -> Any:
    state = {name: value * 1.5 for name, value in model.state_dict().items()}
    return lambda given: torch.func.functional_call(model, state, (given,))


def mapped(model: nn.Module, x: torch.Tensor) -> Any:
    return lambda given: torch.vmap(model)(torch.stack([given, given + 1]))


def replica(model: nn.Module, x: torch.Tensor) -> Any:
    """As nn.parallel.replicate makes one of each module: parameters are plain tensors of it."""
    made = model._replicate_for_data_parallel()
    for name, child in model.named_children():
        setattr(made, name, replica(child, x))
    for name, value in model.named_parameters(recurse=False):
        setattr(made, name, value.detach().clone())
    for name, value in model.named_buffers(recurse=False):
        made._buffers[name] = value.clone()
    return made


def jacobian(model: nn.Module, x: torch.Tensor) -> Any:
    return torch.func.jacrev(lambda value: _first(model(value)))


WAYS: dict[str, Callable[[nn.Module, torch.Tensor], Any]] = {
    "script": script, "saved script": saved_script, "script of a parent": script_of_a_parent,
    "frozen script": frozen_script, "trace": traced, "export": exported, "strict export": exported_strictly,
    "export in doubles": exported_in_doubles, "doubles after export": converted_after_export,
    "saved export": saved_export, "gradients after export": derived_after_export, "compile": compiled,
    "fx": symbolic,
    "deepcopy": lambda model, x: copy.deepcopy(model), "pickle": pickled, "functional_call": functional,
    "vmap": mapped, "replica": replica, "jacobian": jacobian,
}  # fmt: skip
WITHOUT_NPU = ("script", "trace", "strict export", "compile", "fx", "pickle")
"""Where no kernel runs a guard is one line, which these read."""
RUNS_KERNELS = {"compile", "deepcopy", "pickle", "functional_call", "replica", "export", "strict export"}


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, tuple) else value


def outcome(module: Any, way: str, gradients: bool) -> Any:
    """What the model gives in one way, for the inputs that it was made with and for others."""
    torch.manual_seed(0)
    model = module.Model().eval()
    x = torch.randn(6, 8)
    with torch.set_grad_enabled(gradients):
        try:
            made = WAYS[way](model, x)
            return [made(x), made(x * 2)], str(getattr(made, "graph", ""))
        except Exception as error:  # as the original may raise, or as is a difference
            return f"{type(error).__name__}: {str(error)[:1500]}"


def difference(way: str, gradients: bool) -> str:
    import evokernel_kernels
    import model
    import original

    expected = outcome(original, way, gradients)
    before = sum(evokernel_kernels.calls().values())
    found = outcome(model, way, gradients)
    ran = sum(evokernel_kernels.calls().values()) - before
    if isinstance(expected, str) or isinstance(found, str):
        same = isinstance(expected, str) == isinstance(found, str)
        return "" if same else f"{found} instead of {expected}"
    try:
        torch.testing.assert_close(found[0], expected[0], rtol=1e-5, atol=1e-6)
    except AssertionError as error:
        return str(error)
    if way == "fx" and found[1] != expected[1]:
        return f"{found[1]} instead of {expected[1]}"
    may_run = sys.argv[-1] == "emulated" and not gradients and way in RUNS_KERNELS
    return "no kernel ran" if may_run and not ran else ""


def main() -> None:
    warnings.simplefilter("ignore")
    ways = WAYS if sys.argv[-1] == "emulated" else WITHOUT_NPU
    found = {way: [difference(way, gradients) for gradients in (False, True)] for way in ways}
    print(json.dumps(found))
