"""Statements of C++ from the kernel IR, for every unit: lines, methods, loops and choices."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from textwrap import wrap

from evokernel_core.targets.ascendc.ir.expr import U32, U64, Expr, Function, Int, Side, Var, is_narrow, least
from evokernel_core.targets.ascendc.ir.floats import FLOAT, HALF, Float
from evokernel_core.targets.ascendc.ir.nodes import (
    Assign,
    Atomic,
    Await,
    Element,
    For,
    Get,
    If,
    Instruction,
    Let,
    Node,
    Signal,
    SliceList,
    expressions_of,
    flat,
)

STEP = "    "
_WIDTH = 96
"""Characters of a statement, indented by up to 24."""
_LONGEST = 120
"""Characters of a line."""
_KEPT_SPACE = "\0"


def in_lines(text: str) -> str:
    """The text with statements that are too long on several lines."""
    return "".join(f"{part}\n" for line in text.splitlines() for part in _broken(line))


def _broken(line: str) -> list[str]:
    """Lines break between arguments, and within them only where one is too long itself."""
    if len(line) <= _LONGEST or "//" in line:
        return [line]
    start = " " * (len(line) - len(line.lstrip()))
    kept = re.sub("(?<!,) ", _KEPT_SPACE, line.strip())
    width = max(_LONGEST - len(start) - len(STEP), 1)
    inner = [
        part
        for between_word in between_words(kept, width)
        for part in between_words(between_word.replace(_KEPT_SPACE, " "), width)
    ]
    return [f"{start}{STEP if place else ''}{part}" for place, part in enumerate(inner)]


def between_words(text: str, width: int, indent: str = "") -> list[str]:
    """Lines of at most ``width`` characters, of which all but the first are indented; a name that is longer
    stays in one piece."""
    return wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def flag(node: Await | Signal) -> str:
    """A flag between a cube core and its vector cores: waited for, or set by a unit."""
    if isinstance(node, Await):
        return f"CrossCoreWaitFlag({node.flag});"
    return f"CrossCoreSetFlag<2, PIPE_{node.unit}>({node.flag});"


def comment(note: str) -> str:
    """A note behind a statement."""
    return f" // {note}" if note else ""


def framed(node: For | If | Atomic, bodies: Sequence[Sequence[str]], last: str = "") -> list[str]:
    """A loop, a choice or atomic stores around the lines of its bodies. ``last``: the name of what a loop's
    values are below, where it has one."""
    if isinstance(node, Atomic):
        return [f"SetAtomic{node.kind}<{node.ctype}>();", *bodies[0], "SetAtomicNone();"]
    if isinstance(node, If):
        condition = f"{node.left.cpp(Side.DEVICE, 1)} {node.sign} {node.right.cpp(Side.DEVICE, 1)}"
        then, otherwise = (indented(body) for body in bodies)
        return [f"if ({condition}) {{", *then, *(["} else {", *otherwise] if otherwise else []), "}"]
    if node.so_long is not None:
        return [f"while ({node.so_long.cpp()}) {{", *indented(bodies[0]), "}"]
    name, (first, end, step) = node.var.name, turns(node)
    step = f"++{name}" if step == "1" else f"{name} += {step}"
    head = f"for ({node.var.ctype} {name} = {first}; {name} < {last or end}; {step}) {{"
    if node.ring is None:
        return [head, *indented(bodies[0]), "}"]
    return [head, *indented(_handed(node, node.ring, bodies[0])), "}", *_until_read(node, node.ring)]


RING_FLAGS = """\
constexpr uint16_t ALL_WRITTEN = 2; // among vector cores: all have written their part of a chunk
constexpr uint16_t ALL_READ = 3; // among vector cores: all cube cores have read a chunk
"""


def _handed(node: For, ring: Expr, body: Sequence[str]) -> list[str]:
    """A chunk that all vector cores write when no cube core reads what lay there, and then all may read."""
    return [
        f"if ({node.var.name} >= {ring.cpp()}) {{ // every cube core has read the chunk that lies there",
        f"{STEP}CrossCoreWaitFlag(CHUNK_READ);",
        f"{STEP}CrossCoreSetFlag<0, PIPE_MTE3>(ALL_READ);",
        f"{STEP}CrossCoreWaitFlag(ALL_READ);",
        "}",
        *body,
        "CrossCoreSetFlag<0, PIPE_MTE3>(ALL_WRITTEN);",
        "CrossCoreWaitFlag(ALL_WRITTEN);",
        "CrossCoreSetFlag<2, PIPE_MTE3>(CHUNK_READY);",
    ]


def _until_read(node: For, ring: Expr) -> list[str]:
    """Cube cores read on behind the last chunk, and set flags that no later kernel may find."""
    left = least(node.end, ring).cpp()
    head = f"for (uint64_t left = {left}; left > 1; --left) {{"
    return [head, f"{STEP}CrossCoreWaitFlag(CHUNK_READ);", "}"]


def turns(node: For) -> tuple[str, str, str]:
    """A loop's first value, the end of its values, and how far the next is."""
    end = node.end.cpp(Side.DEVICE, 1)
    if not node.cores:
        return "0", end, "1"
    if node.with_cube and node.in_a_row:
        core, all_ = "GetBlockIdx() / GetTaskRatio()", node.end.cpp(Side.DEVICE, 2)
        return f"{all_} * ({core}) / GetBlockNum()", f"{all_} * ({core} + 1) / GetBlockNum()", "1"
    if node.with_cube:
        return "GetBlockIdx() / GetTaskRatio()", end, "GetBlockNum()"
    if node.run is None:
        cores = "GetBlockNum() * GetSubBlockNum()" if node.beside else "GetBlockNum()"
        return "GetBlockIdx()", end, cores
    run = node.run.cpp(Side.DEVICE, 2)
    behind = f"(GetBlockIdx() + 1) * {run}"
    return f"GetBlockIdx() * {run}", f"({behind} < {end} ? {behind} : {end})", "1"


