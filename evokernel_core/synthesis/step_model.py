"""Which step to take from a kernel: how much faster each makes it, learned from steps on other tasks.

Regression trees over features of task, schedule and step, which ``training`` fits by gradient boosting. They
are kept as numbers in a file beside the memory: a search needs none of the packages that they were fitted
with, and a file holds nothing that could run.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from attrs import field, frozen
from cattrs.errors import BaseValidationError

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.kernel import STRATEGY_VERSION
from evokernel_core.domain.serial import dumps, loads
from evokernel_core.private import private_folder, private_opener

SCHEMA = "evokernel-step-model/1"
DEPTH = 3
"""Questions from the root of a tree to a leaf, at most."""

Features = Mapping[str, float]


def step_features(category: str, move: str, start: Features, after: Features) -> dict[str, float]:
    """Feature name to weight of a step: those of the schedule after it, by how much each differs from its
    start's, the name of the move and the category of the task."""
    changes = {name: after.get(name, 0.0) - start.get(name, 0.0) for name in start.keys() | after.keys()}
    return {
        **after,
        **{f"change:{name}": change for name, change in changes.items() if change},
        f"move:{move}": 1.0,
        f"category:{category}": 1.0,
    }


def matrix(rows: Sequence[Features], names: Sequence[str]) -> np.ndarray[Any, Any]:
    """A row of weights each, 0 for a name that it does not have; single precision, as trees compare."""
    weights = [[row.get(name, 0.0) for name in names] for row in rows]
    return np.array(weights, dtype=np.float32).reshape(len(rows), len(names))


@frozen
class Tree:
    """A tree by the numbers of its nodes, the root first: ``feature`` is the place of a name, whose weight is
    at most ``threshold`` on the left. A leaf is its own left and right."""

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    value: tuple[float, ...]

    def is_sound(self, names: int) -> bool:
        """Whether it can be walked down over so many names."""
        nodes = len(self.value)
        columns = (self.feature, self.threshold, self.left, self.right)
        return (
            nodes > 0
            and all(len(column) == nodes for column in columns)
            and all(0 <= place < names for place in self.feature)
            and all(0 <= node < nodes for node in (*self.left, *self.right))
            and all(map(math.isfinite, (*self.threshold, *self.value)))
        )


@frozen
class HeldOut:
    """How a model orders steps of operations that it was not fitted to: of ``pairs`` of steps from one kernel
    that gained differently the share that it orders as they came, with the 95 % interval over operations;
    ``by_estimate`` is the share that estimates order so."""

    operations: int
    pairs: int
    concordance: float
    interval: tuple[float, float]
    by_estimate: float


@frozen(slots=False)
class StepModel:
    """The logarithm of how much faster a step makes a kernel on ``chip``, by the word of ``verifier``.
    ``strategies`` is the version of what settings mean; ``spread`` the deviation of steps on held-out
    operations from what it said."""

    schema: str
    chip: str
    verifier: str
    strategies: int
    rows: int
    tasks: int
    held_out: HeldOut
    names: tuple[str, ...] = field(repr=False)
    base: float
    spread: float
    trees: tuple[Tree, ...] = field(repr=False)

    @property
    def is_sound(self) -> bool:
        finite = math.isfinite(self.base) and 0 <= self.spread < math.inf
        return finite and bool(self.trees) and all(tree.is_sound(len(self.names)) for tree in self.trees)

    def gains(self, steps: Sequence[Features]) -> list[float]:
        """Of each step, given by its features."""
        feature, threshold, left, right, value = self._forest
        rows, trees = np.arange(len(steps))[:, None], np.arange(len(self.trees))[None, :]
        weights = matrix(steps, self.names)
        node = np.zeros((len(steps), len(self.trees)), dtype=np.intp)
        for _ in range(DEPTH):
            is_left = weights[rows, feature[trees, node]] <= threshold[trees, node]
            node = np.where(is_left, left[trees, node], right[trees, node])
        result: list[float] = (self.base + value[trees, node].sum(axis=1)).tolist()
        return result

    @cached_property
    def _forest(self) -> tuple[np.ndarray[Any, Any], ...]:
        """The columns of all trees, a row a tree, which end in nodes that none leads to."""
        nodes = max(len(tree.value) for tree in self.trees)

        def column(name: str) -> np.ndarray[Any, Any]:
            return np.array([(*known, *[0] * (nodes - len(known))) for known in self._each(name)])

        return tuple(map(column, ("feature", "threshold", "left", "right", "value")))

    def _each(self, name: str) -> list[tuple[float, ...]]:
        return [getattr(tree, name) for tree in self.trees]


def keep_model(model: StepModel, path: Path) -> None:
    """Puts a model in place of an earlier one, whole or not at all. Raises OSError."""
    private_folder(path.parent)
    part = path.with_suffix(f".{os.getpid()}.part")
    with open(part, "w", encoding="utf-8", opener=private_opener) as file:
        file.write(dumps(model))
    part.replace(path)


def kept_model(path: Path, chip: str, verifier: str) -> StepModel:
    """The model of a file. Raises UsageError where there is none, or none for this device and verifier."""
    try:
        model = loads(path.read_text("utf-8"), StepModel)
    except FileNotFoundError as error:
        raise UsageError(
            "There is no step model for {chip} yet: run `evokernel memory train --chip {chip}`.", chip=chip
        ) from error
    except (OSError, BaseValidationError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise _unfit(path, chip) from error
    known = model.schema, model.strategies, model.chip, model.verifier
    if known != (SCHEMA, STRATEGY_VERSION, chip, verifier) or not model.is_sound:
        raise _unfit(path, chip)
    return model


def _unfit(path: Path, chip: str) -> UsageError:
    return UsageError(
        "The step model {path} is of another device, verifier or version: run `evokernel memory train --chip "
        "{chip}`.",
        path=path,
        chip=chip,
    )
