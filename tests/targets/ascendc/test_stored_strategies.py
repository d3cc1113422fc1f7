"""Strategies that other versions or other people stored: read, or refused with a sentence, never a crash."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from evokernel_core.compiler.schedule import Schedule
from evokernel_core.domain.errors import StrategyError
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.kernel import STRATEGY_VERSION, Setting, Strategy
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.targets.ascendc import author
from evokernel_core.targets.ascendc.source import KERNEL
from tests.tables import few

Graphs = Callable[[Any], ValueRef]


def _softmax(b: Any) -> ValueRef:
    return b.call("_softmax.default", b.input("x", (64, 4096)), -1, False, shape=(64, 4096))


def _product(b: Any) -> ValueRef:
    return b.call("mm.default", b.input("x", (256, 512)), b.input("y", (512, 384)), shape=(256, 384))


def _convolution(b: Any) -> ValueRef:
    x, w = b.input("x", (4, 16, 32, 32)), b.input("w", (32, 16, 3, 3))
    rest = ((1, 1), (1, 1), (1, 1), False, (0, 0), 1)
    return b.call("convolution.default", x, w, None, *rest, shape=(4, 32, 32, 32))


def _pooled(b: Any) -> ValueRef:
    x = b.input("x", (4, 16, 32, 32))
    return b.call("avg_pool2d.default", x, (2, 2), (2, 2), shape=(4, 16, 16, 16))


def _argmax(b: Any) -> ValueRef:
    return b.call("argmax.default", b.input("x", (64, 512)), 1, False, shape=(64,), dtype="int64")


def _turned(b: Any) -> ValueRef:
    turned = b.call("permute.default", b.input("x", (64, 512)), (1, 0), shape=(512, 64))
    return b.call("clone.default", turned, shape=(512, 64))


def _summed(b: Any) -> ValueRef:
    return b.call("cumsum.default", b.input("x", (64, 512)), 1, shape=(64, 512))


def _sorted(b: Any) -> ValueRef:
    x = b.input("x", (64, 512))
    outputs = [TensorSpec((64, 512), "float32"), TensorSpec((64, 512), "int64")]
    return b.calls("sort.default", x, 1, outputs=outputs)


def _chain(b: Any) -> ValueRef:
    """A program: a product, and the softmax of its rows."""
    made = _product(b)
    return b.call("_softmax.default", made, -1, False, shape=(256, 384))


GRAPHS: list[Graphs] = [
    _softmax, _product, _convolution, _pooled, _argmax, _turned, _summed, _sorted, _chain,
]  # fmt: skip
VALUES: tuple[Setting, ...] = (
    0, 1, 2, 3, 16, 64, 1000, 65_536, -1, 1 << 31, 1 << 70, True, False, 0.5, "", "rows", "matmul",
)  # fmt: skip


def _changed(rng: random.Random, strategy: Strategy) -> Strategy:
    """The strategy with a few settings changed, added or left out: its own, or a kernel's; of a program also
    its kernels and what each computes."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(-1, len(strategy.kernels))
        if at >= 0:
            kernels = list(strategy.kernels)
            own = rng.choice([kernels[at].family, kernels[0].family, "rows", ""])
            kernels[at] = evolve(kernels[at], family=own, settings=_settings(rng, kernels[at].settings))
            strategy = evolve(strategy, kernels=tuple(kernels[: rng.choice([None, None, -1])]))
        elif strategy.groups and rng.random() < 0.5:
            groups = [
                *strategy.groups[: rng.choice([None, -1])],
                *rng.choices([(), (0,), (99,), (-1, 0)], k=1),
            ]
            strategy = evolve(strategy, groups=tuple(groups))
        else:
            strategy = evolve(strategy, settings=_settings(rng, strategy.settings))
    return strategy


def _settings(rng: random.Random, given: tuple[tuple[str, Setting], ...]) -> dict[str, Setting]:
    settings = dict(given)
    name = rng.choice([*settings, "unknown", "chunks", "cut"])
    if rng.random() < 0.2:
        settings.pop(name, None)
    else:
        settings[name] = rng.choice(VALUES)
    return settings


