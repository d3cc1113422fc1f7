"""Chips: the constants of one NPU model, read from ``chips/<name>.toml``.

Whoever chooses by a constant reads it from a typed field of ``Chip``; a new chip is a data file
(docs/contributing.md).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from attrs import AttrsInstance, field, fields, frozen

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.chip_files import CHIPS, DEFAULT_CHIP, chip_names
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, FRACTAL
from evokernel_core.hardware.device import Device

_FLOAT_BYTES = 4
S = TypeVar("S", bound=AttrsInstance)


@frozen
class LaunchCosts:
    """Microseconds of a launch: of any, for each core that is started, and before a core's first
    instruction."""

    launch_us: float
    per_block_us: float
    start_us: float


@frozen
class CoreMemories:
    """Bytes of a core's memories beside ``Chip.ub_bytes``, its functions' stack among them, and how many
    buffers the queues of one position may have."""

    l1_bytes: int
    l0a_bytes: int
    l0b_bytes: int
    l0c_bytes: int
    stack_bytes: int
    max_queue_buffers: int

    @property
    def l0_bytes(self) -> int:
        """What L0A and L0B both have."""
        return min(self.l0a_bytes, self.l0b_bytes)


@frozen
class Scalar:
    """Cycles of the scalar unit: an instruction that it gives to another unit, a call on a queue, an element
    of the unified buffer that it reads or writes, and one of device memory that its cache holds."""

    issue_cycles: float
    queue_cycles: float
    local_access_cycles: float
    gm_hit_cycles: float


@frozen
class Sync:
    """Cycles between cores: one direction of a hand-over from cube to vector core, and a barrier."""

    cross_core_cycles: float
    sync_all_cycles: float


@frozen
class Rates:
    """Elements that a vector core takes in a cycle, by an instruction's class in the API table and, where
    they differ, by the bits of an element."""

    simple_b16: float
    simple_b32: float
    simple_b64: float
    transcendental: float
    mul_add_dst_b16: float
    mul_add_dst_b32: float
    reduce_repeat_b16: float
    reduce_repeat_b32: float
    reduce_block_b16: float
    reduce_block_b32: float
    gather: float
    gather_block_b16: float
    gather_block_b32: float
    gather_mask_b16: float
    gather_mask_b32: float
    sort: float

    def of(self, cost: str, bits: int) -> float:
        """Of a class of the API table; of the simple class where the class has no figure."""
        names = (f"{cost}_b{bits}", cost, f"simple_b{bits}")
        return next(float(getattr(self, name)) for name in names if hasattr(self, name))


@frozen
class Vector:
    """The vector unit: cycles of an instruction beside its repeats, by its class, groups of banks, and bytes
    of a bank over all groups."""

    startup_cycles: float
    startup_transcendental_cycles: float
    startup_reduce_cycles: float
    startup_reduce_block_cycles: float
    tail_cycles: float
    counter_tail_cycles: float
    read_write_conflict_cycles: float
    bank_groups: int
    bank_bytes: int
    elements_per_cycle: Rates

    def startup(self, cost: str) -> float:
        """Cycles that an instruction of a class of the API table takes beside its repeats."""
        apart = {
            "transcendental": self.startup_transcendental_cycles,
            "reduce_repeat": self.startup_reduce_cycles,
            "reduce_block": self.startup_reduce_block_cycles,
        }
        return apart.get(cost, self.startup_cycles)


@frozen
class Mte:
    """The copy engines of one core: bytes a cycle, cycles, and the bytes at whose multiples bursts start
    that move no more than they have. ``hit`` is said of what lies in L2."""

    load_bytes_per_cycle: float
    load_latency_cycles: float
    load_hit_bytes_per_cycle: float
    load_hit_latency_cycles: float
    cube_load_hit_bytes_per_cycle: float
    store_bytes_per_cycle: float
    store_latency_cycles: float
    min_copy_cycles: float
    min_burst_cycles: float
    aligned_bytes: int


@frozen
class Gm:
    """Device memory and L2, which all cores share: GB/s that kernels reach, what writing back and meeting at
    one address cost beside reading, and requests a cycle."""

    hbm_achieved_gbps: float
    l2_gbps: float
    write_back_cost: float
    same_address_cost: float
    requests_per_cycle: float

    @property
    def memory_bytes_us(self) -> float:
        """Bytes a microsecond from device memory."""
        return self.hbm_achieved_gbps * 1e3

    @property
    def l2_bytes_us(self) -> float:
        """Bytes a microsecond to and from L2."""
        return self.l2_gbps * 1e3


@frozen
class Cube:
    """The matrix side of one core: bytes and elements a cycle, cycles beside the work, and how many times
    longer a fractal of float takes than one of half."""

    l1_l0a_bytes_per_cycle: float
    l1_l0b_bytes_per_cycle: float
    load_overhead_cycles: float
    mmad_overhead_cycles: float
    mmad_latency_cycles: float
    mmad_float_cycles: float
    fixpipe_b16_elements_per_cycle: float
    fixpipe_b32_elements_per_cycle: float
    fixpipe_overhead_cycles: float
    fixpipe_gm_bytes_per_cycle: float

    def fractal_cycles(self, item_bytes: int) -> float:
        """Cycles of 16 x 16 results, a block deep."""
        return self.mmad_float_cycles if item_bytes == _FLOAT_BYTES else 1.0

    def depth_a_cycle(self, item_bytes: int) -> float:
        """How deep the product is that 16 x 16 results take in a cycle."""
        return BLOCK_BYTES // item_bytes / self.fractal_cycles(item_bytes)

    def fixpipe_elements(self, item_bytes: int) -> float:
        """Results that leave L0C in a cycle."""
        return (
            self.fixpipe_b32_elements_per_cycle
            if item_bytes == _FLOAT_BYTES
            else self.fixpipe_b16_elements_per_cycle
        )


@frozen
class EagerCosts:
    """What the vendor's kernels cost, as fitted to published measurements. Microseconds: of a launch and of
    each core that it starts; of reductions, row-wise kernels, calls that fuse several operations, products,
    convolutions, changes of format, transposes and sorts before their work; of a step along a dimension that
    is reduced with its index, summed up or scanned with its index; of the AI CPU. GB/s: read from device
    memory and from L2, taken by L2 and written back; of changes of format, transposes and Fixpipe. Cycles of
    a vector core for an element, by classes of operations, and for a byte of an extreme with its place; for a
    row or a piece of one, more where it is no whole blocks; for one operation on a row and one instruction on
    an element of a call that fuses several. Shares of the peak rate that products reach."""

    launch_us: float
    core_us: float
    core_bytes: float
    read_gbps: float
    hit_gbps: float
    write_gbps: float
    write_back_gbps: float
    simple_cycles: float
    transcendental_cycles: float
    composed_cycles: float
    heavy_cycles: float
    softmax_cycles: float
    strided_softmax_cycles: float
    row_cycles: float
    reduce_cycles: float
    index_byte_cycles: float
    index_row_cycles: float
    wide_cycles: float
    scalar_cycles: float
    sort_cycles: float
    gather_cycles: float
    pool_cycles: float
    volume_pool_cycles: float
    strided_factor: float
    short_elements: float
    row_start_cycles: float
    piece_cycles: float
    uneven_cycles: float
    cut_row_cycles: float
    broadcast_cycles: float
    fused_row_cycles: float
    instruction_cycles: float
    reduce_us: float
    softmax_us: float
    row_us: float
    fused_us: float
    fused_operation_us: float
    reduce_step_us: float
    sum_step_us: float
    scan_step_us: float
    cpu_us: float
    cpu_element_ns: float
    sort_us: float
    cube_us: float
    cube_share: float
    attention_share: float
    fixpipe_gbps: float
    convolution_us: float
    convolution_share: float
    transposed_factor: float
    volume_transposed_factor: float
    format_us: float
    format_gbps: float
    volume_format_gbps: float
    transpose_us: float
    transpose_gbps: float
    unaligned_gbps: float


@frozen
class Chip:
    """One NPU model.

    ``aic`` and ``aiv``: cube and vector cores. ``mhz``: core clock. ``ub_bytes``: unified buffer
    of a vector core that a kernel may use. ``hbm_bytes``: device memory. ``hbm_gbps``: its peak
    rate in GB/s. ``l2_bytes``: shared L2. The other fields
    are sections of the file. ``constants`` holds every number of the file by its dotted key, for the
    runner.
    """

    name: str
    aic: int
    aiv: int
    mhz: float
    ub_bytes: int
    hbm_bytes: int
    hbm_gbps: float
    l2_bytes: int
    launch: LaunchCosts = field(hash=False)
    memory: CoreMemories = field(hash=False)
    scalar: Scalar = field(hash=False)
    sync: Sync = field(hash=False)
    vector: Vector = field(hash=False)
    mte: Mte = field(hash=False)
    gm: Gm = field(hash=False)
    cube: Cube = field(hash=False)
    eager: EagerCosts = field(hash=False)
    constants: Mapping[str, float] = field(hash=False)
    path: Path = field(hash=False, eq=False)

    @property
    def parallel(self) -> int:
        return self.aiv

    @property
    def clock_mhz(self) -> float:
        return self.mhz

    @property
    def memory_bytes(self) -> int:
        return self.hbm_bytes

    @property
    def peak_bytes_us(self) -> float:
        return self.hbm_gbps * 1e3

    @property
    def memory_bytes_us(self) -> float:
        return self.gm.memory_bytes_us

    @property
    def l2_bytes_us(self) -> float:
        return self.gm.l2_bytes_us

    @property
    def worker_bytes_us(self) -> float:
        return self.mte.load_bytes_per_cycle * self.mhz

    @property
    def launch_us(self) -> float:
        return self.launch_of(self.aiv)

    def launch_of(self, cores: int) -> float:
        """Modelled microseconds that a launch of so many vector cores costs before any work."""
        return self.launch.launch_us + cores * self.launch.per_block_us + self.launch.start_us

    def mixed_launch_of(self, cubes: int) -> float:
        """The same of a launch of so many cube cores, each with its two vector cores."""
        return self.launch_of(3 * cubes)

    @property
    def shares_rows(self) -> bool:
        """Cores meet at barriers."""
        return True

    @property
    def shortens_convolutions(self) -> bool:
        """No kernel leaves a convolution to a library."""
        return False

    def cores_of(self, unit: str) -> int:
        cores = {"M": self.aic, "MTE1": self.aic, "FIX": self.aic, "V": self.aiv, "MTE3": self.aiv}
        return cores.get(unit, self.aic + self.aiv)

    def product_us(self, multiply_adds: int, dtype: str) -> float:
        """A product of complex numbers takes at least three of real ones."""
        real = "float32" if dtype == "complex64" else dtype
        depth = self.cube.depth_a_cycle(ITEM_SIZE[real]) / (3 if dtype == "complex64" else 1)
        return multiply_adds / FRACTAL**2 / depth / self.aic / self.mhz

    def elementwise_us(self, elements: int, dtype: str) -> float:
        return elements / self.simple_rate(dtype) / self.aiv / self.mhz

    def transcendental_us(self, elements: int) -> float:
        return elements / self.vector.elements_per_cycle.transcendental / self.aiv / self.mhz

    def simple_rate(self, dtype: str) -> float:
        """Elements a cycle of one vector core and simple instruction; bytes are computed as 16-bit lanes."""
        bits = 32 if dtype == "complex64" else max(16, 8 * ITEM_SIZE[dtype])
        return self.vector.elements_per_cycle.of("simple", bits)


def load_chip(name: str = DEFAULT_CHIP) -> Chip:
    """The chip of that name, the same object each time. Raises UsageError for an unknown one."""
    return _known_chip(name)


@cache
def _known_chip(name: str) -> Chip:
    path = CHIPS / f"{name}.toml"
    if path.parent != CHIPS or not path.is_file():  # names come from packages and over the network, too
        known = ", ".join(chip_names())
        raise UsageError(
            "There is no chip called {name}; choose one of: {known}.", name=repr(name), known=known
        )
    return parse_chip(name, path)


def parse_chip(name: str, path: Path) -> Chip:
    """The chip of a TOML file. Raises UsageError where a constant is missing or is none.

    ``base = "ascend910b1"`` takes the constants that the file does not state from that chip, a file beside
    this one or one of ours.
    """
    constants = _constants(path)

    def need(section: str, key: str) -> float:
        value = constants.get(f"{section}.{key}")
        if value is None:
            raise UsageError(
                "The chip file {path} lacks {section}.{key}; add {key} to its section [{section}].",
                path=path,
                section=section,
                key=key,
            )
        if value < 0 or (value == 0 and not key.endswith(("_cycles", "_us"))):
            raise UsageError(
                "{section}.{key} of the chip file {path} is {value}; give a positive number.",
                section=section,
                key=key,
                path=path,
                value=f"{value:g}",
            )
        return value

    def read(section: str, kind: type[S], **known: Any) -> S:
        """A section into the fields of ``kind`` that are not ``known``."""
        return kind(
            **known,
            **{
                field.name: (int if field.type in (int, "int") else float)(need(section, field.name))
                for field in fields(kind)
                if field.name not in known
            },
        )

    rates = read("vector.elements_per_cycle", Rates)
    return read(
        "chip",
        Chip,
        name=name,
        launch=read("launch", LaunchCosts),
        memory=read("memory", CoreMemories),
        scalar=read("scalar", Scalar),
        sync=read("sync", Sync),
        vector=read("vector", Vector, elements_per_cycle=rates),
        mte=read("mte", Mte),
        gm=read("gm", Gm),
        cube=read("cube", Cube),
        eager=read("eager", EagerCosts),
        constants=constants,
        path=path,
    )


def _constants(path: Path) -> dict[str, float]:
    table = tomllib.loads(path.read_text())
    base = table.get("base")
    if base is None:
        return dict(_flatten(table))
    beside = (folder / f"{base}.toml" for folder in (path.parent, CHIPS))
    result = next((file for file in beside if file != path and file.is_file()), None)
    if result is None:
        raise UsageError(
            "The chip file {path} is based on {base}, of which there is no file.", path=path, base=repr(base)
        )
    return {**_constants(result), **dict(_flatten(table))}


def chip_of(device: Device) -> Chip:
    """The device as what AscendC is written for. Raises UsageError for any other."""
    if not isinstance(device, Chip):
        raise UsageError(
            "{device} runs no AscendC; choose one of: {known}.",
            device=device.name,
            known=", ".join(chip_names()),
        )
    return device


def runner_text(chip: Chip) -> str:
    """The chip as the runner reads it: one ``section.key value`` a line, sorted."""
    return "".join(f"{key} {value:.17g}\n" for key, value in sorted(chip.constants.items()))


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for key, value in table.items():
        dotted = f"{prefix}{key}"
        match value:
            case bool():
                yield dotted, float(value)
            case int() | float():
                yield dotted, float(value)
            case {"value": int() | float() as number}:
                yield dotted, float(number)
            case dict():
                yield from _flatten(value, f"{dotted}.")
