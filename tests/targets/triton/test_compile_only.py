"""``evokernel verify --backend compile``: what Triton's compiler says of a kernel, and nothing is run."""

from __future__ import annotations

import sys
from typing import cast

import pytest

from evokernel_core.cli.verify import as_text, is_compiled_only
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.settings import Settings
from evokernel_core.domain.verdict import GateName, GateStatus
from evokernel_core.verifier.base import ReferenceRunner
from evokernel_core.verifier.factory import default_backend, device_of, open_verifier
from tests.targets.triton.written import SOFTMAX, softmax_source, softmax_task

NOBODY = cast(ReferenceRunner, object())
"""Nothing is compared."""
TRITON = Settings(target="triton", chip="nvidia_h200", interpreter=sys.executable)


def test_a_kernel_that_compiles_says_what_it_takes() -> None:
    task, source = softmax_task(), softmax_source()
    verdict = open_verifier(TRITON, NOBODY, "compile").verify(task, source)
    assert [(gate.gate, gate.status) for gate in verdict.gates] == [
        (GateName.AUDIT, GateStatus.PASSED),
        (GateName.COMPILE, GateStatus.PASSED),
    ]
    assert verdict.latency is None and not verdict.feasible and is_compiled_only(verdict)
    words = as_text(verdict)
    assert "softmax_rows: " in words and " registers a thread, 0 bytes of them spilled" in words
    assert words.endswith("nothing was run.")


def test_what_triton_refuses_fails_with_its_words() -> None:
    text = SOFTMAX.replace("tl.max(values, 0)", "tl.max(values, 3)")
    verdict = open_verifier(TRITON, NOBODY, "compile").verify(softmax_task(), softmax_source(text))
    assert verdict.failed_gate is not None and verdict.failed_gate.gate is GateName.COMPILE
    assert not is_compiled_only(verdict) and "Triton does not compile" in as_text(verdict)


@pytest.mark.parametrize("backend", ["twin", "cann"])
def test_a_backend_of_another_target_is_named(backend: str) -> None:
    words = f"backend {backend} does not verify kernels in Triton; choose one of: interpreter, compile, cuda"
    with pytest.raises(UsageError, match=words):
        open_verifier(TRITON, NOBODY, backend)


@pytest.mark.parametrize(
    ("backend", "device"),
    [("twin", "ascend910b1"), ("interpreter", "nvidia_h200"), ("compile", "nvidia_h200")],
)
def test_a_backend_judges_for_the_device_of_its_target(backend: str, device: str) -> None:
    assert device_of(backend) == device
    if backend == "twin":
        with pytest.raises(UsageError, match="not supported yet"):
            device_of(backend, "nvidia_a100")
    else:
        assert device_of(backend, "ascend910b2") == "ascend910b2"


@pytest.mark.parametrize(
    ("target", "chip", "backend"),
    [("auto", "", "twin"), ("triton", "", "interpreter"), ("auto", "nvidia_l40s", "interpreter")],
)
def test_the_first_backend_of_the_target_judges(target: str, chip: str, backend: str) -> None:
    assert default_backend(Settings(target=target, chip=chip)) == backend
