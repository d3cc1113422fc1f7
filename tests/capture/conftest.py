"""One torch agent for each process of the tests, as an editor has one for all of its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.region import Region
from evokernel_core.targets.ascendc.target import ASCENDC
from tests import warm

_POINTWISE = """
    add.Tensor add.Scalar sub.Tensor sub.Scalar rsub.Scalar mul.Tensor mul.Scalar div.Tensor div.Scalar
    neg.default abs.default exp.default log.default sqrt.default rsqrt.default reciprocal.default
    pow.Tensor_Scalar pow.Tensor_Tensor relu.default sigmoid.default tanh.default gelu.default
    silu.default clamp.default clamp_min.default clamp_max.default maximum.default minimum.default where.self
    gt.Scalar lt.Scalar eq.Scalar gt.Tensor _to_copy.default full.default scalar_tensor.default
"""
_REDUCTION = """
    sum.dim_IntList sum.default mean.dim mean.default amax.default _softmax.default
    _log_softmax.default native_layer_norm.default linalg_vector_norm.default logsumexp.default
"""
_VIEW = "view.default unsqueeze.default squeeze.dims expand.default permute.default"

FUSIBLE = {
    f"aten.{name}": category
    for category, names in (("pointwise", _POINTWISE), ("reduction", _REDUCTION), ("view", _VIEW))
    for name in names.split()
}

SINGLE = dict.fromkeys(covered_ops(ASCENDC), "program") | FUSIBLE
"""With what programs compute, for the reasons why there is no single kernel."""

Capture = Callable[..., tuple[Region, ...]]


@pytest.fixture(scope="session")
def agent() -> Iterator[AgentClient]:
    with AgentClient(warm.interpreter()) as client:
        yield client


@pytest.fixture
def fusible() -> dict[str, str]:
    return FUSIBLE


@pytest.fixture
def capture(agent: AgentClient, tmp_path: Path) -> Capture:
    """Capture a text as if it were ``model.py``; ``symbol`` filters."""

    def run(text: str, symbol: str | None = None) -> tuple[Region, ...]:
        return agent.capture(tmp_path / "model.py", dedent(text).lstrip("\n"), SINGLE, symbol)

    return run


@pytest.fixture
def capture_body(capture: Capture) -> Capture:
    """Capture one function whose body and shape comment are given."""

    def run(shapes: str, arguments: str, body: str) -> tuple[Region, ...]:
        lines = dedent(body).strip("\n").replace("\n", "\n    ")
        head = "import math\nimport torch\nimport torch.nn.functional as F\n\n\n"
        return capture(f"{head}# evokernel: {shapes}\ndef f({arguments}):\n    {lines}\n")

    return run


@pytest.fixture
def whole(agent: AgentClient, tmp_path: Path) -> Callable[[str], tuple[Region, ...]]:
    """The regions of a file whose ``Model.forward`` is captured as a whole."""

    def capture(text: str) -> tuple[Region, ...]:
        return agent.capture(tmp_path / "model.py", text, covered_ops(ASCENDC), "Model.forward", whole=True)

    return capture
