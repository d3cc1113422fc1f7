"""What becomes a region, what its arguments are, and why something is none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from evokernel_core.capture.client import AgentClient
from evokernel_core.capture.text import text_at
from evokernel_core.domain.errors import CaptureError, ImportFailed, ShapesNeeded
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.region import Region, RegionStatus

EXAMPLES = Path(__file__).parents[2] / "examples"


def sources(regions: tuple[Region, ...]) -> list[str]:
    return [region.source for region in regions if region.task]


def ops(region: Region) -> list[str]:
    assert region.task, region.reason
    return [node.op.split(".")[1] for node in region.task.graph.nodes]


def bindings(region: Region) -> dict[str, str]:
    """The operands that are computed in front of the call, by name."""
    assert region.site is not None, region.reason
    return dict(region.site.bindings)


def inputs(region: Region) -> list[tuple[str, str]]:
    assert region.task, region.reason
    return [(item.kind.value, item.expression) for item in region.task.graph.inputs]


def symbols(region: Region) -> list[tuple[str, int, int]]:
    assert region.task, region.reason
    return [(item.name, item.size, item.minimum) for item in region.task.symbols]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # one maximal expression
        ("return torch.softmax(x * 2, dim=1)", ["torch.softmax(x * 2, dim=1)"]),
        # what no kernel computes becomes an argument
        ("return torch.relu(x @ w) + 1", ["torch.relu(x @ w) + 1"]),
        ("y = torch.relu(x @ w)\nreturn y @ w", ["torch.relu(x @ w)"]),
        # statements join when nothing but the last value is used later
        ("a = x.exp()\nb = a + 1\nreturn b / a", ["a = x.exp()\n    b = a + 1\n    return b / a"]),
        ("a = x.exp()\nb = a + 1\nreturn b, a @ w", ["x.exp()", "a + 1"]),
        ("a = x.exp()\nb = a + 1\nc = b @ w\nreturn c + a", ["x.exp()", "a + 1", "c + a"]),
        # a later statement may not need an earlier one inside an argument
        ("a = x.exp()\nreturn a + a @ w", ["x.exp()", "a + a @ w"]),
        # reused names
        ("x = x.exp()\nx = x + 1\nreturn x @ w", ["x = x.exp()\n    x = x + 1"]),
        # a guard or a block needs lines of its own
        ("a = x.exp(); b = a + 1\nreturn b / a", ["a = x.exp(); b = a + 1\n    return b / a"]),
        ("c = x @ w; a = x.exp()\nb = a + c\nreturn b / a", ["x.exp()", "b = a + c\n    return b / a"]),
        ("a = x.exp()\nb = a + a; c = 2\nreturn b @ x.t() + c", ["x.exp()", "a + a", "b @ x.t() + c"]),
        # two grids of rows are two kernels
        ("return torch.softmax(x, 1).sum(0)", ["torch.softmax(x, 1)", "torch.softmax(x, 1).sum(0)"][1:]),
        # loops and branches end runs, and their bodies are blocks of their own
        ("for _ in range(2):\n    y = x.exp()\n    x = y + x\nreturn x", ["y = x.exp()\n        x = y + x"]),
        ("for _ in range(2):\n    y = x.exp()\n    x = w + 1\nreturn y @ x", ["x.exp()", "w + 1"]),
        ("if x.shape[0] > 2:\n    x = x.exp()\nreturn x + 1", ["x.exp()", "x + 1"]),
        # views alone are no work
        ("return x.t().reshape(-1)", []),
    ],
)  # fmt: skip
def test_regions_are_maximal(capture_body: Any, body: str, expected: list[str]) -> None:
    found = capture_body("x=f32[8,16], w=f32[16,16]", "x, w", body)
    assert sources(found) == expected


def test_equal_code_keeps_its_ids_where_one_of_it_has_a_kernel(capture: Any, tmp_path: Path) -> None:
    code = "torch.softmax(x, 1)"
    text = f"import torch\n\n\n# evokernel: x=f32[8,16]\ndef f(x):\n    return [{code}, {{}}, {code}]\n"
    before = [region.id for region in capture(text.format(code)) if region.task]
    assert len(set(before)) == 3
    (tmp_path / "evokernel_kernels").mkdir()
    kernel = "class k:\n    holds = run = staticmethod(lambda x: False)\n"
    (tmp_path / "evokernel_kernels" / "__init__.py").write_text(kernel)
    guarded = text.format(f"(\n        k.run(x) if k.holds(x) else {code})")
    after = capture(guarded.replace("torch\n", "torch\nfrom evokernel_kernels import k\n", 1))
    assert [region.id for region in after if region.task] == [before[0], before[2]]


def test_an_inner_reduction_over_other_rows_is_an_argument(capture_body: Any) -> None:
    (region,) = capture_body("x=f32[8,16]", "x", "return torch.softmax(x, 1).sum(0)")
    assert inputs(region) == [("tensor", "softmax")]
    assert bindings(region) == {"softmax": "torch.softmax(x, 1)"}
    assert ops(region) == ["sum"]


def test_sizes_are_symbols(capture_body: Any) -> None:
    (region,) = capture_body("x=f16[8,16], b=f16[16]", "x, b", "return torch.relu(x + b)")
    assert symbols(region) == [("s0", 8, 1), ("s1", 16, 1)]
    assert region.task
    specs = [item.spec for item in region.task.graph.inputs]
    assert [spec.shape for spec in specs] == [("s0", "s1"), ("s1",)]
    assert {spec.dtype for spec in specs} == {"float16"}
    assert region.task.tolerance.rtol == 1e-2


def test_sizes_that_decide_the_path_are_pinned_or_bounded(capture_body: Any) -> None:
    body = "return x.exp() if x.shape[0] > 4 else x"
    (region,) = capture_body("x=f32[8,16]", "x", f"y = ({body[7:]}) + 1\nreturn y")[-1:]
    assert region.task
    (region,) = capture_body("x=f32[8,16]", "x", "return x.view(-1, 4, 4).exp()")
    assert region.task
    shape = region.task.graph.inputs[0].spec.shape
    assert shape[1] == 16


def test_a_size_that_must_divide_leaves_the_others_free(
    agent: AgentClient, fusible: dict[str, str], tmp_path: Path
) -> None:
    text = """
