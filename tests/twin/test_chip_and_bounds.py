"""Chips from TOML, and the modelled bounds of a graph."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from attrs import asdict, fields

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.calls import operations
from evokernel_core.hardware.ascend.chip import Chip, load_chip, parse_chip, runner_text
from evokernel_core.hardware.ascend.chip_files import CHIPS, chip_names
from evokernel_core.hardware.ascend.eager import eager_us
from evokernel_core.hardware.roofline import op_name, roofline_us, traffic


def test_the_910b1() -> None:
    chip = load_chip("ascend910b1")
    assert (chip.aic, chip.aiv, chip.mhz) == (24, 48, 1850)
    assert 180_000 < chip.ub_bytes <= 192 * 1024
    assert chip.hbm_bytes == 64 * 1024**3
    assert "ascend910b1" in chip_names()


def chip_file(folder: Path, text: str) -> Path:
    path = folder / "c.toml"
    path.write_text(text)
    return path


def test_what_a_file_does_not_state_is_its_bases(tmp_path: Path) -> None:
    path = chip_file(tmp_path, 'base = "ascend910b1"\n[chip]\naiv = 2\n[memory]\nl1_bytes = 1048576\n')
    chip, base = parse_chip("c", path), load_chip("ascend910b1")
    assert (chip.aiv, chip.memory.l1_bytes, chip.memory.l0c_bytes) == (2, 2**20, base.memory.l0c_bytes)
    assert chip.aic == base.aic and chip.gm == base.gm


def test_unknown_keys_are_kept_and_reach_the_runner(tmp_path: Path) -> None:
    text = 'name = "c"\nbase = "ascend910b1"\n[vector]\nextra = { value = 22, source = "s" }\n'
    assert "vector.extra 22\n" in runner_text(parse_chip("c", chip_file(tmp_path, text)))


def _without(key: str) -> str:
    text = (CHIPS / "ascend910b1.toml").read_text()
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(f"{key} "))


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("chip", "aiv"),
        ("launch", "launch_us"),
        ("memory", "l0c_bytes"),
        ("cube", "mmad_float_cycles"),
        ("vector.elements_per_cycle", "gather"),
    ],
)
def test_a_chip_that_lacks_a_constant_names_it(section: str, key: str, tmp_path: Path) -> None:
    path = chip_file(tmp_path, _without(key))
    with pytest.raises(UsageError, match=rf"{path} lacks {section}.{key}; add {key} to its section"):
        parse_chip("c", path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[gm]\nl2_gbps = 0", "gm.l2_gbps of the chip file .* is 0; give a positive number"),
        ("[memory]\nl1_bytes = -1", "memory.l1_bytes of the chip file .* is -1"),
    ],
)
def test_a_constant_that_is_none_is_refused(line: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        parse_chip("c", chip_file(tmp_path, f'base = "ascend910b1"\n{line}\n'))


def test_a_base_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="based on 'ascend1', of which there is no file"):
        parse_chip("c", chip_file(tmp_path, 'base = "ascend1"\n'))


def test_every_field_is_the_number_of_its_section() -> None:
    """Nothing is read from another section, or turned into another unit."""
    chip = load_chip("ascend910b1")
    sections = ("launch", "memory", "scalar", "sync", "vector", "mte", "gm", "cube")
    for section in sections:
        for item in fields(type(getattr(chip, section))):
            value = getattr(getattr(chip, section), item.name)
            if item.name != "elements_per_cycle":
                assert value == chip.constants[f"{section}.{item.name}"]
    for name, value in asdict(chip.vector.elements_per_cycle).items():
        assert value == chip.constants[f"vector.elements_per_cycle.{name}"]


@pytest.mark.parametrize(("size", "depth"), [(4, 4.0), (2, 16.0), (1, 32.0)])
def test_how_deep_the_products_of_a_cycle_are(size: int, depth: float) -> None:
    """The public table of cube instructions: float32 K = 4, half K = 16, int8 K = 32."""
    assert load_chip("ascend910b1").cube.depth_a_cycle(size) == depth


@pytest.mark.parametrize(
    ("cost", "cycles"), [("simple", 22), ("transcendental", 31), ("reduce_repeat", 46), ("reduce_block", 38)]
)
def test_what_an_instruction_costs_beside_its_repeats(cost: str, cycles: float) -> None:
    assert load_chip("ascend910b1").vector.startup(cost) == cycles


def test_an_unknown_chip_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="ascend910b1"):
        load_chip("tpu")


def task_of(*ops: str, dtype: str = "float32") -> KernelTask:
    """A chain of unary ops over [s0, 4096]."""
    spec = TensorSpec(("s0", 4096), dtype)
    names = ["x", *(f"v{i}" for i in range(len(ops)))]
    nodes = tuple(
        Node(names[i + 1], f"aten.{op}.default", (ValueRef(names[i]),), (), (spec,))
        for i, op in enumerate(ops)
    )
    graph = Graph((GraphInput("x", spec), GraphInput("unused", spec)), nodes, (ValueRef(names[-1]),))
    return KernelTask("chain", graph, (Symbol("s0", 4096),), TOLERANCES[dtype], "elementwise")


@pytest.fixture
def chip() -> Chip:
    return load_chip()


def test_the_bound_is_bytes_over_bandwidth(chip: Chip) -> None:
    task = task_of("relu")
    small = 4096 * 4096 * 4
    assert small < chip.l2_bytes  # what is written stays in L2
    assert roofline_us(task, chip) == pytest.approx(small / (chip.hbm_gbps * 1e3))
    large = 16 * small
    spilled = large - chip.l2_bytes
    assert roofline_us(task, chip, {"s0": 16 * 4096}) == pytest.approx(
        (large + spilled) / (chip.hbm_gbps * 1e3)
    )


def test_moving_elements_reads_and_writes_what_it_keeps(chip: Chip) -> None:
    square, part = TensorSpec((40, 1024, 1024), "float32"), TensorSpec((40, 512, 1024), "float32")

    def bytes_read(op: str, *args: int, result: TensorSpec = square) -> float:
        node = Node("y", op, (ValueRef("x"), *args), (), (result,))
        graph = Graph((GraphInput("x", square),), (node,), (ValueRef("y"),))
        task = KernelTask("moved", graph, (), TOLERANCES["float32"], "layout")
        return roofline_us(task, chip) * chip.hbm_gbps * 1e3

    whole = square.nbytes({})
    assert bytes_read("aten.transpose.int", 1, 2) == pytest.approx(whole)
    assert bytes_read("aten.slice.Tensor", 1, 0, 512, result=part) == pytest.approx(whole / 2)
    assert bytes_read("aten.triu.default", 1) == pytest.approx(whole * 1023 / 2048)
    assert bytes_read("aten.tril.default", 0) == pytest.approx(whole * 1025 / 2048)


@pytest.mark.parametrize(
    ("op", "results", "share"),
    [
        ("upsample_bilinear2d", (100, 1024), 200 / 1024),  # two rows of each of the others
        ("upsample_bilinear2d", (1024, 100), 1.0),  # columns are not left out
        ("_upsample_nearest_exact2d", (256, 256), 0.25),
        ("upsample_bicubic2d", (1100, 60), 1.0),
        ("_upsample_bilinear2d_aa", (100, 100), 1.0),  # which weighs all
    ],
)
def test_smaller_planes_read_the_rows_that_they_are_made_of(
    chip: Chip, op: str, results: tuple[int, int], share: float
) -> None:
    planes, made = TensorSpec((4, 10, 1024, 1024), "float32"), TensorSpec((4, 10, *results), "float32")
    node = Node("y", f"aten.{op}.default", (ValueRef("x"), results), (), (made,))
    graph = Graph((GraphInput("x", planes),), (node,), (ValueRef("y"),))
    read, _ = traffic(KernelTask("resized", graph, (), TOLERANCES["float32"], "layout"), {})
    assert read == pytest.approx(share * planes.nbytes({}))


def test_the_bound_scales_with_sizes(chip: Chip) -> None:
    task = task_of("relu")
    assert roofline_us(task, chip, {"s0": 2048}) == pytest.approx(roofline_us(task, chip) / 2)


def test_many_transcendentals_are_bound_by_the_vector_cores(chip: Chip) -> None:
    task = task_of(*["tanh"] * 40)
    cycles = 40 * 4096 * 4096 / 32 / chip.aiv
    assert roofline_us(task, chip) == pytest.approx(cycles / chip.mhz)


def test_cheap_ops_never_raise_the_bound(chip: Chip) -> None:
    assert roofline_us(task_of(*["relu"] * 400), chip) == roofline_us(task_of("relu"), chip)


def test_eager_pays_for_each_op_and_views_are_free(chip: Chip) -> None:
    one, two = eager_us(task_of("relu"), chip), eager_us(task_of("relu", "exp"), chip)
    assert one > chip.eager.launch_us + roofline_us(task_of("relu"), chip)
    assert two > one + chip.eager.launch_us
    assert eager_us(task_of("relu", "view"), chip) == one
    assert eager_us(task_of("view", "relu"), chip) == one


def grown(op: str, chip: Chip, by: int = 4) -> tuple[KernelTask, float]:
    """Planes that get ``by`` times as many rows and columns, and the bytes of the results."""
    planes, made = (TensorSpec((1024, 64 * n, 64 * n), "float32") for n in (1, by))
    node = Node("y", f"aten.{op}.default", (ValueRef("x"), made.shape[1:]), (), (made,))
    graph = Graph((GraphInput("x", planes),), (node,), (ValueRef("y"),))
    return KernelTask("grown", graph, (), TOLERANCES["float32"], "layout"), float(made.nbytes({}))


@pytest.mark.parametrize(
    ("op", "args", "made", "share"),
    [
        # 8 elements of a block, each chosen once in 16 times
        ("gather", (1, ValueRef("i")), (512, 1024), 1 - math.exp(-8 / 16)),
        ("index_select", (1, ValueRef("i")), (512, 1024), 1 - math.exp(-8 / 16)),
        ("index_select", (0, ValueRef("i")), (32, 16384), 1 - math.exp(-1 / 16)),  # whole rows
        ("embedding", (ValueRef("i"),), (32, 16384), 1 - math.exp(-1 / 16)),
    ],
)
def test_what_indices_choose_is_read_in_blocks(
    op: str, args: tuple[int | ValueRef, ...], made: tuple[int, int], share: float, chip: Chip
) -> None:
    x, index, result = (
        TensorSpec((512, 16384), "float32"),
        TensorSpec((1,), "int64"),
        TensorSpec(made, "float32"),
    )
    node = Node("y", f"aten.{op}.default", (ValueRef("x"), *args), (), (result,))
    graph = Graph((GraphInput("x", x), GraphInput("i", index)), (node,), (ValueRef("y"),))
    task = KernelTask("chosen", graph, (), TOLERANCES["float32"], "index")
    read = sum(call.operands[0].nbytes for call in operations(graph, {}))
    assert read == pytest.approx(share * x.nbytes({}), rel=1e-3)
    assert eager_us(task, chip) > read / chip.eager.read_gbps / 1e3


@pytest.mark.parametrize(
    ("op", "name"), [("aten.exp.default", "exp"), ("aten.add.Tensor", "add"), ("exp", "exp")]
)
def test_names_of_ops(op: str, name: str) -> None:
    assert op_name(op) == name
