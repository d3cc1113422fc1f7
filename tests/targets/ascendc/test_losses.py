"""Losses over classes against NumPy: every rank, weights, an ignored class, every reduction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import frozen

from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.targets.ascendc.author import initial
from tests.tables import few

_NONE, _MEAN, _SUM = 0, 1, 2


@frozen
class Loss:
    """``logits``: behind a log-softmax. ``behind``: dimensions behind the classes."""

    logits: bool = True
    behind: tuple[str, ...] = ()
    weighted: bool = False
    reduction: int = _MEAN
    ignored: int = -100

    def task(self, builder: Any, classes: int, **sizes: int) -> KernelTask:
        b = builder()
        shape = ("n", classes, *self.behind)
        kept = ("n", *self.behind)
        x, target = b.input("x", shape), b.input("target", kept, "int64")
        weight = b.input("w", (classes,)) if self.weighted else None
        scores = b.call("_log_softmax.default", x, 1, False, shape=shape) if self.logits else x
        specs = [TensorSpec(kept if self.reduction == _NONE else (), "float32"), TensorSpec((), "float32")]
        op = "nll_loss2d_forward.default" if self.behind else "nll_loss_forward.default"
        loss = b.calls(op, scores, target, weight, self.reduction, self.ignored, outputs=specs)
        return b.task(ValueRef(loss.name), symbols=sizes)  # type: ignore[no-any-return]

    def expected(self, x: Any, target: Any, weight: Any) -> Any:
        scores = x.astype(np.float64)
        if self.logits:
            scores = scores - scores.max(1, keepdims=True)
            scores = scores - np.log(np.exp(scores).sum(1, keepdims=True))
        valid = target != self.ignored
        inside = np.where(valid, target, 0)
        weights = np.where(valid, (weight if self.weighted else np.ones(x.shape[1]))[inside], 0.0)
        picked = np.take_along_axis(scores, np.expand_dims(inside, 1), 1).squeeze(1)
        losses = np.where(valid, -picked * weights, 0.0)
        if self.reduction == _NONE:
            return losses
        return losses.sum() / (weights.sum() if self.reduction == _MEAN else 1.0)


LOSSES = [
    (Loss(), 10, [{"n": 1}, {"n": 33}, {"n": 1000}]),
    (Loss(reduction=_NONE, ignored=2), 100, [{"n": 5}, {"n": 300}]),
    (Loss(logits=False, weighted=True), 17, [{"n": 3}, {"n": 129}]),
    (Loss(weighted=True, reduction=_SUM), 1200, [{"n": 2}, {"n": 70}]),
    (Loss(reduction=_NONE), 20000, [{"n": 3}]),
    (Loss(behind=("h", "w")), 6, [{"n": 2, "h": 3, "w": 5}, {"n": 3, "h": 17, "w": 40}]),
    (Loss(behind=("h", "w"), weighted=True, logits=False, reduction=_SUM), 21, [{"n": 2, "h": 9, "w": 11}]),
]


@few(
    ("loss", "classes", "sizes"),
    LOSSES,
    keep=(
        1,
        3,
        6,
    ),
)
def test_loss_is_numpys(
    builder: Any, chip: Any, on_twin: Any, loss: Loss, classes: int, sizes: list[dict[str, int]]
) -> None:
    random = np.random.default_rng(11)
    task = loss.task(builder, classes, **sizes[-1])
    strategy = initial(task, chip)
    for bound in sizes:
        behind = tuple(bound[name] for name in loss.behind)
        x = random.normal(size=(bound["n"], classes, *behind)).astype(np.float32) * 3
        target = random.integers(0, classes, (bound["n"], *behind))
        target[random.random(target.shape) < 0.2] = loss.ignored
        target.flat[0] = classes - 1
        weight = random.random(classes).astype(np.float32) + 0.5
        inputs = {"x": x, "target": target, "w": weight}
        (found,) = on_twin(task, inputs, strategy, bound)
        np.testing.assert_allclose(found, loss.expected(x, target, weight), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("classes", [10, 1200])
def test_the_logarithm_is_not_lost_beside_a_large_score(classes: int, builder: Any, on_twin: Any) -> None:
    loss = Loss(reduction=_NONE)
    random = np.random.default_rng(5)
    x = (random.integers(-3, 4, size=(9, classes)) + 2.0 ** np.arange(9)[:, None] * 2**14).astype(np.float32)
    target = random.integers(0, classes, 9)
    (found,) = on_twin(loss.task(builder, classes, n=9), {"x": x, "target": target})
    np.testing.assert_allclose(found, loss.expected(x, target, None), rtol=1e-5)


def test_everything_ignored_has_no_mean(builder: Any, on_twin: Any) -> None:
    task = Loss().task(builder, 10, n=4)
    x, target = np.zeros((4, 10), np.float32), np.full(4, -100)
    (found,) = on_twin(task, {"x": x, "target": target})
    assert np.isnan(found)