import torch
# evokernel: x=f32[6,16,10], w=f32[16], b=f32[16]
def f(x, w, b):
    return torch.nn.functional.group_norm(x.exp(), 4, w, b)
"""
    known = {**fusible, "aten.var_mean.correction": "reduction"}
    (region,) = agent.capture(tmp_path / "model.py", text, known, None)
    assert region.task, region.reason
    assert region.task.graph.inputs[0].spec.shape == ("s0", 16, "s1")


def test_a_size_of_one_broadcasts(capture_body: Any) -> None:
    (region,) = capture_body("x=f32[8,16], y=f32[8,1]", "x, y", "return x * y")
    assert region.task
    assert [item.spec.shape for item in region.task.graph.inputs] == [("s0", "s1"), ("s0", 1)]


def test_squeeze_keeps_its_least_size(capture_body: Any) -> None:
    (region,) = capture_body("x=f32[8,1,16]", "x", "return x.squeeze().exp()")
    assert [minimum for _, _, minimum in symbols(region)] == [2, 2]


@pytest.mark.parametrize(
    ("arguments", "body", "expected"),
    [
        ("x, s", "return x * s", [("tensor", "x"), ("scalar", "s")]),
        ("x, s", "return x * (1 - s)", [("tensor", "x"), ("scalar", "1 - s")]),
        ("x, s", "return x / math.sqrt(x.shape[-1]) * s",
         [("tensor", "x"), ("scalar", "math.sqrt(x.shape[-1])"), ("scalar", "s")]),
        ("x, s", "return x * math.sqrt(2.0) + s", [("tensor", "x"), ("scalar", "s")]),
        ("x, s", "return x * x + x", [("tensor", "x")]),
        ("x, s", "return (x @ x) * (x @ x)", [("tensor", "x @ x")]),
    ],
)  # fmt: skip
def test_arguments(capture_body: Any, arguments: str, body: str, expected: list[Any]) -> None:
    (region,) = capture_body("x=f32[8,8], s=0.5", arguments, body)
    given = bindings(region)
    assert [(kind, given.get(name, name)) for kind, name in inputs(region)] == expected
    written = {text for _, text in expected if not text.isidentifier()}
    assert set(given.values()) == written  # each is computed once, in front of the call


def test_a_dimension_given_at_run_time_stays_outside(capture_body: Any) -> None:
    """softmax(x, d) for a d that the caller chooses is not one kernel; what follows is."""
    (region,) = capture_body("x=f32[8,16], d=1", "x, d", "return torch.softmax(x, d) * 2")
    assert inputs(region) == [("tensor", "softmax")]
    assert bindings(region) == {"softmax": "torch.softmax(x, d)"}


MODULES = """
    import torch
    from torch import nn

    class Norm(nn.Module):
        def __init__(self, eps):
            super().__init__()
            self.eps = eps
            self.weight = nn.Parameter(torch.ones(16))

        def forward(self, x):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = Norm({first})
            self.second = Norm({second})
            self.ln = nn.LayerNorm(16)
            self.tail = nn.Sequential(nn.GELU(), nn.LayerNorm(16))

        def forward(self, x):
            x = self.second(self.first(x))
            return self.tail(self.ln(x))

    def get_inputs():
        return [torch.randn(4, 16)]
