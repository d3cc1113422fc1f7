"""The guards of a call in words: when the kernel runs, as sentences for the person who reviews it.

They say what the ``call.py`` of a package asks, one sentence for each condition of ``call_site.py`` and of
``ordinary`` in ``guards.py``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from attrs import evolve

from evokernel_core.domain.call_site import CallSite
from evokernel_core.domain.graph import GraphInput, InputKind
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.package.call_site import is_operand
from evokernel_core.package.packaging import DeviceWords, KernelGuard

_LONGEST = 160
"""Characters of a condition that are shown as they are."""
ELSE = Sentence("Where one of these guards does not hold, your own code runs, unchanged.")


def guard_words(
    task: KernelTask, site: CallSite, device: DeviceWords, guards: Iterable[KernelGuard] = ()
) -> tuple[Sentence, ...]:
    """What must hold in a call, the operands first, and what runs where it does not. ``guards`` are those of
    the kernel, which is for a ``device``."""
    operands = [operand for operand in task.graph.inputs if is_operand(operand)]
    given = [_in_source(operand, site) for operand in operands]
    numbers = {
        _called(new)
        for operand, new in zip(operands, given, strict=True)
        if operand.expression in site.whole_numbers
    }
    tensors = [element for element in given if element.kind is not InputKind.SCALAR]
    return (
        *(_operand(element, task) for element in given if _called(element) not in numbers),
        *(Sentence("{name} is a Python int, of any value.", name=name) for name in sorted(numbers)),
        *_sizes(task),
        *_layout(tensors),
        *(_condition(_as_written(guard.condition, site)) for guard in site.guards),
        *_ordinary(site, device),
        *(guard.words for guard in guards),
        *_code(site),
        *_computed(site),
        device.ready,
        ELSE,
    )


def _in_source(graph_input: GraphInput, site: CallSite) -> GraphInput:
    return evolve(graph_input, expression=_as_written(graph_input.expression, site))


def _as_written(text: str, site: CallSite) -> str:
    """A text with the source of computed operands for their names, which stand nowhere in the file."""
    if not site.rest:
        return text
    texts = {name: _short(text) for name, text in site.bindings}
    return re.sub(r"[^\W\d]\w*", lambda match: texts.get(match[0], match[0]), text)


def _computed(site: CallSite) -> Iterator[Sentence]:
    """What becomes of operands that the call computes: they are known only when they are there."""
    if site.rest:
        yield Sentence(
            "The call computes {names}, once. Where the kernel does not take that, your code goes on from "
            "it, by the copy in the package's call.py.",
            names=", ".join(dict.fromkeys(_short(text) for _, text in site.bindings)),
        )


def _code(site: CallSite) -> Iterator[Sentence]:
    yield Sentence("The code that the kernel stands for is as it was when the kernel was made.")
    if site.code:
        names = sorted({place.rpartition(":")[2] for place, _ in site.code})
        yield Sentence("So is the code of what it calls: {names}.", names=", ".join(names))


def _layout(tensors: Iterable[GraphInput]) -> Iterator[Sentence]:
    dense = [_called(tensor) for tensor in tensors if tensor.spec.contiguous]
    if dense:
        yield Sentence("Contiguous in memory: {names}.", names=", ".join(dense))


def _ordinary(site: CallSite, device: DeviceWords) -> Iterator[Sentence]:
    yield Sentence("All tensors are on one {device} and plain (of no subclass).", device=device.one)
    yield Sentence("No gradient is asked for, and no autocast, torch.func transform or other mode is on.")
    yield Sentence(
        "The default dtype is torch.{dtype}, and no global module hooks are set.", dtype=site.default_dtype
    )


def _operand(graph_input: GraphInput, task: KernelTask) -> Sentence:
    name = _called(graph_input)
    if graph_input.kind is InputKind.SCALAR:
        if graph_input.value is None:
            return Sentence("{name} is a Python float, of any value.", name=name)
        return Sentence(
            "{name} is a Python float, of any value ({value} when it was captured).",
            name=name,
            value=f"{graph_input.value:g}",
        )
    if not graph_input.spec.shape:
        return Sentence("{name} is {dtype} of one element.", name=name, dtype=graph_input.spec.dtype)
    shape = " x ".join(map(str, graph_input.spec.shape))
    sizes = " x ".join(map(str, graph_input.spec.sizes(task.sizes)))
    told = {"name": name, "dtype": graph_input.spec.dtype, "shape": shape}
    if sizes == shape:
        return Sentence("{name} is {dtype} of {shape}.", **told)
    return Sentence("{name} is {dtype} of {shape} ({sizes} when it was captured).", sizes=sizes, **told)


def _called(graph_input: GraphInput) -> str:
    return graph_input.expression or graph_input.name


def _sizes(task: KernelTask) -> Iterator[Sentence]:
    """What the names of sizes may be, those of one least size together."""
    for least in sorted({symbol.minimum for symbol in task.symbols}):
        names = ", ".join(symbol.name for symbol in task.symbols if symbol.minimum == least)
        yield Sentence("{names}: any size from {least} on that the kernel takes.", names=names, least=least)


def _condition(text: str) -> Sentence:
    """A declared condition as a sentence; one of a form that has no words is shown as it is."""
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _as_it_is(text)
    return _call(tree) or _comparison(tree) or _absent(tree) or _as_it_is(text)


def _as_it_is(text: str) -> Sentence:
    return Sentence("{condition} holds.", condition=_short(text))


def _short(text: str) -> str:
    shown = " ".join(text.split())
    return f"{shown[:_LONGEST]}..." if len(shown) > _LONGEST else shown


def _equal(value: str, expected: str) -> Sentence:
    return Sentence("{value} is {expected}, of the same type.", value=value, expected=expected)


def _named(value: str, name: str) -> Sentence:
    return Sentence("{value} is {expected}.", value=value, expected=_unquoted(name))


def _of(value: str, name: str, file: str) -> Sentence:
    return Sentence(
        "{value} is the class {name} of {file}.", value=value, name=_unquoted(name), file=_unquoted(file)
    )


def _holders(value: str, name: str, *_: str) -> Sentence:
    return Sentence("No other base of {value} defines {name}.", value=value, name=_unquoted(name))


def _inherits(value: str, name: str, _: str, place: str) -> Sentence:
    return _defined(f"{value}.{_unquoted(name)}", place)


def _holds_value(value: str, name: str, _: str, expected: str) -> Sentence:
    return _equal(f"{value}.{_unquoted(name)}", expected)


def _defined(value: str, place: str) -> Sentence:
    return Sentence("{value} is the function {expected}.", value=value, expected=_unquoted(place))


def _builtin(_: str, *names: str) -> Sentence:
    return Sentence(
        "What the code uses of Python is Python's own: {names}.", names=", ".join(map(_unquoted, names))
    )


def _plain(value: str, kind: str, *_: str) -> Sentence:
    return Sentence(
        "{value} is a {kind} with its own forward and without hooks.", value=value, kind=_unquoted(kind)
    )


def _apart(written: str, read: str) -> Sentence:
    return Sentence("No other operand shares memory with {names}.", names=_listed(written))


def _writable(written: str) -> Sentence:
    return Sentence(
        "No tensor that inference mode has made is written into outside of it: {names}.",
        names=_listed(written),
    )


def _ordered(value: str, dims: str) -> Sentence:
    return Sentence(
        "The dimensions of {value} lie in memory in the order {order}.", value=value, order=_listed(dims)
    )


def _listed(text: str) -> str:
    tree = ast.parse(text, mode="eval").body
    return ", ".join(map(ast.unparse, tree.elts)) if isinstance(tree, ast.Tuple) else text


def _originals(*names: str) -> Sentence:
    """Operators and what every call of a layer goes through are left out: nobody wrote their names."""
    told = [_unquoted(name).partition("=")[0] for name in names]
    shown = [name for name in told if "__" not in name and not name.startswith("torch.nn.Module.")]
    if not shown:
        return Sentence("What the code calls of torch is torch's own.")
    return Sentence("What the code calls of torch is torch's own: {names}.", names=", ".join(shown))


_CALLS: Mapping[str, Callable[..., Sentence]] = {
    "guards.equal": _equal,
    "guards.apart": _apart,
    "guards.builtin": _builtin,
    "guards.defined": _defined,
    "guards.entry": _named,
    "guards.function": _defined,
    "guards.holders": _holders,
    "guards.holds_value": _holds_value,
    "guards.inherits": _inherits,
    "guards.named": _named,
    "guards.of": _of,
    "guards.ordered": _ordered,
    "guards.originals": _originals,
    "guards.plain": _plain,
    "guards.shown": _named,
    "guards.writable": _writable,
}
"""The functions of ``guards.py`` that conditions call, and what they say."""


def _call(tree: ast.expr) -> Sentence:
    if not isinstance(tree, ast.Call) or not tree.args:
        return Sentence()
    words = _CALLS.get(ast.unparse(tree.func))
    first, *others = map(ast.unparse, tree.args)
    for given in tree.keywords:  # the path to a class of a module
        first = _unquoted(ast.unparse(given.value))
    return words(first, *others) if words else Sentence()


def _comparison(tree: ast.expr) -> Sentence:
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 1:
        return Sentence()
    left, right = ast.unparse(tree.left), ast.unparse(tree.comparators[0])
    if isinstance(tree.ops[0], ast.Is):
        return Sentence("{value} is {expected}.", value=left, expected=right)
    return _equality(tree.left, left, right) if isinstance(tree.ops[0], ast.Eq) else Sentence()


def _equality(tree: ast.expr, left: str, right: str) -> Sentence:
    match tree:
        case ast.Call(func=ast.Name(id="len"), args=[held]):
            return Sentence("{value} has {count} entries.", value=ast.unparse(held), count=right)
        case ast.Call(func=ast.Name(id="list"), args=[ast.Attribute(attr="_modules") as held]):
            return Sentence("{value} holds the layers {names}.", value=ast.unparse(held.value), names=right)
        case ast.Call(func=ast.Name(id="list"), args=[held]):
            return Sentence("{value} has the keys {names}.", value=ast.unparse(held), names=right)
    return Sentence("{value} equals {expected}.", value=left, expected=right)


def _absent(tree: ast.expr) -> Sentence:
    match tree:
        case ast.UnaryOp(op=ast.Not(), operand=ast.Call(func=ast.Name(id="hasattr"), args=[owner, name])):
            return Sentence(
                "{value} has no {name}.", value=ast.unparse(owner), name=_unquoted(ast.unparse(name))
            )
    return Sentence()


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
