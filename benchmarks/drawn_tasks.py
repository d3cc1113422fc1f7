"""Modelled times of first drafts over tasks that a seed draws, beside those of another commit.

    python -m benchmarks.drawn_tasks [--seed 48] [--count 30] [--kinds rows,middle] [--check] [--json OUT]
                                     [--beside OLD]

Draws of reductions along and across rows, element-wise work, products, linear layers and 1x1 convolutions, at
sizes that are round and at others, in three types. ``--check`` compares each draft with PyTorch first, where
it is only timed otherwise. OLD is what ``--json`` wrote at another commit: then each row has both times, and
the last line their geometric mean and the worst. Nothing but the seed decides what is drawn.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from attrs import asdict, frozen

from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.settings import Settings
from evokernel_core.hardware.ascend.chip import chip_of
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.session import Session
from evokernel_core.targets.ascendc import author

_TYPES = ("f32", "f16", "bf16")
_WIDE = (64, 100, 256, 300, 512, 768, 1000, 1024, 2048, 3000, 4096, 5000, 8192)
_HIGH = (128, 512, 1000, 2048, 4096, 16384)
_DEEP = (64, 200, 256, 512, 768, 900, 1024, 2000)
_MOST = 2**25
"""Elements of a drawn input."""
_ROWS = {
    "softmax": "torch.softmax(x, -1)",
    "layer_norm": "F.layer_norm(x, (x.shape[-1],), w, b)",
    "rms_norm": "x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w",
    "log_softmax": "torch.log_softmax(x * 0.5, -1)",
    "logsumexp": "torch.logsumexp(x, -1)",
    "norm": "x / x.norm(dim=-1, keepdim=True)",
    "standardise": "(x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5)",
    "cross_entropy": "F.cross_entropy(x, y, reduction='none')",
}
_MIDDLE = {
    "sum": "x.sum(1)",
    "mean": "x.mean(1)",
    "amax": "x.amax(1)",
    "amin": "x.abs().amin(1)",
    "squares": "(x * x).sum(1)",
    "norm": "x.norm(dim=1)",
}
_POINTS = {
    "gelu_bias": "F.gelu(x + b) * 0.7",
    "silu_product": "F.silu(x) * b",
    "scale_shift": "torch.relu(x * w + b)",
}
_LINEAR = {
    "linear": "F.linear(x, w)",
    "bias": "F.linear(x, w, b)",
    "bias_relu": "torch.relu(F.linear(x, w, b))",
    "bias_gelu": "F.gelu(F.linear(x, w, b))",
}


@frozen
class Draw:
    """A task: its name, its inputs as a comment says them, and what is returned."""

    name: str
    inputs: str
    body: str

    @property
    def text(self) -> str:
        names = ", ".join(part.split("=")[0].strip() for part in self.inputs.split(", ") if "=" in part)
        head = "import torch\nimport torch.nn.functional as F\n\n\n"
        return f"{head}# evokernel: {self.inputs}\ndef drawn({names}):\n    return {self.body}\n"


@frozen
class Timed:
    """A draft: modelled microseconds, None where it failed, and seconds of authoring and estimating."""

    name: str
    us: float | None
    author_s: float
    reason: str = ""


def _rows(dice: random.Random) -> Draw:
    key, dtype, width = dice.choice(list(_ROWS)), dice.choice(_TYPES), dice.choice(_WIDE)
    height = min(dice.choice(_HIGH), _MOST // width)
    more = {"layer_norm": f", w={dtype}[{width}], b={dtype}[{width}]", "rms_norm": f", w={dtype}[{width}]",
            "cross_entropy": f", y=i64[{height}]<{width}"}  # fmt: skip
    return Draw(key, f"x={dtype}[{height}, {width}]{more.get(key, '')}", _ROWS[key])


def _middle(dice: random.Random) -> Draw:
    key, dtype = dice.choice(list(_MIDDLE)), dice.choice(_TYPES)
    outer, steps = dice.choice((16, 64, 100, 256)), dice.choice((50, 128, 500, 1000))
    inner = min(dice.choice((30, 64, 100, 225, 256, 300, 510, 768, 1500)), _MOST // outer // steps)
    return Draw(f"middle {key}", f"x={dtype}[{outer}, {steps}, {inner}]", _MIDDLE[key])


def _points(dice: random.Random) -> Draw:
    key, dtype, width = dice.choice(list(_POINTS)), dice.choice(_TYPES), dice.choice(_WIDE)
    height = min(dice.choice(_HIGH), _MOST // width)
    more = f", w={dtype}[{width}]" if key == "scale_shift" else ""
    return Draw(key, f"x={dtype}[{height}, {width}]{more}, b={dtype}[{width}]", _POINTS[key])


def _linear(dice: random.Random) -> Draw:
    key, dtype = dice.choice(list(_LINEAR)), dice.choice(_TYPES)
    m, k, n = dice.choice((256, 1000, 2048, 4096)), dice.choice(_DEEP), dice.choice(_DEEP)
    bias = f", b={dtype}[{n}]" if key != "linear" else ""
    return Draw(key, f"x={dtype}[{m}, {k}], w={dtype}[{n}, {k}]{bias}", _LINEAR[key])


def _products(dice: random.Random) -> Draw:
    dtype = dice.choice(_TYPES)
    if dice.random() < 0.5:
        m, k, n = (dice.choice(_DEEP) for _ in range(3))
        return Draw("matmul", f"a={dtype}[{m}, {k}], b={dtype}[{k}, {n}]", "a @ b")
    batch, (m, k, n) = dice.choice((8, 32)), (dice.choice((64, 100, 200, 300, 512)) for _ in range(3))
    return Draw("bmm", f"a={dtype}[{batch}, {m}, {k}], b={dtype}[{batch}, {k}, {n}]", "torch.bmm(a, b)")


def _convolutions(dice: random.Random) -> Draw:
    dtype, side = dice.choice(_TYPES), dice.choice((14, 28, 56))
    c, o = dice.choice((32, 64, 128, 256)), dice.choice((32, 64, 128, 256))
    return Draw("conv 1x1", f"x={dtype}[8, {c}, {side}, {side}], w={dtype}[{o}, {c}, 1, 1]", "F.conv2d(x, w)")


_KINDS: Mapping[str, Callable[[random.Random], Draw]] = {
    "rows": _rows,
    "middle": _middle,
    "points": _points,
    "linear": _linear,
    "products": _products,
    "convolutions": _convolutions,
}


def drawn(seed: int, count: int, kinds: tuple[str, ...]) -> list[Draw]:
    """So many tasks, the kinds in turn."""
    dice = random.Random(seed)
    return [_KINDS[kinds[number % len(kinds)]](dice) for number in range(count)]


def timed(draws: list[Draw], check: bool) -> Iterator[Timed]:
    """The first draft of each."""
    with tempfile.TemporaryDirectory() as folder, Memory(Path(folder) / "memory.db") as memory:
        for draw in draws:
            path = Path(folder) / "drawn.py"
            path.write_text(draw.text)
            with Session(Settings(interpreter=sys.executable), Path(folder), memory) as session:
                yield _timed(draw, path, session, check)


def _timed(draw: Draw, path: Path, session: Session, check: bool) -> Timed:
    name = f"{draw.name} {draw.inputs}"
    task = next((o.region.task for o in session.offers(path) if o.region.task is not None), None)
    if task is None:
        return Timed(name, None, 0.0, "not captured")
    chip, start = chip_of(session.author.device), time.process_time()
    try:
        source = author.write(task, author.initial(task, chip), chip)
        spent = time.process_time() - start
        verdict = session.verifier().verify(task, source, below_us=math.inf if check else 0.0)
    except EvoKernelError as error:
        return Timed(name, None, time.process_time() - start, str(error))
    reasons = "; ".join(f"{gate.gate}: {gate.words()}" for gate in verdict.gates if gate.feedback)
    failed = verdict.latency is None or (check and not verdict.feasible)
    return Timed(name, None if failed or verdict.latency is None else verdict.latency.us, spent, reasons)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=48)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--kinds", default=",".join(_KINDS))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--beside", type=Path)
    options = parser.parse_args()
    before = json.loads(options.beside.read_text()) if options.beside else {}
    print(f"seed {options.seed}, {options.count} tasks of {options.kinds}; modelled us of first drafts")
    found: dict[str, Timed] = {}
    for one in timed(drawn(options.seed, options.count, tuple(options.kinds.split(","))), options.check):
        found[one.name] = one
        print(_row(one, before.get(one.name, {}).get("us")), flush=True)
        if options.json:
            options.json.write_text(
                json.dumps({name: asdict(item) for name, item in found.items()}, indent=1)
            )
    gains = [before[n]["us"] / t.us for n, t in found.items() if t.us and before.get(n, {}).get("us")]
    if gains:
        mean = math.exp(sum(map(math.log, gains)) / len(gains))
        spent = sum(t.author_s for t in found.values()) / sum(
            before[n]["author_s"] for n in found if n in before
        )
        print(f"{len(gains)} tasks {mean:.3f} times as fast, worst {min(gains):.3f}; authored in {spent:.2f}")
    sys.exit(any(one.us is None for one in found.values()))


def _row(one: Timed, before: float | None) -> str:
    now = "failed" if one.us is None else f"{one.us:.2f}"
    ratio = f" {before:8.2f} {before / one.us:6.3f}" if before and one.us else ""
    return f"{one.name:64} {now:>8}{ratio} {'' if one.us else one.reason[:90]}"


if __name__ == "__main__":
    main()
