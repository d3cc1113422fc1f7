"""The ``reference`` method: PyTorch's own result for a task's graph at given sizes."""

from __future__ import annotations

import ast
import ctypes
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from ..errors import AgentError, describe
from ..graph import complex_tensors
from ..graph.names import refs_in
from . import half_precision, norms, precision, stable_order, steps
from .bounded_inputs import as_weights, boundaries, is_deep, layers_take, lengths, near_one, steadied
from .distributions import DISTRIBUTIONS
from .index_ranges import Range, ranges
from .integer_inputs import draw_whole, free, is_wide, takes_wide, without_least, without_minus_one
from .magnitudes import Magnitude, finite_share, is_mostly_finite, is_rounding, parsed
from .near_numbers import draw_near, whole_near
from .patterns import draw_integers, draw_truths
from .reduction_rounding import LongSums

_OPERATORS: Mapping[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_TABLE = Path(__file__).parents[3] / "domain" / "operations.txt"
_LONGEST_SIZE, _MOST_OPERATORS = 4000, 512
"""Characters, and operators and brackets, of a size expression."""
_MOST_WIDENED = 1 << 21
"""Elements of all values of a graph without long sums that is computed in float64 too."""
_MOST_ROUNDED = 1 << 25
"""The same of a graph each of whose operations is rounded where a kernel differs."""
_MOST_RESIZED = 1 << 26
"""The same of a graph that resizes by weights."""
_MOST_FEW = 1 << 23
"""Elements of all values of a graph up to which one thread computes them; of products a sixteenth."""
_FAINT = 2.0**-9
"""The share of an output's magnitude below which a row is judged by itself."""
_ROUNDINGS = 4
"""Ways in which long sums are rounded to see how far that moves the results."""
After = Callable[[str, "list[Any]", "dict[str, Any]", Any], Any]
"""What becomes of a node: its op, both kinds of arguments, and result."""
Rules = Mapping[str, Callable[..., Any]]
"""By operation, how it is computed."""
_BEYOND = ("out of range", "out of bounds", "out of DATA bounds", "Class values must be")
"""What PyTorch says of an index that a tensor does not have, and of a class that there is not."""
_INTEGERS = (Range(0, 8), Range(0, 2), Range(1, 2))
"""Values of integer inputs that no operation reads as indices, and where the graph does not take those."""
_WIDE_INTEGERS = Range(-(1 << 15), 1 << 15)
"""Those of wide draws where no index is computed from them; narrower types take their lowest bits."""
_INFINITE = ("infinities", "lowest", "highest")
_NO_NUMBERS = ("special", "nans", *_INFINITE)
"""Distributions that are there for what is no number."""


def reference(
    graph: dict[str, Any], sizes: dict[str, int], seed: int, distribution: str, folder: str, *, rounded: bool
) -> dict[str, Any]:
    """Draw the inputs, run the graph on the CPU in its own dtypes, and write raw .bin files; with ``rounded``
    also the results with long sums as float32 may round them, where there are any, which takes several times
    as long as the rest. Raises AgentError before anything runs where the graph names what is no operation of
    the table."""
    for node in graph["nodes"]:
        _operator(node["op"])
    with torch.no_grad(), in_order(), _few_threads(graph, sizes):
        sums = LongSums(graph)
        values, results, precise = _judged_run(graph, sizes, seed, parsed(distribution), sums)
        each = precision.may_round_each(graph) and _may_take(graph, sizes, _MOST_ROUNDED)
        is_float = any(result.is_floating_point() for result in results)
        single = _is_single(graph)
        rounds = is_float and ((single and (bool(sums) or each)) or precision.has_half_scores(graph))
        if rounds and rounded:
            precise = precise or _run_as(precision.SINGLE, graph, values, sizes, results)
        farthest = (
            run_rounded(graph, values, sizes, results, precise, each=each and single)
            if rounds and rounded
            else []
        )
        sides = steps.SIDES if steps.has_steps(graph) else ()
        beside = [run(graph, values, sizes, steps.Beside(side)) for side in sides]
    kinds = {operand["name"]: operand["kind"] for operand in graph["inputs"]}
    scalars = [float(value) for name, value in values.items() if kinds[name] == "scalar"]
    tensors = [value for name, value in values.items() if kinds[name] != "scalar"]
    inputs = [_write(value, Path(folder) / f"input_{index}.bin") for index, value in enumerate(tensors)]
    outputs = [_write(value, Path(folder) / f"expected_{index}.bin") for index, value in enumerate(results)]
    widened = [_write(value, Path(folder) / f"precise_{index}.bin") for index, value in enumerate(precise)]
    moved = [_write(value, Path(folder) / f"rounded_{index}.bin") for index, value in enumerate(farthest)]
    others = [
        [_write(value, Path(folder) / f"beside_{side}_{index}.bin") for index, value in enumerate(made)]
        for side, made in enumerate(beside)
    ]
    return {
        "inputs": inputs, "scalars": scalars, "outputs": outputs, "precise": widened, "rounded": moved,
        "rounds": rounds, "beside": others,
    }  # fmt: skip


def _judged_run(
    graph: dict[str, Any], sizes: dict[str, int], seed: int, how: Magnitude, sums: LongSums
) -> tuple[dict[str, Any], list[torch.Tensor], list[torch.Tensor]]:
    """The inputs, the results, and these in wider types. What is mostly no number, or of a magnitude at which
    it is mostly PyTorch's own rounding, tells nothing of a kernel, and is drawn again, milder; of several
    such draws the one with most numbers is taken."""
    tries = [how] if how.base in _NO_NUMBERS else list(how.milder())
    if how.near and not precision.keeps_digits(graph):
        tries = tries[1:]  # the numbers alone, and not what is far from them
    best: tuple[dict[str, Any], list[torch.Tensor], list[torch.Tensor]] | None = None
    most = -1.0
    for milder in tries:
        sums.clear()
        values, results = _first_run(graph, sizes, seed, milder, sums)
        share = finite_share(results)
        is_finite = is_mostly_finite(share)
        if not is_finite and share <= most:
            continue
        precise = run_widened(graph, values, sizes, results, sums, always=not how.is_ordinary)
        if is_finite and (milder.is_ordinary or not is_rounding(results, precise)):
            return values, results, precise
        best, most = (values, results, precise), share
    assert best is not None
    return best


def _first_run(
    graph: dict[str, Any], sizes: dict[str, int], seed: int, how: Magnitude, sums: LongSums
) -> tuple[dict[str, Any], list[torch.Tensor]]:
    """The inputs and the results. Indices that are computed from integers, such as the place of the last
    word by a mask, may lie beyond a tensor: then those integers are truth values, or all ones."""
    *others, last = _INTEGERS
    if is_wide(how) and takes_wide(graph):
        others.insert(0, _WIDE_INTEGERS)
    for integers in others:
        values = _drawn(graph, sizes, seed, how, integers)
        try:
            return values, _in_range(lambda: run(graph, values, sizes, sums.note))  # noqa: B023
        except AgentError:
            sums.clear()
        except (RuntimeError, IndexError):
            if integers is not _WIDE_INTEGERS:
                raise
            sums.clear()
    values = _drawn(graph, sizes, seed, how, last)
    return values, _in_range(lambda: run(graph, values, sizes, sums.note))


def first_values(graph: dict[str, Any], sizes: dict[str, int], seed: int) -> dict[str, Any]:
    """Ordinary values of the graph's inputs, by name, for which it computes something. Raises AgentError
    where its indices lie beyond its tensors at these sizes."""
    with torch.no_grad(), in_order():
        return _first_run(graph, sizes, seed, Magnitude("normal"), LongSums(graph))[0]


def _drawn(
    graph: dict[str, Any], sizes: dict[str, int], seed: int, magnitude: Magnitude, integers: Range
) -> dict[str, Any]:
    """The inputs by name; ``integers`` has the values of those that are neither indices nor free. Parameters
    have ordinary magnitudes: layers pass a magnitude on."""
    generator, distribution = torch.Generator().manual_seed(seed), magnitude.base
    values: dict[str, Any] = {}
    shapes = shapes_of(graph, sizes)
    limits, factors = ranges(graph, shapes), lengths(graph, shapes)
    unbounded = free(graph) - limits.keys()
    divides = any(limit.divides for limit in limits.values())
    keeps_least = divides and bool(torch.randint(0, 2, (), generator=generator))
    of_layers, in_order = layers_take(graph), boundaries(graph, shapes)
    deep, squares = is_deep(graph), not precision.is_exact(graph)
    alike: dict[tuple[tuple[int, ...], torch.dtype], torch.Tensor] = {}
    for operand in graph["inputs"]:
        if operand.get("value") is not None:
            values[operand["name"]] = _around(operand["value"], distribution, generator)
            continue
        if operand["kind"] == "scalar":
            spread = distribution if distribution in ("wide", "structured") else "uniform"
            values[operand["name"]] = draw((), "float32", spread, generator)
            continue
        shape = tuple(size_of(dim, sizes) for dim in operand["spec"]["shape"])
        if operand["name"] in unbounded and distribution not in ("structured", "rows"):
            value = draw_whole(shape, operand["spec"]["dtype"], generator, wide=is_wide(magnitude))
            value = whole_near(value, magnitude.near, generator) if magnitude.near else value
            value = without_least(value) if divides and not keeps_least else value
        else:
            limit = limits.get(operand["name"], integers)
            # A weight that is no number, or 0, would leave no output that tells; peaks grow with each layer.
            is_plain = operand["kind"] == "parameter" and distribution in (
                "nans",
                "peaks",
                "zeros",
                *_INFINITE,
            )
            how = "normal" if is_plain else distribution
            of_size = Magnitude(how) if operand["kind"] == "parameter" else magnitude
            value = draw(shape, operand["spec"]["dtype"], how, generator, limit, of_size, squares=squares)
            value = without_minus_one(value) if limit.divides and keeps_least else value
            if distribution == "alike" and operand["kind"] != "parameter" and value.is_floating_point():
                value = _alike(value, alike.setdefault((shape, value.dtype), value), generator)
        if operand["kind"] == "parameter":
            value = as_weights(value, distribution, deep=deep)
        if operand["name"] in of_layers:
            value = steadied(value)
        if operand["name"] in in_order and shape:
            value = value.sort(-1).values
        length = factors.get(operand["name"], 0)
        values[operand["name"]] = near_one(value, length) if length and value.is_floating_point() else value
    return values


_APART = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}