@few(("seed", "draws"), [(0, 20), *((seed, 40) for seed in range(12))], keep=(0,))
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda item: item.__name__.strip("_"))
def test_a_changed_strategy_is_read_or_refused(
    graph: Graphs, seed: int, draws: int, builder: Any, chip: Any
) -> None:
    b, rng = builder(), random.Random(f"{graph.__name__} {seed}")
    task = b.task(graph(b))
    start = author.initial(task, chip)
    for _ in range(draws):
        strategy = _changed(rng, start)
        author.adapt(task, strategy, chip)
        try:
            author.require_legal(task, strategy, chip)
        except StrategyError as error:
            assert str(error).endswith(".")
            continue
        author.moves(task, strategy, chip)
        assert author.estimate_us(task, strategy, chip) > 0
        author.write(task, strategy, chip)


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda item: item.__name__.strip("_"))
def test_every_strategy_of_the_author_is_legal(graph: Graphs, builder: Any, chip: Any) -> None:
    b = builder()
    task = b.task(graph(b))
    start = author.initial(task, chip)
    author.require_legal(task, start, chip)
    for move in author.moves(task, start, chip):
        author.require_legal(task, move.strategy, chip)


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda item: item.__name__.strip("_"))
def test_settings_that_this_version_does_not_know_are_left_out(
    graph: Graphs, builder: Any, chip: Any
) -> None:
    b = builder()
    task = b.task(graph(b))
    start = author.initial(task, chip)
    other = evolve(
        start,
        settings={**dict(start.settings), "colour": "blue"},
        kernels=tuple(
            evolve(item, settings={**dict(item.settings), "colour": "blue"}) for item in start.kernels
        ),
    )
    assert author.write(task, other, chip).files[KERNEL] == author.write(task, start, chip).files[KERNEL]


def test_a_strategy_of_a_newer_version_is_no_schedule_of_this_one(builder: Any, chip: Any) -> None:
    b = builder()
    task = b.task(_softmax(b))
    newer = evolve(author.initial(task, chip), version=STRATEGY_VERSION + 1)
    assert author.adapt(task, newer, chip) is None
    with pytest.raises(StrategyError, match=f"version {STRATEGY_VERSION + 1}"):
        author.write(task, newer, chip)


def test_what_was_stored_without_a_version_is_of_the_first_one() -> None:
    data = to_data(Strategy("matmul", {"base_m": 16}))
    del data["version"]
    assert from_data(data, Strategy).version == 1


def _as_version_2(strategy: Strategy) -> dict[str, Any]:
    """How the second version stored it: all in one dict, kernels behind their numbers, groups as a text."""
    data = to_data(strategy)
    groups, kernels = data.pop("groups", None), data.pop("kernels", ())
    settings = dict(data["settings"])
    if groups is not None:
        settings["groups"] = "|".join(",".join(map(str, group)) for group in groups)
    for number, kernel in enumerate(kernels):
        settings[f"{number}.family"] = kernel["family"]
        settings |= {f"{number}.{name}": value for name, value in kernel["settings"]}
    return {**data, "settings": sorted(settings.items()), "version": 2}


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda item: item.__name__.strip("_"))
def test_a_strategy_of_the_second_version_is_the_same_one(graph: Graphs, builder: Any, chip: Any) -> None:
    b = builder()
    task = b.task(graph(b))
    start = author.initial(task, chip)
    read = from_data(_as_version_2(start), Strategy)
    assert read == evolve(start, version=2)
    assert from_data(to_data(read), Strategy) == read
    assert author.write(task, read, chip).source_id == author.write(task, start, chip).source_id


@pytest.mark.parametrize(
    "settings",
    [
        {"groups": ""}, {"groups": "0,x|1"}, {"groups": "0|1"}, {"groups": "0|1", "0.tile": 4},
        {"groups": "0|1", "0.family": "matmul", "7.family": "fused"}, {"groups": 3}, {},
    ],
)  # fmt: skip
def test_a_program_of_the_second_version_that_is_none_is_refused(
    settings: dict[str, Any], builder: Any, chip: Any
) -> None:
    b = builder()
    task = b.task(_chain(b))
    data = {**to_data(Strategy("program")), "settings": list(settings.items()), "version": 2}
    with pytest.raises(StrategyError, match=r"draft it anew\.$"):
        author.require_legal(task, from_data(data, Strategy), chip)


def test_a_schedule_lacks_no_setting_and_has_each_of_its_type() -> None:
    from attrs import frozen

    @frozen
    class Tiles(Schedule):
        tile: int
        fast: bool = False

    assert Tiles.of(Strategy("x", {"tile": 4, "more": 1})) == Tiles(4)
    for settings in ({}, {"tile": 4.0}, {"tile": True}, {"tile": -1}, {"tile": 4, "fast": 1}):
        with pytest.raises(StrategyError, match="draft it anew"):
            Tiles.of(Strategy("x", settings))
