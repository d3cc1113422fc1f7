"""What files supply inputs for, in the forms that suites of problems have."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from attrs import evolve

from evokernel_core.capture.calls import FileCalls, InputGroup, serves
from evokernel_core.capture.client import AgentClient
from evokernel_core.domain.errors import ImportFailed, ShapesNeeded
from evokernel_core.domain.tensor import TensorSpec


@pytest.fixture
def calls(agent: AgentClient, tmp_path: Path) -> Any:
    def run(text: str) -> FileCalls:
        path = tmp_path / "model.py"
        path.write_text("import torch\nfrom torch import nn\n" + dedent(text))
        return agent.calls(path)

    return run


MODULE = """
class Helper(nn.Module):
    def forward(self, x):
        return x

class Net(nn.Module):
    def __init__(self, features, scale=1.0):
        super().__init__()
        self.linear, self.scale = nn.Linear(features, features), scale

    def forward(self, x, fn=torch.relu):
        return fn(self.linear(x) * self.scale)
"""


def shapes(found: FileCalls) -> list[dict[str, tuple[Any, ...]]]:
    return [{name: spec.shape for name, spec in call.tensors.items()} for call in found.groups]


@pytest.mark.parametrize(
    ("suppliers", "expected"),
    [
        ("def get_inputs(): return [torch.rand(2, 3)]", [(2, 3)]),
        ("def get_inputs(): return torch.rand(2, 3)", [(2, 3)]),
        ("def get_inputs(): return {'x': torch.rand(2, 3)}", [(2, 3)]),
        ("def get_inputs(device): return [torch.rand(2, 3, device=device)]", [(2, 3)]),
        ("def get_inputs(rows=2, features=3): return [torch.rand(rows, features)]", [(2, 3)]),
        ("def get_inputs():\n    for n in (2, 5): yield [torch.rand(n, 3)]", [(2, 3), (5, 3)]),
        ("def get_input_groups(): return [[torch.rand(n, 3)] for n in (2, 5)]", [(2, 3), (5, 3)]),
        ("def get_input_groups():\n    yield {'x': torch.rand(2, 3)}", [(2, 3)]),
        ("def get_inputs(param, device=None): return [torch.rand(param)]\n"
         "def get_input_groups(): return [get_inputs(4)]", [(4,)]),
        ("def get_inputs(): return [torch.rand(2 + 2 * int(torch.rand(1).item() < 2), 3)]", [(4, 3)]),
        ("def get_inputs(): return [torch.empty(10**9, 10**6)]", [(10**9, 10**6)]),
        ("def get_inputs():\n    x = torch.rand(300, 70)\n    mask = x > 0.5\n    x[mask] = x[mask] - 3.8\n"
         "    return [x]", [(300, 70)]),
        ("def get_input_groups():\n    for shape in ((), (9,), (80, 1, 90)):\n        x = torch.rand(shape)\n"
         "        x[x < 0.1] = x[x < 0.1] * 2\n        yield [x]", [(), (9,), (80, 1, 90)]),
    ],
)  # fmt: skip
def test_suppliers(calls: Any, suppliers: str, expected: list[tuple[int, ...]]) -> None:
    found = calls(MODULE + suppliers)
    assert found.symbol == "Net.forward"
    assert shapes(found) == [{"x": shape} for shape in expected]


def test_a_function_is_what_a_file_without_a_module_calls(calls: Any) -> None:
    found = calls("def f(xs, n): return xs[0] + n\ndef get_inputs(): return [[torch.rand(2)], 3]")
    assert found == FileCalls(
        "f", (InputGroup({"xs[0]": TensorSpec((2,), "float32")}, {"__init__": "[]", "n": "3"}),)
    )


def test_modules_are_built_for_each_group(calls: Any, agent: AgentClient, fusible: dict[str, str],
                                          tmp_path: Path) -> None:  # fmt: skip
    text = """
    class Model(nn.Module):
        def __init__(self, by):
            super().__init__()
            self.by = by

        def forward(self, x):
            return torch.relu(x) * self.by

    def get_input_groups():
        return [[torch.rand(4, 4)], [torch.rand(4, 4)]]

    def get_init_inputs():
        return [[2], [5]]
    """
    found = calls(text)
    assert [call.values["__init__"] for call in found.groups] == ["[2]", "[5]"]
    regions = [agent.capture(tmp_path / "model.py", None, fusible, whole=True, group=n)[0] for n in (0, 1)]
    factors = [region.task.graph.nodes[-1].args[1] for region in regions if region.task]
    assert factors == [2, 5]
    with pytest.raises(ShapesNeeded, match="2 input groups"):
        agent.capture(tmp_path / "model.py", None, fusible, group=2)


BUILT = """
    class Net(nn.Module):
        def __init__(self, {parameters}):
            super().__init__()
            self.by = ({by})

        def forward(self, x, scale=1, options=None):
            return torch.relu(x) * self.by

    def get_inputs():
        return {inputs}

    def get_init_inputs():
        return {init}