def _alike(value: torch.Tensor, first: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """The first input of a shape; others are this one, moved by a little of what was drawn, or not: by so
    much that a difference of their squares has no digit left in float32, and of half types by a step."""
    if value is first:
        return value
    moved = first + value * _APART.get(value.dtype, 2.0**-13)
    return torch.where(torch.rand(value.shape, generator=generator) < 1 / 4, first, moved)


def _around(value: float, distribution: str, generator: torch.Generator) -> torch.Tensor:
    """A setting such as an eps: as captured, or up to four times as large or small; of the same sign."""
    if distribution == "normal":
        return torch.tensor(value, dtype=torch.float32)
    exponent = torch.rand((), generator=generator) * 4.0 - 2.0
    return value * torch.exp2(exponent)


@contextmanager
def _few_threads(graph: dict[str, Any], sizes: dict[str, int]) -> Iterator[None]:
    """One thread where values are few: several of them wait for each other longer than they work, on a busy
    machine a hundred times as long."""
    before = torch.get_num_threads()
    is_product = any(node["op"] in precision.SUMS for node in graph["nodes"])
    if _may_take(graph, sizes, _MOST_FEW >> 4 if is_product else _MOST_FEW):
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def in_order() -> Iterator[None]:
    """Of several values for one place the last one stays, as in one thread."""
    before = torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warns)


