"""A jit function while it is written: its parameters, what a launch passes for them, and its lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from attrs import define, evolve, field, frozen

from evokernel_core.compiler.shapes.sizes import Extent
from evokernel_core.targets.triton.launch import Launch

LONGEST_LINE = 110
"""Characters of a line of a text."""


def expression(extent: Extent) -> str:
    """An extent as launch records write it."""
    factors = [factor if factor.isidentifier() else f"({factor})" for factor in extent.factors]
    if extent.coefficient != 1 or not factors:
        factors.append(str(extent.coefficient))
    return " * ".join(factors)


@frozen
class JitText:
    """A jit function: its parameters in groups, and the lines of what the program of the number ``program``
    computes. ``looped``: a launch has fewer programs than there are numbers, which the last parameter,
    ``programs``, counts, and each takes several."""

    name: str
    groups: tuple[tuple[str, ...], ...]
    body: tuple[str, ...]
    looped: bool = False

    def in_loop(self) -> JitText:
        """The function for fewer programs."""
        numbers, *constants = self.groups[1:] or ((),)
        return evolve(self, groups=(self.groups[0], (*numbers, "programs"), *constants), looped=True)

    @property
    def text(self) -> str:
        """The function with its decorator."""
        parts = [", ".join(group) for group in self.groups if group]
        head = f"def {self.name}({', '.join(parts)}):"
        if len(head) > LONGEST_LINE:
            head = f"def {self.name}(\n" + "".join(f"    {part},\n" for part in parts) + "):"
        if not self.looped:
            return "\n".join(["@triton.jit", head, "    program = tl.program_id(0)", *self.body, ""])
        loop = "    for program in range(tl.program_id(0), programs, tl.num_programs(0)):"
        body = (f"    {line}" if line else "" for line in self.body)
        return "\n".join(["@triton.jit", head, loop, *body, ""])


@define
class JitFunction:
    """Tensors are called ``NAME_ptr``, so that no local name of a text is that of a tensor; sizes that are
    known stand in the text as numbers, others are parameters."""

    name: str
    _tensors: dict[str, str] = field(factory=dict)
    _numbers: dict[str, str] = field(factory=dict)
    _constants: dict[str, str] = field(factory=dict)
    _lines: list[str] = field(factory=list)
    _depth: int = 1

    def tensor(self, name: str) -> str:
        """The parameter that points to a tensor."""
        self._tensors[name] = f"{name}_ptr"
        return self._tensors[name]

    def scalar(self, name: str) -> str:
        """The parameter that is a run-time number of the task."""
        self._numbers[f"{name}_value"] = name
        return f"{name}_value"

    def number(self, name: str, extent: Extent | int) -> str:
        """A size in the text: a literal where it is known, else the parameter ``name``."""
        extent = Extent(extent) if isinstance(extent, int) else extent
        if extent.constant is not None:
            return str(extent.constant)
        return self.computed(name, expression(extent))

    def computed(self, name: str, text: str) -> str:
        """The parameter ``name`` for a number over the sizes that the launch works out."""
        if self._numbers.setdefault(name, text) != text:
            raise ValueError(f"{name} is {self._numbers[name]} and {text}")
        return name

    def constant(self, name: str, value: int | str) -> str:
        """The constexpr parameter ``name``."""
        self._constants[name] = str(value)
        return name

    def add(self, *lines: str) -> None:
        """Lines of the body, as deep as the blocks around."""
        self._lines.extend("    " * self._depth + line if line else "" for line in lines)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A loop or condition, whose body is what is added within."""
        self.add(head)
        self._depth += 1
        yield
        self._depth -= 1

    def jit_text(self) -> JitText:
        """The function as it stands."""
        constants = tuple(f"{name}: tl.constexpr" for name in self._constants)
        groups = (tuple(self._tensors.values()), tuple(self._numbers), constants)
        return JitText(self.name, groups, tuple(self._lines))

    @property
    def words(self) -> frozenset[str]:
        """All names that stand in it."""
        return frozenset(re.findall(r"[A-Za-z_]\w*", self.jit_text().text))

    def launch(self, grid: str, warps: int, stages: int = 1) -> Launch:
        """The launch of so many programs."""
        arguments = (*self._tensors, *self._numbers.values())
        return Launch(self.name, (grid,), arguments, dict(self._constants), warps, stages)


def factor(text: str) -> str:
    """A text as a factor or divisor."""
    return text if text.isidentifier() or text.isdecimal() else f"({text})"


def both(*masks: str) -> str:
    """The conjunction of masks, empty ones left out, and names once."""
    parts: dict[str, None] = {}
    for mask in masks:
        words = mask.split(" & ")
        parts |= dict.fromkeys(words if all(word.isidentifier() for word in words) else [mask])
    parts.pop("", None)
    if len(parts) < 2:
        return "".join(parts)
    return " & ".join(part if part.isidentifier() else f"({part})" for part in parts)


def masked(mask: str, other: str = "") -> str:
    """The end of a load's or store's arguments."""
    if not mask:
        return ""
    return f", mask={mask}, other={other}" if other else f", mask={mask}"


def divides(block: int, extent: Extent) -> bool:
    """Whether a size is a multiple of a block, whatever its symbols are."""
    return extent.divided_by(Extent(block)) is not None
