"""tiling.h of a kernel in the IR: its constants, OpTiling, and ComputeTiling with its refusals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.ascendc.ir.expr import Cheapest, Constant, Param, Side, Size, Table
from evokernel_core.targets.ascendc.ir.nodes import Kernel, Require
from evokernel_core.targets.ascendc.kernels.rendering import Symbolic, symbols_of
from evokernel_core.targets.ascendc.print.statements import STEP, comment


def settings(
    kernel: Kernel, also: Sequence[str], more: Sequence[str] = (), beside: Sequence[Kernel] = ()
) -> str:
    """The constants, those of ``also`` behind them, and the struct of the tiling, with ``more`` fields;
    ``beside``: kernels of other cores of the same launch."""
    parts = [
        expression
        for one in (kernel, *beside)
        for expression in one.expressions()
        if isinstance(expression, Constant)
    ]
    constants = [
        f"constexpr {part.ctype} {part.name} = {_number(part)};{comment(part.note)}"
        for part in dict.fromkeys(parts)
    ]
    struct = [
        "struct OpTiling {",
        f"{STEP}uint32_t blockDim;",
        f"{STEP}uint64_t workspaceBytes;",
        *(f"{STEP}{node}" for node in fields_of(kernel)),
        *(f"{STEP}{node};" for node in more),
        "};",
    ]
    return "\n".join([*constants, *also, "", *struct, ""])


def fields_of(kernel: Kernel) -> list[str]:
    """The declarations of a kernel's own fields of OpTiling."""
    return [
        f"{param.ctype} {param.name}{_length(param)};{comment(param.note)}"
        for param in kernel.params
        if not isinstance(param, Require) and not (isinstance(param, Param) and param.is_local)
    ]


def computed(kernel: Kernel) -> list[str]:
    """The statements of ComputeTiling that fill a kernel's fields, and refuse calls."""
    lines = []
    for group in _groups(kernel.params):
        lines += _field(group[0]) if not isinstance(group[0], Require) else _requirement(group)
    return lines


def compute(
    kernel: Kernel,
    task: KernelTask,
    *,
    checks: Sequence[str],
    blocks: Sequence[str],
    also: Sequence[str] = (),
    symbolic: Iterable[Symbolic] = (),
) -> str:
    """The host function that fills the struct. ``checks`` come first; ``blocks`` set how many cores take
    part, ``also`` further fields, which mention the symbols of what is ``symbolic``."""
    written: list[Symbolic] = [
        expression.extent for expression in kernel.expressions() if isinstance(expression, Size)
    ]
    known = symbols_of(task, [*written, *symbolic])
    body = [f"const int64_t {name} = sizes[{place}];" for place, name in known]
    body += ["tiling = {};", *checks, *computed(kernel)]
    body += [*also, *blocks, "return true;"]
    return "\n".join(
        [
            "inline bool ComputeTiling(const int64_t *sizes, const float *scalars, uint32_t coreNum,",
            "                          uint64_t ubBytes, OpTiling &tiling)",
            "{",
            *(f"{STEP}{line}" for line in body),
            "}",
            "",
        ]
    )


def _number(constant: Constant) -> str:
    return str(constant.value) if constant.ctype == "uint32_t" else f"{constant.value:#x}"


def _length(node: Param | Table) -> str:
    return f"[{len(node.values)}]" if isinstance(node, Table) else ""


def _field(node: Param | Table) -> list[str]:
    if isinstance(node, Param) and isinstance(node.value, Cheapest):
        return _search(node, node.value)
    if isinstance(node, Param) and node.is_local:
        return [f"const {node.ctype} {node.name} = {node.value.cpp(Side.HOST)};{comment(node.note)}"]
    fields = [(node.name, node.value)] if isinstance(node, Param) else []
    if isinstance(node, Table):
        fields = [(f"{node.name}[{place}]", value) for place, value in enumerate(node.values)]
    lines = []
    for name, value in fields:
        text = value.cpp(Side.HOST)
        given = text if node.ctype == "uint64_t" else f"static_cast<{node.ctype}>({text})"
        lines.append(f"tiling.{name} = {given};")
    return lines


def _search(param: Param, cheapest: Cheapest) -> list[str]:
    """Tries all values of a field."""
    name, least = cheapest.var.name, f"{cheapest.var.name}Cost"
    first, last = cheapest.first.cpp(Side.HOST), cheapest.last.cpp(Side.HOST, 1)
    begin = [f"{param.ctype} {param.name} = {first};{comment(param.note)}"] if param.is_local else []
    return [
        *begin,
        f"uint64_t {least} = UINT64_MAX;",
        f"for (uint64_t {name} = {first}; {name} <= {last}; ++{name}) {{",
        *(f"{STEP}const {var.ctype} {var.name} = {value.cpp(Side.HOST)};" for var, value in cheapest.given),
        f"{STEP}const uint64_t cost = {cheapest.cost.cpp(Side.HOST)};",
        f"{STEP}if (cost < {least}) {{",
        f"{STEP * 2}{least} = cost;",
        f"{STEP * 2}{param.cpp(Side.HOST)} = {name};",
        f"{STEP}}}",
        "}",
    ]


_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def _groups(items: Sequence[Param | Table | Require]) -> Iterator[list[Param | Table | Require]]:
    """Fields one by one, and requirements that stand together and have one note."""
    for key, run in groupby(items, lambda item: item.note if isinstance(item, Require) else None):
        if key is None:
            yield from ([node] for node in run)
        else:
            yield list(run)


def _requirement(items: Sequence[Param | Table | Require]) -> list[str]:
    conditions = (
        f"{item.left.cpp(Side.HOST, 1)} {_OPPOSITE[item.sign]} {item.right.cpp(Side.HOST, 1)}"
        for item in items
        if isinstance(item, Require)
    )
    return refusal(" || ".join(conditions), items[0].note)


def refusal(condition: str, note: str = "") -> list[str]:
    """Statements that refuse a call."""
    return [f"if ({condition}) {{{comment(note)}", f"{STEP}return false;", "}"]
