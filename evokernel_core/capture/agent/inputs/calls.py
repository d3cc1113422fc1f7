"""The ``calls`` method: what a file's suppliers call, group by group, without running it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from ..loading.devices import on_host
from ..loading.imports import Imports
from ..loading.lazy_modules import lazy_modules
from ..loading.load import execute, isolation, parsed
from ..loading.record import Recorder, is_plain
from ..observation.names import class_behind
from .groups import Group, groups_of, split_keywords
from .trials import main_definition


def calls(path: str, text: str, imports: Imports) -> dict[str, Any]:
    """``{"symbol", "groups": [{"tensors", "values"}]}``. Raises AgentError.

    ``symbol`` is the function that the inputs are for. ``tensors`` are ``{"shape", "dtype"}`` by the text
    that reaches each in the function, ``values`` what else decides what a call does, as text by name.
    """
    source = parsed(path, text, imports)
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    with isolation(Path(path), imports), lazy_modules(), on_host(), fake, torch.no_grad():
        module = execute(source, Recorder(source))
        _, target = main_definition(module, source)
        kind = class_behind(target)
        function: Any = getattr(kind, "forward") if kind else target  # noqa: B009
        result = [_described(function, group, kind is not None) for group in groups_of(module, source)]
    return {"symbol": inspect.unwrap(function).__qualname__, "groups": result}


def _described(function: Any, group: Group, method: bool) -> dict[str, Any]:
    args, kwargs = split_keywords(group.inputs, function, method)
    try:
        bound: dict[Any, Any] = (
            inspect.signature(function).bind(*([None] * method), *args, **kwargs).arguments
        )
    except TypeError:  # the call itself will say what is wrong with it
        bound = dict(enumerate(args)) | kwargs
    tensors: dict[str, Any] = {}
    values = {"__init__": _text(group.init)}
    for name, value in list(bound.items())[method:]:
        for path, leaf in pytree.tree_flatten_with_path(value)[0]:
            where = f"{name}{pytree.keystr(path)}"
            if isinstance(leaf, torch.Tensor):
                dtype = str(leaf.dtype).removeprefix("torch.")
                tensors[where] = {"shape": list(leaf.shape), "dtype": dtype}
            else:
                values[where] = _text(leaf)
    return {"tensors": tensors, "values": values}


def _text(value: Any) -> str:
    """Equal for values that are alike."""
    leaves, spec = pytree.tree_flatten(value)
    texts = [repr(leaf) if is_plain(leaf) else _kind(leaf) for leaf in leaves]
    return f"{spec} {' '.join(texts)}" if not is_plain(value) else repr(value)


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {tuple(value.shape)}"
    return f"{type(value).__module__}.{type(value).__qualname__}"
