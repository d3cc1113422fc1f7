"""Quantities of fewer than 32 bits in a kernel's text, and the sizes beyond them that each draw has."""

from __future__ import annotations

import pytest

from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.ascendc.source import KERNEL, TILING
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates.cases import total_bytes
from evokernel_core.verifier.gates.narrow_types import LAST_BEGINS, MANY_TILES, narrow_bits, wide_cases
from tests.targets.ascendc.conftest import GraphBuilder
from tests.verifier.conftest import make_task, read_source

OWN = "void Compute(uint32_t row) { } struct Own { uint32_t rows; };"


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("const uint16_t row = unit / 3;", (16,)),
        ("struct OpTiling { int16_t rows; uint8_t tiles; };", (8, 15)),
        ("const uint64_t row = static_cast<uint16_t>(unit);", (16,)),
        ("const uint32_t row = static_cast<uint32_t>(static_cast<uint8_t>(unit));", (8,)),
        ("const uint64_t row = (unit < 5 ? (static_cast<int16_t>(unit)) : 5);", (15,)),
        ("Copy(x[uint16_t(row) * columns], y);", (16,)),
        ("Copy(x[(uint16_t)row * columns], y);", (16,)),
        ("Compute(static_cast<uint16_t>(row));", (16,)),
        ("own.rows = static_cast<uint16_t>(row);", (16,)),
        ("using Index = uint16_t; struct Few { uint32_t place : 12; };", (12, 16)),
        ("const uint32_t row = unit & 0xFFFF; const uint32_t other = unit % 32768u;", (15, 16)),
        ("rows = tl.program_id(0).to(tl.int16)", (15,)),
        # what an interface takes, is told at compile time, or is the type of an element
        ("DataCopyPad(x, y, DataCopyExtParams{static_cast<uint16_t>(rows), 4, 0, 0, 0});", ()),
        ("Brcb(x, y, static_cast<uint8_t>(rows), BrcbRepeatParams{1, 8});", ()),
        ("DataCopyPadExtParams<float>{true, 0, static_cast<uint8_t>(pitch - keys), LOWEST};", ()),
        ("params.repeatTimes = static_cast<uint8_t>(repeats);", ()),
        ("constexpr uint16_t RESULT_READY = 0;", ()),
        ("LocalTensor<uint8_t> mask; uint8_t *const *tensors; Init(mask, 64 * sizeof(uint8_t));", ()),
    ],
)
def test_what_a_text_holds_in_few_bits(text: str, bits: tuple[int, ...]) -> None:
    source = read_source("relu").with_files({KERNEL: OWN + text, TILING: ""})
    assert narrow_bits(source) == bits


@pytest.mark.parametrize("name", ["relu", "softmax", "add"])
def test_what_our_kernels_give_to_the_interface_is_no_quantity(name: str) -> None:
    assert narrow_bits(read_source(name)) == ()


@pytest.mark.parametrize(
    ("bits", "beyond"), [(16, (1 << 16,)), (15, (1 << 15, 1 << 16)), (8, (1 << 8, 1 << 16))]
)
@pytest.mark.parametrize("name", ["relu", "softmax"])
def test_every_draw_has_each_dimension_beyond_a_type(name: str, bits: int, beyond: tuple[int, ...]) -> None:
    task = make_task(name)
    for number in range(20):
        sizes = _sizes(task, Draw(f"{number:032x}"), bits)
        for symbol in task.symbols:
            for limit in beyond:
                assert any(limit < of[symbol.name] / LAST_BEGINS < limit + 99 for of in sizes), (
                    symbol,
                    limit,
                )


@pytest.mark.parametrize("bits", [15, 16])
def test_so_it_has_the_batch_of_a_product(bits: int) -> None:
    g = GraphBuilder()
    a, b = g.input("a", ("s0", "s1", "s2"), "float16"), g.input("b", ("s0", "s2", "s3"), "float16")
    product = g.call("bmm.default", a, b, shape=("s0", "s1", "s3"), dtype="float16")
    task = g.task(product, symbols={"s0": 4, "s1": 128, "s2": 32, "s3": 128})
    for number in range(20):
        sizes = _sizes(task, Draw(f"{number:032x}"), bits)
        assert {name for of in sizes for name, size in of.items() if size > 1 << bits} == {*task.sizes}


def _sizes(task: KernelTask, draw: Draw, bits: int) -> list[dict[str, int]]:
    return [dict(plan.sizes) for plan in wide_cases(task, draw, (bits,))]


def test_numbers_of_a_launch_record_are_no_bit_fields() -> None:
    source = read_source("relu")
    record = '{"launches": [{"warps": 4, "constants": {"K": "16"}, "stages": 2}]}'
    assert narrow_bits(source.with_files({**source.files, "launch.json": record})) == ()


def test_a_text_without_them_costs_nothing() -> None:
    assert not list(wide_cases(make_task("softmax"), Draw("0" * 32), ()))


@pytest.mark.parametrize("name", ["relu", "softmax", "add"])
def test_in_each_draw_a_core_has_several_tiles_where_a_type_is_narrow(name: str) -> None:
    task = make_task(name)
    for number in range(20):
        plans = list(wide_cases(task, Draw(f"{number:032x}"), (8,)))
        most = max(total_bytes(task, dict(plan.sizes)) for plan in plans)
        assert MANY_TILES <= most <= 2 * MANY_TILES