def indented(lines: Iterable[str]) -> list[str]:
    """Lines one step further in."""
    return [f"{STEP}{line}" for line in lines]


def let(node: Let | Assign) -> list[str]:
    """A local constant, or what a state becomes."""
    if isinstance(node, Assign):
        return [f"{node.state.name} = {converted(node.value, node.state.ctype)};"]
    return [f"const {node.var.ctype} {node.var.name} = {converted(node.value, node.var.ctype)};"]


def needed(lets: Sequence[Let], nodes: Sequence[Node]) -> tuple[Let, ...]:
    """The local constants that nodes use, and those that these are made of."""
    found: list[Let] = []
    used = set(free_variables(nodes))
    for let in reversed(lets):
        if let.var in used:
            found.insert(0, let)
            used |= set(free_variables((let,)))
    return tuple(found)


def free_variables(nodes: Sequence[Node]) -> list[Var]:
    """What nodes use and do not define."""
    used: dict[Var, None] = {}
    defined: set[Var] = set()
    seen: dict[int, Expr] = {}  # most instructions of a step have the same count
    for node in flat(nodes):
        for child in expressions_of(node):
            if id(child) not in seen:
                seen[id(child)] = child
                used.update(dict.fromkeys(part for part in child.walk() if isinstance(part, Var)))
        if isinstance(node, (Let, For, Get)):
            defined.add(node.var)
        elif isinstance(node, Instruction):
            defined.update(operand.var for operand in node.operands if isinstance(operand, SliceList))
    return [var for var in used if var not in defined]


def method(result: str, name: str, parameters: str, lines: Iterable[str]) -> str:
    """A method of a kernel's class."""
    body = "".join(f"{STEP}{line}\n" for line in lines)
    return f"__aicore__ inline {result} {name}({parameters})\n{{\n{body}}}\n"


def function(function: Function) -> str:
    """An integer function as a method."""
    parameters = ", ".join(f"{var.ctype} {var.name}" for var in function.parameters)
    note = f"// {wrapped(function.note, '// ')}\n" if function.note else ""
    return note + method(function.ctype, function.name, parameters, [f"return {function.result.cpp()};"])


def call_lines(name: str, arguments: Sequence[str]) -> list[str]:
    """A call, on as many lines as it has groups of arguments where one line is too short."""
    call = f"{name}({', '.join(arguments)});"
    if len(call) <= _WIDTH:
        return [call]
    *first, last = arguments
    return [f"{name}({first[0]},", *(f"{STEP}{node}," for node in first[1:]), f"{STEP}{last});"]


def converted(value: Expr, ctype: str) -> str:
    """The value in a type; 64 bits need no conversion, nor does what has the type."""
    if isinstance(value, Int) and ctype in ("float", "int32_t"):
        return f"{value.value}.0f" if ctype == "float" else _literal(value.value)
    if ctype == U64 or (_is_float(value) and ctype != HALF) or (ctype == U32 and is_narrow(value)):
        return value.cpp()
    return f"static_cast<{ctype}>({value.cpp()})"


def _is_float(value: Expr) -> bool:
    return isinstance(value, Element | Float) or (isinstance(value, Var) and value.ctype == FLOAT)


def _literal(value: int) -> str:
    """C++ has no literal for the least int32."""
    return str(value) if value > -(1 << 31) else f"({value + 1} - 1)"


def wrapped(note: str, prefix: str) -> str:
    """A note over several lines, each behind the prefix."""
    return note.replace("\n", f"\n{prefix}")
