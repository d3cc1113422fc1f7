"""Functions of ``torch_npu`` that the table does not say: operations with a name and without a meaning.

No kernel computes one, so that it stays as it is in the file, and whatever does not contain it can be
captured. A trace ends at one, used or not: it may write into what it is given. Where the documentation does
not tell what it returns, each result is taken to be like the first tensor that it is given, in shape and
type.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from ..errors import Unsupported, uncovered
from ..torch_compat import tensors_among

NAMESPACE = "torch_npu"
_HERE = str(Path(__file__).parent.parent)
_library = torch.library.Library(NAMESPACE, "FRAGMENT")
_defined: set[str] = set()


def call(name: str, args: Any, kwargs: Any, results: tuple[torch.Tensor, ...] = ()) -> Any:
    """The operation's results: like ``results`` where they are known, as many as the caller takes."""
    tensors = tensors_among((args, kwargs))
    if not tensors:
        raise NotImplementedError(
            f"{NAMESPACE}.{name} is given no tensor, and without {NAMESPACE} its result is not known"
        )
    if get_proxy_mode() is not None:
        raise Unsupported(uncovered(f"{NAMESPACE}.{name}", _caller().f_lineno))
    operation = _operation(name)
    if "out" in kwargs:
        written = tensors_among(kwargs["out"])
        for item, value in zip(written, operation(tensors, written)):  # noqa: B905
            item.copy_(value)
        return kwargs["out"]
    if name.endswith("_"):  # in place, by its name
        return tensors[0].copy_(operation(tensors, tensors[:1])[0])
    if results:
        result = operation(tensors, list(results))
        return result[0] if len(result) == 1 else tuple(result)
    wanted = _results_taken(name)
    result = operation(tensors, [tensors[0]] * max(wanted, 1))
    return tuple(result) if wanted else result[0]


def _operation(name: str) -> Any:
    """The operation of that name, defined at its first call."""
    if name not in _defined:
        _library.define(f"{name}(Tensor[] tensors, Tensor[] results) -> Tensor[]")
        _library.impl(name, _like, "CompositeExplicitAutograd")
        _defined.add(name)
    return getattr(getattr(torch.ops, NAMESPACE), name).default


def _like(tensors: list[torch.Tensor], results: list[torch.Tensor]) -> list[torch.Tensor]:
    return [torch.empty_like(result) for result in results]


def _caller() -> FrameType:
    """The innermost frame outside the agent."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return frame


def _results_taken(name: str) -> int:
    """How many results the calling line takes from a call of that name; 0 where it takes the result."""
    frame = _caller()
    text = "".join(linecache.getlines(frame.f_code.co_filename))
    return max(_taken(text, name, frame.f_lineno), default=0)


@lru_cache(maxsize=32)
def _taken(text: str, name: str, line: int) -> tuple[int, ...]:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return ()
    return tuple(_counts(tree, name, line))


def _counts(tree: ast.Module, name: str, line: int) -> Iterator[int]:
    for node in ast.walk(tree):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        place = node.slice if isinstance(node, ast.Subscript) else None
        if not isinstance(node, (ast.Assign, ast.Subscript)) or not _is_call(node.value, name, line):
            continue
        if isinstance(target, (ast.Tuple, ast.List)):
            yield len(target.elts)
        if isinstance(place, ast.Constant) and isinstance(place.value, int):
            yield place.value + 1


def _is_call(node: ast.expr, name: str, line: int) -> bool:
    if not isinstance(node, ast.Call) or not node.lineno <= line <= (node.end_lineno or 0):
        return False
    called = node.func
    while isinstance(called, ast.Attribute) and called.attr == "default":
        called = called.value
    return name == (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", ""))