"""


def test_module_parameters_are_arguments(capture: Any) -> None:
    norm, model = capture(MODULES.format(first=1e-5, second=1e-5))
    assert inputs(norm) == [("tensor", "x"), ("parameter", "self.weight"), ("scalar", "self.eps")]
    assert norm.symbol == "Norm.forward"
    assert model.source == "self.tail(self.ln(x))"
    assert inputs(model) == [
        ("tensor", "x"),
        ("parameter", "self.ln.weight"),
        ("parameter", "self.ln.bias"),
        ("parameter", "self.tail[1].weight"),
        ("parameter", "self.tail[1].bias"),
    ]


def test_an_attribute_that_differs_between_instances_is_an_argument(capture: Any) -> None:
    norm, _ = capture(MODULES.format(first=1e-5, second=1e-6))
    assert ("scalar", "self.eps") in inputs(norm)


def test_symbol_filters(capture: Any) -> None:
    text = MODULES.format(first=1e-5, second=1e-5)
    assert {region.symbol for region in capture(text, "Norm")} == {"Norm.forward"}
    assert {region.symbol for region in capture(text, "Model.forward")} == {"Model.forward"}
    assert capture(text, "Absent") == ()


def test_ids_are_stable_under_other_edits(capture: Any) -> None:
    text = MODULES.format(first=1e-5, second=1e-5)
    before = [region.id for region in capture(text)]
    after = [region.id for region in capture(text.replace("class Model", "# a comment\n\n    class Model"))]
    assert before == after
    assert len(set(before)) == len(before)


@pytest.mark.parametrize(
    ("body", "dtypes"),
    [
        ("return x > 0", ["bool"]),
        ("return torch.where(m, n, n + 1)", ["int64"]),
        ("return x.exp() * (n > 3)", ["float32"]),
    ],
)
def test_results_may_be_integers_and_truth_values(capture_body: Any, body: str, dtypes: list[str]) -> None:
    (region,) = capture_body("x=f32[4,4], n=i64[4,4], m=bool[4,4]", "x, n, m", body)
    assert [spec.dtype for spec in region.task.graph.output_specs()] == dtypes


@pytest.mark.parametrize(
    ("shapes", "arguments", "body", "reason"),
    [
        ("x=f32[4,4]", "x", "return x @ x", "8 computes a matrix product .aten.mm.,.* single fused"),
        ("x=f32[4,4]", "x", "return torch.cumsum(x, 0)", "computes aten.cumsum,.* single fused"),
        ("x=f32[4,4]", "x", "return F.dropout(x, 0.5)", "draws random numbers"),
        ("x=f32[1,1,4,8]", "x", "return F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)", "random"),
        ("x=f32[1,1,4,8]", "x", "return F.scaled_dot_product_attention(x, x, x)", "attention .*single"),
        ("x=f32[4,4]", "x", "return x.add_(1)", "in place"),
        ("x=f32[4,4]", "x", "x += 1\nreturn x", "in place"),
        ("x=f32[4,4]", "x", "return F.relu(x, inplace=True)", "in place"),
        ("x=f64[4,4]", "x", "return x + 1", "float64"),
        ("x=f32[4,4]", "x", "return torch.fft.fft(x)", "aten._fft"),
        ("x=f32[4,4]", "x", "return torch.nonzero(x)", "nonzero.*depends on the values.*where"),
        (
            "x=i64[9]",
            "x",
            "return torch.bincount(x, minlength=5)",
            "bincount.*depends on the values.*index_add",
        ),
        ("x=i64[9]", "x", "return torch.unique(x)", "calls unique: .*depends on the values"),
        ("x=f32[4,4]", "x", "if x.sum() > 0:\n    return x\nreturn -x", "depends on the values"),
        ("x=f32[4,4]", "x", "y = x.exp()\nreturn y @ torch.ones(3)", "raised RuntimeError"),
    ],
)
def test_reasons(capture_body: Any, shapes: str, arguments: str, body: str, reason: str) -> None:
    regions = capture_body(shapes, arguments, body)
    found = [item for item in regions if item.status is RegionStatus.UNSUPPORTED]
    assert re.search(reason, " ".join(item.reason for item in found))
    assert all(item.task is None and item.reason.endswith(".") for item in found)


@pytest.mark.parametrize(
    ("shapes", "body"),
    [
        ("x=f32[0,4]", "return x.exp()"),
        ("x=f32[]", "return x.exp() + 1"),
        ("x=f32[1]", "return x.exp()"),
        ("x=bf16[3,5,7]", "return x.float().exp().to(x.dtype)"),
        ("x=f32[1000000,1000000,100]", "return x.exp()"),
        ("x=f32[6,4]", "y = x.t() @ x\nreturn y.t().exp().sum(-1)"),
    ],
)
def test_odd_shapes_are_described(capture_body: Any, shapes: str, body: str) -> None:
    found = [item for item in capture_body(shapes, "x", body) if item.task]
    assert len(found) == 1


def test_non_contiguous_arguments_are_described(capture_body: Any) -> None:
    region, _ = capture_body("x=f32[6,4]", "x", "y = x.t()\nz = y.exp().sum(-1)\nreturn x @ z, y")
    assert region.task
    assert not region.task.graph.inputs[0].spec.contiguous


def test_boolean_masks_are_arguments(capture_body: Any) -> None:
    (region,) = capture_body("x=f32[4,8], m=bool[4,8]", "x, m", "return torch.where(m, x, x * 2)")
    assert region.task
    assert {item.spec.dtype for item in region.task.graph.inputs} == {"float32", "bool"}


def test_nothing_says_the_shapes(capture: Any) -> None:
    with pytest.raises(ShapesNeeded, match="get_inputs"):
        capture("import torch\n\ndef f(x):\n    return torch.relu(x)\n")


def test_definitions_without_shapes_say_so(capture: Any) -> None:
    found = capture(
        """
        import torch

        # evokernel: x=f32[4]
        def f(x):
            return torch.relu(x)

        def g(x):
            return torch.relu(x)

        # evokernel: x=f32[4
        def h(x):
            return torch.relu(x)

        # evokernel: y=f32[4]
        def k(x):
            return torch.relu(x)
        """
    )
    assert [item.status.value for item in found] == ["candidate", *["needs_shapes"] * 3]
    assert [item.source for item in found[1:]] == ["g", "h", "k"]
    assert "does not parse" in found[2].reason
    assert "does not mention x" in found[3].reason


def test_a_class_takes_its_arguments_from_its_comment(capture: Any) -> None:
    (region,) = capture(
        """
        import torch

        # evokernel: dim=8, x=f32[4,8]
        class Scale(torch.nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.__weight = torch.nn.Parameter(torch.ones(dim))

            def forward(self, x):
                return torch.relu(x) * self.__weight
        """
    )
    assert inputs(region) == [("tensor", "x"), ("parameter", "self.__weight")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import torch\ndef f(:\n", "Line 2 is not valid Python"),
        ("import torch\nraise ValueError('no')\n", "line 2 .*ValueError: no"),
        ("import torch\nimport surely_not_there\n", "line 2 .*surely_not_there"),
        ("import torch\nfrom evokernel_kernels import k\n", "restore the package of the kernel"),
        ("import torch\nclass M(torch.nn.Module): raise SystemExit(3)\n", "SystemExit"),
        ("import torch\nimport os\ndef get_inputs(): return [1 / 0]\nclass M(torch.nn.Module): pass\n",
         "get_inputs.. failed at line 3"),
    ],
)  # fmt: skip
def test_files_that_do_not_import(capture: Any, text: str, message: str) -> None:
    with pytest.raises(ImportFailed, match=message):
        capture(text)


def test_accelerators_are_not_needed(capture: Any) -> None:
    found = capture(
        """
        import torch
        from torch import nn

        torch.set_default_dtype(torch.float16)

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(8, 8).to("npu").half()
                self.register_buffer("shift", torch.ones(8, device=torch.device("cuda:0")))

            def forward(self, x):
                return torch.tanh(self.linear(x.npu()) + self.shift)

        def get_inputs():
            return [torch.randn(4, 8).cuda()]
        """
    )
    assert sources(found) == ["torch.tanh(self.linear(x.npu()) + self.shift)"]


def test_nothing_is_allocated_and_defaults_are_restored(agent: AgentClient, capture_body: Any) -> None:
    (region,) = capture_body("x=f32[100000,1000000]", "x", "return torch.softmax(x, -1)")
    assert region.op_category == "softmax"
    assert region.task
    assert region.task.graph.inputs[0].spec.dtype == "float32"


def test_constructors_may_read_small_known_tensors(capture: Any) -> None:
    (region,) = capture(
        """
        import torch
        from torch import nn

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.rates = [rate.item() for rate in torch.linspace(0, 0.5, 3)]
                self.weight = nn.Parameter(torch.empty(1_000_000, 100_000))

            def forward(self, x):
                return torch.relu(x) * self.rates[1]

        def get_inputs():
            return [torch.randn(4, 8)]
        """
    )
    assert region.task
    assert region.task.graph.nodes[-1].args[1] == 0.25


def test_random_values_are_never_known(capture: Any) -> None:
    text = "import torch\nx = torch.zeros(3)\nx += torch.rand(3)\nif x.sum().item() > 1: pass\n"
    with pytest.raises(ShapesNeeded, match="line 4"):
        capture(text)


def test_a_recurrent_layer_is_no_kernel(capture: Any) -> None:
    found = capture(
        """
        import torch
        from torch import nn

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.GRU(4, 4)

            def forward(self, x):
                return torch.relu(self.rnn(x)[0])

        def get_inputs():
            return [torch.randn(64, 2, 4)]
        """
    )
    assert sources(found) == ["torch.relu(self.rnn(x)[0])"]


def test_calls_of_generated_kernels_are_marked(capture: Any, tmp_path: Path) -> None:
    (tmp_path / "evokernel_kernels").mkdir()
    (tmp_path / "evokernel_kernels" / "__init__.py").write_text(
        "import types\nexp_1 = whole_2 = types.SimpleNamespace(holds=lambda *given: False)\n"
    )
    found = capture(
        """
        import torch

        from evokernel_kernels import exp_1, whole_2

        # evokernel: x=f32[4,4]
        def f(x):
            y = exp_1.run(x) if exp_1.holds(x) else torch.exp(x)
            return y + 1

        # evokernel: x=f32[4,4]
        def g(x):
            if whole_2.holds(x):
                return whole_2.run(x)
            y = x.sin()
            return y * 2
        """
    )
    assert [(item.status, item.source) for item in found] == [
        (RegionStatus.APPLIED, "exp_1.run(x)"),
        (RegionStatus.CANDIDATE, "y + 1"),
        (RegionStatus.APPLIED, "whole_2.run(x)"),
    ]


def test_user_output_does_not_reach_the_channel(agent: AgentClient, capture: Any) -> None:
    found = capture(
        """
        import os, sys
        import torch

        print("Content-Length: 3\\r\\n\\r\\n{}}", flush=True)
        os.write(1, b"noise")
        sys.stdout.write("more")
        sys.stdin.read()

        # evokernel: x=f32[4]
        def f(x):
            print("inside")
            return x.exp()
        """
    )
    assert sources(found) == ["x.exp()"]
    assert "inside" in agent.last_words()


@pytest.mark.parametrize(
    ("body", "category"),
    [
        ("return torch.softmax(x, -1)", "softmax"),
        ("return F.log_softmax(x * 2, -1)", "softmax"),
        ("return F.layer_norm(x, (16,))", "normalization"),
        ("return x / x.norm(dim=-1, keepdim=True)", "normalization"),
        ("return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)", "normalization"),
        ("return x.sum(-1)", "reduction"),
        ("return (x / 3).mean(-1)", "reduction"),
        ("return F.gelu(x)", "activation"),
        ("return x * torch.sigmoid(x)", "activation"),
        ("return x * x + 1", "elementwise"),
        ("return (x * x).mean()", "loss"),
    ],
)
def test_categories(capture_body: Any, body: str, category: str) -> None:
    (region,) = capture_body("x=f32[8,16]", "x", body)
    assert region.op_category == category


def test_lines_are_those_of_the_file(capture_body: Any) -> None:
    (region,) = capture_body("x=f32[8,16]", "x", "y = x.exp()\n\nreturn torch.relu(\n    y\n)")
    assert region.task
    assert [node.line for node in region.task.graph.nodes] == [8, 10]


@pytest.mark.parametrize(
    ("name", "least", "categories"),
    [
        ("transformer_block.py", 5, {"normalization", "softmax", "elementwise"}),
        ("cnn_head.py", 4, {"normalization", "softmax", "reduction"}),
        ("training_loss.py", 4, {"softmax", "elementwise"}),
    ],
)
def test_examples(agent: AgentClient, fusible: Any, name: str, least: int, categories: set[str]) -> None:
    path = EXAMPLES / name
    text = path.read_text()
    found = [region for region in agent.capture(path, None, fusible) if region.task]
    assert len(found) >= least
    assert categories <= {region.op_category for region in found}
    for region in found:
        assert text_at(text, region.span) == region.source
        assert region.task
        assert any(item.kind is not InputKind.SCALAR for item in region.task.graph.inputs)
        for node in region.task.graph.nodes:
            assert region.span.line <= node.line <= region.span.end_line


def test_every_reason_has_a_code() -> None:
    assert {error.reason for error in CaptureError.__subclasses__()} == {
        "needs_shapes", "no_interpreter", "import_failed", "unsupported", "agent_failed",
    }  # fmt: skip


@pytest.mark.parametrize(("op", "expected"), [("min", "clamp_max"), ("max", "clamp_min")])
def test_an_extreme_of_a_tensor_and_a_known_number(capture_body: Any, op: str, expected: str) -> None:
    for operands in ("x.exp(), torch.tensor(0.5)", "torch.tensor(0.5), x.exp()"):
        body = f"return torch.{op}({operands})"
        (region,) = capture_body("x=f32[8,16]", "x", body)
        assert region.task, region.reason
        assert region.task.graph.nodes[-1].op == f"aten.{expected}.default"
        assert region.task.graph.nodes[-1].args[1] == 0.5


def test_definitions_that_nothing_calls_say_the_same(capture: Any) -> None:
    """A list of reasons is short where a file has thirty classes."""
    text = """
        import torch

        # evokernel: x=f32[4,8]
        def called(x):
            return x.exp() + 1

        class First(torch.nn.Module):
            def forward(self, x):
                return x.exp() + 1

        class Second(torch.nn.Module):
            def forward(self, x):
                return x.sin() + 1
        """
    found = capture(text)
    assert len(found) == 3
    (reason,) = {region.reason for region in found if region.status is RegionStatus.NEEDS_SHAPES}
    assert reason.startswith("The shapes of its inputs are unknown: ")
