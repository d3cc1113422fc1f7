"""Several kernels in one launch that take images in chunks: cube cores one ahead of vector cores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import indent

from evokernel_core.compiler.fusion.records import Place, Stage
from evokernel_core.compiler.shapes.sizes import extent, product
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.targets.ascendc.fusion.launches import Barrier, Order
from evokernel_core.targets.ascendc.fusion.micro_batches import Chunked
from evokernel_core.targets.ascendc.kernels.family import Cores
from evokernel_core.targets.ascendc.kernels.rendering import Symbolic, symbols_of
from evokernel_core.targets.ascendc.print.scheduling import BATCHED
from evokernel_core.targets.ascendc.print.sharing import Part
from evokernel_core.targets.ascendc.print.together import FRESH_NUMBERS, barrier_lines, declared, tensor_names

_BARRIER = barrier_lines(Barrier.ALL, mixed=True)


def struct_fields(program: Chunked, kinds: Sequence[Part]) -> list[str]:
    """Fields of OpTiling beside those of the kernels and slots."""
    fields = [
        f"{kinds[kind].namespace}::OpTiling last{kind}; // of the last chunk"
        for kind in sorted(program.batch.kinds)
    ]
    fields += [f"uint64_t slot{slot}Step; // from chunk to chunk" for slot in sorted(program.cut_slots())]
    fields += [f"uint64_t tensor{place.index}Step;" for place in program.steps()]
    return [*fields, "uint64_t scratchBehind; // of the kernels behind", "uint64_t chunks;"]


def tiling_body(program: Chunked, kinds: Sequence[Part], slot_bytes: Sequence[str], aligned: str) -> str:
    """Statements of ComputeTiling."""
    task, batch = program.task, program.batch
    count = len(task.symbols)
    lines = [
        f"constexpr int64_t CHUNKS = {program.chunks}; // about as many",
        f"const int64_t images = sizes[{batch.index}];",
        "if (images < 1) {",
        "    return false;",
        "}",
        f"int64_t chunk[{count}];",
        f"int64_t last[{count}];",
        f"for (uint32_t i = 0; i < {count}; ++i) {{",
        "    chunk[i] = sizes[i];",
        "    last[i] = sizes[i];",
        "}",
        f"chunk[{batch.index}] = (images + CHUNKS - 1) / CHUNKS;",
        f"tiling.chunks = (images + chunk[{batch.index}] - 1) / chunk[{batch.index}];",
        f"last[{batch.index}] = images - (tiling.chunks - 1) * chunk[{batch.index}];",
    ]
    tilings = []
    for kind, part in enumerate(kinds):
        inside = kind in batch.kinds
        compute = f"{part.tiling_namespace}::ComputeTiling"
        for sizes, field in (("chunk", "stage"), ("last", "last")) if inside else (("sizes", "stage"),):
            call = f"{compute}({sizes}, scalars, coreNum, ubBytes, tiling.{field}{kind})"
            lines += [f"if (!{call}) {{", "    return false;", "}"]
            tilings.append((kind, f"tiling.{field}{kind}"))
    slots = program.planned.slots
    moved = {place: product(map(extent, spec.shape)) for place, spec in program.steps().items()}
    steps = {
        f"tiling.tensor{place.index}Step": (
            f"static_cast<uint64_t>({moved[place].cpp()}) * {ITEM_SIZE[spec.dtype]}"
        )
        for place, spec in program.steps().items()
    }
    cut = {slot: text for slot, text in enumerate(slot_bytes) if slot in program.cut_slots()}
    whole = {slot: text for slot, text in enumerate(slot_bytes) if slot not in cut}
    lines.append("uint64_t offset = 0;")
    if whole:
        lines += [
            "{ // what kernels write that take all images",
            *_indented(_symbols(task, "sizes", [slots[slot] for slot in whole]), 1),
        ]
        for slot, text in whole.items():
            lines += _indented([f"tiling.slot{slot} = offset;", f"offset += {aligned}({text});"], 1)
        lines.append("}")
    lines += _symbols(task, "chunk", [*(slots[slot] for slot in cut), *moved.values()])
    for slot, text in cut.items():
        step, times = f"tiling.slot{slot}Step", "2" if slot in program.rings() else "tiling.chunks"
        lines += [f"tiling.slot{slot} = offset;"]
        lines += [f"{step} = {f'{aligned}({text})' if slot in program.rings() else text};"]
        lines += [f"offset += {aligned}({times} * {step});"]
    lines += [f"{field} = {text};" for field, text in steps.items()]
    behind = {stage.kind for stage in program.groups()[2]}
    lines += ["uint64_t scratch = 0;", "uint64_t scratchBehind = 0;", "uint64_t blocks = 1;"]
    for kind, field in tilings:
        of = "scratchBehind" if kind in behind else "scratch"
        cores = f"{field}.blockDim" if program.facts[kind].on_cube else f"({field}.blockDim + 1) / 2"
        lines += [f"{of} = Larger({of}, {field}.workspaceBytes);", f"blocks = Larger(blocks, {cores});"]
    return "\n".join(
        [
            *lines,
            "tiling.scratch = offset;",
            f"tiling.scratchBehind = offset + {aligned}(scratch);",
            "tiling.workspaceBytes = tiling.scratchBehind + scratchBehind;",
            "tiling.blockDim = static_cast<uint32_t>(blocks); // each a cube core and two vector cores",
            "return true;",
        ]
    )


def _symbols(task: KernelTask, sizes: str, written: Iterable[Symbolic]) -> list[str]:
    """Variables for the symbols of what is written."""
    return [f"const int64_t {name} = {sizes}[{i}];" for i, name in symbols_of(task, written)]


def launches(program: Chunked, kinds: Sequence[Part], name: str) -> tuple[str, str]:
    """The kernel that runs the parts chunk by chunk, and the statement that launches it; ``kinds`` has one
    part a kind."""
    names = tensor_names(program.task)
    before, inside, behind, after = program.groups()
    lines: list[str] = []
    order = Order()
    for number, stage in enumerate(before):
        lines += _part(program, order, stage, kinds, names, again=number > 0)
    lines += _BARRIER if before else []
    ahead = 1 if behind else 0
    lines += [f"for (uint64_t step = 0; step < tiling.chunks{' + 1' if ahead else ''}; ++step) {{"]
    first = ["const uint64_t chunk = step;", *_group(program, inside, kinds, names)]
    if ahead:
        lines += ["    if (step < tiling.chunks) {", *_indented(first, 2), "    }"]
        lines += ["    if (step > 0) { // what follows, for the chunk before"]
        last = ["const uint64_t chunk = step - 1;", *_group(program, behind, kinds, names)]
        lines += [*_indented(last, 2), "    }"]
    else:
        lines += _indented(first, 1)
    lines += [*_indented(_BARRIER, 1), "}"]
    order = Order()
    for stage in after:
        lines += _part(program, order, stage, kinds, names, again=True)
    entry = f"{name}_chunks"
    kernel = f"""\
