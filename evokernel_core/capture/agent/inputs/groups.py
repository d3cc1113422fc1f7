"""What a file's suppliers give: the arguments of one call, or of several, which are its input groups.

Suppliers are ``get_inputs()``, which returns the arguments of one call or yields those of several;
``get_input_groups()`` or ``get_inputs_dyn_list()``, which return those of several; and ``get_init_inputs()``,
what the module is built with, for all groups or, beside those of several calls, one entry for each.
Arguments are a list, a dict of keywords, one tensor, or a list and a dict.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch._guards import active_fake_mode
from torch._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree

from ..errors import AgentError
from ..loading.constant_tensors import SmallTensors
from ..loading.load import failure
from ..loading.source import Source
from ..sentence import Sentence
from ..torch_compat import tensors_among

INPUTS, INIT = "get_inputs", "get_init_inputs"
GROUPS = ("get_input_groups", "get_inputs_dyn_list")
SUPPLIERS = frozenset({INPUTS, *GROUPS, INIT})
NOTHING = Sentence(
    "The input shapes are unknown: run a program that uses the file as 'evokernel observe -- "
    "COMMAND', or add get_inputs()."
)
_SEED = 0


@dataclass(frozen=True)
class Group:
    """One call of a file's module: what it is built with, and what it is called with. ``defaults`` are the
    values that ``get_inputs`` gives its own parameters."""

    init: Any
    inputs: Any
    defaults: dict[str, Any]


def supplies_inputs(module: types.ModuleType) -> bool:
    """Whether a file says the arguments of a call by a function of its own."""
    return any(callable(getattr(module, name, None)) for name in (*GROUPS, INPUTS))


def groups_of(module: types.ModuleType, source: Source) -> list[Group]:
    """The calls in the file's order; its tensors are fake, whatever their size. Raises AgentError."""
    if not supplies_inputs(module):
        raise AgentError("needs_shapes", NOTHING)
    several = [name for name in GROUPS if callable(getattr(module, name, None))]
    supplier = several[0] if several else INPUTS
    result = _supplied(module, source, supplier)
    init = _supplied(module, source, INIT) if callable(getattr(module, INIT, None)) else []
    groups = list(result) if several or _yields(result) else [result]
    if not groups:
        raise AgentError("needs_shapes", "{supplier}() gives no inputs: add a group.", supplier=supplier)
    inits = list(init) if several and _is_one_each(init, len(groups)) else [init] * len(groups)
    defaults = {} if several else _defaults(getattr(module, INPUTS))
    return [Group(first, given, defaults) for first, given in zip(inits, groups, strict=True)]


def _is_one_each(init: Any, count: int) -> bool:
    """Whether every group has arguments of its own to build the module with."""
    return (
        isinstance(init, (list, tuple))
        and len(init) == count
        and all(isinstance(call, (list, tuple, dict)) for call in init)
    )


def _supplied(module: types.ModuleType, source: Source, name: str) -> Any:
    """What a supplier returns, all at once where it yields. Where it reads what its tensors hold, small ones
    are real while it runs; where it picks elements by a mask, how many they are is not known."""
    supplier = getattr(module, name)
    try:
        return _called(supplier)
    except BaseException:  # the second call says what was wrong, if anything was
        try:
            result = _called_by(_drawing, supplier)
        except DynamicOutputShapeException as error:
            result = _picking(supplier, source, error)
        except BaseException as error:
            raise _failed(source, name, error) from error
    fake = pytree.tree_map_only(torch.Tensor, _without_elements, list(result) if _yields(result) else result)
    return _Yielded(fake) if _yields(result) else fake


def _called_by(how: Callable[[], AbstractContextManager[None]], supplier: Callable[..., Any]) -> Any:
    with how():
        return _called(supplier)


def _failed(source: Source, name: str, error: BaseException) -> AgentError:
    return AgentError("import_failed", failure(Sentence("{name}()", name=name), error, source.path))


def _picking(supplier: Callable[..., Any], source: Source, first: BaseException) -> Any:
    """What a supplier returns that puts something else where a mask says so. Raises AgentError where it does
    more with how many elements those are, or where that is a size of what it returns."""
    name = supplier.__name__
    try:
        result = _called_by(_unknown_counts, supplier)
    except BaseException as error:
        raise _failed(source, name, first) from error
    sizes = (size for tensor in tensors_among(result) for size in (*tensor.size(), *tensor.stride()))
    if any(isinstance(size, torch.SymInt) for size in sizes):
        raise AgentError(
            "import_failed",
            "A size of what {name}() returns depends on the numbers that it draws: say it beforehand.",
            name=name,
        )
    return result


@contextmanager
def _unknown_counts() -> Iterator[None]:
    """As ``_drawing``; of large tensors, which have no elements, a mask picks an unknown number."""
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv(), static_shapes=True)
    with mode, _drawing():
        yield


class _Yielded(list[Any]):
    """The arguments of several calls."""


def _yields(group: Any) -> bool:
    return isinstance(group, _Yielded)


def _called(supplier: Callable[..., Any]) -> Any:
    result = supplier(**_required(supplier))
    return _Yielded(result) if isinstance(result, Iterator) else result


def _required(supplier: Callable[..., Any]) -> dict[str, Any]:
    """A supplier may ask where its tensors go."""
    needed = inspect.signature(supplier).parameters.get("device")
    return {"device": torch.device("cpu")} if needed and needed.default is needed.empty else {}


def _defaults(supplier: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(supplier).parameters.values()
    return {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.default is not parameter.empty
    }


def split_keywords(
    values: Any, callee: Callable[..., Any], receiver: int = 0
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The positional and keyword arguments that a supplier gives for a call; of the callee's parameters
    the first ``receiver`` are given by others. A list and a dict are both kinds where the callee takes
    them so and would not rather take them as two arguments."""
    if isinstance(values, dict):
        return (), dict(values)
    if not isinstance(values, (list, tuple)):
        return (values,), {}
    if _is_both_kinds(values) and not _takes_both(callee, receiver, values):
        return tuple(values[0]), dict(values[1])
    return tuple(values), {}


def _takes_both(callee: Callable[..., Any], receiver: int, values: Sequence[Any]) -> bool:
    """Whether a list and a dict are two arguments: the callee cannot take their items, or it needs two and
    names in the dict are none of its own."""
    items, keywords = values
    if not _takes(callee, receiver, items, keywords):
        return True
    needs_two = _takes(callee, receiver, values, {}) and not _takes(callee, receiver, values[:1], {})
    return needs_two and not keywords.keys() <= inspect.signature(callee).parameters.keys()


def _is_both_kinds(values: Sequence[Any]) -> bool:
    return (
        len(values) == 2
        and isinstance(values[0], (list, tuple))
        and isinstance(values[1], dict)
        and all(isinstance(name, str) for name in values[1])
    )


def _takes(callee: Callable[..., Any], receiver: int, args: Sequence[Any], keywords: dict[str, Any]) -> bool:
    try:
        inspect.signature(callee).bind(*([None] * receiver), *args, **keywords)
    except TypeError:
        return False
    return True


@contextmanager
def _drawing() -> Iterator[None]:
    """Suppliers read numbers that they draw, ``torch.rand(1).item()``: these are alike in each capture."""
    with torch.random.fork_rng(devices=[]), SmallTensors(draws=True):
        torch.manual_seed(_SEED)
        yield


def _without_elements(tensor: torch.Tensor) -> torch.Tensor:
    """No code of the module sees the elements of an input, and all inputs are of one mode."""
    if isinstance(tensor, FakeTensor) and tensor.fake_mode is active_fake_mode():
        return tensor
    return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)
