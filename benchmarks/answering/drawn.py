"""Tasks drawn by a seed: forms of six kinds with sizes and types, none of them among the twelve of
benchmarks/data/answers."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

HEAD = '"""Drawn by seed {seed}."""\n\nimport torch\nfrom torch.nn import functional\n\n\n'


@frozen
class Form:
    """A computation whose ``operands`` name sizes by capital letters (SIZES) and its type by T."""

    name: str
    operands: str
    result: str
    types: Sequence[str] = ("f32", "f16", "bf16")


@frozen
class Drawn:
    """A task: the text of its file, which defines one function."""

    name: str
    kind: str
    text: str


SIZES: Mapping[str, tuple[int, int, int]] = {
    "R": (700, 5000, 1),  # rows
    "C": (400, 4000, 1),  # columns
    "B": (6, 32, 1),  # batch
    "M": (300, 2000, 4),  # of products
    "N": (300, 2000, 4),
    "K": (128, 1500, 4),
    "S": (150, 800, 2),  # of small products
    "D": (32, 128, 16),
    "V": (5_000, 60_000, 1),  # rows of a table
    "P": (4, 60, 1),  # picked
    "I": (16, 96, 16),  # channels in
    "O": (32, 160, 16),  # channels out
    "H": (20, 64, 1),  # height and width
    "L": (300, 4000, 1),  # length
}
"""Least, most, and what it is a multiple of."""

_HALF = ("f16", "bf16")
FORMS: Mapping[str, tuple[Form, ...]] = {
    "vector": (
        Form("swiglu", "x=T[R,C], y=T[R,C]", "functional.silu(x) * y"),
        Form("residual_layer_norm", "x=T[R,C], r=T[R,C], w=T[C], b=T[C]",
             "functional.layer_norm(x + r, (x.shape[-1],), w, b)"),
        Form("l2_normalised", "x=T[R,C]", "functional.normalize(x, dim=-1)", ("f32",)),
        Form("row_variance", "x=T[R,C]", "x.var(dim=1, unbiased=False)", ("f32",)),
        Form("huber_by_row", "x=T[R,C], y=T[R,C]",
             "functional.smooth_l1_loss(x, y, reduction='none').mean(1)", ("f32",)),
        Form("log_softmax", "x=T[R,C]", "functional.log_softmax(x, -1)"),
        Form("column_max", "x=T[R,C]", "x.amax(0)"),
        Form("tanh_gate", "x=T[R,C], a=T[C], b=T[C]", "torch.tanh(x * a + b) * x"),
        Form("softplus_difference", "x=T[R,C], y=T[R,1]", "functional.softplus(x - y)"),
    ),
    "cube": (
        Form("product_of_transposed", "x=T[K,M], y=T[K,N]", "x.t() @ y"),
        Form("product_with_transposed", "x=T[M,K], y=T[N,K]", "x @ y.t()"),
        Form("batched_with_transposed", "x=T[B,S,D], y=T[B,S,D]", "torch.bmm(x, y.transpose(1, 2))"),
        Form("shared_right", "x=T[B,S,D], w=T[D,N]", "x @ w"),
        Form("batched_of_transposed", "x=T[B,K,S], y=T[B,K,D]", "torch.bmm(x.transpose(1, 2), y)"),
    ),
    "mixed": (
        Form("linear_gelu", "x=T[M,K], w=T[N,K], b=T[N]", "functional.gelu(functional.linear(x, w, b))"),
        Form("gated_product", "x=T[M,K], w=T[K,N], y=T[M,N]", "functional.silu(x @ w) * y"),
        Form("product_added", "c=T[M,N], x=T[M,K], w=T[K,N]", "torch.addmm(c, x, w)"),
        Form("sigmoid_scores", "q=T[B,S,D], k=T[B,S,D]",
             "torch.sigmoid(torch.bmm(q, k.transpose(1, 2)) * 0.125)"),
        Form("linear_residual", "x=T[M,K], w=T[N,K], b=T[N], r=T[M,N]", "functional.linear(x, w, b) + r"),
        Form("linear_row_max", "x=T[M,K], w=T[N,K], b=T[N]", "functional.linear(x, w, b).amax(1)"),
    ),
    "index": (
        Form("gather", "x=T[R,C], i=i64[R,P]", "torch.gather(x, 1, i)", ("f32", "f16")),
        Form("scaled_embedding", "i=i64[R], table=T[V,D]", "functional.embedding(i, table) * 8.0"),
        Form("select_columns", "x=T[R,C], i=i64[L]", "x.index_select(1, i)", ("f32", "f16")),
        Form("index_add", "x=T[C,D], i=i64[R], y=T[R,D]", "torch.index_add(x, 0, i, y)", ("f32",)),
        Form("bag_of_rows", "i=i64[R,P], table=T[V,D]", "functional.embedding(i, table).sum(1)", ("f32",)),
        Form("scatter_add", "x=T[R,C], i=i64[R,P], y=T[R,P]", "torch.scatter_add(x, 1, i, y)", ("f32",)),
    ),
    "scan": (
        Form("cumulative_product", "x=T[R,C]", "torch.cumprod(x, 1)", ("f32",)),
        Form("cumulative_max", "x=T[R,C]", "torch.cummax(x, 1).values", ("f32", "f16")),
        Form("sum_down_columns", "x=T[R,C]", "torch.cumsum(x, 0)", ("f32",)),
        Form("cumulative_exp", "x=T[R,C]", "torch.cumsum(torch.exp(x), 1)", ("f32",)),
        Form("log_cumulative", "x=T[R,C]", "torch.logcumsumexp(x, 1)", ("f32",)),
        Form("exclusive_sum", "x=T[R,C]", "torch.cumsum(x, 1) - x", ("f32",)),
    ),
    "convolution": (
        Form("strided", "x=T[B,I,H,H], w=T[O,I,3,3]", "functional.conv2d(x, w, stride=2, padding=1)", _HALF),
        Form("depthwise", "x=T[B,I,H,H], w=T[I,1,3,3]",
             "functional.conv2d(x, w, padding=1, groups=w.shape[0])", ("f32", "f16")),
        Form("one_dimension", "x=T[B,I,L], w=T[O,I,5], b=T[O]", "functional.conv1d(x, w, b, padding=2)"),
        Form("silu_behind", "x=T[B,I,H,H], w=T[O,I,3,3], b=T[O]",
             "functional.silu(functional.conv2d(x, w, b, padding=1))", _HALF),
        Form("dilated", "x=T[B,I,H,H], w=T[O,I,3,3]",
             "functional.conv2d(x, w, padding=2, dilation=2)", ("f32", "f16")),
        Form("transposed", "x=T[B,I,H,H], w=T[I,O,2,2]",
             "functional.conv_transpose2d(x, w, stride=2)", _HALF),
    ),
}  # fmt: skip
"""By kind, in the order in which kinds are drawn."""


def drawn(seed: int) -> Iterator[Drawn]:
    """Tasks without end, a kind after the other; a form comes again, in other sizes, once all of its kind
    came."""
    numbers, counts = random.Random(seed), dict.fromkeys(FORMS, 0)
    waiting: dict[str, list[Form]] = {kind: [] for kind in FORMS}
    while True:
        for kind, forms in FORMS.items():
            if not waiting[kind]:
                waiting[kind] = numbers.sample(forms, len(forms))
            counts[kind] += 1
            yield _task(f"{kind}{counts[kind]}", kind, waiting[kind].pop(), seed, numbers)


def _task(name: str, kind: str, form: Form, seed: int, numbers: random.Random) -> Drawn:
    letters = dict.fromkeys(re.findall(r"[A-SU-Z]", form.operands))
    values = {letter: str(_size(*SIZES[letter], numbers)) for letter in letters}
    values["T"] = numbers.choice(form.types)
    operands = re.sub(r"[A-Z]", lambda letter: values[letter[0]], form.operands)
    names = ", ".join(re.findall(r"(\w+)=", operands))
    lines = (f"def {form.name}({names}):  # evokernel: {operands}", f"    return {form.result}", "")
    return Drawn(name, kind, HEAD.format(seed=seed) + "\n".join(lines))


def _size(least: int, most: int, step: int, numbers: random.Random) -> int:
    """Small ones as often as large ones: even on a scale of logarithms."""
    return max(least, round(math.exp(numbers.uniform(math.log(least), math.log(most)))) // step * step)