// One launch: images come in chunks, so that L2 keeps what lies between the parts, and cube cores compute one
// chunk while vector cores go on with the one before.
{BATCHED} __mix__(1, 2) void {entry}(
    {declared(names)})
{{
{indent(chr(10).join(lines), "    ")}
}}
"""
    passed = ", ".join((*(f"tensors[{i}]" for i in range(len(names))), "workspace", "tiling"))
    launch = f"    {entry}<<<tiling.blockDim, nullptr, stream>>>(\n        {passed});"
    stale = any(program.facts[stage.kind].reads_numbers for stage in (*before[1:], *inside, *behind, *after))
    return (f"{FRESH_NUMBERS}\n" if stale else "") + kernel, launch


def _indented(lines: Sequence[str], depth: int) -> list[str]:
    return [f"{'    ' * depth}{line}" for line in lines]


def _group(
    program: Chunked, stages: Sequence[Stage], kinds: Sequence[Part], names: Sequence[str]
) -> list[str]:
    order, lines = Order(), [] if not stages else ["const bool isLast = chunk + 1 == tiling.chunks;"]
    for stage in stages:
        lines += _part(program, order, stage, kinds, names, again=True)
    return lines


def _part(
    program: Chunked,
    order: Order,
    stage: Stage,
    kinds: Sequence[Part],
    names: Sequence[str],
    *,
    again: bool,
) -> list[str]:
    """A part behind what it waits for."""
    barrier = order.barrier_before(stage, program.facts[stage.kind])
    call = _call(program, stage, kinds[stage.kind], names, again=again)
    return [*barrier_lines(barrier, mixed=True), *call]


def _call(program: Chunked, stage: Stage, part: Part, names: Sequence[str], *, again: bool) -> list[str]:
    facts, kind = program.facts[stage.kind], stage.kind
    inside = kind in program.batch.kinds
    tiling = f"tiling{kind}" if inside else f"tiling.stage{kind}"
    both = facts.cores is Cores.BOTH
    lines = [f"if (GetBlockIdx(){' / GetTaskRatio()' if both else ''} < {tiling}.blockDim) {{"]
    if inside:
        choice = f"isLast ? tiling.last{kind} : tiling.stage{kind}"
        lines.insert(0, f"const {part.namespace}::OpTiling &{tiling} = {choice};")
    if again and facts.reads_numbers:
        lines.append("    ForgetNumbers(workspace);")
    places = [_place(program, place, names, inside) for place in (*stage.inputs, *stage.outputs)]
    scratch = "scratchBehind" if stage in program.groups()[2] else "scratch"
    passed = ",\n        ".join((*places, f"workspace + tiling.{scratch}", tiling))
    lines += [f"    {part.entry}(", f"        {passed});", "}"]
    if both:
        return ["{", *_indented(lines, 1), "}"] if inside else lines
    guard = "if ASCEND_IS_AIC {" if facts.on_cube else "if ASCEND_IS_AIV {"
    return [guard, *_indented("\n".join(lines).split("\n"), 1), "}"]


def _place(program: Chunked, place: Place, names: Sequence[str], inside: bool) -> str:
    if place.in_workspace:
        slot = f"workspace + tiling.slot{place.index}"
        if not inside or place.index not in program.cut_slots():
            return slot
        turn = "chunk % 2" if place.index in program.rings() else "chunk"
        return f"{slot} + {turn} * tiling.slot{place.index}Step"
    if inside and place in program.steps():
        return f"{names[place.index]} + chunk * tiling.tensor{place.index}Step"
    return names[place.index]