def shapes_of(graph: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[tuple[str, int], tuple[int, ...]]:
    """The size of every value, by its name and the number of the result."""
    specs = {(operand["name"], 0): operand["spec"] for operand in graph["inputs"]}
    for node in graph["nodes"]:
        specs |= {(node["name"], index): spec for index, spec in enumerate(node["outputs"])}
    return {key: tuple(size_of(dim, sizes) for dim in spec["shape"]) for key, spec in specs.items()}


def run_widened(
    graph: dict[str, Any],
    values: dict[str, Any],
    sizes: dict[str, int],
    results: list[torch.Tensor],
    sums: LongSums,
    *,
    always: bool = False,
) -> list[torch.Tensor]:
    """The same graph in wider types, rounded once at the end: float32 wherever it has a half type, float64
    where the rounding of long sums of float32, or of weights, may weigh in the results, or where the graph
    has none and is so small that it costs nothing; ``always`` also where long sums do not weigh. Empty
    otherwise."""
    types = precision.wider(graph)
    if not types and _is_small(graph, sizes):
        types = precision.SINGLE
    elif not types or (
        "float32" in types and not (always or sums.weigh(results) or _has_faint_rows(results))
    ):
        return []
    return _run_as(types, graph, values, sizes, results)


def _has_faint_rows(results: list[torch.Tensor]) -> bool:
    """Whether a row of a result is so much smaller than the whole that only its own rounding can judge it."""
    for result in results:
        if result.dtype is torch.float32 and result.dim() > 1 and 0 < result.numel() <= _MOST_WIDENED:
            rows = result.nan_to_num(0.0, 0.0, 0.0).double().square().flatten(0, -2).mean(-1)
            if bool((rows < _FAINT**2 * rows.mean()).any()):
                return True
    return False


def _is_small(graph: dict[str, Any], sizes: dict[str, int]) -> bool:
    is_resized = any(node["op"] in precision.RESIZED for node in graph["nodes"])
    return _may_take(graph, sizes, _MOST_RESIZED if is_resized else _MOST_WIDENED)


def _may_take(graph: dict[str, Any], sizes: dict[str, int], most: int) -> bool:
    """Whether all values of the graph have at most so many elements together."""
    return sum(math.prod(shape) for shape in shapes_of(graph, sizes).values()) <= most


def _is_single(graph: dict[str, Any]) -> bool:
    """Whether the graph's floats are float32, which float64 is the wider type of."""
    types = precision.wider(graph)
    return not types or "float32" in types


def _run_as(
    types: Mapping[str, str],
    graph: dict[str, Any],
    values: dict[str, Any],
    sizes: dict[str, int],
    results: list[torch.Tensor],
    after: After | None = None,
) -> list[torch.Tensor]:
    dtypes = {getattr(torch, name): getattr(torch, other) for name, other in types.items()}
    wide = {
        name: value.to(dtypes.get(value.dtype, value.dtype)) if isinstance(value, torch.Tensor) else value
        for name, value in values.items()
    }
    outputs = run(precision.widened(graph, types), wide, sizes, after)
    return [output.to(result.dtype) for output, result in zip(outputs, results)]  # noqa: B905


def run_rounded(
    graph: dict[str, Any],
    values: dict[str, Any],
    sizes: dict[str, int],
    results: list[torch.Tensor],
    precise: list[torch.Tensor],
    *,
    each: bool,
) -> list[torch.Tensor]:
    """The graph in float64 with long sums as float32 may round them, and with ``each`` other operations too.

    Of several ways to round, each element is the one farthest from ``precise``:
    neighbouring sums that happen to move together would hide what their difference loses.
    """
    farthest = precise
    unit = precision.of_half(graph)
    types = precision.SINGLE if not unit else precision.ALL
    for seed in range(_ROUNDINGS):
        moved = _run_as(types, graph, values, sizes, results, _rounding(seed, each=each, unit=unit))
        farthest = [_farther(*distances) for distances in zip(farthest, moved, precise)]  # noqa: B905
    return farthest


def _rounding(seed: int, *, each: bool, unit: float) -> After:
    generator = torch.Generator().manual_seed(seed)

    def after(op: str, args: list[Any], kwargs: dict[str, Any], result: Any) -> Any:
        return precision.rounded(op, args, kwargs, result, generator, each=each, unit=unit)

    return after


def _farther(one: torch.Tensor, other: torch.Tensor, origin: torch.Tensor) -> torch.Tensor:
    """Element by element, which is farther from ``origin``."""
    if not origin.is_floating_point():
        return one
    distances = ((choice.double() - origin.double()).abs().nan_to_num() for choice in (one, other))
    first, second = distances
    return torch.where(second > first, other, one)


def _in_range(compute: Callable[[], list[torch.Tensor]]) -> list[torch.Tensor]:
    """What ``compute`` gives. Raises AgentError where the graph makes indices that its tensors do not
    have at these sizes, such as positions beyond a table of them."""
    try:
        return compute()
    except (IndexError, RuntimeError) as error:
        if not any(words in str(error) for words in _BEYOND):
            raise
        raise AgentError(
            "unsupported", "The graph reads beyond a tensor at these sizes ({error}).", error=describe(error)
        ) from error


def run(
    graph: dict[str, Any],
    values: dict[str, Any],
    sizes: dict[str, int],
    after: After | None = None,
    *,
    rules: Rules | None = None,
) -> list[torch.Tensor]:
    """Interpret the graph, node by node; ``after`` may change a node's result, and ``rules`` take the places
    of PyTorch's kernels. A value is let go behind the last node that reads it: those of a whole network take
    gigabytes."""
    rules = _RULES if rules is None else rules
    values = dict(values)
    unread = _last_read(graph)
    for node in graph["nodes"]:
        args = [_argument(argument, values, sizes) for argument in node["args"]]
        kwargs = {name: _argument(element, values, sizes) for name, element in node["kwargs"]}
        compute = rules.get(node["op"]) or half_precision.computed(_operator(node["op"]))
        result = compute(*args, **kwargs)
        values[node["name"]] = after(node["op"], args, kwargs, result) if after is not None else result
        del args, kwargs, result
        for name in unread.get(node["name"], ()):
            del values[name]
    return [_argument(output, values, sizes) for output in graph["outputs"]]


def _last_read(graph: dict[str, Any]) -> dict[str, list[str]]:
    """By the name of a node, the values that neither a node behind it nor an output reads."""
    last: dict[str, str] = {}
    for node in graph["nodes"]:
        last |= dict.fromkeys([*refs_in([node["args"], node["kwargs"]]), node["name"]], node["name"])
    for name in refs_in(graph["outputs"]):
        last.pop(name, None)
    result: dict[str, list[str]] = {}
    for name, node_name in last.items():
        result.setdefault(node_name, []).append(name)
    return result


_RULES = {
    precision.CONVOLUTION: precision.convolution,
    **norms.RULES,
    **stable_order.RULES,
    **complex_tensors.RULES,
}
"""Operations that are computed here otherwise than by PyTorch's kernel for a CPU."""


@lru_cache(maxsize=1)
def _allowed() -> frozenset[str]:
    """The operations that a task may name, from the product's own table."""
    lines = (line.split() for line in _TABLE.read_text("ascii").splitlines() if line.strip())
    return frozenset(words[0] for words in lines if not words[0].startswith("#"))


def _operator(name: str) -> Any:
    """PyTorch's operation of that name. Raises AgentError for one that is not in the table: any other name
    could reach whatever Python reaches."""
    namespace, _, rest = name.partition(".")
    if namespace != "aten" or rest not in _allowed():
        raise AgentError(
            "unsupported", "The graph names the operation {name}, which no kernel has.", name=repr(name[:60])
        )
    packet, _, overload = rest.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload)


