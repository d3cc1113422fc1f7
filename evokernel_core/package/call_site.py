"""The Python side of a kernel's call: its guards, its contract and its operands, as text."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from evokernel_core.domain.arguments import takes_lists
from evokernel_core.domain.call_site import CallSite, Guard
from evokernel_core.domain.graph import Graph, GraphInput, InputKind, Update
from evokernel_core.domain.task import KernelTask
from evokernel_core.package.reference import python_name, symbol_sources

_LINE = 60
"""Characters of arguments that stand on one line."""
_LOCAL = re.compile(r"\W+")


def context(
    task: KernelTask, site: CallSite, limits: Iterable[str] = (), *, asks_device: bool = False
) -> Mapping[str, Any]:
    """The variables of call.py.jinja. ``limits``: more conditions on operands. ``asks_device``: whether the
    kernel says on which device it runs, which is an NPU otherwise."""
    graph = task.graph
    given = [operand for operand in graph.inputs if is_operand(operand)]
    names = {element.name: python_name(element.name) for element in given}
    results = [f"result_{index}" for index in range(graph.returned)]
    written = [f"new_{python_name(update.name)}" for update in graph.updates if update.output is not None]
    computed = [name for name, _ in site.bindings]
    early, late = _guards_apart(site)
    known = _known(*site.asked, *computed, *site.module_names)
    late_lines = [*(_globals(site) if late else ()), *_guard_lines(late, known, "None")]
    return {
        "asked": ", ".join(site.asked),
        "computed": computed,
        "parameters": ", ".join([*site.asked, *computed]),
        "given": ", ".join([*site.asked, *site.carried, *computed]),
        "rest_lines": site.rest.splitlines(),
        "asks_late": site.asks_late,
        "asks_globals": asks_globals(site),
        "asks_device": asks_device,
        "original": site.original,
        "code": dict(site.code),
        "early_lines": [
            *_globals(site),
            *_guard_lines(early, _known(*site.asked, *site.module_names), "False"),
        ],
        "late_lines": late_lines,
        "warned": site.warned,
        "operands": list(names.values()),
        "expressions": _tuple(
            _through(element.expression or names[element.name], known) for element in given
        ),
        "plain": (plain := _plain_operands(given, set(computed))),
        "before": [
            *([] if site.asks_late else [f"_same({', '.join(site.asked)})"]),
            *([f"_may_fit{plain['expressions']}"] if plain["names"] else []),
        ],
        **_contract(task, given, site.whole_numbers, limits),
        "default": "" if site.default_dtype == "float32" else f", torch.{site.default_dtype}",
        "call": _call(graph),
        "results": ", ".join(results),
        "assigned": ", ".join([*results, *written]) + " = " * bool(results or written),
        "update_lines": [_update(update) for update in graph.updates],
    }


def asks_globals(site: CallSite) -> bool:
    """Whether a call asks for globals of its file, as the code that it runs otherwise does."""
    return bool(site.module_names or site.bindings or any("__name__" in guard.text for guard in site.guards))


def _globals(site: CallSite) -> Iterable[str]:
    return (f"{name} = HOME.{name}" for name in site.module_names)


def _guards_apart(site: CallSite) -> tuple[list[Guard], list[Guard]]:
    """The guards that are asked before an operand is computed, and those that are asked with the operands."""
    computed = {name for name, _ in site.bindings}
    if site.asks_late or not computed:
        return [], list(site.guards)
    behind = [guard for guard in site.guards if computed & _names(guard.condition)]
    return [guard for guard in site.guards if guard not in behind], behind


def _names(text: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)}


def _plain_operands(given: list[GraphInput], computed: set[str]) -> Mapping[str, Any]:
    """The tensors that have a name before others are computed, and what is asked of the first. This tells
    most calls that the kernel does not fit, at little cost: ``run`` asks all of it."""
    tensors = [element for element in given if element.kind is not InputKind.SCALAR]
    known = [
        tensor for tensor in tensors if tensor.expression.isidentifier() and tensor.expression not in computed
    ]
    return {
        "names": [python_name(entry.name) for entry in known],
        "expressions": _tuple(entry.expression for entry in known),
        "dtype": next(
            (f"{python_name(entry.name)}.dtype is torch.{entry.spec.dtype}" for entry in known), ""
        ),
    }


def _kind(graph_input: GraphInput) -> str:
    name = python_name(graph_input.name)
    return f"{name}.dtype is torch.{graph_input.spec.dtype} and {name}.dim() == {graph_input.spec.rank}"


def is_operand(graph_input: GraphInput) -> bool:
    """Whether an input is what a variable holds, rather than a draw or a table that the call makes."""
    if not graph_input.expression:
        return True
    tree = ast.parse(graph_input.expression, mode="eval").body
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return all(ast.unparse(node.func).endswith(("view_as_real", "resolve_conj", "getattr")) for node in calls)


def _known(*names: str) -> dict[str, str]:
    return {name: name for name in names}


def _guard_lines(guards: Iterable[Guard], known: dict[str, str], refusal: str) -> Iterable[str]:
    """Statements that return the refusal where a guard fails. An object below another is reached once: the
    names of those that were are added to the known ones."""
    taken = set(known)
    asked: list[str] = []
    for guard in guards:
        if guard.owner and guard.owner not in known:
            yield from _refuse_unless(asked, refusal)
            asked = []
            local = _local_name(guard.owner, taken)
            yield f"{local} = {_through(guard.owner, known)}"
            known[guard.owner] = local
        asked.append(_text(guard, known))
    yield from _refuse_unless(asked, refusal)


def _refuse_unless(conditions: list[str], refusal: str = "False") -> Iterable[str]:
    """A statement that returns the refusal unless all conditions hold."""
    if len(conditions) == 1:
        yield from (f"if not ({conditions[0]}):", f"    return {refusal}")
    elif conditions:
        first, *others = conditions
        yield from ("if not (", f"    {first}")
        yield from (f"    and {other_}" for other_ in others)
        yield from ("):", f"    return {refusal}")


def _text(guard: Guard, known: Mapping[str, str]) -> str:
    return guard.text.replace("{}", known[guard.owner], 1) if guard.owner else guard.text


def _local_name(path: str, taken: set[str]) -> str:
    name = _LOCAL.sub("_", path.removeprefix("self.")).strip("_").lower()
    name = name if name[:1].isalpha() else f"part_{name}"
    unique, number = name, 1
    while unique in taken or unique in ("torch", "guards"):
        number += 1
        unique = f"{name}_{number}"
    taken.add(unique)
    return unique


def _through(path: str, known: Mapping[str, str]) -> str:
    """A path from the longest part of it that has a name."""
    for end in range(len(path) - 1, 0, -1):
        if path[:end] in known and path[end] in ".[":
            return known[path[:end]] + path[end:]
    return path


def _contract(
    task: KernelTask, given: list[GraphInput], whole: Collection[str], limits: Iterable[str]
) -> dict[str, Any]:
    """What a call must be given: ranks and dtypes, then sizes on the names of symbols. ``whole`` are the
    expressions of numbers that are Python ints."""
    tensors = [element for element in given if element.kind is not InputKind.SCALAR]
    sources = symbol_sources(task)
    names = [(python_name(tensor.name), tensor.spec) for tensor in tensors]
    kinds = list(map(_kind, tensors))
    numbers = [
        f"type({python_name(element.name)}) is {'int' if element.expression in whole else 'float'}"
        for element in given
        if element.kind is InputKind.SCALAR
    ]
    owned = set(sources.values())
    shapes = [
        f"{name}.shape == {_tuple(map(str, spec.shape))}"
        for name, spec in names
        if not all((name, axis) in owned for axis in range(spec.rank))
    ]
    least = [f"{symbol.name} >= {symbol.minimum}" for symbol in task.symbols]
    return {
        "dense": _tuple(python_name(tensor.name) for tensor in tensors if tensor.spec.contiguous),
        "strided": _tuple(python_name(tensor.name) for tensor in tensors if not tensor.spec.contiguous),
        "kinds": list(_refuse_unless([*numbers, *kinds])),
        "sizes": [(symbol, f"{name}.shape[{axis}]") for symbol, (name, axis) in sources.items()],
        "shapes": list(_refuse_unless([*shapes, *least, *limits])),
        "symbols": _tuple(symbol.name for symbol in task.symbols),
        "captured": _tuple(str(symbol.size) for symbol in task.symbols),
        "numbers": _tuple(python_name(element.name) for element in given if element.kind is InputKind.SCALAR),
    }


def _tuple(items: Iterable[str]) -> str:
    found = list(items)
    return f"({', '.join(found)}{',' * (len(found) == 1)})"


def _call(graph: Graph) -> str:
    """The operator's arguments: operands, and what the call makes, in the order of the code."""
    texts = {operand.name: operand.expression or python_name(operand.name) for operand in graph.inputs}
    if not takes_lists(graph):
        return _wrapped(texts.values(), "    ")
    tensors = [texts[operand.name] for operand in graph.inputs if operand.kind is not InputKind.SCALAR]
    numbers = [texts[operand.name] for operand in graph.inputs if operand.kind is InputKind.SCALAR]
    return _wrapped([f"[{_wrapped(tensors, '        ')}]", *numbers], "    ")


def _wrapped(texts: Iterable[str], indent: str) -> str:
    """On one line if that is short, else a text a line."""
    contents = list(texts)
    joined = ", ".join(contents)
    if len(joined) <= _LINE:
        return joined
    return "".join(f"\n{indent}    {text}," for text in contents) + f"\n{indent}"


def _update(update: Update) -> str:
    if update.output is None:
        return f"{update.expression}.add_({update.step})"
    return f"{update.expression}.copy_(new_{python_name(update.name)})"
