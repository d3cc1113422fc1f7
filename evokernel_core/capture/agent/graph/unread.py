"""Tensors that a function asks about, but whose values it does not read: ``x.to(y.dtype)``.

A kernel does not take them, so that its call must ask for all that the trace took from them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ..errors import Unsupported
from ..guards.guard import is_plain, literal
from ..regions.parts import TENSOR, Leaf
from ..sentence import Sentence, Told

Input = Mapping[str, Any]


def conditions(unread: Iterable[Input], taken: Iterable[Input], least: Mapping[str, int]) -> Iterator[str]:
    """Dtype, device and sizes. ``taken`` are the kernel's operands, whose sizes the kernel's contract asks;
    ``least`` are the least values of symbols."""
    told: dict[int | str, str] = {}
    device = ""
    for name in taken:
        device = device or f"{name['expression']}.device"
        for dim, size in enumerate(name["spec"]["shape"]):
            told.setdefault(size, f"{name['expression']}.shape[{dim}]")
    for name in unread:
        text, spec = name["expression"], name["spec"]
        yield f"{text}.dtype is torch.{spec['dtype']}"
        if device:
            yield f"{text}.device == {device}"
        yield from _sizes(text, spec["shape"], told, least)


def _sizes(
    text: str, shape: list[int | str], told: dict[int | str, str], least: Mapping[str, int]
) -> Iterator[str]:
    """Numbers, and symbols that a tensor before has told, must be those; others are as large as the trace
    assumed. ``told`` takes in what this tensor tells."""
    yield f"{text}.dim() == {len(shape)}"
    for dim, size in enumerate(shape):
        if isinstance(size, int):
            yield f"{text}.shape[{dim}] == {size}"
        elif size in told:
            yield f"{text}.shape[{dim}] == {told[size]}"
        else:
            told[size] = f"{text}.shape[{dim}]"
            if least.get(size, 1) > 1:
                yield f"{text}.shape[{dim}] >= {least[size]}"


def states(
    leaves: Iterable[Leaf],
    read: Mapping[str, torch.Tensor],
    attributes: Collection[str],
    by_text: Collection[str],
) -> Iterator[str]:
    """What no contract asks of tensors, where the code that ran names it; ``by_text`` may be attributes.
    ``read`` are tensors that the code reached beside its arguments, by the text that reaches them."""
    named = {*attributes, *by_text}
    questions = list(dict.fromkeys(text for name, text in _QUESTIONS.items() if name in named))
    given = {leaf.expression: leaf.known_as for leaf in leaves if leaf.kind == TENSOR}
    classes = not _OF_CLASSES.isdisjoint(attributes)
    for name, tensor in {**read, **given}.items():
        if REQUIRES_GRAD in named:
            yield f"{name}.requires_grad is {tensor.requires_grad}"
        for text in questions:
            yield _answered(name, tensor, text)
        if classes and (name in given or PARAMETER_CLASS in named):
            kind = "torch.nn.Parameter" if isinstance(tensor, torch.nn.Parameter) else "torch.Tensor"
            yield f"type({name}) is {kind}"
        yield from _own_attributes(name, tensor, attributes, by_text)


def check_passed(read: Mapping[str, torch.Tensor], passed: Iterable[Any], error: type[Told]) -> None:
    """Raises the error for a tensor that was read and is not passed: the graph holds its value for good."""
    known = set(map(id, passed))
    for path, tensor in read.items():
        if id(tensor) not in known:
            at = path.replace("guards.module", "module")
            raise error(
                Sentence("It reads the tensor {name}, which a call cannot pass: make it a buffer.", name=at)
            )


def walked(tensors: Mapping[str, torch.Tensor], leaves: Iterable[Leaf]) -> Iterator[str]:
    """Dtype, device and sizes of tensors that a walk through a module has reached, by their texts."""
    operand = next((leaf.expression for leaf in leaves if leaf.kind == TENSOR), "")
    for text, tensor in tensors.items():
        yield f"{text}.dtype is {tensor.dtype}"
        yield f"{text}.shape == {tuple(tensor.shape)}"
        if operand:
            yield f"{text}.device == {operand}.device"


REQUIRES_GRAD, PARAMETER_CLASS = "requires_grad", "Parameter"
"""What code names that asks whether a tensor wants gradients, or is one of a module's parameters."""


_QUESTIONS = {
    "is_contiguous": "is_contiguous()",
    "stride": "is_contiguous()",
    "storage_offset": "storage_offset()",
    "data_ptr": "storage_offset()",
    **dict.fromkeys(("untyped_storage", "storage", "_typed_storage"), "untyped_storage().nbytes()"),
    "_base": "_base is None",
    "_is_view": "_base is None",
    "_version": "_version",
    "is_leaf": "is_leaf",
    "grad": "grad is None",
    "grad_fn": "grad_fn is None",
    "retains_grad": "retains_grad",
    "_backward_hooks": "_backward_hooks is None",
    "is_inference": "is_inference()",
    "is_shared": "is_shared()",
    "is_pinned": "is_pinned()",
    "names": "has_names()",
    "has_names": "has_names()",
}
"""What is asked at a call where the code names an attribute of tensors: a text behind the tensor."""
_OF_CLASSES = frozenset({"isinstance", "type", "__class__"})
_OF_DICTIONARIES = frozenset({"vars", "__dict__"})


def _answered(name: str, tensor: torch.Tensor, text: str) -> str:
    """That a question has the answer which the trace got. Raises Unsupported where it got none."""
    try:
        answer = eval(f"tensor.{text}", {"tensor": tensor})  # one of _QUESTIONS
    except Exception as error:
        raise Unsupported(
            "What the code asks of {name} has no answer while it is traced.", name=name
        ) from error
    return f"({name}.{text}) == {answer!r}"


def _own_attributes(
    owner: str, tensor: torch.Tensor, attributes: Collection[str], by_text: Collection[str]
) -> Iterator[str]:
    """Those that a program has put on a tensor, where code may read them: ``getattr(x, "scale", 1.0)``."""
    own = {} if isinstance(tensor, FakeTensor) else vars(tensor)
    whole = not _OF_DICTIONARIES.isdisjoint(attributes)
    named = {name for name in own if whole or name in attributes or name in by_text}
    if not all(is_plain(own[name]) for name in named):
        raise Unsupported("{name} has attributes that no condition can ask for.", name=owner)
    if whole:
        yield f"{owner}.__dict__ == {literal(own)}" if own else f"not {owner}.__dict__"
    for name in sorted({*named, *by_text}):
        if name in own:
            yield f"{owner}.{name} == {literal(own[name])}"
        elif not hasattr(torch.Tensor, name):
            yield f"not hasattr({owner}, {name!r})"