"""


@pytest.mark.parametrize(
    ("texts", "scale"),
    [
        (("by=3", "by", "[[], {'by': 5}]", "[torch.rand(4)]"), None),
        (("by=3, more=None", "by", "[[], {}]", "([torch.rand(4)], {})"), None),
        (("a, b", "a + b", "[[2], {'b': 3}]", "([torch.rand(4)], {'scale': 2})"), "2"),
        (("widths, options", "widths[1] + options['b']", "[[2, 3], {'b': 3}]", "[torch.rand(4), 5]"), "5"),
        (("widths, options", "widths * options", "[[2, 3], {}]", "{'x': torch.rand(4), 'scale': 2}"), "2"),
        (("widths", "widths[0][0]", "[[[2, 3], {'b': 3}]]", "torch.rand(4)"), None),
    ],
)
def test_positional_and_keyword_arguments(
    calls: Any, agent: AgentClient, fusible: dict[str, str], tmp_path: Path,
    texts: tuple[str, str, str, str], scale: str | None,
) -> None:  # fmt: skip
    found = calls(BUILT.format(**dict(zip(("parameters", "by", "init", "inputs"), texts, strict=True))))
    assert shapes(found) == [{"x": (4,)}]
    assert found.groups[0].values.get("scale") == scale
    regions = agent.capture(tmp_path / "model.py", None, fusible, whole=True)
    assert regions[0].task, regions[0].reason


def test_groups_may_be_a_list_of_dynamic_inputs(calls: Any) -> None:
    found = calls(MODULE + "def get_inputs_dyn_list(): return [[torch.rand(n, 3)] for n in (4, 6)]")
    assert shapes(found) == [{"x": (4, 3)}, {"x": (6, 3)}]


NPU = """
    import torch_npu
    from torch_npu.contrib import transfer_to_npu
    torch.npu.set_device(0)
    torch_npu.npu.set_compile_mode(jit_compile=False)
    DEVICE = torch.device("npu:0" if torch.npu.is_available() else "cpu")

    class Net(nn.Module):
        def forward(self, x):
            return {value}

    def get_inputs(): return [torch.rand(4, 4, device=DEVICE).npu()]
"""


def test_a_file_may_import_torch_npu_where_it_is_not_installed(
    calls: Any, agent: AgentClient, fusible: dict[str, str], tmp_path: Path
) -> None:
    calls(NPU.format(value="torch.relu(x) * 2"))
    (region,) = agent.capture(tmp_path / "model.py", None, fusible, whole=True)
    assert region.task, region.reason
    calls(NPU.format(value="torch_npu.contrib.function(x)"))
    (region,) = agent.capture(tmp_path / "model.py", None, fusible, whole=True)
    assert "torch_npu.contrib.function needs torch_npu, which is not installed" in region.reason


FUNCTIONAL = """
def scaled(x, weight):
    return torch.relu(x * weight)

class Net(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(features))

    def forward(self, x, {name}=scaled):
        return {name}(x, self.weight)

def get_inputs(features=8):
    return [torch.rand(4, features)]
"""


def test_arguments_of_the_module_may_be_those_of_the_inputs_and_functions_arguments(
    calls: Any, agent: AgentClient, fusible: dict[str, str], tmp_path: Path
) -> None:
    calls(FUNCTIONAL.format(name="fn"))
    (region,) = agent.capture(tmp_path / "model.py", None, fusible, "Net.forward", whole=True)
    assert region.task, region.reason
    assert region.site is not None
    assert any("fn" in item.condition and "scaled" in item.condition for item in region.site.guards)


def test_a_function_whose_name_is_an_arguments_cannot_be_told_from_others(
    calls: Any, agent: AgentClient, fusible: dict[str, str], tmp_path: Path
) -> None:
    calls(FUNCTIONAL.format(name="scaled"))
    found = agent.capture(tmp_path / "model.py", None, fusible, "Net.forward", whole=True)
    assert any("holds a function" in region.reason for region in found)


@pytest.mark.parametrize(
    ("suppliers", "error", "words"),
    [
        ("def get_inputs(): return [1 / 0]", ImportFailed, "get_inputs.. failed at line 1[0-9]"),
        ("def get_input_groups(): return []", ShapesNeeded, "gives no inputs"),
        ("def shapes(): return 3", ShapesNeeded, "add get_inputs"),
        (
            "def get_inputs():\n    x = torch.rand(300, 70)\n    return [x[x > 0.5]]",
            ImportFailed,
            "size of what get_inputs.. returns depends on the numbers that it draws",
        ),
        (
            "def get_inputs():\n    x = torch.rand(300, 70)\n    return [torch.rand(len(x[x > 0.5]))]",
            ImportFailed,
            "get_inputs.. failed at line 1[0-9] .DynamicOutputShape",
        ),
    ],
)
def test_suppliers_that_give_nothing(calls: Any, suppliers: str, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        calls(MODULE + suppliers)


def test_a_kernel_serves_calls_within_its_contract(agent: AgentClient, fusible: dict[str, str],
                                                   tmp_path: Path) -> None:  # fmt: skip
    path = tmp_path / "model.py"
    path.write_text(
        "import torch\ndef f(x, y, n, eps):\n    return (x + y) * n + eps\n"
        "def get_inputs(): return [torch.rand(8, 16), torch.rand(16), 2, 0.5]\n"
    )
    (region,) = agent.capture(path, None, fusible, "f", whole=True)
    (call,) = agent.calls(path).groups

    def other(x: tuple[int, ...], y: tuple[int, ...], dtype: str = "float32", **values: str) -> bool:
        tensors = {"x": TensorSpec(x, dtype), "y": TensorSpec(y, "float32")}
        return serves(region, call, evolve(call, tensors=tensors, values={**call.values, **values}))

    assert other((8, 16), (16,))
    assert other((5, 7), (7,), eps="0.25")
    assert not other((5, 7), (1,))
    assert not other((5, 7), (7,), n="3")
    assert not other((2, 5, 7), (7,))
    assert not other((8, 16), (16,), dtype="float16")
    assert not serves(evolve(region, task=None), call, call)
