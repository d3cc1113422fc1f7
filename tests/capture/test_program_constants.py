"""Programs that put something else where code looks up constants, classes and dtypes of libraries."""

from __future__ import annotations

import math
import string
import types
from contextlib import ExitStack
from pathlib import Path
from textwrap import indent
from typing import Any

import numpy as np
import pytest
import torch

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.targets.ascendc.target import ASCENDC
from tests.capture.edited import edited_module, runs


class Limits:
    min, max, eps, bits = -7.0, 7.0, 0.5, 8

    def __init__(self, dtype: Any) -> None:
        pass


def seven(*_: Any) -> float:
    return 7.0


ROWS: dict[str, tuple[str, Any, str, Any]] = {
    "finfo": ("x.masked_fill(x > 0, torch.finfo(x.dtype).min) * 2", torch, "finfo", Limits),
    "iinfo": ("x * torch.iinfo(torch.int8).max + 1", torch, "iinfo", Limits),
    "size": ("x * torch.Size([2, 3]).numel() + 1", torch, "Size", lambda _: torch.zeros(7)),
    "inf": ("x.masked_fill(x > 0, -torch.inf) * 2", torch, "inf", 7.0),
    "nan": ("x.masked_fill(x > 0, torch.nan) * 2", torch, "nan", 7.0),
    "pi": ("x * torch.pi + 1", torch, "pi", 3.0),
    "half": ("x.to(torch.half).float() * 1.001", torch, "half", torch.float64),
    "float": ("x.double().to(torch.float) * 2", torch, "float", torch.float16),
    "long": ("(x * 3).to(torch.long) * 2", torch, "long", torch.int32),
    "version": ("x * int(torch.__version__.split('.')[0]) + 1", torch, "__version__", "7.0"),
    "sqrt": ("x * math.sqrt(x.size(-1)) + 1", math, "sqrt", seven),
    "log": ("x * math.log(8.0) + 1", math, "log", seven),
    "e": ("x * math.e + 1", math, "e", 7.0),
    "digits": ("x * len(string.digits) + 1", string, "digits", "12"),
    "np_sqrt": ("x * float(np.sqrt(64)) + 1", np, "sqrt", seven),
    "np_prod": ("x * int(np.prod([2, 3])) + 1", np, "prod", seven),
    "np_finfo": ("x * float(np.finfo(np.float16).eps) + 1", np, "finfo", Limits),
    "np_norm": ("x * float(np.linalg.norm([3.0, 4.0])) + 1", np.linalg, "norm", seven),
}
IMPORTS = "import math\nimport string\n\nimport numpy as np\nimport torch\n\n\n"


@pytest.fixture(scope="module")
def both(
    agent: AgentClient, tmp_path_factory: pytest.TempPathFactory
) -> tuple[types.ModuleType, types.ModuleType]:
    """The functions as they are written, and the edited module."""
    head = "# evokernel: x=f32[8,16]\ndef "
    text = IMPORTS + "\n\n".join(
        f"{head}f_{name}(x):\n{indent(f'return {body}', '    ')}\n" for name, (body, *_) in ROWS.items()
    )
    path = tmp_path_factory.mktemp("constants") / "model.py"
    regions = agent.capture(path, text, covered_ops(ASCENDC), whole=True)
    plain = types.ModuleType("plain")
    exec(compile(text, "plain.py", "exec"), vars(plain))
    return plain, edited_module(text, *(region for region in regions if region.task is not None))


def outcome(module: types.ModuleType, name: str) -> Any:
    x = torch.linspace(-2, 2, 128).view(8, 16)
    with torch.no_grad():
        try:
            return getattr(module, f"f_{name}")(x)
        except Exception as error:
            return type(error)


@pytest.mark.parametrize("name", ROWS)
def test_a_constant_that_is_another_one_is_seen(
    name: str, both: tuple[types.ModuleType, types.ModuleType]
) -> None:
    plain, edited = both
    _, owner, attribute, value = ROWS[name]
    before = runs(edited)
    expected = outcome(plain, name)
    torch.testing.assert_close(outcome(edited, name), expected, equal_nan=True)
    assert runs(edited) == before + 1
    with ExitStack() as undo:
        undo.callback(setattr, owner, attribute, getattr(owner, attribute))
        setattr(owner, attribute, value)
        changed, result = outcome(plain, name), outcome(edited, name)
    assert isinstance(changed, type) or changed.dtype != expected.dtype or not torch.equal(changed, expected)
    if isinstance(changed, type):
        assert result is changed
    else:
        torch.testing.assert_close(result, changed, equal_nan=True)
    assert runs(edited) == before + 1


def test_an_array_without_dimensions_in_a_global_is_no_error(agent: AgentClient, tmp_path: Path) -> None:
    text = (
        IMPORTS
        + "SCALES = [np.array(24.0), np.zeros(4000)]\n\n\n# evokernel: x=f32[8,16]\n"
        + ("def scaled(x):\n    return torch.relu(x) * 2 + 1\n")
    )
    regions = agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), whole=True)
    assert [region for region in regions if region.task is not None]