def _dtype(name: str) -> torch.dtype:
    result = getattr(torch, name, None)
    if not isinstance(result, torch.dtype):
        raise AgentError(
            "unsupported", "The graph names the dtype {name}, which there is not.", name=repr(name[:60])
        )
    return result


def _argument(value: Any, values: dict[str, Any], sizes: dict[str, int]) -> Any:
    if isinstance(value, list):
        return [_argument(element, values, sizes) for element in value]
    if not isinstance(value, dict):
        return value
    if "ref" in value:
        member = values[value["ref"]]
        return member[value["index"]] if isinstance(member, (tuple, list)) else member
    if "sym" in value:
        return size_of(value["sym"], sizes)
    if "dtype" in value:
        return _dtype(value["dtype"])
    return float(value["float"])


def size_of(dim: int | str, sizes: Mapping[str, int]) -> int:
    """The value of a size expression. Raises AgentError for text that is longer than any that is captured,
    which could end this process."""
    if isinstance(dim, int):
        return dim
    if len(dim) > _LONGEST_SIZE or sum(char in "+-*/%(" for char in dim) > _MOST_OPERATORS:
        raise AgentError("unsupported", "The graph has the size {dim}, which is none.", dim=repr(dim[:40]))
    return _evaluate(ast.parse(dim, mode="eval").body, sizes)


