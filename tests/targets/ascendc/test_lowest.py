"""The search that leaves out groups finds what looking at every schedule finds."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.compiler.problems.products import Loop, Product, Side, Triangle
from evokernel_core.compiler.shapes.sizes import ONE, Extent
from evokernel_core.hardware.ascend.chip import Chip, load_chip
from evokernel_core.targets import author_for
from evokernel_core.targets.ascendc.author import legalised
from evokernel_core.targets.ascendc.backends.twin import TwinBackend
from evokernel_core.targets.ascendc.kernels.convolution import convolution_schedule as panels
from evokernel_core.targets.ascendc.kernels.convolution.convolution_estimate import bounder, estimator
from evokernel_core.targets.ascendc.kernels.convolution.convolution_family import best_of_panels
from evokernel_core.targets.ascendc.kernels.convolution.convolution_family import (
    refusal as refusal_of_convolution,
)
from evokernel_core.targets.ascendc.kernels.convolution.epilogue import read_layer
from evokernel_core.targets.ascendc.kernels.epilogue.epilogue_cost import Cost
from evokernel_core.targets.ascendc.kernels.lowest import lowest
from evokernel_core.targets.ascendc.kernels.matmul.matmul_schedule import (
    at_least_us,
    best,
    estimate_us,
    of_shape,
    refusal,
    shapes,
)
from evokernel_core.verifier.gates.latency import captured_request
from tests.tables import drawn, few
from tests.targets.ascendc.test_convolution import Case, task_of

CHIP = load_chip("ascend910b1")
Groups = list[list[tuple[int, str]]]


def _lowest(groups: Groups, looked_at: list[int] | None = None) -> tuple[int, str] | None:
    def items(place: int) -> list[tuple[int, str]]:
        if looked_at is not None:
            looked_at.append(place)
        return groups[place]

    def least(place: int) -> float:
        return min((cost for cost, _ in groups[place]), default=0)

    return lowest(range(len(groups)), least, items, lambda item: item[0])


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abc")), max_size=3), max_size=5))
def test_the_first_of_the_cheapest_is_found(groups: Groups) -> None:
    flat = [item for group in groups for item in group]
    assert _lowest(groups) == min(flat, key=lambda item: item[0], default=None)


def test_groups_that_cannot_hold_it_are_not_looked_at() -> None:
    looked_at: list[int] = []
    assert _lowest([[(5, "a")], [(2, "b"), (3, "c")], [(2, "d")], [(9, "e")]], looked_at) == (2, "b")
    assert looked_at == [1, 2]


_LENGTHS = st.one_of(st.sampled_from([1, 16, 100, 512, 1000, 2048, 4096]), st.integers(1, 20_000))


@st.composite
def products(draw: st.DrawFn) -> Product:
    def side(name: str) -> Side:
        loops = (Loop(Extent(4), Extent(5), ONE, False),) if draw(st.booleans()) else ()
        return Side(name, draw(st.booleans()), Extent(draw(st.one_of(_LENGTHS, st.just(70_000)))), loops)

    batch, m, n, k = (Extent(draw(lengths)) for lengths in (st.sampled_from([1, 8]), *[_LENGTHS] * 3))
    dtype = draw(st.sampled_from(["float16", "float32"]))
    kept = draw(st.sampled_from([None, Triangle(True, 3), Triangle(False, -40)]))
    splits = draw(st.sampled_from([0, 4]))
    return Product(side("x"), side("y"), batch, m, n, k, dtype, "float32", splits, kept)


def _behind(each: float, chip: Chip) -> Cost:
    return Cost(each, 60, 30, (2,), 4, (4,), (), 8192, chip.gm.requests_per_cycle, chip.mte)


def _check_product(found: Product, each: float | None) -> None:
    """A product gets the schedule of the lowest estimate."""
    behind: Any = None if each is None else _behind(each, CHIP)
    legal = []
    for shape in shapes(found, CHIP):
        bound = at_least_us(found, shape, {}, CHIP, behind)
        for item in of_shape(found, shape, CHIP):
            us = estimate_us(found, item, {}, CHIP, behind)
            assert bound <= us * (1 + 1e-9)
            if refusal(found, item, CHIP, behind) is None:
                legal.append((us, item))
    assert best(found, {}, CHIP, behind) == min(legal, key=lambda pair: pair[0])[1]


_DRAWN: dict[str, Any] = {"found": products(), "each": st.sampled_from([None, 0.01, 0.2])}
test_products, _ = drawn(_check_product, 4, 4, derandomize=True, **_DRAWN)
_, test_many_products = drawn(_check_product, 4, 20, **_DRAWN)


CONVOLUTIONS = {
    "small": Case(2, 16, 64, (20, 30), (3, 3)),
    "of float16 with a bias": Case(16, 64, 128, (56, 56), (3, 3), bias=True, dtype="float16"),
    "of volumes whose rows are wide": Case(4, 32, 32, (9, 40, 600), (1, 1, 5), dilation=(1, 1, 2)),
    "in groups": Case(64, 256, 96, (64, 64), (3, 3), groups=2, dtype="float16"),
    "framed beside the products": Case(8, 64, 64, (256, 256), (3, 3), padding=(1, 1)),
    "of one tap": Case(8, 64, 64, (28, 28), (1, 1), dtype="float16"),
}


@few(
    ("name", "each"),
    [(name, each) for each in (None, 0.2) for name in CONVOLUTIONS],
    keep=(0, 1, 2, 3, 4, 5, 6, 10, 11),
    ids=str,
)
def test_a_convolution_gets_the_schedule_that_is_ranked_first(
    name: str, each: float | None, builder: Any
) -> None:
    layer = read_layer(legalised(task_of(builder, CONVOLUTIONS[name]), CHIP), CHIP)
    layer = evolve(layer, cost=None if each is None else _behind(each, CHIP))
    found = layer.convolution
    assert (found.frame is not None) is name.startswith("framed")
    us, at_least = estimator(found, {}, CHIP, layer.cost, ranks=True), bounder(found, {}, CHIP, layer.cost)
    legal = []
    for shape in panels.shapes(found):
        for item in panels.of_shape(found, shape, CHIP):
            if refusal_of_convolution(layer, item, CHIP) is None:
                legal.append((us(item), item))
                assert at_least(shape) <= legal[-1][0] * (1 + 1e-9)
    task = task_of(builder, CONVOLUTIONS[name])
    assert best_of_panels(layer, task.sizes, CHIP) == min(legal, key=lambda pair: pair[0])[1]


def test_products_of_pixels_take_less_time_than_the_lowest_estimate_does(builder: Any) -> None:
    """On the twin: the estimate knows less of them than their order."""
    task = task_of(builder, Case(8, 64, 64, (28, 28), (1, 1), dtype="float16"))
    layer = read_layer(legalised(task, CHIP), CHIP)
    convolution = layer.convolution
    us, author = estimator(convolution, {}, CHIP), author_for(CHIP.name)
    backend, request = TwinBackend(author), captured_request(task)
    first = author.initial(task)
    items = (
        item for shape in panels.shapes(convolution) for item in panels.of_shape(convolution, shape, CHIP)
    )
    cheapest = min((item for item in items if refusal_of_convolution(layer, item, CHIP) is None), key=us)
    strategies = first, evolve(first, settings=cheapest.settings())
    sources = (author.write(task, strategy) for strategy in strategies)
    ranked, estimated = (backend.measure(backend.build(task, source), request).us for source in sources)
    assert ranked < 0.95 * estimated
