"""The tasks: a formula of each family, formulas of other authors, and formulas that lose figures."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen


@frozen
class Input:
    """A tensor of a task: its dtype and shape; integers that are indices lie below ``limit``."""

    dtype: str
    shape: tuple[int, ...]
    limit: tuple[str, int] | None = None
    """The tensor, and its dimension, whose size bounds the values."""


@frozen
class Row:
    """A task: ``formula`` is what is asked for, ``others`` compute the same otherwise, ``lossy`` do not for
    inputs that are large, small, or far from zero."""

    family: str
    name: str
    inputs: Mapping[str, Input]
    formula: str
    others: tuple[str, ...] = ()
    lossy: tuple[str, ...] = ()
    kind: str = field(default="formula")
    """Of which kind of mutation the lossy ones are."""


def floats(shape: tuple[int, ...], names: str = "x", dtype: str = "float32") -> dict[str, Input]:
    return {name: Input(dtype, shape) for name in names}


_NORMED = "(x - x.mean(-1, keepdim=True)) * torch.rsqrt({} + 1e-5)"
_COLUMNS = "(x - x.mean(0)) * torch.rsqrt({} + 1e-5)"
_RAW = "(x * x).mean({0}) - x.mean({0}) ** 2"
_SQUARES = "(x - x.mean(-1, keepdim=True)).pow(2).mean(-1, keepdim=True)"
_SHIFTED = "x - torch.amax(x, -1, keepdim=True)"

TABLE: tuple[Row, ...] = (
    Row("element-wise", "expm1", floats((96, 1000)), "torch.expm1(x)",
        ("torch.tanh(x / 2) * (torch.exp(x) + 1)",),
        ("torch.exp(x) - 1", "torch.exp(x.half()).float() - 1")),
    Row("element-wise", "gate", floats((96, 1000), "xy"), "x * torch.sigmoid(y) + x",
        ("x + x / (1 + torch.exp(-y))", "x * (torch.sigmoid(y) + 1)"),
        ("x * (torch.exp(y) / (1 + torch.exp(y))) + x", "x * torch.sigmoid(y.half()).float() + x")),
    Row("element-wise", "softplus", floats((64, 900)), "F.softplus(x)",
        ("torch.relu(x) + torch.log1p(torch.exp(-torch.abs(x)))",),
        ("torch.log(1 + torch.exp(x))", "torch.relu(x) + torch.log(1 + torch.exp(-torch.abs(x)))")),
    Row("element-wise", "tanh", floats((64, 900)), "torch.tanh(x)", (),
        ("2 * torch.sigmoid(2 * x) - 1",
         "(torch.exp(x) - torch.exp(-x)) / (torch.exp(x) + torch.exp(-x))",
         "torch.tanh(x.bfloat16().float())")),
    Row("element-wise", "sigmoid", floats((64, 900)), "torch.sigmoid(x)", ("1 / (1 + torch.exp(-x))",),
        ("0.5 * (1 + torch.tanh(x * 0.5))", "1 - 1 / (1 + torch.exp(x))")),
    Row("element-wise", "mish", floats((64, 900)), "F.mish(x)", ("x * torch.tanh(F.softplus(x))",),
        ("x * torch.tanh(torch.log(1 + torch.exp(x)))",)),
    Row("element-wise", "log1p", floats((64, 900)), "torch.log1p(torch.abs(x))", (),
        ("torch.log(1 + torch.abs(x))", "torch.log1p(torch.abs(x).bfloat16().float())")),
    Row("element-wise", "half", floats((64, 768), "xy", "float16"), "torch.relu(x) * 0.5 + y",
        ("y + torch.clamp_min(x, 0) / 2",), ("torch.relu(x.bfloat16().half()) * 0.5 + y",)),
    Row("element-wise", "integers", {n: Input("int32", (64, 500)) for n in "xy"}, "x * y + x",
        ("x * (y + 1)",),
        ("(x.float() * y.float()).to(torch.int32) + x", "(x.float() * (y.float() + 1)).to(torch.int32)",
         "(x.to(torch.int16) * y.to(torch.int16)).to(torch.int32) + x"), "integer width"),
    Row("element-wise", "integer sums", {n: Input("int32", (64, 500)) for n in "xy"}, "x * 3 + y",
        ("y + x + x + x",),
        ("(x.float() * 3 + y.float()).to(torch.int32)", "(x.to(torch.int16) * 3).to(torch.int32) + y",
         "x * 3 + y.float().to(torch.int32)", "x * 3 + y.to(torch.int16).to(torch.int32)"), "integer width"),
    Row("element-wise", "long integers", {n: Input("int64", (32, 400)) for n in "xy"}, "x + y",
        (), ("(x.to(torch.int32) + y.to(torch.int32)).to(torch.int64)",
             "(x.float() + y.float()).to(torch.int64)", "x + y.to(torch.int32).to(torch.int64)"),
        "integer width"),
    Row("element-wise", "larger integers", {n: Input("int32", (64, 500)) for n in "xy"},
        "torch.maximum(x, y)", ("torch.where(x > y, x, y)", "torch.where(y < x, x, y)"),
        ("torch.maximum(x.float(), y.float()).to(torch.int32)",
         "torch.maximum(x.to(torch.int16), y.to(torch.int16)).to(torch.int32)"), "integer width"),
    Row("row norms", "layer norm", floats((128, 1024)), "F.layer_norm(x, (x.shape[-1],))",
        (_NORMED.format(_SQUARES), _NORMED.format("x.var(-1, keepdim=True, unbiased=False)")),
        (_NORMED.format(_RAW.format("-1, keepdim=True")),
         _NORMED.format("x.var(-1, keepdim=True)"))),
    Row("row norms", "rms norm", floats((96, 768)),
        "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)",
        ("x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6)",
         "F.rms_norm(x, (x.shape[-1],), eps=1e-6)"),
        ("x / (torch.sqrt(x.pow(2).mean(-1, keepdim=True)) + 1e-6)",
         "x * torch.rsqrt(x.bfloat16().float().pow(2).mean(-1, keepdim=True) + 1e-6)",
         "x.bfloat16().float() * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)")),
    Row("row norms", "variance", floats((96, 700)), "torch.var(x, -1)",
        ("(x - x.mean(-1, keepdim=True)).pow(2).sum(-1) / (x.shape[-1] - 1)",),
        ("((x * x).sum(-1) - x.sum(-1) * x.mean(-1)) / (x.shape[-1] - 1)", "torch.var(x, -1, unbiased=False)",
         "torch.var(x.bfloat16().float(), -1)")),
    Row("softmax", "softmax", floats((128, 1024)), "torch.softmax(x, -1)",
        (f"torch.exp({_SHIFTED}) / torch.exp({_SHIFTED}).sum(-1, keepdim=True)",
         "torch.exp(torch.log_softmax(x, -1))"),
        ("torch.exp(x) / torch.exp(x).sum(-1, keepdim=True)",
         "torch.exp(torch.clamp_max(x, 80)) / torch.exp(torch.clamp_max(x, 80)).sum(-1, keepdim=True)",
         "torch.softmax(x.bfloat16().float(), -1)")),
    Row("softmax", "log softmax", floats((64, 700)), "torch.log_softmax(x * 0.5, -1)",
        ("x * 0.5 - torch.logsumexp(x * 0.5, -1, keepdim=True)",),
        ("torch.log(torch.softmax(x * 0.5, -1))", "torch.log(torch.softmax(x * 0.5, -1) + 1e-20)",
         "x * 0.5 - torch.log(torch.exp(x * 0.5).sum(-1, keepdim=True))")),
    Row("softmax", "log of sums", floats((64, 700)), "torch.logsumexp(x, -1)",
        ("torch.logsumexp(x + 1, -1) - 1",),
        ("torch.log(torch.exp(x).sum(-1))", "torch.log(torch.exp(x - 20).sum(-1)) + 20")),
    Row("losses", "squared error", floats((128, 900), "xy"), "F.mse_loss(x, y)",
        ("((x - y) * (x - y)).sum() / (x.shape[0] * x.shape[1])", "((y - x) ** 2).mean()"),
        ("(x * x - 2 * x * y + y * y).mean()", "((x.bfloat16() - y.bfloat16()).float() ** 2).mean()")),
    Row("losses", "cross entropy",
        {"x": Input("float32", (256, 100)), "target": Input("int64", (256,), ("x", 1))},
        "F.cross_entropy(x, target)", ("F.nll_loss(torch.log_softmax(x, -1), target)",),
        ("F.nll_loss(torch.log(torch.softmax(x, -1)), target)",
         "F.nll_loss(torch.log(torch.softmax(x, -1) + 1e-20), target)")),
    Row("losses", "logits", floats((128, 900), "xy"), "(F.softplus(x) - x * torch.sigmoid(y)).mean()",
        ("(torch.relu(x) + torch.log1p(torch.exp(-torch.abs(x))) - x * torch.sigmoid(y)).mean()",),
        ("(torch.log(1 + torch.exp(x)) - x * torch.sigmoid(y)).mean()",
         "-(torch.sigmoid(y) * torch.log(torch.sigmoid(x)) + "
         "(1 - torch.sigmoid(y)) * torch.log(1 - torch.sigmoid(x))).mean()")),
    Row("columns", "means", floats((16, 96, 160)), "torch.mean(x, 1)", ("x.sum(1) / x.shape[1]",),
        ("torch.mean(x.bfloat16().float(), 1)", "x.bfloat16().float().sum(1) / x.shape[1]",)),
    Row("columns", "largest", floats((200, 640)), "torch.amax(x, 0)", ("torch.max(x, 0).values",),
        ("torch.amax(x.bfloat16().float(), 0)",)),
    Row("columns", "normed", floats((100, 640)),
        _COLUMNS.format("x.var(0, unbiased=False)"), (_COLUMNS.format("(x - x.mean(0)).pow(2).mean(0)"),),
        (_COLUMNS.format(_RAW.format("0")),)),
    Row("scans", "rows", floats((64, 500)), "torch.cumsum(x, 1)", (),
        ("torch.cumsum(x.bfloat16().float(), 1)",)),
    Row("scans", "columns", floats((100, 640)), "torch.cumsum(x, 0)", (),
        ("torch.cumsum(x.bfloat16().float(), 0)",)),
    Row("pooling", "largest", floats((4, 8, 32, 48)), "F.max_pool2d(x, 2)", (),
        ("F.max_pool2d(x.bfloat16().float(), 2)",)),
    Row("pooling", "mean", floats((4, 8, 32, 40)), "F.avg_pool2d(x, 3, stride=2, padding=1)", (),
        ("F.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False)",)),
    Row("gather and scatter", "rows of a table",
        {"indices": Input("int64", (300,), ("table", 0)), "table": Input("float32", (512, 96))},
        "F.embedding(indices, table)", ("torch.index_select(table, 0, indices)", "table[indices]"),
        ("F.embedding(indices, table.bfloat16().float())",)),
    Row("gather and scatter", "added rows",
        {"x": Input("float32", (128, 64)), "indices": Input("int64", (200,), ("x", 0)),
         "rows": Input("float32", (200, 64))},
        "torch.index_add(x, 0, indices, rows)", ("torch.index_put(x, (indices,), rows, accumulate=True)",),
        ("torch.index_add(x, 0, indices, rows.bfloat16().float())",)),
    Row("products", "float32", {"a": Input("float32", (128, 192)), "b": Input("float32", (192, 160))},
        "a @ b", ("torch.mm(a, b)",),
        ("(a.half() @ b.half()).float()", "(a.bfloat16() @ b.bfloat16()).float()")),
    Row("products", "half",
        {"x": Input("float16", (128, 256)), "w": Input("float16", (256, 128)),
         "bias": Input("float16", (128,))},
        "torch.relu(x @ w + bias)", ("torch.relu(torch.addmm(bias, x, w))",),
        ("torch.relu(x.bfloat16() @ w.bfloat16() + bias).half()",)),
    Row("attention", "heads", floats((2, 4, 96, 64), "qkv", "float16"),
        "F.scaled_dot_product_attention(q, k, v)",
        ("F.scaled_dot_product_attention(-q, -k, v)",),
        ("torch.softmax(q @ k.transpose(-2, -1), -1) @ v",
         "torch.exp(q @ k.transpose(-2, -1) * 0.125) @ v")),
    Row("attention", "causal", floats((1, 4, 128, 32), "qkv", "float16"),
        "F.scaled_dot_product_attention(q, k, v, is_causal=True)", (),
        ("F.scaled_dot_product_attention(q, k, v)",)),
)  # fmt: skip


def module_text(row: Row, formula: str) -> str:
    """A model file that computes the formula."""
    arguments = ", ".join(row.inputs)
    made = ", ".join(_made(item) for item in row.inputs.values())
    return (
        "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"
        "class Model(nn.Module):\n"
        f"    def forward(self, {arguments}):\n        return {formula}\n\n\n"
        f"def get_inputs():\n    return [{made}]\n"
    )


def _made(item: Input) -> str:
    if item.dtype == "bool":
        return f"torch.rand({item.shape}) < 0.5"
    if item.dtype.startswith("int"):
        return f"torch.randint(0, 8, {item.shape}, dtype=torch.{item.dtype})"
    return f"torch.randn({item.shape}, dtype=torch.{item.dtype})"
