"""Whole forwards as one region: the edited model computes what the first one did, or why there is none."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent, indent
from typing import Any

import pytest
import torch

from evokernel_core.capture.agent.reference.reference import run
from evokernel_core.domain.region import Region
from evokernel_core.domain.serial import to_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.synthesis.coverage import uncovered
from tests.capture.edited import edited_module, runs

HEAD = """
import random
import torch
from typing import NamedTuple
import torch.nn.functional as F
from torch import nn

def shifted(x, by):
    y = x + by
    return y * 2

class Found(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor

class Block(nn.Module):
    def __init__(self, width, p=0.0):
        super().__init__()
        self.linear, self.drop = nn.Linear(width, width), nn.Dropout(p)

    @property
    def gain(self):
        return 3.0

    def forward(self, x):
        return x + self.drop(torch.relu(self.linear(x))) * self.gain
"""


def model(init: str, forward: str, shapes: str, arguments: str = "x") -> str:
    """A file with one model and its inputs."""
    initial = indent(dedent(init).strip("\n"), " " * 8)
    body = indent(dedent(forward).strip("\n"), " " * 8)
    return (
        f"{HEAD}\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n{initial}\n\n"
        f"    def forward(self, {arguments}):\n{body}\n\ndef get_inputs():\n    return [{shapes}]\n"
    )


def kernel(task: KernelTask) -> Callable[..., Any]:
    """The captured graph as the operator that takes its place: it allocates results of its own."""
    graph = to_data(task.graph)

    def call(*given: Any) -> Any:
        inputs = dict(zip([item.name for item in task.graph.inputs], given, strict=True))
        sizes = {
            dim: int(inputs[item.name].shape[axis])
            for item in task.graph.inputs
            for axis, dim in enumerate(item.spec.shape)
            if isinstance(dim, str) and dim.isidentifier()
        }
        results = [value.clone() for value in run(graph, inputs, sizes)]
        results = results[: task.graph.returned]
        return results[0] if len(results) == 1 else tuple(results)

    return call


def executed(text: str, **names: Any) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": "model", **names}
    exec(compile(text, "model.py", "exec"), scope)
    return scope


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors that an argument holds, within structures and objects of the file's own classes."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    elif type(value).__module__ == "model":
        value = value if isinstance(value, tuple) else list(vars(value).values())
    return [item for part in value for item in tensors(part)] if isinstance(value, (list, tuple)) else []


def sharing(values: list[torch.Tensor]) -> list[int]:
    """For each tensor the first one that has the same memory."""
    memory = [item.untyped_storage().data_ptr() for item in values]
    return [memory.index(item) for item in memory]


def assert_same_model(text: str, region: Region, calls: int = 2) -> None:
    """Both models, of equal weights, give the same for the same seeds, in training and in evaluation."""
    assert region.task is not None, region.reason
    assert not uncovered(text, region)
    torch.manual_seed(0)
    first, second = executed(text), edited_module(text, region)
    one, other = first["Model"](), second.Model()
    other.load_state_dict(one.state_dict())
    with torch.no_grad():
        for train in (True, False):
            one.train(train)
            other.train(train)
            for seed in range(calls):
                results, shared = [], []
                for item, get_inputs in ((one, first["get_inputs"]), (other, second.get_inputs)):
                    torch.manual_seed(calls + seed)
                    given = get_inputs()
                    torch.manual_seed(seed)
                    results.append((item(*given), tensors(given)))
                    shared.append(sharing([*tensors(results[-1][0]), *tensors(given), *item.buffers()]))
                assert shared[0] == shared[1]
                torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-5)
    assert runs(second), "no call was the kernel's"
    torch.testing.assert_close(dict(other.named_buffers()), dict(one.named_buffers()))


X = "torch.randn(4, 6)"
SAME = {
    "a loop over layers": (
        "self.layers = nn.ModuleList([nn.Linear(6, 6) for _ in range(3)])",
        "for layer in self.layers:\n    x = torch.relu(layer(x))\nreturn x",
        X,
    ),
    "members by index and by key": (
        """
        self.net = nn.Sequential(nn.Linear(6, 6), nn.ReLU(inplace=True))
        self.heads = nn.ModuleDict({"left": nn.Linear(6, 2), "right-most": nn.Linear(6, 2)})
        self.gains = nn.ParameterList([nn.Parameter(torch.randn(2)) for _ in range(2)])
        """,
        """
        y = self.net[0](x) + self.net(x)
        return self.heads["left"](y) * self.gains[0] + self.heads["right-most"](y) * self.gains[1]
        """,
        X,
    ),
    "one weight under two names": (
        "self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)\nself.b.weight = self.a.weight",
        "return self.b(torch.relu(self.a(x)))",
        X,
    ),
    "weights in a list that is no module": (
        "self.one, self.two = nn.Linear(6, 6), nn.Linear(6, 6)\nself.order = [self.two, self.one]",
        "for layer in self.order:\n    x = layer(x).tanh()\nreturn x",
        X,
    ),
    "helpers, blocks and properties": (
        "self.blocks = nn.Sequential(Block(6), Block(6))",
        "return shifted(self.blocks(x), by=0.5)",
        X,
    ),
    "numbers computed from constants": (
        "self.scale = nn.Parameter(torch.rand(6, 6))",
        """
        most = torch.log(torch.tensor(1.0 / 0.01, device=x.device))
        least = torch.tensor(2.0) ** 2
        return torch.clamp(x @ self.scale, max=most).exp() + torch.maximum(x, -least.sqrt())
        """,
        X,
    ),
    "a small constant tensor": (
        "self.scale = nn.Parameter(torch.rand(6))",
        """
        mean = torch.tensor([0.485, 0.456, 0.406])
        spread = x.new_tensor([[2.0, 2.0], [1.0, 3.0], [4.0, -1.0]])
        return (x.view(-1, 3, 2) - mean.view(3, 1)) / spread * self.scale.view(3, 2)
        """,
        X,
    ),
    "a number written in place": (
        "self.scale = nn.Parameter(torch.rand(6))",
        """
        y, z = x.clone(), x * self.scale
        y[:, 0] = 0
        z[1:3] = -1.5
        z[0, 2] = 4.0
        return y, z, torch.where(x > 0, y, torch.tensor(2.0)), torch.eq(y, torch.tensor(0.0)) * x
        """,
        X,
    ),
    "results that are views of each other": (
        "self.linear, self.scale = nn.Linear(6, 6), nn.Parameter(torch.rand(6))",
        """
        q, k, v = self.linear(x.unsqueeze(0)).chunk(3, -1)
        y = x.exp()
        a, b = x.sin().split(2)
        w = torch.empty(4, 2, 3).copy_(y[:, :3].unsqueeze(1))
        return {"qkv": (q, k.squeeze(0), v.transpose(1, 2)), "y": y.t(), "same": y, "row": y[1:3, -1], "w": w,
                "x": x[:2], "flat": y.view(-1), "halves": (a, b[0].expand(3, 6)), "scale": self.scale[None],
                "copy": y.clone(), "one": y.flatten()[0]}
        """,
        X,
    ),
    "copies of what is given and kept": (
        'self.register_buffer("kept", torch.zeros(4, 6))',
        """
        y = x.exp()
        self.kept.copy_(y)
        c.mul_(2.0)
        c[0] = 1.0
        return y, x.clone(), self.kept, c[1:], c.clone()
        """,
        f"{X}, torch.randn(3)",
        "x, c",
    ),
    "windows, shifts and groups as large as a tensor": (
        "self.weight = nn.Parameter(torch.rand(4, 2, 1, 1))",
        """
        n, c, h, w = x.shape
        weight = (self.weight * x.mean((1, 2, 3)).view(n, 1, 1, 1, 1)).reshape(-1, 2, 1, 1)
        y = F.conv2d(x.reshape(1, n * c, h, w), weight, groups=n).view(n, -1, h, w)
        y = y + F.avg_pool2d(y, y.shape[2:]) + F.max_pool2d(y, kernel_size=(h, 1))
        return x.flatten(1).roll(c // 2, 1), y, y.flatten(1).topk(w, 1)[0]
        """,
        "torch.randn(3, 2, 5, 4)",
    ),
    "rolls by more than the least sizes": (
        "",
        "return x.roll((2, -3), (0, 1)) * 2, x.roll(5), (x[:, 1:] + 1).roll(2, 1)",
        X,
    ),
    "blocks that are computed again for gradients": (
        "self.block = Block(6, 0.2)",
        """
        from torch.utils.checkpoint import checkpoint
        x = checkpoint(self.block, x, use_reentrant=False)
        return checkpoint(self.block, x, use_reentrant=True, preserve_rng_state=False)
        """,
        X,
    ),
    "a number that scales what is added": (
        "self.a = 1",
        "return torch.add(x, x.exp(), alpha=1 - decay)",
        f"{X}, 0.9",
        "x, decay",
    ),
    "unit matrices and grids of integers": (
        """
        self.register_buffer("scale", torch.rand(6) + 0.1)
        self.register_buffer("zero", torch.arange(6, dtype=torch.int32))
        """,
        """
        y = torch.fake_quantize_per_tensor_affine(x, 0.05, 128, 0, 255) + torch.eye(4, 6)
        z = torch.fake_quantize_per_channel_affine(x, self.scale, self.zero, 1, -8, 7)
        w = torch.fake_quantize_per_tensor_affine(x, self.scale[0], self.zero[0], -8, 7)
        return y, z, w, torch.eye(4, dtype=torch.bool), torch.zeros(4, 3) @ torch.eye(3) + x[:, :3]
        """,
        X,
    ),
    "memory filled piece by piece": (
        "self.scale = nn.Parameter(torch.rand(6))",
        """
        y, z = torch.empty_like(x), x.new_empty(x.shape[0], 2)
        w = torch.empty(x.shape[0], 4, 3)
        for i in range(6):
            y[:, i] = x[:, i] * self.scale[i]
        z[:, 0], z[:, 1] = x.sum(1), x.amax(1)
        return y, w.copy_(y[:, :3].unsqueeze(1)), torch.empty((4, 6)).fill_(2.0) * z[:, :1]
        """,
        X,
    ),
    "writes in place": (
        "self.scale = nn.Parameter(torch.rand(6))",
        """
        y = x * self.scale
        y += 1
        y.relu_()
        y[:, 2] = x[:, 0]
        y[1:3, 4:].mul_(2.0)
        return F.relu(y, inplace=True)
        """,
        X,
    ),
    "sizes, assertions and texts": (
        "self.heads = 2",
        """
        b, t, c = x.shape
        assert c % self.heads == 0, f"{c} does not divide"
        label: str = f"{b}x{t}"
        q = x.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        scores = (q @ q.transpose(-2, -1)) * (q.size(-1) ** -0.5)
        return scores.softmax(-1).reshape(b, -1) * float(len(label) > 0)
        """,
        "torch.randn(2, 5, 6)",
    ),
    "patches side by side and overlapping": (
        "self.a = 1",
        "return x.unfold(1, 2, 2).unfold(2, 3, 3).relu().flatten(1), x.unfold(1, 3, 1).exp()",
        "torch.randn(2, 4, 6)",
    ),
    "dropout in training": (
        "self.linear, self.drop = nn.Linear(6, 6), nn.Dropout(0.4)",
        "y = self.drop(self.linear(x))\nreturn F.dropout(y + 1, 0.2, self.training) * 2",
        X,
    ),
    "dropout of channels and in a block": (
        "self.drop, self.block = nn.Dropout2d(0.5), Block(3, 0.3)",
        "return self.block(self.drop(x) + 1)",
        "torch.randn(2, 4, 5, 3)",
    ),
    "slopes that are drawn": (
        "self.first, self.last = nn.RReLU(0.1, 0.4), nn.RReLU(inplace=True)",
        "return self.last(self.first(-x.exp()) * 2)",
        X,
    ),
    "windows that begin where samples say": (
        "self.flat = nn.FractionalMaxPool2d((3, 2), output_ratio=0.5, return_indices=True)\n"
        "self.deep = nn.FractionalMaxPool3d(2, output_size=(1, 3, 4))",
        "return self.flat(x), self.deep(x[:, None])",
        "torch.randn(2, 5, 9, 11)",
    ),
    "windows side by side and back": (
        "self.linear = nn.Linear(12, 12)",
        "y = self.linear(F.unfold(x, (2, 3), stride=(2, 3)).transpose(1, 2))\n"
        "return F.fold(y.transpose(1, 2), x.shape[2:], (2, 3), stride=(2, 3))",
        "torch.randn(3, 2, 8, 9)",
    ),
    "windows that overlap": (
        "self.scale = 2.0",
        "y = F.unfold(x, 3, dilation=2, padding=1, stride=2)\n"
        "return y, F.fold(y * 2, (9, 11), 3, dilation=2, padding=1, stride=2)",
        "torch.randn(3, 2, 9, 11)",
    ),
    "windows beyond the image": (
        "self.scale = 2.0",
        "y = F.unfold(x, (5, 1), padding=(4, 0), stride=(2, 3))\n"
        "return F.fold(y, (6, 8), (5, 1), padding=(4, 0), stride=(2, 3)), F.fold(x[0], (4, 2), 1, stride=1)",
        "torch.randn(2, 6, 8)",
    ),
    "two vectors and a matrix for each result": (
        "self.both = nn.Bilinear(6, 5, 4)",
        "return self.both(x, x[..., 1:]), F.bilinear(x[0], x[1, :, :3], self.both.weight[..., :3])",
        "torch.randn(2, 3, 6)",
    ),
    "draws that nothing reads": (
        "self.drop = nn.Dropout(0.5)",
        "y = self.drop(x.exp())\nz = torch.rand(3)\nreturn x.sin() + torch.rand_like(x)",
        X,
    ),
    "a random state": (
        "self.linear = nn.Linear(12, 6)",
        "h = torch.randn(x.size(0), 6)\nreturn self.linear(torch.cat([x, h], 1)) + torch.rand_like(x)",
        X,
    ),
    "an encoder layer": (
        "self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1)",
        "return self.layer(x)",
        "torch.randn(5, 3, 8)",
    ),
    "running statistics": (
        "self.norms = nn.ModuleList([nn.BatchNorm1d(6), nn.BatchNorm1d(6)])",
        "for norm in self.norms:\n    x = torch.relu(norm(x))\nreturn x",
        X,
    ),
    "a branch on training": (
        "self.scale = 2.0",
        "if self.training:\n    return x.exp()\nreturn x * self.scale",
        X,
    ),
    "an optional argument": (
        "self.bias = 1.0",
        "y = x.exp()\nreturn y if mask is None else y * mask",
        X,
        "x, mask=None",
    ),
    "a number and a flag": (
        "self.bias = 1.0",
        "y = x * scale\nreturn y.exp() if flag else y",
        f"{X}, 0.5, True",
        "x, scale, flag",
    ),
    "several results": (
        "self.linear = nn.Linear(6, 6)",
        """
        y = self.linear(x)
        z = y.exp()
        return {"y": y, "pair": [z, y], "x": x, "rows": x.shape[0], "none": None}
        """,
        X,
    ),
    "two results": ("self.linear = nn.Linear(6, 6)", "y = self.linear(x)\nreturn y.exp(), y.amax(1)", X),
    "named results": (
        "self.a = 1",
        "return torch.max(x.exp(), 1), Found(x.exp(), x.sin())",
        X,
    ),
    "a state that the module keeps": (
        "self.linear, self.state = nn.Linear(6, 6), torch.zeros(4, 6)",
        "self.state = torch.tanh(self.linear(x) + self.state)\nreturn self.state * 2",
        X,
    ),
    "a documented forward": (
        "self.bias = 1.0",
        '"""What it does: {nothing}."""\ny = x + 1  # {braces}\nreturn F.dropout(y, 0.5, self.training)',
        X,
    ),
    "attention that sees only what was before": (
        "self.heads = 2",
        "return F.scaled_dot_product_attention(x, x, x, is_causal=True, dropout_p=0.0)",
        "torch.randn(2, 2, 5, 4)",
    ),
    "a short recurrent layer": (
        "self.rnn = nn.GRU(6, 5, batch_first=True, bidirectional=True)",
        "y, h = self.rnn(x)\nreturn y[:, -1], h",
        "torch.randn(2, 4, 6)",
    ),
    "recurrent layers that drop out": (
        "self.rnn = nn.LSTM(6, 5, 3, dropout=0.4, batch_first=True, bidirectional=True)\n"
        "self.last = nn.GRU(10, 4, 2, dropout=0.3)",
        "y, (h, c) = self.rnn(x)\nz, g = self.last(y.transpose(0, 1))\nreturn z, h, c, g",
        "torch.randn(3, 40, 6)",
    ),
    "a long recurrent layer": (
        "self.rnn = nn.LSTM(6, 5, 2, bidirectional=True)",
        "y, (h, c) = self.rnn(x)\nreturn y[-1], h, c",
        "torch.randn(50, 3, 6)",
    ),
    "recurrent layers of one kind each": (
        "self.first, self.rest = nn.RNN(6, 5, nonlinearity='relu'), nn.GRU(5, 4, 3, bias=False)",
        "y, h = self.first(x)\nreturn self.rest(y)[0] * 2, h",
        "torch.randn(40, 3, 6)",
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_the_edited_model_computes_the_same(name: str, whole: Callable[[str], tuple[Region, ...]]) -> None:
    text = model(*SAME[name])
    (region,) = whole(text)
    assert_same_model(text, region)


@pytest.mark.parametrize(("layers", "sizes"), [(2, [4, 6, 6, 6]), (5, [4, 6])])
def test_sizes_are_symbols_and_those_of_many_layers_are_shared(
    layers: int, sizes: list[int], whole: Callable[[str], tuple[Region, ...]]
) -> None:
    init = f"self.net = nn.Sequential(*[nn.Linear(6, 6) for _ in range({layers})])"
    (region,) = whole(model(init, "return self.net(x)", X))
    assert region.task is not None
    assert [(item.size, item.minimum) for item in region.task.symbols] == [(size, 1) for size in sizes]


def test_images_keep_their_sizes_and_windows_are_numbers(whole: Callable[[str], tuple[Region, ...]]) -> None:
    forward = "return self.conv(x).relu().mean((2, 3))"
    (region,) = whole(model("self.conv = nn.Conv2d(3, 8, 3)", forward, "torch.randn(20, 3, 32, 48)"))
    assert region.task is not None
    assert [(item.size, item.minimum) for item in region.task.symbols] == [(20, 1), (32, 4), (48, 4)]


@pytest.mark.parametrize("layer", ["Conv3d(4, 8, 3)", "ConvTranspose3d(4, 8, 3)"])
def test_channels_of_images_are_numbers(layer: str, whole: Callable[[str], tuple[Region, ...]]) -> None:
    text = model(f"self.conv = nn.{layer}", "return self.conv(x.exp()).relu()", "torch.randn(9, 4, 5, 6, 7)")
    (region,) = whole(text)
    assert region.task is not None, region.reason
    assert [item.size for item in region.task.symbols] == [9, 5, 6, 7]


def test_a_mask_has_the_sizes_of_the_scores(whole: Callable[[str], tuple[Region, ...]]) -> None:
    """As symbols of their own these would be 1 where the keys are more, and the mask spread over them."""
    tensors = "torch.randn(2, 3, 9, 4), torch.randn(2, 3, 9, 4), torch.ones(9, 9).bool()"
    forward = "return F.scaled_dot_product_attention(q, k, k, m)"
    (region,) = whole(model("self.a = 1", forward, tensors, "q, k, m"))
    assert region.task is not None, region.reason
    mask = next(item.spec for item in region.task.graph.inputs if item.expression == "m")
    query, key = (item.spec.shape[-2] for item in region.task.graph.inputs if item.expression in "qk")
    assert mask.shape == (query, key)


def test_a_rolled_dimension_is_as_long_as_its_shift(whole: Callable[[str], tuple[Region, ...]]) -> None:
    text = model("", "return x.roll((2, -3), (0, 1)) * 2", "torch.randn(17, 29, 5)")
    (region,) = whole(text)
    assert region.task is not None
    assert [(item.size, item.minimum) for item in region.task.symbols] == [(17, 2), (29, 3), (5, 1)]


def test_draws_are_arguments_in_their_order(whole: Callable[[str], tuple[Region, ...]]) -> None:
    forward = "y = F.dropout(x @ x.t(), 0.25)\nreturn y + torch.randn(x.shape[1])[:1]"
    (region,) = whole(model("self.p = 0.5", forward, X))
    assert region.task is not None
    drawn = [item.expression for item in region.task.graph.inputs if item.name.startswith("drawn")]
    size = "(x.shape[0], x.shape[0])"
    assert drawn == [
        f"torch.nn.functional.dropout(torch.ones({size}, dtype=torch.float32, device=x.device), 0.25)",
        "torch.randn((x.shape[1],), dtype=torch.float32, device=x.device)",
    ]


@pytest.mark.parametrize(
    ("forward", "ops"),
    [
        ("return x.half()", ["_to_copy"]),
        ("return x.transpose(0, 1).contiguous()", ["transpose"]),
        ("return x.unsqueeze(0).expand(3, -1, -1).contiguous()", ["unsqueeze", "expand"]),
    ],
)
def test_a_forward_may_be_a_cast_or_a_copy_and_nothing_else(
    forward: str, ops: list[str], whole: Callable[[str], tuple[Region, ...]]
) -> None:
    (region,) = whole(model("self.a = 1", forward, X))
    assert region.task is not None
    assert [node.op.split(".")[1] for node in region.task.graph.nodes] == ops


REFUSED = [
    ("self.a = 1", "return x.view(-1)", "nothing to compute"),
    ("self.a = 1", "y = x.exp()\nreturn y, x.view(torch.int32)", "view of x"),
    ("self.a = 1", "y = x.exp()\nreturn y, y.view(torch.int32)", "view of another result"),
    ("self.a = 1", "return x", "nothing to compute"),
    ("self.a = 1", "return torch.tensor(0.0)", "a tensor of constants"),
    ("self.a = 1", "return x * torch.bernoulli(torch.tensor([0.5]))", "bernoulli"),
    ("self.a = 1", "self.a = self.a + 1\nreturn x.exp()", "rebinds self.a"),
    ("self.seen = []", "self.seen.append(x.exp())\nreturn x * 2", "Each call changes self.seen"),
    ("self.a = 1", "print(x.shape)\nreturn x.exp()", "prints"),
    ("self.a = 1", '"What it does."; return x.exp()', "lines of its own"),
    ("self.a = 1", "return x * random.random()", "random numbers of Python"),
    ("self.a = 1", "return torch.bernoulli(x.sigmoid()) * x", "bernoulli"),
    ("self.a = 1", "return torch.fft.fft(x).real", "aten._fft"),
    ("self.a = 1", "if x.sum() > 0:\n    return x.exp()\nreturn x", "values of a tensor"),
    ("self.a = 1", "return x[x > 0].exp()", "values of a tensor"),
    ("self.norm = nn.BatchNorm1d(6, momentum=None)", "return self.norm(x)", "momentum=None"),
    ("self.a = 1", "return torch.from_numpy(x.numpy()).exp()", "out of PyTorch"),
    ("self.rnn = nn.LSTM(6, 6, proj_size=2)", "y, _ = self.rnn(x)\nreturn y", "set proj_size=0"),
]


@pytest.mark.parametrize(("init", "forward", "reason"), REFUSED)
def test_why_there_is_no_region(
    init: str, forward: str, reason: str, whole: Callable[[str], tuple[Region, ...]]
) -> None:
    shapes = "torch.randn(64, 3, 6)" if "rnn" in init else X
    regions = whole(model(init, forward, shapes))
    reasons = " ".join(item.reason for item in regions if item.task is None)
    assert any(part in reasons for part in reason.split("|")), reasons


def test_the_rest_of_a_model_is_still_planned(whole: Callable[[str], tuple[Region, ...]]) -> None:
    forward = "y = torch.softmax(x * 2, 1)\nz = torch.fft.fft(y).real\nreturn torch.relu(z + 1)"
    found = whole(model("self.a = 1", forward, X))
    rest = "z = torch.fft.fft(y).real\n        return torch.relu(z + 1)"  # which is given the transform
    assert [item.source for item in found if item.task] == ["torch.softmax(x * 2, 1)", rest]
    (refused,) = [item for item in found if item.task is None]
    assert "_fft" in refused.reason


@pytest.mark.parametrize("pool", ["F.adaptive_avg_pool2d(x, (4, 1))", "F.adaptive_max_pool2d(x, (4, 1))"])
def test_the_windows_of_an_adaptive_pool_are_known(
    pool: str, whole: Callable[[str], tuple[Region, ...]]
) -> None:
    """The number of images may change, and the side of which there is one window."""
    (region,) = whole(model("self.a = 1", f"return {pool} + 1", "torch.randn(3, 5, 10, 9)"))
    assert region.task is not None, region.reason
    assert region.task.graph.inputs[0].spec.shape == ("s0", "s1", 10, "s2")


@pytest.mark.parametrize(
    ("mode", "name"),
    [
        ("bilinear", "upsample_bilinear2d"),
        ("nearest", "upsample_nearest2d"),
        ("nearest-exact", "_upsample_nearest_exact2d"),
    ],
)
def test_resizing_is_one_operation_of_the_graph(
    mode: str, name: str, whole: Callable[[str], tuple[Region, ...]]
) -> None:
    forward = f'return F.interpolate(x, scale_factor=2.0, mode="{mode}") + 1'
    (region,) = whole(model("", forward, "torch.randn(2, 3, 8, 9)"))
    assert region.task is not None, region.reason
    assert f"aten.{name}.default" in [node.op for node in region.task.graph.nodes]


@pytest.mark.parametrize(
    "forward",
    [
        "return x.index_add(0, i, v)",
        "return x.index_add(0, i, v, alpha=2)",
        "return x.index_copy(0, i, v)",
        "return torch.ops.aten.index_put(x, [i], v, True)",
        "return torch.ops.aten.index_put(x, [i], v[:1])",
    ],
)
def test_values_that_are_written_by_index_share_the_sizes_of_what_they_replace(
    forward: str, whole: Callable[[str], tuple[Region, ...]]
) -> None:
    shapes = "torch.randn(9, 17), torch.randint(0, 9, (6,)), torch.randn(6, 17)"
    text = model("", forward, shapes, "x, i, v")
    (region,) = whole(text)
    assert region.task is not None, region.reason
    given = {item.name: item.spec.shape for item in region.task.graph.inputs}
    assert given["v"][1] == given["x"][1]
    if "v[:1]" not in forward:
        assert given["v"][0] == given["i"][0]
    assert_same_model(text, region)


@pytest.mark.parametrize(
    "forward",
    [
        "y = x.clone()\ny[:, mask] = 0.5\nreturn y * 2",
        "y = x.clone()\ny[x.sum(1) > 0] = -3.0\nreturn y",
        "y = x * 2\ny[i] = 7.0\nreturn y",
        "return torch.add(x, x.exp(), alpha=by)",
        "return torch.sub(x, 1, alpha=by)",
    ],
)
def test_one_value_is_written_into_many_places(
    forward: str, whole: Callable[[str], tuple[Region, ...]]
) -> None:
    shapes = "torch.randn(9, 17), torch.randn(17) > 0, torch.randint(0, 9, (6,)), 2.0"
    text = model("", forward, shapes, "x, mask, i, by: float")
    (region,) = whole(text)
    assert_same_model(text, region)


def test_inputs_are_not_named_as_cpp_words_are(whole: Callable[[str], tuple[Region, ...]]) -> None:
    text = model("", "return std + half * pipe - x", ", ".join([X] * 4), "x, std, half, pipe")
    (region,) = whole(text)
    assert region.task is not None
    names = [item.name for item in region.task.graph.inputs]
    assert sorted(names) == ["input_half", "input_pipe", "input_std", "x"]
    assert_same_model(text, region)


def test_what_the_tracer_cannot_follow_with_symbols_has_fixed_sizes(
    whole: Callable[[str], tuple[Region, ...]],
) -> None:
    forward = 'return F.interpolate(x[:, :, ::2], size=x.shape[2:], mode="bilinear") + x'
    text = model("", forward, "torch.randn(2, 3, 8, 9)")
    (region,) = whole(text)
    assert_same_model(text, region)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_steps_of_a_recurrent_layer_are_viewed_as_rows(
    kind: str, whole: Callable[[str], tuple[Region, ...]]
) -> None:
    forward = "y = self.layer(x)[0]\nreturn y.reshape(-1, 5) @ y.reshape(-1, 5).t()"
    text = model(f"self.layer = nn.{kind}(6, 5, batch_first=True)", forward, "torch.randn(3, 40, 6)")
    (region,) = whole(text)
    assert_same_model(text, region)


WRITES = {
    "rows by index": ("x[i] = v\nreturn x", "x"),
    "a part, and another result": ("x[1:4] += v[:3]\nreturn x.sum(0)", "x"),
    "everything": ("x.copy_(x.exp())\nreturn x, x * 2", "x"),
    "two tensors and no result": ("v.mul_(2.0)\nx.add_(v.sum(0))", "v x"),
    "a cache and a layer": ("x[i] = self.a(v)\nreturn x @ x.t()", "x"),
}


@pytest.mark.parametrize("name", WRITES)
def test_arguments_that_are_written_stay_the_callers(
    name: str, whole: Callable[[str], tuple[Region, ...]]
) -> None:
    forward, written = WRITES[name]
    shapes = "torch.randn(9, 6), torch.randperm(9)[:5], torch.randn(5, 6)"
    text = model("self.a = nn.Linear(6, 6)", forward, shapes, "x, i, v")
    (region,) = whole(text)
    assert region.task is not None, region.reason
    assert sorted(item.name for item in region.task.graph.updates) == sorted(written.split())
    assert_same_model(text, region)
    _same_with_gradients_and_shared_memory(text, region)


def _same_with_gradients_and_shared_memory(text: str, region: Region) -> None:
    """Where a copy of the new values would not do, the code runs as it did."""
    assert region.task is not None
    one, other = executed(text)["Model"](), edited_module(text, region).Model()
    other.load_state_dict(one.state_dict())
    found = []
    for net in (one, other):
        torch.manual_seed(1)
        memory = torch.randn(14, 6)
        start = 9 if "x[i]" in text else 4  # PyTorch refuses to put rows where they overlap
        net(memory[:9], torch.randperm(9)[:5], memory[start : start + 5])
        weight = torch.ones(5, 6, requires_grad=True)
        x = torch.ones(9, 6)
        result = net(x, torch.arange(5), weight * 2)
        result = result[0] if isinstance(result, tuple) else result
        if result is not None and result.requires_grad:
            result.sum().backward()
        found.append((memory, x.detach(), weight.grad))
    torch.testing.assert_close(found[1], found[0])
