"""Register assignment: a linear scan over a tile's instructions.

Tile-sized float tensors are the scarce resource: each one kept makes every tile smaller. A queue's
float32 tensor serves as a register once its input is no longer read, an output's until its value
is written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from attrs import define, field, frozen

from evokernel_core.compiler.lowering.values import Domain, Kind
from evokernel_core.targets.ascendc.lowering.program import OUT_OF_PLACE, Instruction, Virtual, camel


@frozen
class Registers:
    """``names`` gives each virtual tensor its C++ name; ``work`` and ``masks`` count registers."""

    names: Mapping[int, str]
    work: int
    masks: int

    def name(self, virtual: Virtual) -> str:
        return self.names[virtual.index]


@frozen
class Target:
    """An output tensor of float32 that ``value`` should be computed into."""

    name: str
    value: Virtual


@define
class _Scan:
    instructions: Sequence[Instruction]
    reusable: Collection[str]
    initialised: Collection[int]
    names: dict[int, str] = field(factory=dict)
    last_use: dict[int, int] = field(factory=dict)
    free: list[str] = field(factory=list)
    free_masks: list[str] = field(factory=list)
    born: dict[str, int] = field(factory=dict)
    work: int = 0
    masks: int = 0

    def run(self, targets: Sequence[Target]) -> Registers:
        self._measure()
        for target in targets:
            self._aim(target)
        for position, instruction in enumerate(self.instructions):
            self._step(position, instruction)
        return Registers(self.names, self.work, self.masks)

    def _measure(self) -> None:
        for position, instruction in enumerate(self.instructions):
            for source in instruction.sources:
                self.last_use[source.index] = position
                self._name_fixed(source)
            if instruction.target is not None:
                self._name_fixed(instruction.target)

    def _name_fixed(self, virtual: Virtual) -> None:
        if virtual.home:
            self.names[virtual.index] = f"{camel(virtual.home)}Local"
        elif virtual.name:
            self.names[virtual.index] = virtual.name

    def _aim(self, target: Target) -> None:
        """Compute the output's value in place; until then its memory is a register."""
        register = f"{camel(target.name)}Local"
        self.names[target.value.index] = register
        self.last_use[target.value.index] = len(self.instructions)
        self.born[register] = next(
            position
            for position, instruction in enumerate(self.instructions)
            if instruction.target is target.value
        )
        self.free.append(register)

    def _step(self, position: int, instruction: Instruction) -> None:
        in_place = instruction.op not in OUT_OF_PLACE
        if in_place:
            self._release(position, instruction)
        if instruction.target is not None and instruction.target.index not in self.names:
            self._assign(position, instruction.target, instruction)
        if not in_place:
            self._release(position, instruction)

    def _release(self, position: int, instruction: Instruction) -> None:
        for source in dict.fromkeys(instruction.sources):
            if self.last_use[source.index] == position and source.domain is Domain.FULL:
                self._give_back(source)

    def _give_back(self, virtual: Virtual) -> None:
        register = self.names[virtual.index]
        if virtual.kind is Kind.MASK:
            self.free_masks.insert(0, register)
        elif (not virtual.home and not virtual.name) or virtual.home in self.reusable:
            self.free.insert(0, register)

    def _assign(self, position: int, virtual: Virtual, instruction: Instruction) -> None:
        if virtual.kind is Kind.MASK:
            if not self.free_masks:
                self.free_masks.append(f"mask{self.masks}")
                self.masks += 1
            self.names[virtual.index] = self.free_masks.pop(0)
            return
        choice = next((name for name in self.free if self._fits(name, virtual, position)), None)
        if choice is None:
            choice = f"work{self.work}"
            self.work += 1
        else:
            self.free.remove(choice)
        self.names[virtual.index] = choice

    def _fits(self, register: str, virtual: Virtual, position: int) -> bool:
        if virtual.index in self.initialised:
            return register.startswith("work")
        if register not in self.born:
            return True
        end = self.last_use.get(virtual.index, position)
        birth = self.born[register]
        return end < birth or (end == birth and self.instructions[end].op not in OUT_OF_PLACE)


def assign(
    instructions: Sequence[Instruction],
    reusable: Collection[str],
    initialised: Collection[int],
    targets: Sequence[Target] = (),
) -> Registers:
    """Registers for a tile program. ``reusable`` names the inputs whose queue tensor is float32 and
    of tile size; ``initialised`` the values that need a register of which every lane is defined."""
    return _Scan(instructions, reusable, initialised).run(targets)