def _evaluate(node: Any, sizes: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant):
        return int(str(node.value))
    if isinstance(node, ast.Name):
        return sizes[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand, sizes)
    return _OPERATORS[type(node.op)](_evaluate(node.left, sizes), _evaluate(node.right, sizes))


def draw(
    shape: tuple[int, ...],
    dtype: str,
    distribution: str,
    generator: torch.Generator,
    limit: Range = _INTEGERS[0],
    magnitude: Magnitude | None = None,
    *,
    squares: bool = True,
) -> torch.Tensor:
    """One input. Values are drawn in float32, brought to the ``magnitude`` and rounded to ``dtype``; integers
    are within ``limit``. ``squares``: whether those of values near numbers must be in range."""
    target = _dtype(dtype)
    if target is torch.bool:
        return draw_truths(shape, distribution, generator)
    if not target.is_floating_point:
        return draw_integers(shape, limit, distribution, generator).to(target)
    if magnitude is not None and magnitude.near:
        how = {"far": magnitude.far, "squares": squares, "columns": distribution == "columns"}
        return draw_near(shape, target, magnitude.near, generator, **how).to(target)
    values = DISTRIBUTIONS[distribution](shape, generator)
    return (values if magnitude is None else magnitude.applied(values, generator)).to(target)


def _write(value: torch.Tensor, path: Path) -> str:
    """Raw row-major elements, without numpy: the user's interpreter may not have it."""
    value = value.detach().contiguous()
    size = value.numel() * value.element_size()
    with path.open("wb") as file:
        if size:
            file.write((ctypes.c_char * size).from_address(value.data_ptr()))
    return str(path)
