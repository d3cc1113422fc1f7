"""The guards of a call in words: when the kernel runs, as sentences for the person who reviews it.

They say what the ``call.py`` of a package asks, one sentence for each condition of ``call_site.py`` and of
``ordinary`` in ``guards.py``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping

from evokernel_core.ascendc.print.call_site import is_operand
from evokernel_core.domain.call_site import CallSite
from evokernel_core.domain.graph import GraphInput, InputKind
from evokernel_core.domain.task import KernelTask

_LONGEST = 160
"""Characters of a condition that are shown as they are."""
ELSE = "Where one of these does not hold, your own code runs, as it stands in your file."
BUILT = (
    "The kernel's package is built on this machine and its files are the ones that were verified; until then "
    "your own code runs."
)


def guard_words(task: KernelTask, site: CallSite) -> tuple[str, ...]:
    """What must hold in a call, the operands first, and what runs where it does not."""
    given = [item for item in task.graph.inputs if is_operand(item)]
    tensors = [item for item in given if item.kind is not InputKind.SCALAR]
    return (
        *(_operand(item, task) for item in given),
        *_sizes(task),
        *_layout(tensors),
        *(_condition(guard.condition) for guard in site.guards),
        *_ordinary(site),
        *_code(site),
        BUILT,
        ELSE,
    )


def _code(site: CallSite) -> Iterator[str]:
    yield "The code that the kernel stands for is as it was when the kernel was made."
    if site.code:
        names = sorted({place.rpartition(":")[2] for place, _ in site.code})
        yield f"So is the code of what it calls: {', '.join(names)}."


def _layout(tensors: Iterable[GraphInput]) -> Iterator[str]:
    dense = [_called(item) for item in tensors if item.spec.contiguous]
    if dense:
        yield f"Contiguous in memory: {', '.join(dense)}."


def _ordinary(site: CallSite) -> Iterator[str]:
    yield "All tensors are on one NPU and plain (of no subclass)."
    yield "No gradient is asked for, and neither autocast nor a torch.func transform is on."
    yield f"The default dtype is torch.{site.default_dtype}, and no global module hooks are set."


def _operand(item: GraphInput, task: KernelTask) -> str:
    if item.kind is InputKind.SCALAR:
        value = f" ({item.value:g} when it was captured)" if item.value is not None else ""
        return f"{_called(item)} is a Python float, of any value{value}."
    shape = " x ".join(map(str, item.spec.shape)) or "one element"
    sizes = " x ".join(map(str, item.spec.sizes(task.sizes)))
    captured = f" ({sizes} when it was captured)" if sizes and sizes != shape else ""
    return f"{_called(item)} is {item.spec.dtype} of {shape}{captured}."


def _called(item: GraphInput) -> str:
    return item.expression or item.name


def _sizes(task: KernelTask) -> Iterator[str]:
    """What the names of sizes may be, those of one least size together."""
    for least in sorted({symbol.minimum for symbol in task.symbols}):
        names = ", ".join(symbol.name for symbol in task.symbols if symbol.minimum == least)
        yield f"{names}: any size from {least} on that the kernel has a tiling for."


def _condition(text: str) -> str:
    """A declared condition as a sentence; one of a form that has no words is shown as it is."""
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _as_it_is(text)
    return _call(tree) or _comparison(tree) or _absent(tree) or _as_it_is(text)


def _as_it_is(text: str) -> str:
    shown = " ".join(text.split())
    return f"{shown[:_LONGEST]}{'...' if len(shown) > _LONGEST else ''} holds."


def _equal(value: str, expected: str) -> str:
    return f"{value} is {expected}, of the same type."


def _named(value: str, name: str) -> str:
    return f"{value} is {_unquoted(name)}."


def _plain(value: str, kind: str, *_: str) -> str:
    return f"{value} is a {_unquoted(kind)} with its own forward and without hooks."


_CALLS: Mapping[str, Callable[..., str]] = {
    "guards.equal": _equal,
    "guards.entry": _named,
    "guards.named": _named,
    "guards.plain": _plain,
}
"""The functions of ``guards.py`` that conditions call, and what they say."""


def _call(tree: ast.expr) -> str:
    if not isinstance(tree, ast.Call) or tree.keywords or len(tree.args) < 2:
        return ""
    words = _CALLS.get(ast.unparse(tree.func))
    return words(*map(ast.unparse, tree.args)) if words else ""


def _comparison(tree: ast.expr) -> str:
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 1:
        return ""
    left, right = ast.unparse(tree.left), ast.unparse(tree.comparators[0])
    if isinstance(tree.ops[0], ast.Is):
        return f"{left} is {right}."
    return _equality(tree.left, left, right) if isinstance(tree.ops[0], ast.Eq) else ""


def _equality(tree: ast.expr, left: str, right: str) -> str:
    match tree:
        case ast.Call(func=ast.Name(id="len"), args=[held]):
            return f"{ast.unparse(held)} has {right} entries."
        case ast.Call(func=ast.Name(id="list"), args=[ast.Attribute(attr="_modules") as held]):
            return f"{ast.unparse(held.value)} holds the layers {right}."
        case ast.Call(func=ast.Name(id="list"), args=[held]):
            return f"{ast.unparse(held)} has the keys {right}."
    return f"{left} equals {right}."


def _absent(tree: ast.expr) -> str:
    match tree:
        case ast.UnaryOp(op=ast.Not(), operand=ast.Call(func=ast.Name(id="hasattr"), args=[owner, name])):
            return f"{ast.unparse(owner)} has no {_unquoted(ast.unparse(name))}."
    return ""


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
