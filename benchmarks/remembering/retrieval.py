"""How long a retrieval takes in a memory of many items, made up, worded, sized and mixed like real ones."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import evolve

from evokernel_core.domain.experience import Experience, ExperienceKind, Stage
from evokernel_core.memory.experiences import experience_row, make_experience
from evokernel_core.memory.retrieval import Query, RetrievalChoice
from evokernel_core.memory.store import Memory

PER_TASK = 20
"""Items that share a task's features: about two thirds of the attempts of a budget."""
QUERIES = 300
BATCH = 5000
OPS = tuple(
    f"aten.{name}.{overload}"
    for name in (
        "relu", "gelu", "_softmax", "_log_softmax", "mse_loss", "sum", "mean", "amax", "add", "mul", "sub",
        "div", "sigmoid", "tanh", "exp", "log", "mm", "bmm", "addmm", "convolution", "native_layer_norm",
        "cumsum", "index_select", "gather", "scatter", "max_pool2d", "avg_pool2d", "clamp", "where", "pow",
    )
    for overload in ("default", "Tensor")
)  # fmt: skip
FAMILIES = ("rowwise", "pointwise", "matmul", "convolution", "pool", "scan", "program")
PIPES = ("MTE2", "MTE3", "V", "S", "M")
KINDS = (
    (ExperienceKind.TRACE,) * 16
    + (ExperienceKind.FAILURE,) * 2
    + (ExperienceKind.SUCCESS, ExperienceKind.RULE)
)
FEEDBACKS = (
    "",
    "",
    "correctness: 3 of 8192 elements differ in case s0=17",
    "AscendC DataCopyPad: 8 bytes behind the end",
)


def task(rng: random.Random) -> tuple[str, tuple[str, ...], dict[str, float]]:
    """A category, operations and features."""
    ops = tuple(rng.sample(OPS, rng.randint(1, 6)))
    category = rng.choice(FAMILIES)
    vector = {f"op:{op.split('.')[1]}": rng.choice((0.69, 1.1, 1.39)) for op in ops}
    vector |= {f"category:{category}": 1.0, f"dtype:{rng.choice(('float16', 'float32', 'bfloat16'))}": 1.0}
    vector |= {"inputs": rng.choice((0.69, 1.1, 1.61)), "outputs": 0.69, f"rank:{rng.randint(1, 4)}": 0.5}
    vector |= {"log_elements": rng.uniform(1, 4), "log_last_dim": rng.uniform(0.5, 3), "kind:pointwise": 1.1}
    return category, ops, vector


def item(rng: random.Random, given: tuple[str, tuple[str, ...], dict[str, float]], number: int) -> Experience:
    category, ops, vector = given
    pipe, us = rng.choice(PIPES), rng.uniform(2, 900)
    body = (
        f"Task: {' '.join(ops)}.\nSchedule {category}: at_once=0, buffers={rng.randint(1, 3)},"
        f" bypass_l2=False, columns={rng.randint(0, 9)}, cores=0, form=stream, keep_columns=False,"
        f" online=True, reduction=block, rows={2 ** rng.randint(0, 8)}, spread=rows, stagger=True,"
        f" tile={64 * rng.randint(1, 300)}, whole=False.\nTile of elements, 2 buffer(s) a queue.\n"
        "Rows longer than the unified buffer: tiles of a row.\n"
        f"Verified: {us:.2f} us modelled on ascend910b1 (bound {us / 2:.2f}). {pipe}-bound:"
        f" {rng.randint(50, 99)} % busy, idle {rng.randint(1, 20)} % waiting for the scalar unit to issue."
    )
    title = f"{category} {number}: {us:.1f} us"
    kind = rng.choice(KINDS)
    return make_experience(
        kind, title, body, op_category=category, features=vector, payload='{"strategy": 1}'
    )


def items(rng: random.Random, number: int) -> Iterator[Experience]:
    for place in range(number):
        if place % PER_TASK == 0:
            given = task(rng)
        yield item(rng, given, place)


def fill(memory: Memory, rng: random.Random, number: int) -> None:
    rows: list[dict[str, Any]] = []
    for made in items(rng, number):
        rows.append(experience_row(made))
        if len(rows) == BATCH:
            memory.insert("experiences", *rows)
            rows = []
    memory.insert("experiences", *rows)


def queries(rng: random.Random) -> Iterator[Query]:
    """What the three searches of an attempt ask for."""
    while True:
        category, ops, vector = task(rng)
        text = f"{category} {' '.join(ops)} {rng.choice(PIPES)} {rng.choice(FEEDBACKS)}"
        lessons = (ExperienceKind.TRACE, ExperienceKind.FAILURE, ExperienceKind.RULE)
        query = Query(text, vector, Stage.REFINE, category, lessons)
        yield query
        yield evolve(query, kinds=(ExperienceKind.EXEMPLAR, ExperienceKind.SUCCESS))


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def measure(folder: Path, number: int) -> dict[str, Any]:
    """Retrievals of a memory of so many items, to which another process adds one behind every second of them.

    ``p50_ms`` and ``p95_ms`` are times of the clock, ``cpu_p95_ms`` of this process's processor alone: on a
    host with other work the first say more about that.
    """
    rng = random.Random(number)
    path = folder / f"{number}.db"
    with Memory(path) as memory, Memory(path) as other:
        fill(memory, rng, number)
        asked = queries(rng)
        before = time.process_time()
        memory.retrieve(next(asked), RetrievalChoice(), rng)
        first_s = time.process_time() - before
        for _ in range(QUERIES):  # words are read when they are first asked for
            memory.retrieve(next(asked), RetrievalChoice(), rng)
        clock, processor = [], []
        for place in range(QUERIES):
            if place % 2:  # in front of the first of an attempt's two
                other.add_experience(item(rng, task(rng), number + place))
            query = next(asked)
            started, before = time.perf_counter(), time.process_time()
            memory.retrieve(query, RetrievalChoice(), rng)
            clock.append(1e3 * (time.perf_counter() - started))
            processor.append(1e3 * (time.process_time() - before))
    path.unlink()
    return {
        "items": number,
        "p50_ms": round(statistics.median(clock), 1),
        "p95_ms": round(percentile(clock, 0.95), 1),
        "cpu_p95_ms": round(percentile(processor, 0.95), 1),
        "first_cpu_s": round(first_s, 1),
    }
