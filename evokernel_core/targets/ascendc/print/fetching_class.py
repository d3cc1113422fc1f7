"""The class of a cube core whose operands travel into L1 by themselves: its loops as they stand, and the
fetches that are ahead of them."""

from __future__ import annotations

from evokernel_core.domain.errors import PlanError
from evokernel_core.targets.ascendc.ir.cube import Ahead, Fetch, Keep, LoadData
from evokernel_core.targets.ascendc.ir.expr import FIRST_OF_CORE, LAST_OF_CORE, Side
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Kernel, Memory
from evokernel_core.targets.ascendc.print import cube_methods
from evokernel_core.targets.ascendc.print.cube_body import SLOTS, free
from evokernel_core.targets.ascendc.print.cube_class import class_text, cube_class, init_text
from evokernel_core.targets.ascendc.print.fetching import Fetches, FetchingBody
from evokernel_core.targets.ascendc.print.statements import STEP, comment, indented, method


def class_of(kernel: Kernel, name: str) -> str:
    """The class of a kernel of cube cores under a name, behind its constants."""
    return fetching_class(kernel, name) if fetches_of(kernel) else cube_class(kernel, name)


def fetching_class(kernel: Kernel, name: str) -> str:
    """The class under a name, behind its constants. Raises PlanError where tiles are not dealt in a row."""
    return _Printer(kernel, name).text()


def fetches_of(kernel: Kernel) -> tuple[Fetch, ...]:
    """What a kernel fetches ahead."""
    return tuple(node for node in kernel.nodes if isinstance(node, Fetch))


class _Printer:
    def __init__(self, kernel: Kernel, name: str) -> None:
        if not kernel.tiles.in_a_row:
            raise PlanError("A core that fetches ahead has tiles that follow each other.")
        self._kernel, self._name = kernel, name
        self._keeps = list({node.buffer: node for node in kernel.nodes if isinstance(node, Keep)}.values())
        fetches = fetches_of(kernel)
        late = frozenset(node.name for node in kernel.nodes if isinstance(node, Ahead))
        self._body = FetchingBody(fetches, self._keeps)
        self._fetches = Fetches(fetches, late, kernel.tiles, self._body)

    def text(self) -> str:
        """The constants and the class."""
        process, fetching = self._process(), self._fetches.methods()
        private = [*fetching, *self._body.methods]
        spans = any(isinstance(node, LoadData) and not node.is_run for node in self._kernel.nodes)
        constants = f"{self._constants()}\n{cube_methods.SPAN if spans else ''}"
        public = [init_text(self._kernel, self._stages), process]
        return class_text(self._kernel, self._name, constants, public, private, self._members())

    def _stages(self, buffer: Buffer) -> str:
        if buffer.memory is not Memory.L1:
            return SLOTS[buffer.memory]
        return str(buffer.stages) if buffer.stages > 1 else ""

    def _constants(self) -> str:
        counts = {
            SLOTS[buffer.memory]: buffer.stages
            for buffer in self._kernel.buffers
            if buffer.memory is not Memory.L1
        }
        lines = [f"constexpr uint32_t {name} = {count};" for name, count in counts.items()]
        lines += [*self._fetches.constants, *cube_methods.constants(self._kernel)]
        return "".join(f"{line}\n" for line in lines)

    def _members(self) -> list[str]:
        states = self._kernel.states()
        lines = [f"{state.ctype} {state.name} = {state.first};{comment(state.note)}" for state in states]
        lines += [f"uint64_t {node.buffer.name}Key[1] = {{}}; // one more than that of what it holds"
                  for node in self._keeps]  # fmt: skip
        lines += self._fetches.members
        lines += [f"uint32_t {name} = 0;" for name in ("leftStepCount", "rightStepCount", "sumCount")]
        lines += [f"uint64_t {var.name} = 0;" for var in (FIRST_OF_CORE, LAST_OF_CORE)]
        return lines

    def _process(self) -> str:
        tiles = self._kernel.tiles
        place = self._kernel.body.index(tiles)
        end, index = tiles.end.cpp(Side.DEVICE, 2), tiles.var.name
        lines = [
            *self._fetches.free_stages(),
            *_every("SetFlag"),
            *self._body.lines(self._kernel.body[:place]),
            f"{FIRST_OF_CORE.name} = {end} * GetBlockIdx() / tiling_.blockDim;",
            f"{LAST_OF_CORE.name} = {end} * (GetBlockIdx() + 1) / tiling_.blockDim;",
            *self._fetches.begin(),
            f"for (uint64_t {index} = {FIRST_OF_CORE.name}; {index} < {LAST_OF_CORE.name}; ++{index}) {{",
            *indented(self._body.lines(tiles.body)),
            "}",
            *self._body.lines(self._kernel.body[place + 1 :]),
            *self._fetches.end(),
            *_every("WaitFlag"),
        ]
        return method("void", "Process", "", lines)


def _every(verb: str) -> list[str]:
    """All steps and sums are free in the beginning and in the end."""
    steps = "for (uint32_t step = 0; step < STEPS; ++step) {"
    sums = "for (uint32_t sum = 0; sum < SUMS; ++sum) {"
    return [
        steps,
        f"{STEP}{free(verb, Memory.L0A, 'step')}",
        f"{STEP}{free(verb, Memory.L0B, 'STEPS + step')}",
        "}",
        sums,
        f"{STEP}{free(verb, Memory.L0C, 'sum')}",
        "}",
    ]
