"""Results that are objects of a dataclass, such as ``MaskedLMOutput(loss=..., logits=...)``.

While a function is traced such an object stands open, as its fields by name; a call of a kernel makes it
anew. Whatever ``__post_init__`` derives from the fields is derived again then.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..errors import Refused

_PLAIN = (bool, int, float, str, type(None))
_LEAVES = (*_PLAIN, torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool, torch.dtype, torch.device)


class Opened:
    """An object of a dataclass as what its class is called with, in the order of the fields."""

    def __init__(self, kind: type, fields: dict[str, Any]) -> None:
        self.kind = kind
        self.fields = fields


pytree.register_pytree_node(
    Opened,
    lambda element: (list(element.fields.values()), (element.kind, tuple(element.fields))),
    lambda values, context: Opened(context[0], dict(zip(context[1], values, strict=True))),
)


def opened(value: Any) -> Any:
    """The value with its objects of dataclasses open. Raises Refused for objects that cannot be made anew."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(opened, value))
    if type(value) in (tuple, list):
        return type(value)(map(opened, value))
    if type(value) is dict:
        return {key: opened(member) for key, member in value.items()}
    for leaf in pytree.tree_leaves(value):
        if not isinstance(leaf, _LEAVES):
            raise Refused(
                "The result holds a {name}, which a kernel's call cannot make: return tensors, or a "
                "dataclass, tuple, list or dictionary of them.",
                name=type(leaf).__name__,
            )
    return value


def _fields(value: Any) -> Opened:
    """Raises Refused where the class, called with the fields, makes another object."""
    kind = type(value)
    given = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
    wanted = {
        field.name: given[field.name]
        for field in dataclasses.fields(value)
        if field.init and not _is_default(given[field.name], field)
    }
    again = kind(**wanted)
    before, after = vars(value), vars(again)
    same = before.keys() == after.keys() and all(_alike(before[name], after[name]) for name in before)
    if not same or (isinstance(value, dict) and list(value) != list(again)):
        raise Refused(
            "The result is a {name}, which its class does not make from its fields alone: return "
            "tensors, or pass all fields to its constructor.",
            name=kind.__name__,
        )
    return Opened(kind, {name: opened(value) for name, value in wanted.items()})


def _is_default(value: Any, field: dataclasses.Field[Any]) -> bool:
    """Whether a call may leave the field out; only plain values are compared."""
    return isinstance(value, _PLAIN) and type(value) is type(field.default) and value == field.default


def _alike(before: Any, after: Any) -> bool:
    if before is after:
        return True
    if type(before) is not type(after):
        return False
    if isinstance(before, (tuple, list)):
        return len(before) == len(after) and all(map(_alike, before, after))
    return isinstance(before, _PLAIN) and bool(before == after)
